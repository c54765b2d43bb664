//! The settings in `.lockgate/config.yaml`. Without the file, everything has its default.

mod agents;
mod database;
mod error;
mod limits;
mod logins;
mod notify;
mod people;
mod pipelines;
mod policy;
#[cfg(test)]
mod tests;

pub use database::{DATABASE_VARIABLE, DatabaseUrl};
pub use error::ConfigError;
pub use limits::{Background, Limits, MAX_CONCURRENT_RUNS, Script};
pub use notify::{Notifications, Notify, NotifyCommand};
pub use people::People;
pub use pipelines::Pipelines;

use lockgate_engine::spec::document::{self, Entry, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::{AgentSetting, Commit, Policy, Shell};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::path::Path;

/// Larger than any settings that somebody wrote.
const MAX_BYTES: u64 = 1_000_000;

/// As many as a workflow may ask for.
const MAX_PARALLEL: u32 = 100_000;

/// The settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Who may answer, and how.
    pub people: People,
    /// How many tasks of a run may run at once, where its workflow does not say; no limit when absent.
    pub max_parallel: Option<NonZeroU32>,
    /// What scripts and conditions may use.
    pub script: Script,
    /// How much is kept.
    pub limits: Limits,
    /// The process that drives in the background.
    pub background: Background,
    /// How people are notified.
    pub notify: Notifications,
    /// How agents are started, by name, where a workflow does not say.
    pub agents: BTreeMap<String, AgentSetting>,
    /// The PostgreSQL database that keeps the runs; without it they are kept beside the settings.
    pub database: Option<DatabaseUrl>,
    /// How missing logins show, besides what is known.
    pub logins: Vec<crate::auth_gate::Tool>,
    /// Which questions may be answered without a person, where a workflow does not say.
    pub policy: Policy,
    /// What holds for all pipelines.
    pub pipelines: Pipelines,
    /// The shell that runs commands, where a workflow does not say.
    pub shell: Option<Shell>,
    /// How what tasks change is committed, where a workflow does not say.
    pub commit: Commit,
}

impl Config {
    /// Reads the settings; a file that is not there gives the defaults.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match read_text(path) {
            Ok(Some(text)) => Self::parse(&text, path),
            Ok(None) => Ok(Self::default()),
            Err((why, help)) => {
                let message = format!("the settings cannot be read: {why}");
                Err(ConfigError { path: path.to_path_buf(), message, line: None, column: None, help: Some(help.to_owned()) })
            }
        }
    }

    /// Reads the settings from a text; the path is only for messages.
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
        let known = [
            "people",
            "max_parallel",
            "script",
            "limits",
            "background",
            "notify",
            "agents",
            "logins",
            "policy",
            "database",
            "pipelines",
            "shell",
            "commit",
        ];
        for setting in root.fields("the settings", example, &known)? {
            let value = &setting.value;
            match setting.key.as_str() {
                "people" => config.people.set(value)?,
                "max_parallel" => config.max_parallel = NonZeroU32::new(value.count("`max_parallel`", 1..=MAX_PARALLEL)?),
                "script" => config.script.set(value)?,
                "limits" => config.limits.set(value)?,
                "background" => config.background.set(value)?,
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
    Shell::parse(text).map_err(|(message, help)| value.problem(message, Some(help)))
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

/// The text of the file, without waiting for it should it be a pipe; or why it cannot be read, and what to do.
fn read_text(path: &Path) -> Result<Option<String>, (String, &'static str)> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => ("permission denied".to_owned(), "make the file readable for you"),
        io::ErrorKind::InvalidData => ("it is not UTF-8 text".to_owned(), "save it as UTF-8"),
        _ => (error.to_string(), "remove it to go on with the defaults"),
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "it is a folder" } else { "it is not a file" };
        return Err((what.to_owned(), "put a file there, or remove it to go on with the defaults"));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MAX_BYTES {
        return Err(("it is larger than 1 MB".to_owned(), "settings are a few lines; look whether this is the right file"));
    }
    Ok(Some(text))
}
