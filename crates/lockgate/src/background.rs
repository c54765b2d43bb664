//! The background process, which drives detached runs. A project has at most one. It starts when a run is detached, and exits
//! when no run can continue.
//!
//! The process holds the lock on `.lockgate/background.lock` while it scans for runs. To prevent a race, a detaching process
//! records the run before it tries the lock, and the background process scans once more after it has released the lock. So every
//! detached run is found.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::run_status::Changes;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Caller;
use lockgate_runner::driver::{Halt, HaltReason};
use lockgate_runner::root::Root;
use lockgate_store::DriverInfo;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long to wait for the background process to claim the run before reporting that it did not.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// How often to check whether the background process has exited.
const CHECK: Duration = Duration::from_millis(20);

/// How often to check whether the project has been moved.
const CHECK_ROOT: Duration = Duration::from_secs(1);

/// A log larger than this is rotated when the background process starts.
const LOG_BYTES: u64 = 1024 * 1024;

/// The log file of the background process.
pub fn log_file(root: &Root) -> PathBuf {
    root.state_dir().join("background.log")
}

/// The lock that allows one process to drive runs in the background.
#[derive(Debug)]
pub struct BackgroundLock {
    file: File,
}

impl BackgroundLock {
    /// Takes the lock. If another process holds it, returns the id of that process.
    pub fn take(root: &Root) -> io::Result<Result<Self, u32>> {
        let path = root.state_dir().join("background.lock");
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

    /// Releases the lock, so that another process can take it.
    pub fn release(self) -> io::Result<()> {
        self.file.unlock()
    }
}

/// The result of detaching a run.
#[derive(Clone, Debug)]
#[must_use]
pub enum Left {
    /// A process drives it.
    DrivenBy(DriverInfo),
    /// A process has already driven it until it waited or ended.
    Driven,
    /// Nothing drives it, because the caller is inside a task, and a background process would end with the task.
    InsideTask(String),
    /// Nothing drives it yet, although a process was started. See its log at this path.
    NotYet(PathBuf),
}

impl Project {
    /// Makes sure that a background process drives a detached run, and waits until it has claimed the run. `program` is the
    /// `lockgate` executable to start if none is running.
    pub async fn ensure_driven(&self, run: &RunId, program: &Program, caller: &Caller) -> Result<Left, Error> {
        let failed = |error: io::Error| not_started(run, &error);
        let started = match BackgroundLock::take(&self.root).map_err(failed)? {
            Ok(turn) => {
                turn.release().map_err(failed)?;
                if let Some(task) = &caller.actor().inside_task {
                    return Ok(Left::InsideTask(task.clone()));
                }
                Some(program.start(&self.root).map_err(failed)?)
            }
            Err(_) => None,
        };
        self.until_driven(run, program, caller, started).await
    }

    /// Waits until the run is claimed, so that the next reader does not see it as abandoned.
    async fn until_driven(
        &self,
        run: &RunId,
        program: &Program,
        caller: &Caller,
        mut started: Option<Child>,
    ) -> Result<Left, Error> {
        let since = Instant::now();
        let mut changes = Changes::of(self.store(), run);
        loop {
            if let Some(by) = self.store().driver_of(run).await? {
                return Ok(Left::DrivenBy(by));
            }
            let now = self.store().find_runs(run.as_str()).await?;
            if now.iter().any(|found| found.row.run == *run && !found.row.status.is(Status::Running)) {
                return Ok(Left::Driven);
            }
            // The process that held the lock may have been about to exit without another scan.
            if started.is_none()
                && caller.actor().inside_task.is_none()
                && let Ok(Ok(turn)) = BackgroundLock::take(&self.root)
            {
                turn.release().map_err(|error| not_started(run, &error))?;
                started = Some(program.start(&self.root).map_err(|error| not_started(run, &error))?);
            }
            let ended = started.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended.filter(|status| !status.success()) {
                let message = format!("run {run} is recorded, but its background process exited ({status})");
                let help = format!("see {} for the reason; drive it here with `lockgate worker`", log_file(&self.root).display());
                return Err(Error::new(Code::BackgroundFailed, message).help(help));
            }
            if since.elapsed() > STARTS_WITHIN {
                return Ok(Left::NotYet(log_file(&self.root)));
            }
            tokio::select! {
                changed = changes.next() => changed?,
                () = tokio::time::sleep(CHECK) => {}
            }
        }
    }
}

fn not_started(run: &RunId, error: &io::Error) -> Error {
    let message = format!("run {run} is recorded, but its background process could not be started: {error}");
    Error::new(Code::BackgroundFailed, message).help("drive it with `lockgate worker`")
}

/// The `lockgate` executable, which is started as the background process.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

impl Program {
    /// The current executable, if it is `lockgate`.
    pub fn this() -> io::Result<Self> {
        std::env::current_exe().map(Self)
    }

    /// The executable with this path or name.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    fn start(&self, root: &Root) -> io::Result<Child> {
        let log = log_file(root);
        if log.metadata().is_ok_and(|metadata| metadata.len() > LOG_BYTES) {
            std::fs::rename(&log, log.with_extension("log.1"))?;
        }
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        Command::new(&self.0)
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
}

/// Halts a driver and returns once the project directory has been removed or replaced.
pub async fn halt_when_moved(root: Root, halt: Halt) {
    let identity = || root.state_dir().metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
    let first = identity();
    while identity() == first {
        tokio::time::sleep(CHECK_ROOT).await;
    }
    halt.halt(HaltReason::RootMoved);
}
