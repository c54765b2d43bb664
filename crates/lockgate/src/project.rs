//! Opening a project: its root directory, settings and store.

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

/// Options for opening a project.
#[derive(Clone)]
pub struct Options {
    /// Receives each line of output from tasks.
    pub output: OnLine,
    /// The program that evaluates scripts and conditions.
    pub script_worker: ScriptWorker,
    /// The URL of a PostgreSQL database for the runs. Overrides the settings.
    pub database: Option<String>,
    /// Opens the project for reading only. This works even if the disk is full or read-only.
    pub read_only: bool,
}

impl Default for Options {
    /// Discards the output of tasks, and evaluates scripts with the installed `lockgate` program.
    fn default() -> Self {
        Self { output: Arc::new(|_, _, _| {}), script_worker: ScriptWorker::installed(), database: None, read_only: false }
    }
}

/// An open project.
pub struct Project {
    pub(crate) root: Root,
    pub(crate) config: Config,
    pub(crate) runtime: Runtime,
    warnings: Vec<String>,
    on_a_server: bool,
}

impl Project {
    /// Opens the project whose `.lockgate` directory is in `dir`.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        Self::open_root(Root::at(dir), options)
    }

    /// Opens the project that contains `dir`: the nearest one at or above it.
    pub fn find(dir: &Path, options: Options) -> Result<Self, Error> {
        let root = Root::find(dir).ok_or_else(|| {
            let message = format!("there is no .lockgate in {} or above it", dir.display());
            Error::new(Code::ProjectNotFound, message)
                .help("change to a project's directory, or create a project with `lockgate run FILE`")
        })?;
        Self::open_root(root, options)
    }

    fn open_root(root: Root, options: Options) -> Result<Self, Error> {
        let config = Config::read(&root)?;
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

    /// Opens the project in `dir`, or creates it.
    pub fn open_or_create(dir: &Path, options: Options) -> Result<Self, Error> {
        let root = Root::at(dir);
        root.prepare()?;
        let config = Config::read(&root)?;
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

    /// The root directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The store, the clock and the performer of effects.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Warnings about the store, to show to people.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the runs are in a database server, rather than in a file in the project.
    pub fn is_on_a_server(&self) -> bool {
        self.on_a_server
    }

    /// The current time, according to the clock of the project.
    pub fn now(&self) -> Timestamp {
        self.runtime.clock.now()
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        &*self.runtime.store
    }

    /// The caller that started this process, acting through this channel.
    pub fn caller(&self, channel: Channel) -> Caller {
        caller_at(&self.root, &self.config, channel)
    }

    /// A person whom your program has identified. If your program runs inside a task, it cannot act for a person: its commands
    /// are refused, and the attempts are recorded.
    pub fn person(&self, name: &str) -> Caller {
        let process = embedder_actor(&self.root, Channel::Program);
        Caller::new(Actor { name: name.to_owned(), uid: None, ..process }, TerminalRule::NotRequired)
    }
}

/// Like [`Project::caller`], for a project that is not open.
pub fn caller_at(root: &Root, config: &Config, channel: Channel) -> Caller {
    Caller::new(cli_actor(root, channel), config.people.terminal_rule())
}

/// Warnings about commits that are missing from a read-only store. A writable store is not opened in that case.
fn missing_commits(store: &SqliteStore) -> Vec<String> {
    let missing = store.missing_at_the_end();
    let warning = |missing: &Missing| {
        format!(
            "run {}: {} recorded but missing from the database; see `lockgate explain commits-missing`",
            missing.run,
            missing.commits()
        )
    };
    missing.iter().map(warning).collect()
}

/// The URL of the database server that keeps the project's runs, if there is one.
pub fn database(config: &Config, options: &Options) -> Option<String> {
    let given = options.database.clone().filter(|url| !url.is_empty());
    given.or_else(|| config.database.as_ref().map(|url| url.reveal().to_owned()))
}
