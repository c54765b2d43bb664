//! The project that a command is about: its root, its settings, its store.

use crate::code::Code;
use crate::error::Error;
use crate::notice::NoticeView;
use crate::script_worker::ScriptWorker;
use lockgate_engine::run::command::{Actor, Caller, Channel, TerminalRule};
use lockgate_engine::time::Timestamp;
use lockgate_runner::config::Config;
use lockgate_runner::identity::{cli_actor, embedder_actor};
use lockgate_runner::perform::{OnLine, Performer};
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Runtime, SystemClock};
use lockgate_store::{Missing, PostgresStore, SqliteStore, Store};
use std::path::Path;
use std::sync::Arc;

/// How a project is opened.
#[derive(Clone)]
pub struct Options {
    /// Receives each line that a task prints.
    pub output: OnLine,
    /// Evaluates scripts and conditions.
    pub script_worker: ScriptWorker,
    /// The address of a PostgreSQL database that keeps the runs, whatever the settings say.
    pub database: Option<String>,
    /// Only reads: works on a disk that is full or read-only, too.
    pub read_only: bool,
}

impl Default for Options {
    /// Drops the output of tasks, and evaluates scripts with the `lockgate` program that is installed.
    fn default() -> Self {
        Self { output: Arc::new(|_, _, _| {}), script_worker: ScriptWorker::installed(), database: None, read_only: false }
    }
}

/// A project that is open.
pub struct Project {
    pub(crate) root: Root,
    pub(crate) config: Config,
    pub(crate) runtime: Runtime,
    warnings: Vec<String>,
    on_a_server: bool,
}

impl Project {
    /// Opens the project whose `.lockgate` is in this directory.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        Self::open_root(Root::at(dir), options)
    }

    /// Opens the project that a directory belongs to: its own, or that of the nearest directory above it.
    pub fn find(dir: &Path, options: Options) -> Result<Self, Error> {
        let root = Root::find(dir).ok_or_else(|| {
            let message = format!("there is no .lockgate in {} or above it", dir.display());
            Error::new(Code::ProjectNotFound, message).help("go to the project; `lockgate run FILE` begins one")
        })?;
        Self::open_root(root, options)
    }

    fn open_root(root: Root, options: Options) -> Result<Self, Error> {
        let config = Config::read(&root.config_file())?;
        let (mut warnings, server) = (Vec::new(), database(&config, &options));
        let on_a_server = server.is_some();
        let store: Arc<dyn Store> = match server {
            Some(url) => Arc::new(PostgresStore::connect(&url)?),
            None => {
                let open = if options.read_only { SqliteStore::open_read_only } else { SqliteStore::open_existing };
                let store = open(&root.state_dir())?;
                warnings = missing_commits(&store);
                Arc::new(store)
            }
        };
        Ok(Self { warnings, on_a_server, ..Self::with(root, config, store, options) })
    }

    /// Opens the project of this directory, or creates it.
    pub fn open_or_create(dir: &Path, options: Options) -> Result<Self, Error> {
        let root = Root::at(dir);
        root.prepare()?;
        let config = Config::read(&root.config_file())?;
        let server = database(&config, &options);
        let on_a_server = server.is_some();
        let store: Arc<dyn Store> = match server {
            Some(url) => Arc::new(PostgresStore::connect(&url)?),
            None => Arc::new(SqliteStore::open(&root.state_dir())?),
        };
        Ok(Self { on_a_server, ..Self::with(root, config, store, options) })
    }

    fn with(root: Root, config: Config, store: Arc<dyn Store>, options: Options) -> Self {
        let evaluator = options.script_worker.evaluator();
        let performer = Performer::new(root.clone(), config.clone(), store.clone(), evaluator, options.output);
        let performer = match options.read_only {
            true => performer,
            false => {
                let dir = root.dir().to_path_buf();
                performer.notifying(Arc::new(move |id, notice| NoticeView::of(id, notice, &dir).json()))
            }
        };
        let runtime = Runtime { store, perform: Arc::new(performer), clock: Arc::new(SystemClock) };
        Self { root, config, runtime, warnings: Vec::new(), on_a_server: false }
    }

    /// Where it is.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its store, its clock and what performs effects.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What people should know about its store.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether a database server keeps its runs, not a file in its directory.
    pub fn is_on_a_server(&self) -> bool {
        self.on_a_server
    }

    /// The time now, by its clock.
    pub fn now(&self) -> Timestamp {
        self.runtime.clock.now()
    }

    /// Its store.
    pub fn store(&self) -> &dyn Store {
        &*self.runtime.store
    }

    /// Whoever started this process, through this channel.
    pub fn caller(&self, channel: Channel) -> Caller {
        caller_at(&self.root, &self.config, channel)
    }

    /// A person whom the embedding program has identified, by this name. A program that runs inside a task cannot speak for anyone: what
    /// it sends is refused, and the attempt is recorded.
    pub fn person(&self, name: &str) -> Caller {
        let process = embedder_actor(&self.root, Channel::Program);
        Caller::new(Actor { name: name.to_owned(), uid: None, ..process }, TerminalRule::NotRequired)
    }
}

/// Whoever started this process, for a project that is not open.
pub fn caller_at(root: &Root, config: &Config, channel: Channel) -> Caller {
    Caller::new(cli_actor(root, channel), config.people.terminal_rule())
}

/// What a store lacks that was opened for reading; one that is to be written is not opened then.
fn missing_commits(store: &SqliteStore) -> Vec<String> {
    let missing = store.missing_at_the_end();
    let warning = |missing: &Missing| {
        format!(
            "run {}: {} recorded, and missing from the database; `lockgate explain commits-missing` says what to do",
            missing.run,
            missing.commits()
        )
    };
    missing.iter().map(warning).collect()
}

/// The address of the database that keeps the project's runs, where it is not the one in its directory.
pub fn database(config: &Config, options: &Options) -> Option<String> {
    let given = options.database.clone().filter(|url| !url.is_empty());
    given.or_else(|| config.database.as_ref().map(|url| url.reveal().to_owned()))
}
