//! The settings in `.lockgate/config.yaml`. Without the file, all defaults apply.

mod agents;
mod database;
mod effective;
mod error;
mod limits;
mod logins;
mod notify;
mod people;
mod pipelines;
mod policy;
mod retention;
#[cfg(test)]
mod tests;

pub use database::{DATABASE_VARIABLE, DatabaseUrl};
pub use effective::{EffectiveSetting, SettingSource, effective_settings};
pub use error::ConfigError;
pub use limits::{Background, Limits, MAX_CONCURRENT_RUNS, Script};
pub use notify::{Notifications, Notify, NotifyCommand};
pub use people::People;
pub use pipelines::Pipelines;
pub use retention::Retention;

use lockgate_engine::spec::document::{self, Entry, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::{AgentSetting, Commit, Policy, Shell};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::path::Path;

/// Larger than any real settings file.
const MAX_BYTES: u64 = 1_000_000;

const MAX_PARALLEL: u32 = 100_000;

/// The keys of the settings.
const KEYS: [&str; 14] = [
    "people",
    "max_parallel",
    "script",
    "limits",
    "background",
    "retention",
    "notify",
    "agents",
    "logins",
    "policy",
    "database",
    "pipelines",
    "shell",
    "commit",
];

/// The settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Who may answer, and how.
    pub people: People,
    /// How many tasks of a run may run concurrently unless its workflow says otherwise; `None` for no limit.
    pub max_parallel: Option<NonZeroU32>,
    /// Limits of scripts and conditions.
    pub script: Script,
    /// Storage limits.
    pub limits: Limits,
    pub background: Background,
    /// How long finished runs are kept.
    pub retention: Retention,
    pub notify: Notifications,
    /// Agents by name, which a workflow may override.
    pub agents: BTreeMap<String, AgentSetting>,
    /// The PostgreSQL database for runs; without it they are stored next to the settings.
    pub database: Option<DatabaseUrl>,
    /// Additional tools whose missing logins are detected.
    pub logins: Vec<crate::auth_gate::Tool>,
    /// Which questions may be answered without a person, unless a workflow says otherwise.
    pub policy: Policy,
    /// Defaults for all pipelines.
    pub pipelines: Pipelines,
    /// The shell for commands, unless a workflow says otherwise.
    pub shell: Option<Shell>,
    /// How task changes are committed, unless a workflow says otherwise.
    pub commit: Commit,
}

impl Config {
    /// Reads the settings; a missing file gives the defaults.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match read_file(path)? {
            Some(text) => Self::parse(&text, path),
            None => Ok(Self::default()),
        }
    }

    /// Parses the settings; the path is only used in messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let read = document::read(text).and_then(|root| Self::of(&root));
        read.map_err(|problem| ConfigError {
            path: path.to_path_buf(),
            message: problem.message,
            line: Some(problem.line),
            column: Some(problem.column),
            help: problem.help,
        })
    }

    fn of(root: &Value<'_>) -> Result<Self, Problem> {
        let mut config = Self::default();
        if root.is_nothing() {
            return Ok(config);
        }
        let example = "people: { require_terminal: false }";
        for setting in root.fields("the settings", example, &KEYS)? {
            let value = &setting.value;
            match setting.key.as_str() {
                "people" => config.people.set(value)?,
                "max_parallel" => config.max_parallel = NonZeroU32::new(value.count("`max_parallel`", 1..=MAX_PARALLEL)?),
                "script" => config.script.set(value)?,
                "limits" => config.limits.set(value)?,
                "background" => config.background.set(value)?,
                "retention" => config.retention.set(value)?,
                "notify" => config.notify = Notifications::of(value)?,
                "agents" => config.agents = agents::read(value)?,
                "logins" => config.logins = logins::read(value)?,
                "policy" => config.policy = policy::read(value)?,
                "pipelines" => config.pipelines.set(value)?,
                "shell" => config.shell = Some(shell(value)?),
                "commit" => config.commit = commit(value)?,
                _ => config.database = Some(DatabaseUrl::of(value)?),
            }
        }
        Ok(config)
    }
}

fn shell(value: &Value<'_>) -> Result<Shell, Problem> {
    let text = value.text().ok_or_else(|| value.problem("`shell` must be text", Some("write `bash` or `sh`".to_owned())))?;
    Shell::parse(text).map_err(|wrong| value.problem(wrong.message, Some(wrong.help)))
}

fn commit(value: &Value<'_>) -> Result<Commit, Problem> {
    const EXAMPLE: &str = "{ message: 'feat({{phase.id}}): {{task.name}}', hooks: true }";
    let mut commit = Commit::default();
    for Entry { key, value, .. } in value.fields("`commit`", EXAMPLE, &["message", "hooks"])? {
        match key.as_str() {
            "message" => {
                let text = value.text().filter(|text| !text.trim().is_empty());
                let problem = || value.problem("`message` must be text", Some(format!("write `{EXAMPLE}`")));
                commit.message = Some(text.ok_or_else(problem)?.to_owned());
            }
            _ => commit.hooks = Some(value.boolean("`hooks`")?),
        }
    }
    Ok(commit)
}

/// The text of the settings; `None` if there is no file.
fn read_file(path: &Path) -> Result<Option<String>, ConfigError> {
    read_text(path).map_err(|error| {
        let (message, help) = (format!("the settings cannot be read: {error}"), error.help().to_owned());
        ConfigError { path: path.to_path_buf(), message, line: None, column: None, help: Some(help) }
    })
}

#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("permission denied")]
    Denied,
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("it is a directory")]
    Directory,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is larger than 1 MB")]
    TooLarge,
    #[error(transparent)]
    Io(io::Error),
}

impl Unreadable {
    fn help(&self) -> &'static str {
        match self {
            Self::Denied => "make the file readable",
            Self::NotText => "save it as UTF-8",
            Self::Directory | Self::NotAFile => "replace it with a file, or remove it to use the defaults",
            Self::TooLarge => "settings are a few lines; check whether this is the right file",
            Self::Io(_) => "remove it to use the defaults",
        }
    }
}

/// The text of the file. A pipe is not opened, because that could block.
fn read_text(path: &Path) -> Result<Option<String>, Unreadable> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => Unreadable::Denied,
        io::ErrorKind::InvalidData => Unreadable::NotText,
        _ => Unreadable::Io(error),
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() {
        return Err(if metadata.is_dir() { Unreadable::Directory } else { Unreadable::NotAFile });
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MAX_BYTES {
        return Err(Unreadable::TooLarge);
    }
    Ok(Some(text))
}
