//! The process that drives in the background: at most one for each project, started when a run is left to it, gone when nothing can
//! continue.
//!
//! It holds the lock on `.lockgate/background.lock` for as long as it looks for runs. A process that leaves a run records that first and
//! tries the lock second; the background process releases the lock first and looks for runs once more second. So no run is left that no
//! process looks for.

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

/// How long a process may take to start driving before the caller is told that none does.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is checked whether the process that was started has ended, or the one that had the turn.
const CHECK: Duration = Duration::from_millis(20);

/// How often it is checked whether the root is still where it was.
const CHECK_ROOT: Duration = Duration::from_secs(1);

/// Up to this size the log of the process is continued; a larger one is put aside first.
const LOG_BYTES: u64 = 1024 * 1024;

/// The file that has the messages of the background process.
pub fn log_file(root: &Root) -> PathBuf {
    root.state_dir().join("background.log")
}

/// The right to drive in the background, for one process at a time.
#[derive(Debug)]
pub struct BackgroundLock {
    file: File,
}

impl BackgroundLock {
    /// Takes the turn; gives the process id of the process that has it where that is another one.
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

    /// Lets others have it.
    pub fn release(self) -> io::Result<()> {
        self.file.unlock()
    }
}

/// What became of a run that was left to the background.
#[derive(Clone, Debug)]
#[must_use]
pub enum Left {
    /// A process drives it.
    DrivenBy(DriverInfo),
    /// A process has driven it already, until it waited or ended.
    Driven,
    /// Nothing drives it: the caller is inside a task, and a process that a task starts ends with the task.
    InsideTask(String),
    /// Nothing drives it yet, although a process was started; its log says why.
    NotYet(PathBuf),
}

impl Project {
    /// Makes sure that a process drives in the background, now that a run was left to it, and waits until it has taken the run. `program`
    /// is the program `lockgate`.
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

    /// Waits until the run is taken, so that the next reader does not find it abandoned.
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
            // The process that had the turn may have been about to end, without looking for runs again.
            if started.is_none()
                && caller.actor().inside_task.is_none()
                && let Ok(Ok(turn)) = BackgroundLock::take(&self.root)
            {
                turn.release().map_err(|error| not_started(run, &error))?;
                started = Some(program.start(&self.root).map_err(|error| not_started(run, &error))?);
            }
            let ended = started.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended.filter(|status| !status.success()) {
                let message = format!("run {run} is recorded, and the process that should drive it has ended ({status})");
                let help = format!("see {} for why; `lockgate worker` tries it here", log_file(&self.root).display());
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
    let message = format!("run {run} is recorded, and no process could be started that drives it: {error}");
    Error::new(Code::BackgroundFailed, message).help("drive it with `lockgate worker`")
}

/// The program `lockgate`, which is started to drive in the background.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

impl Program {
    /// This very program, where it is `lockgate`.
    pub fn this() -> io::Result<Self> {
        std::env::current_exe().map(Self)
    }

    /// The program at this path, or of this name.
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

/// Halts a driver, and ends, when the directory of the project is gone or another one is in its place.
pub async fn halt_when_moved(root: Root, halt: Halt) {
    let identity = || root.state_dir().metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
    let first = identity();
    while identity() == first {
        tokio::time::sleep(CHECK_ROOT).await;
    }
    halt.halt(HaltReason::RootMoved);
}
