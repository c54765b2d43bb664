//! The settings in `.lockgate/config.yaml`, and those of snapshots in `.claude/checkpoint-config.yaml`. Without the files, all
//! defaults apply.

mod agents;
mod checkpoint;
mod database;
mod effective;
mod error;
mod file;
mod limits;
mod logins;
mod notify;
mod people;
mod pipelines;
mod policy;
mod retention;
#[cfg(test)]
mod tests;

pub use checkpoint::{CheckpointSettings, CheckpointStorage, CheckpointTriggers, DEFAULT_LOCATION, Location};
pub use database::{DATABASE_VARIABLE, DatabaseUrl};
pub use effective::{EffectiveSetting, SettingSource, effective_settings};
pub use error::ConfigError;
pub use file::SettingsFile;
pub use limits::{Background, Limits, MAX_CONCURRENT_RUNS, Script};
pub use notify::{Notifications, Notify, NotifyCommand};
pub use people::People;
pub use pipelines::Pipelines;
pub use retention::Retention;

use crate::root::Root;
use lockgate_engine::spec::document::{self, Entry, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::{AgentSetting, Commit, Policy, Shell};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

const MAX_PARALLEL: u32 = 100_000;

/// The keys of the settings.
const KEYS: [&str; 15] = [
    "people",
    "max_parallel",
    "script",
    "limits",
    "background",
    "retention",
    "checkpoint",
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
    /// When snapshots are written, where, and which are kept.
    pub checkpoint: CheckpointSettings,
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
    /// Reads the settings of a project; a missing file gives the defaults.
    pub fn read(root: &Root) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for file in SettingsFile::ALL {
            if let Some(text) = file.read(root)? {
                config.apply(file, &text, &file.path(root))?;
            }
        }
        Ok(config)
    }

    /// Parses the text of `.lockgate/config.yaml`; the path is only used in messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.apply(SettingsFile::Project, text, path)?;
        Ok(config)
    }

    /// Takes over the settings in a file.
    fn apply(&mut self, file: SettingsFile, text: &str, path: &Path) -> Result<(), ConfigError> {
        let read = document::read(text).and_then(|root| match file {
            _ if root.is_nothing() => Ok(()),
            SettingsFile::Checkpoint => self.set_checkpoint(&root, path),
            SettingsFile::Project => self.set(&root, path),
        });
        read.map_err(|problem| ConfigError {
            path: path.to_path_buf(),
            message: problem.message,
            line: Some(problem.line),
            column: Some(problem.column),
            help: problem.help,
        })
    }

    fn set_checkpoint(&mut self, root: &Value<'_>, path: &Path) -> Result<(), Problem> {
        let example = format!("checkpoint: {}", checkpoint::EXAMPLE);
        for setting in root.fields("this file", &example, &["checkpoint"])? {
            self.checkpoint.set(&setting.value, path)?;
        }
        Ok(())
    }

    fn set(&mut self, root: &Value<'_>, path: &Path) -> Result<(), Problem> {
        let example = "people: { require_terminal: false }";
        for setting in root.fields("the settings", example, &KEYS)? {
            let value = &setting.value;
            match setting.key.as_str() {
                "people" => self.people.set(value)?,
                "max_parallel" => self.max_parallel = NonZeroU32::new(value.count("`max_parallel`", 1..=MAX_PARALLEL)?),
                "script" => self.script.set(value)?,
                "limits" => self.limits.set(value)?,
                "background" => self.background.set(value)?,
                "retention" => self.retention.set(value)?,
                "checkpoint" => self.checkpoint.set(value, path)?,
                "notify" => self.notify = Notifications::of(value)?,
                "agents" => self.agents = agents::read(value)?,
                "logins" => self.logins = logins::read(value)?,
                "policy" => self.policy = policy::read(value)?,
                "pipelines" => self.pipelines.set(value)?,
                "shell" => self.shell = Some(shell(value)?),
                "commit" => self.commit = commit(value)?,
                _ => self.database = Some(DatabaseUrl::of(value)?),
            }
        }
        Ok(())
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
