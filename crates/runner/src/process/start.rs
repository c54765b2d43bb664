//! The start of a job: its session, its lock, its pipes.

use super::error::StartError;
use super::job_mark;
use super::lock;
use super::own_children::{self, OwnChild, Running};
use super::shell;
use super::survivors::MARK;
use super::table::{self, FileId};
use super::{Job, Stop};
use rustix::process::{Signal, kill_process_group};
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;

/// How often the lock is tried: a process that is being started elsewhere may hold a copy of its descriptor for a moment.
const TRIES: u32 = 10;
/// How long between the tries.
const PAUSE: Duration = Duration::from_millis(10);
/// How much a job can print before it has to wait for us, where the system lets us choose.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 * 1024;

/// The first process of a job. Dropping it ends its group: nobody would wait for it any more.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    exit: Exit,
    pub(super) running: Arc<Running>,
    pub(super) lock: PathBuf,
    reaped: bool,
    /// Dropped last, when the process is no longer in the table.
    ours: OwnChild,
}

enum Refused {
    LockHeld,
    Failed(StartError),
}

/// What a job prints.
pub(super) struct JobOutput {
    /// Its errors, and its output where that is not read on its own.
    pub(super) all: pipe::Receiver,
    /// Its output, where that is read on its own.
    pub(super) output: Option<pipe::Receiver>,
}

/// The ends of the pipes that a job writes to.
struct Writers {
    all: OwnedFd,
    output: Option<OwnedFd>,
}

/// Starts a job and gives its first process and what it prints, or says why not. Its output comes on its own when `apart`.
pub(super) async fn start(job: &Job, apart: bool) -> Result<(Leader, JobOutput), StartError> {
    let lock = std::path::absolute(&job.lock).map_err(|error| StartError::LockPath { path: job.lock.clone(), error })?;
    let mut tries = 0;
    loop {
        let new_pipe = || output_pipe().map_err(StartError::Pipe);
        let (all, all_writer) = new_pipe()?;
        let (output, output_writer) = if apart { Some(new_pipe()?).unzip() } else { (None, None) };
        let writers = Writers { all: all_writer, output: output_writer };
        let spawned = own_children::spawn_job(|| spawn(job, &lock, writers), lock.clone().into_os_string());
        match spawned {
            Ok((child, ours, running)) => {
                let exit = Exit::of(&child);
                let mut leader = Leader { child, exit: Exit::Unknown, running, lock, reaped: false, ours };
                leader.exit = exit.map_err(StartError::Watch)?;
                let reader = |pipe: OwnedFd| pipe::Receiver::from_owned_fd(pipe).map_err(StartError::Output);
                return Ok((leader, JobOutput { all: reader(all)?, output: output.map(reader).transpose()? }));
            }
            Err(Refused::Failed(why)) => return Err(why),
            Err(Refused::LockHeld) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(Refused::LockHeld) => {
                let pid = lock::read(&lock).ok().flatten().and_then(|(pid, _)| pid);
                return Err(StartError::Locked { path: lock, pid });
            }
        }
    }
}

/// What git tells its hooks about the repository that they belong to. Whoever starts Lockgate in a hook must not have its tasks work in
/// that repository: they work in the one around their directory.
pub(crate) const OF_ANOTHER_REPOSITORY: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_QUARANTINE_PATH",
];

fn spawn(job: &Job, lock_path: &Path, writers: Writers) -> Result<(Child, FileId), Refused> {
    let no_lock = |error: io::Error| Refused::Failed(StartError::Lock { path: lock_path.to_path_buf(), error });
    let lock = lock::take(lock_path).map_err(no_lock)?.ok_or(Refused::LockHeld)?;
    lock::clear(&lock).map_err(no_lock)?;
    let file = FileId::of(&lock.metadata().map_err(no_lock)?);

    let no_stdio = |error: io::Error| Refused::Failed(StartError::Streams(error));
    let stdin = match &job.stdin {
        None => Stdio::null(),
        Some(bytes) => input(bytes).map_err(no_stdio)?.into(),
    };
    let mut command = shell::command_line(job.shell.as_ref(), &without_nul(&job.command), &shell::script_file(lock_path))
        .map_err(|error| Refused::Failed(error.into()))?;
    command.current_dir(&job.dir).stdin(stdin);
    let output = match writers.output {
        Some(output) => output,
        None => writers.all.try_clone().map_err(no_stdio)?,
    };
    command.stderr(writers.all).stdout(output);
    for name in OF_ANOTHER_REPOSITORY.into_iter().chain(job.remove_env.iter().map(String::as_str)) {
        command.env_remove(name);
    }
    command.envs(job.env.iter().map(|(name, value)| (name, without_nul(value).into_owned()))).env(MARK, lock_path);
    let (descriptor, limit) = (lock.as_raw_fd(), job_mark::of_job(lock_path));
    // SAFETY: `enter_session` only makes system calls that are safe after a fork, and allocates nothing; the descriptor stays
    // open until `spawn` has come back, which is after exec.
    unsafe { command.pre_exec(move || lock::enter_session(descriptor, limit)) };
    let child = command.spawn().map_err(|error| Refused::Failed(why_not_spawned(job, error)))?;
    Ok((child, file))
}

