//! When snapshots of a run are written, where they are stored, and which of them are kept. The keys are those of
//! `.claude/checkpoint-config.yaml`, which is read too.

#[cfg(test)]
mod tests;

use super::ConfigError;
use crate::root::{Root, file_name};
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::NamedVariants as _;
use lockgate_engine::snapshot::Trigger;
use lockgate_engine::snapshot::retention::{Keep, RetentionPolicy};
use lockgate_engine::spec::document::{Entry, Value};
use lockgate_engine::spec::problem::{Problem, shown};
use lockgate_engine::spec::suggest;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const EXAMPLE: &str = "{ storage: { compress: true } }";
const KEYS: [&str; 6] = ["enabled", "auto_checkpoint", "checkpoint_triggers", "retention", "storage", "session_timeout"];
const TRIGGERS: [&str; 6] =
    ["phase_transition", "batch_complete", "agent_complete", "conflict_events", "user_interrupt", "session_end"];

/// Where snapshots are stored by default.
pub const DEFAULT_LOCATION: &str = ".lockgate/runs/{run}/checkpoints";

const PLACEHOLDERS: [&str; 2] = ["issue", "run"];

const DEFAULT_MEGABYTES: u32 = 50;
const MAX_MEGABYTES: i64 = 1_000_000;
/// More snapshots than anyone keeps on purpose.
const MAX_KEPT: i64 = 1_000_000;

/// Settings of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// Whether any snapshot is written.
    pub enabled: bool,
    /// Whether the run itself causes snapshots; otherwise only people, signals and the session timeout do.
    pub auto_checkpoint: bool,
    pub triggers: CheckpointTriggers,
    pub retention: RetentionPolicy,
    pub storage: CheckpointStorage,
    /// How long one process drives a run before it stops as with SIGTERM.
    pub session_timeout: Option<Duration>,
}

/// Which events cause a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointTriggers {
    pub phase_transition: bool,
    pub batch_complete: bool,
    pub agent_complete: bool,
    /// When a conflict starts and when it is resolved.
    pub conflict_events: bool,
    pub user_interrupt: bool,
    pub session_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointStorage {
    /// `None` for [`DEFAULT_LOCATION`].
    pub location: Option<Location>,
    pub compress: bool,
    /// The size limit of the snapshots of a run; `None` for no limit.
    pub max_size_mb: Option<NonZeroU32>,
}

/// The directory for snapshots, and where it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// May contain `{issue}` and `{run}`.
    pub template: String,
    file: PathBuf,
    line: usize,
    column: usize,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            auto_checkpoint: true,
            triggers: CheckpointTriggers {
                phase_transition: true,
                batch_complete: true,
                agent_complete: false,
                conflict_events: true,
                user_interrupt: true,
                session_end: true,
            },
            retention: RetentionPolicy::default(),
            storage: CheckpointStorage { location: None, compress: false, max_size_mb: NonZeroU32::new(DEFAULT_MEGABYTES) },
            session_timeout: None,
        }
    }
}

impl CheckpointSettings {
    /// Whether this trigger causes a snapshot.
    pub fn wants(&self, trigger: Trigger) -> bool {
        let CheckpointTriggers { phase_transition, batch_complete, agent_complete, conflict_events, user_interrupt, session_end } =
            self.triggers;
        let wanted = match trigger {
            Trigger::PhaseTransition => self.auto_checkpoint && phase_transition,
            Trigger::BatchComplete => self.auto_checkpoint && batch_complete,
            Trigger::AgentComplete => self.auto_checkpoint && agent_complete,
            Trigger::ConflictStart | Trigger::ConflictResolved => self.auto_checkpoint && conflict_events,
            Trigger::UserInterrupt => user_interrupt,
            Trigger::SessionEnd => session_end,
            Trigger::Manual => true,
        };
        self.enabled && wanted
    }

    /// The directory for the snapshots of a run. A template without a placeholder gets a directory per run, so that runs do not
    /// share one.
    pub fn location(&self, root: &Root, run: &RunId, issue: Option<&str>) -> Result<PathBuf, ConfigError> {
        let Some(location) = &self.storage.location else { return Ok(root.run_dir(run).join("checkpoints")) };
        let run = file_name(run.as_str());
        let (has_issue, has_run) = (location.template.contains("{issue}"), location.template.contains("{run}"));
        let issue = match issue.filter(|issue| !issue.is_empty()) {
            Some(issue) => file_name(issue),
            None if has_issue => return Err(location.without_issue()),
            None => String::new(),
        };
        let dir = root.dir().join(location.template.replace("{run}", &run).replace("{issue}", &issue));
        Ok(if has_issue || has_run { dir } else { dir.join(run) })
    }

    /// The size limit of the snapshots of a run.
    pub fn max_bytes(&self) -> Option<u64> {
        self.storage.max_size_mb.map(|megabytes| u64::from(megabytes.get()) * 1_000_000)
    }

