//! The project that a command is about: its root, its settings, its store.

use crate::code::Code;
use crate::trouble::Trouble;
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::Refusal;
use lockgate_engine::run::command::{Actor, Way};
use lockgate_engine::run::event::RefusedAttempt;
use lockgate_engine::run::refusal::may_decide;
use lockgate_engine::run::state::REFUSED_ATTEMPTS_KEPT;
use lockgate_runner::config::{Config, DATABASE_VARIABLE};
use lockgate_runner::perform::Performer;
use lockgate_runner::person::at_the_command_line;
use lockgate_runner::refused::{self, Kept};
use lockgate_runner::root::Root;
use lockgate_runner::script::{Evaluator, WorkerCommand};
use lockgate_runner::world::{SystemClock, World};
use lockgate_store::{PostgresStore, SqliteStore, Store, StoreError};
use std::path::Path;
use std::sync::Arc;

/// The hidden command that makes this program a worker for scripts.
pub(crate) const WORKER: &str = "script-worker";

/// A project that is open.
pub(crate) struct Project {
    /// Where it lies.
    pub(crate) root: Root,
    /// Its settings.
    pub(crate) config: Config,
    /// Its store and all that acts on it.
    pub(crate) world: World,
}

impl Project {
    /// Opens the project that a folder belongs to.
    pub(crate) fn open(root: Option<&Path>) -> Result<Self, Trouble> {
        Self::find(root, SqliteStore::open_existing)
    }

    /// Opens the project that a folder belongs to for a command that only reads: also on a disk that is full or read-only.
    pub(crate) fn open_to_read(root: Option<&Path>) -> Result<Self, Trouble> {
        Self::find(root, SqliteStore::open_to_read)
    }

    fn find(root: Option<&Path>, in_folder: fn(&Path) -> Result<SqliteStore, StoreError>) -> Result<Self, Trouble> {
        let root = match root {
            Some(dir) => Root::at(dir),
            None => {
                let here = current_folder()?;
                Root::find(&here).ok_or_else(|| {
                    let message = format!("there is no .lockgate in {} or above it", here.display());
                    Trouble::new(Code::NoProject, message)
                        .help("go to the project, or name it with --root; `lockgate run FILE` begins one")
                })?
            }
        };
        let config = Config::read(&root.config_file())?;
        let store: Arc<dyn Store> = match database(&config) {
            Some(url) => Arc::new(PostgresStore::connect(&url)?),
            None => Arc::new(warned(in_folder(&root.folder())?)),
        };
        Ok(Self::with(root, config, store))
    }

    /// Opens the project that a folder belongs to, or makes one there.
    pub(crate) fn open_or_make(root: Option<&Path>) -> Result<Self, Trouble> {
        let root = match root {
            Some(dir) => Root::at(dir),
            None => {
                let here = current_folder()?;
                Root::find(&here).unwrap_or_else(|| Root::at(&here))
            }
        };
        root.prepare()?;
        let config = Config::read(&root.config_file())?;
        let store: Arc<dyn Store> = match database(&config) {
            Some(url) => Arc::new(PostgresStore::connect(&url)?),
            None => Arc::new(SqliteStore::open(&root.folder())?),
        };
        Ok(Self::with(root, config, store))
    }

    fn with(root: Root, config: Config, store: Arc<dyn Store>) -> Self {
        let performer = Performer::new(root.clone(), config.clone(), store.clone(), evaluator(), Arc::new(crate::live::line));
        let world = World { store, perform: Arc::new(performer), clock: Arc::new(SystemClock) };
        Self { root, config, world }
    }

    /// Its store.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.world.store
    }

    /// Whoever started this process, coming by this way.
    pub(crate) fn actor(&self, way: Way) -> Actor {
        at_the_command_line(&self.root, way)
    }

    /// Whether a person is believed only at a controlling terminal.
    pub(crate) fn require_terminal(&self) -> bool {
        self.config.people.require_terminal
    }

    /// Whether an actor may decide about a run. A refused attempt becomes an event of that run.
    pub(crate) async fn may_decide(&self, actor: &Actor, run: &RunId, what: &str) -> Result<(), Trouble> {
        match may_decide(actor, self.require_terminal(), what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse(actor, run, what, None, refusal).await),
        }
    }

    /// A refusal as an error. An attempt by a caller who may not decide is recorded in the history of the run; other refusals are not.
    pub(crate) async fn refuse(
        &self,
        actor: &Actor,
        run: &RunId,
        what: &str,
        hold: Option<&HoldId>,
        refusal: Refusal,
    ) -> Trouble {
        if !refusal.is_about_who_asks() {
            return refusal.into();
        }
        let attempt = RefusedAttempt::new(what, hold.cloned(), refusal.to_string());
        let trouble = Trouble::from(refusal);
        match refused::record(&self.world, &self.root, run, actor.clone(), attempt).await {
            Ok(Kept::AsEvent(_)) => trouble.help(format!("this attempt is recorded in the history of run {run}")),
            Ok(Kept::Counted(number)) => trouble.help(format!(
                "this is refused attempt {number} on run {run}: it is counted; after {REFUSED_ATTEMPTS_KEPT} attempts the history records one at each doubling"
            )),
            Ok(Kept::NotCounted) => trouble.help(format!(
                "this attempt is not recorded: the history of run {run} has {REFUSED_ATTEMPTS_KEPT} already, and this project has no folder of the run to count more in"
            )),
            Err(error) => {
                crate::print::warn(format_args!("this attempt could not be recorded in the history: {error}"));
                trouble
            }
        }
    }
}

/// Warns of what a store lacks that was opened for reading; one that is to be written is not opened then.
fn warned(store: SqliteStore) -> SqliteStore {
    for missing in store.missing_at_the_end() {
        crate::print::warn(format_args!(
            "run {}: {} recorded, and missing from the database; `lockgate explain commits-missing` says what to do",
            missing.run,
            missing.commits()
        ));
    }
    store
}

/// What evaluates scripts: this program again, as a worker.
pub(crate) fn evaluator() -> Evaluator {
    let program = std::env::current_exe().unwrap_or_else(|_| "lockgate".into());
    Evaluator::new(WorkerCommand { program, args: vec![WORKER.into()], env: Vec::new() })
}

/// The address of the database that keeps the project's runs, where it is not the one in its folder.
pub(crate) fn database(config: &Config) -> Option<String> {
    let given = std::env::var(DATABASE_VARIABLE).ok().filter(|url| !url.is_empty());
    given.or_else(|| config.database.as_ref().map(|url| url.reveal().to_owned()))
}

/// Where this process was started.
pub(crate) fn current_folder() -> Result<std::path::PathBuf, Trouble> {
    std::env::current_dir().map_err(|error| Trouble::new(Code::NoFolder, format!("the current folder cannot be found: {error}")))
}