/// Runs a program to its end in a session of its own, holding a lock like a job: if this process is killed meanwhile, whoever takes over
/// ends the program by its lock. Blocks, and ends everything that the program leaves running. Nothing is returned where it was stopped.
pub fn run_locked(
    mut command: std::process::Command,
    lock_path: &Path,
    input: Option<File>,
    stop: &Stop,
) -> io::Result<Option<std::process::Output>> {
    let lock_path = std::path::absolute(lock_path)?;
    super::end_orphans(&lock_path)?;
    let spawn = || {
        let lock = lock::take(&lock_path)?.ok_or_else(|| io::Error::other(format!("{} is locked", lock_path.display())))?;
        lock::clear(&lock)?;
        let file = FileId::of(&lock.metadata()?);
        let descriptor = lock.as_raw_fd();
        let input = input.map_or_else(Stdio::null, Stdio::from);
        command.env(MARK, &lock_path).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let limit = job_mark::of_job(&lock_path);
        // SAFETY: as for the first process of a job.
        unsafe { command.pre_exec(move || lock::enter_session(descriptor, limit)) };
        Ok::<_, io::Error>((command.spawn()?, file))
    };
    let (child, ours, _) = own_children::spawn_job(spawn, lock_path.clone().into_os_string())?;
    let output = output_unless_stopped(child, &lock_path, stop);
    drop(ours);
    super::end_orphans(&lock_path)?;
    super::remove_lock(&lock_path);
    output
}

/// How often to look whether the program has ended, or was stopped.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

fn output_unless_stopped(
    mut child: std::process::Child,
    lock_path: &Path,
    stop: &Stop,
) -> io::Result<Option<std::process::Output>> {
    let read = |pipe: Option<Box<dyn io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(Err(error)) = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes)) {
                // What cannot be read is missing from a message at most.
                tracing::debug!(%error, "the output of a program could not be read");
            }
            bytes
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let (status, stopped) = loop {
        if let Some(status) = child.try_wait()? {
            break (status, false);
        }
        if stop.is_stopped() {
            super::end_orphans(lock_path)?;
            break (child.wait()?, true);
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    // What it left running may still hold the pipes.
    super::end_orphans(lock_path)?;
    let output =
        || std::process::Output { status, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() };
    Ok((!stopped).then(output))
}

/// Neither an argument nor a variable can hold a NUL.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

fn why_not_spawned(job: &Job, error: io::Error) -> StartError {
    if !job.dir.is_dir() {
        return StartError::NoDirectory(job.dir.clone());
    }
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::TOOBIG) => StartError::TooLong,
        _ => StartError::Spawn { shell: shell::shell_text(job.shell.as_ref()), error },
    }
}

/// A pipe that is not handed down to other children.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    // The standard library's pipe closes on exec everywhere.
    let (reader, writer) = io::pipe()?;
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_SIZE) {
        // A smaller pipe works as well.
        tracing::trace!(%error, "the pipe keeps its size");
    }
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader.into(), writer.into()))
}

/// A file in memory as the standard input: unlike a pipe it needs nobody to feed it, and cannot break.
fn input(bytes: &[u8]) -> io::Result<File> {
    use std::io::{Seek, Write};
    let mut file = nameless_file()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn nameless_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless_file() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = std::env::temp_dir().join(format!("lockgate-stdin-{}-{:016x}", std::process::id(), rand::random::<u64>()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

impl Leader {
    /// Waits until the process has ended. It stays in the table, so that its pid and group are given to nobody else.
    pub(super) async fn exited(&mut self) {
        self.exit.wait().await;
    }

    /// Sends a signal to the job's group.
    pub(super) fn signal_group(&self, signal: Signal) {
        if let Some(group) = table::raw(self.running.leader)
            && let Err(error) = kill_process_group(group, signal)
        {
            // The only error that can occur is that all members are gone.
            tracing::trace!(group = self.running.leader, ?signal, %error, "no one is left to signal");
        }
    }

    /// Takes the exit status of the ended process, which then leaves the table.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        self.reaped = true;
        self.child.wait()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal_group(Signal::KILL);
            // It takes a moment to be gone, and nobody can wait here.
            self.ours.abandon();
        }
    }
}

/// Tells that a process has ended, without reaping it.
#[derive(Debug)]
enum Exit {
    /// A descriptor that becomes readable when the process ends.
    #[cfg(target_os = "linux")]
    Handle(tokio::io::unix::AsyncFd<OwnedFd>),
    /// Signals that say that some child has ended.
    #[cfg(not(target_os = "linux"))]
    Signals(tokio::signal::unix::Signal, u32),
    /// Not watched.
    Unknown,
}

impl Exit {
    #[cfg(target_os = "linux")]
    fn of(child: &Child) -> io::Result<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        use tokio::io::unix::AsyncFd;
        let pid = table::raw(child.id()).ok_or(io::ErrorKind::InvalidInput)?;
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        // SAFETY: the handle owns its descriptor and gives the same one for as long as it lives; nobody else closes it.
        let watched = unsafe { AsyncFd::register_with_interest(handle, tokio::io::Interest::READABLE) };
        Ok(Self::Handle(watched?))
    }

    #[cfg(not(target_os = "linux"))]
    fn of(child: &Child) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self::Signals(signal(SignalKind::child())?, child.id()))
    }

    async fn wait(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Handle(handle) => {
                if let Err(error) = handle.readable().await {
                    // Only a runtime that is shutting down gives an error; nothing would be waited for then.
                    tracing::debug!(%error, "the end of a process is no longer waited for");
                }
            }
            #[cfg(not(target_os = "linux"))]
            Self::Signals(signals, pid) => {
                use rustix::process::{WaitId, WaitIdOptions, waitid};
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                let ended = |pid: u32| table::raw(pid).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)));
                while !ended(*pid) {
                    signals.recv().await;
                }
            }
            Self::Unknown => std::future::pending().await,
        }
    }
}