    /// Takes over the keys that are set in this map.
    pub(super) fn set(&mut self, value: &Value<'_>, file: &Path) -> Result<(), Problem> {
        for Entry { key, value, .. } in value.fields("`checkpoint`", EXAMPLE, &KEYS)? {
            match key.as_str() {
                "enabled" => self.enabled = value.boolean("`enabled`")?,
                "auto_checkpoint" => self.auto_checkpoint = value.boolean("`auto_checkpoint`")?,
                "checkpoint_triggers" => self.triggers.set(&value)?,
                "retention" => retention(&mut self.retention, &value)?,
                "storage" => self.storage.set(&value, file)?,
                _ => self.session_timeout = Some(value.duration("`session_timeout`")?),
            }
        }
        Ok(())
    }
}

impl CheckpointTriggers {
    fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for Entry { key, value, .. } in value.fields("`checkpoint_triggers`", "{ agent_complete: true }", &TRIGGERS)? {
            let trigger = match key.as_str() {
                "phase_transition" => &mut self.phase_transition,
                "batch_complete" => &mut self.batch_complete,
                "agent_complete" => &mut self.agent_complete,
                "conflict_events" => &mut self.conflict_events,
                "user_interrupt" => &mut self.user_interrupt,
                _ => &mut self.session_end,
            };
            *trigger = value.boolean(&format!("`{key}`"))?;
        }
        Ok(())
    }
}

fn retention(policy: &mut RetentionPolicy, value: &Value<'_>) -> Result<(), Problem> {
    let keys: Vec<&str> = Trigger::ALL.iter().map(|trigger| trigger.as_str()).collect();
    for Entry { key, value, .. } in value.fields("`retention`", "{ batch_complete: 3 }", &keys)? {
        let number = value.integer().filter(|number| *number <= MAX_KEPT);
        let Some(keep) = number.and_then(Keep::from_number) else {
            let message = format!("`{key}` must be a whole number from -1 to {MAX_KEPT}, not {}", value.found());
            let help = "-1 keeps all snapshots, 0 only protected ones, 3 the newest three".to_owned();
            return Err(value.problem(message, Some(help)));
        };
        Trigger::ALL.iter().filter(|trigger| trigger.as_str() == key).for_each(|trigger| policy.set(*trigger, keep));
    }
    Ok(())
}

impl CheckpointStorage {
    fn set(&mut self, value: &Value<'_>, file: &Path) -> Result<(), Problem> {
        for Entry { key, value, .. } in
            value.fields("`storage`", "{ compress: true }", &["location", "compress", "max_size_mb"])?
        {
            match key.as_str() {
                "location" => self.location = Some(Location::of(&value, file)?),
                "compress" => self.compress = value.boolean("`compress`")?,
                _ => self.max_size_mb = max_size(&value)?,
            }
        }
        Ok(())
    }
}

fn max_size(value: &Value<'_>) -> Result<Option<NonZeroU32>, Problem> {
    match value.integer() {
        Some(-1) => Ok(None),
        Some(number @ 1..=MAX_MEGABYTES) => Ok(u32::try_from(number).ok().and_then(NonZeroU32::new)),
        Some(_) | None => {
            let expected = format!("a whole number from 1 to {MAX_MEGABYTES}, or -1");
            let message = format!("`max_size_mb` must be {expected}, not {}", value.found());
            Err(value.problem(message, Some("write it without quotes and units; -1 sets no limit".to_owned())))
        }
    }
}

impl Location {
    fn of(value: &Value<'_>, file: &Path) -> Result<Self, Problem> {
        let text = value.text().map(str::trim).filter(|text| !text.is_empty() && !text.contains('\0'));
        let template = text.ok_or_else(|| {
            let help = format!("write it as `{DEFAULT_LOCATION}`");
            value.problem("`location` must be a directory", Some(help))
        })?;
        for rest in template.split('{').skip(1) {
            let Some((name, _)) = rest.split_once('}') else {
                let help = "write a placeholder as `{run}` or `{issue}`".to_owned();
                return Err(value.problem("`location` has a `{` without a `}`", Some(help)));
            };
            if !PLACEHOLDERS.contains(&name) {
                let message = format!("`location` has no placeholder `{}`", shown(name));
                return Err(value.problem(message, suggest::meant_or_known(name, PLACEHOLDERS.iter().copied())));
            }
        }
        let Problem { line, column, .. } = value.problem("", None);
        Ok(Self { template: template.to_owned(), file: file.to_path_buf(), line, column })
    }

    fn without_issue(&self) -> ConfigError {
        ConfigError {
            path: self.file.clone(),
            message: "`location` contains `{issue}`, but this run has no issue".to_owned(),
            line: Some(self.line),
            column: Some(self.column),
            help: Some("start the run with an issue, or use `{run}` instead".to_owned()),
        }
    }
}
