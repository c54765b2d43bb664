//! The process that drives in the background: at most one for each root, begun when a run is left to it, gone when nothing can go on.
//!
//! It holds the lock on `.lockgate/background.lock` for as long as it looks for runs. Whoever leaves a run records that first and tries the
//! lock second; the process lets go of the lock first and looks for runs once more second: so no run is left that nobody looks for.

use crate::error::CommandError;
use crate::open::Project;
use crate::print::{self, HELP, STRONG, styled};
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Channel;
use lockgate_runner::root::Root;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long its beginning may take before somebody is told that it does.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Up to this size the log of the process is continued; a larger one makes room for a new one.
const LOG_BYTES: u64 = 1024 * 1024;

/// What the process tells.
pub(crate) fn log_file(root: &Root) -> PathBuf {
    root.folder().join("background.log")
}

/// The right to drive in the background, for one process at a time.
#[derive(Debug)]
pub(crate) struct BackgroundLock {
    file: File,
}

impl BackgroundLock {
    /// Takes the turn; gives the process id of whoever has it where that is another one.
    pub(crate) fn take(root: &Root) -> io::Result<Result<Self, u32>> {
        let path = root.folder().join("background.lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "{}", std::process::id())?;
                Ok(Ok(Self { file }))
            }
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid)?;
                Ok(Err(pid.trim().parse().unwrap_or(0)))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Lets others have it.
    pub(crate) fn release(self) -> io::Result<()> {
        self.file.unlock()
    }
}

/// What became of a run that was left to the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Pickup {
    /// A process drives it, or has driven it already.
    Driven,
    /// Nothing drives it, and that was said.
    NotDriven,
}

/// Sees to it that a process drives in the background, now that a run was left to it, and tells what becomes of the run.
pub(crate) async fn ensure_driven(project: &Project, run: &RunId) -> Result<Pickup, CommandError> {
    let failed = |error: io::Error| spawn_error(run, &error);
    let lock = match BackgroundLock::take(&project.root).map_err(failed)? {
        Ok(lock) => lock,
        Err(_) => return wait_until_driven(project, run, None).await,
    };
    lock.release().map_err(failed)?;
    if let Some(task) = &project.caller(Channel::Command).actor().inside_task {
        let task = sanitize::line(task).into_owned();
        print::warn(format_args!(
            "run {run} is recorded, and nothing drives it: a process that task {task} started would end with the task"
        ));
        print::note("start one outside of tasks: `lockgate worker`");
        return Ok(Pickup::NotDriven);
    }
    wait_until_driven(project, run, Some(spawn(&project.root).map_err(failed)?)).await
}

fn spawn_error(run: &RunId, error: &io::Error) -> CommandError {
    let message = format!("run {run} is recorded, and no process could be started that drives it: {error}");
    CommandError::new(Code::BackgroundFailed, message).help("drive it with `lockgate worker`")
}

/// Whether a process that is started here would outlive this one; one that a task starts ends with the task.
fn may_spawn(project: &Project) -> bool {
    project.caller(Channel::Command).actor().inside_task.is_none()
}

/// Waits until the run is taken, so that whoever looks next does not find it abandoned.
async fn wait_until_driven(project: &Project, run: &RunId, mut child_process: Option<Child>) -> Result<Pickup, CommandError> {
    let log = log_file(&project.root);
    let began = Instant::now();
    loop {
        if let Some(by) = project.store().driver_of(run).await? {
            print::note(format_args!("process {} drives run {run} in the background", by.pid));
            return Ok(Pickup::Driven);
        }
        let now = project.store().find_runs(run.as_str()).await?;
        if now.iter().any(|found| found.row.run == *run && !found.row.status.is(Status::Running)) {
            return Ok(Pickup::Driven);
        }
        // Whoever had the turn may have been about to end, without looking for runs again.
        if child_process.is_none()
            && may_spawn(project)
            && let Ok(Ok(lock)) = BackgroundLock::take(&project.root)
        {
            lock.release().map_err(|error| spawn_error(run, &error))?;
            child_process = Some(spawn(&project.root).map_err(|error| spawn_error(run, &error))?);
        }
        let gone = child_process.as_mut().and_then(|child| child.try_wait().ok().flatten());
        if let Some(status) = gone.filter(|status| !status.success()) {
            let message = format!("run {run} is recorded, and the process that should drive it has ended ({status})");
            let help = format!("see {} for why; `lockgate worker` tries it here", log.display());
            return Err(CommandError::new(Code::BackgroundFailed, message).help(help));
        }
        if began.elapsed() > START_TIMEOUT {
            print::warn(format_args!("run {run} is recorded, and nothing drives it yet; see {} for why", log.display()));
            return Ok(Pickup::NotDriven);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn spawn(root: &Root) -> io::Result<Child> {
    let log = log_file(root);
    if log.metadata().is_ok_and(|metadata| metadata.len() > LOG_BYTES) {
        std::fs::rename(&log, log.with_extension("log.1"))?;
    }
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    Command::new(std::env::current_exe()?)
        .arg("--root")
        .arg(root.dir())
        .args(["worker", "--in-background"])
        .current_dir(root.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .inspect(|child| tracing::info!(pid = child.id(), "background process started"))
}

/// Tells how to follow a run that was left to the background.
pub(crate) fn print_next_commands(run: &RunId) {
    print::say(format_args!("run {} goes on in the background", styled(STRONG, run)));
    for (what, command) in [("watch it", "watch"), ("wait for it", "wait"), ("see what it waits for", "why")] {
        print::say(format_args!("  {what}: {}", styled(HELP, format_args!("lockgate {command} {run}"))));
    }
}
