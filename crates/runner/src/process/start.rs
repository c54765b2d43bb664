//! Starts a job: its session, its lock, its pipes.

use super::error::StartError;
use super::job_mark;
use super::lock;
use super::own_children::{self, OwnChild, Running};
use super::shell;
use super::survivors::MARK;
use super::table::{self, FileId};
use super::{Job, Stop};
use crate::sys::{self, Exit};
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

/// How often the lock is tried: a process that is being started elsewhere may briefly hold a copy of its descriptor.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);
/// How much a job can print before it has to wait for us, if the system lets us choose.
const PIPE_SIZE: usize = 256 * 1024;

/// The first process of a job. Dropping it kills its group, because no caller would wait for it any more.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    exit: Exit,
    pub(super) running: Arc<Running>,
    pub(super) lock: PathBuf,
    reaped: bool,
    /// Dropped last, when the process has been reaped.
    ours: OwnChild,
}

enum Refused {
    LockHeld,
    Failed(StartError),
}

pub(super) struct JobOutput {
    /// Stderr, and stdout if that is not read separately.
    pub(super) all: pipe::Receiver,
    /// Stdout, if it is read separately.
    pub(super) output: Option<pipe::Receiver>,
}

/// The write ends of the pipes.
struct Writers {
    all: OwnedFd,
    output: Option<OwnedFd>,
}

/// Starts a job; returns its first process and its output pipes. If `apart`, stdout has its own pipe.
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

/// Variables with which git tells its hooks about their repository. If Lockgate is started by a hook, its tasks must not work
/// in that repository but in the one around their directory.
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
    // open until `spawn` has returned, which is after exec.
    unsafe { command.pre_exec(move || lock::enter_session(descriptor, limit)) };
    let child = command.spawn().map_err(|error| Refused::Failed(why_not_spawned(job, error)))?;
    Ok((child, file))
}

/// Runs a program to its end in its own session, holding a lock like a job: if this process is killed meanwhile, the next
/// driver finds and stops the program by its lock. Blocks, and stops everything that the program leaves running. Returns
/// `None` if it was stopped.
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

/// How often to check whether the program has ended or was stopped.
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
                // At worst, unreadable output is missing from a message.
                tracing::debug!(%error, "cannot read the output of a program");
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
    // Processes that it left running may still hold the pipes.
    super::end_orphans(lock_path)?;
    let output =
        || std::process::Output { status, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() };
    Ok((!stopped).then(output))
}

/// Neither an argument nor a variable can contain a NUL.
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

/// A pipe that other children do not inherit.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    // The standard library's pipe is close-on-exec everywhere.
    let (reader, writer) = io::pipe()?;
    sys::set_pipe_size(&writer, PIPE_SIZE);
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader.into(), writer.into()))
}

/// An in-memory file as standard input: unlike a pipe it needs no writer and cannot break.
fn input(bytes: &[u8]) -> io::Result<File> {
    use std::io::{Seek, Write};
    let mut file = sys::nameless_file()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

impl Leader {
    /// Waits until the process has ended. It is not reaped yet, so that its pid and group are not reused.
    pub(super) async fn exited(&mut self) {
        self.exit.wait().await;
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        if let Some(group) = table::raw(self.running.leader)
            && let Err(error) = kill_process_group(group, signal)
        {
            // The only possible error is that all members are gone.
            tracing::trace!(group = self.running.leader, ?signal, %error, "no process is left to signal");
        }
    }

    /// Reaps the ended process and returns its exit status.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        self.reaped = true;
        self.child.wait()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal_group(Signal::KILL);
            // It takes a while to end, and drop cannot wait.
            self.ours.abandon();
        }
    }
}
