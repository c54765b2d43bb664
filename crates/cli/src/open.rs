//! Opens the project of a command.

use crate::error::CommandError;
use crate::{live, print};
use lockgate::code::Code;
use lockgate::project::{Options, database};
use lockgate::script_worker::ScriptWorker;
use lockgate_runner::config::{Config, DATABASE_VARIABLE};
use lockgate_runner::outbox::Courier;
use lockgate_runner::root::Root;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use lockgate::project::Project;

/// The time after which a message explains why the program has not exited yet.
const SLOW: Duration = Duration::from_secs(2);

/// Opens the project that a directory belongs to.
pub(crate) fn open(root: Option<&Path>) -> Result<Project, CommandError> {
    find(root, options())
}

/// Opens the project that a directory belongs to for reading, which also works on a full or read-only disk.
pub(crate) fn open_read_only(root: Option<&Path>) -> Result<Project, CommandError> {
    find(root, Options { read_only: true, ..options() })
}

fn find(root: Option<&Path>, options: Options) -> Result<Project, CommandError> {
    let project = match root {
        Some(dir) => Project::open(dir, options)?,
        None => Project::find(&current_folder()?, options)?,
    };
    project.warnings().iter().for_each(print::warn);
    remember_courier(&project);
    Ok(project)
}

/// Opens the project that a directory belongs to, or creates one there.
pub(crate) fn open_or_create(root: Option<&Path>) -> Result<Project, CommandError> {
    let project = Project::open_or_create(place(root)?.dir(), options())?;
    remember_courier(&project);
    Ok(project)
}

/// The couriers of all projects that this process has opened.
static COURIERS: Mutex<Vec<Arc<Courier>>> = Mutex::new(Vec::new());

fn remember_courier(project: &Project) {
    let courier = project.runtime().perform.courier().cloned();
    COURIERS.lock().unwrap_or_else(PoisonError::into_inner).extend(courier);
}

/// Delivers due notifications before the program exits. Ctrl+C skips a slow delivery.
pub(crate) async fn settle_notices() {
    let couriers = std::mem::take(&mut *COURIERS.lock().unwrap_or_else(PoisonError::into_inner));
    if couriers.is_empty() {
        return;
    }
    let all = async {
        for courier in &couriers {
            courier.settle().await;
        }
    };
    let slow = async {
        tokio::time::sleep(SLOW).await;
        print::say("delivering notifications; press Ctrl+C to leave them to the next command");
        std::future::pending::<()>().await
    };
    tokio::select! {
        () = all => {}
        () = slow => {}
        // This works even if another listener catches the signal.
        _ = tokio::signal::ctrl_c() => print::say("the next command delivers the remaining notifications"),
    }
}

/// The project that a directory belongs to, or the directory that would become one.
pub(crate) fn place(root: Option<&Path>) -> Result<Root, CommandError> {
    Ok(match root {
        Some(dir) => Root::at(dir),
        None => {
            let here = current_folder()?;
            Root::find(&here).unwrap_or_else(|| Root::at(&here))
        }
    })
}

/// Reads the settings of a project without opening it.
pub(crate) fn settings(root: Option<&Path>) -> Result<(Root, Config), CommandError> {
    let root = place(root)?;
    let config = Config::read(&root)?;
    Ok((root, config))
}

/// The URL of the database, unless the project uses the one in its directory.
pub(crate) fn database_of(config: &Config) -> Option<String> {
    database(config, &options())
}

/// The worker process that evaluates scripts: this program itself.
pub(crate) fn script_worker() -> ScriptWorker {
    ScriptWorker::this_program().unwrap_or_else(|_| ScriptWorker::installed())
}

pub(crate) fn options() -> Options {
    Options {
        output: Arc::new(live::line),
        script_worker: script_worker(),
        database: std::env::var(DATABASE_VARIABLE).ok(),
        read_only: false,
    }
}

/// The working directory of this process.
pub(crate) fn current_folder() -> Result<std::path::PathBuf, CommandError> {
    std::env::current_dir()
        .map_err(|error| CommandError::new(Code::RootNotFound, format!("the current directory cannot be determined: {error}")))
}
