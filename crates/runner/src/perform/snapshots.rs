//! Which snapshots of a run the settings want, and what the run needs to continue from one.

use super::{Shared, secrets};
use crate::agent::AgentSources;
use crate::config::ConfigError;
use crate::knowledge::KnowledgeDir;
use crate::snapshot::{SnapshotDir, SnapshotOptions};
use lockgate_engine::run::Run;
use lockgate_engine::run::index::NamedVariants as _;
use lockgate_engine::snapshot::Trigger;
use std::collections::BTreeSet;

pub(super) fn options(shared: &Shared, run: &Run) -> Result<Option<SnapshotOptions>, ConfigError> {
    let settings = &shared.config.checkpoint;
    if !settings.enabled {
        return Ok(None);
    }
    let dir = settings.location(&shared.root, &run.id, run.issue_name())?;
    if settings.storage.location.is_some()
        && let Some(parent) = dir.parent()
        && let Err(error) = std::fs::create_dir_all(parent)
    {
        // The first snapshot reports that it cannot be written.
        tracing::debug!(%error, "the directory for snapshots cannot be created");
    }
    Ok(Some(SnapshotOptions {
        dir: SnapshotDir::at(dir),
        project: shared.root.dir().to_path_buf(),
        triggers: Trigger::ALL.iter().copied().filter(|trigger| settings.wants(*trigger)).collect(),
        policy: settings.retention.clone(),
        max_bytes: settings.max_bytes(),
        compress: settings.storage.compress,
        agents: agent_programs(shared, run),
        environment: secrets::required_variables(&run.workflow, &shared.config),
        masks: shared.masks(),
        knowledge: KnowledgeDir::of(&shared.root),
    }))
}

/// The programs of the agents that the tasks of a run name.
fn agent_programs(shared: &Shared, run: &Run) -> Vec<String> {
    let sources =
        AgentSources { instead: run.agent.clone(), workflow: run.workflow.agents.clone(), project: shared.config.agents.clone() };
    let tasks = run.workflow.phases.iter().flat_map(|phase| &phase.tasks);
    let names: BTreeSet<Option<&str>> = tasks.filter_map(|task| task.agent()).map(|work| work.agent.as_deref()).collect();
    let programs = names.into_iter().filter_map(|name| sources.select(name).ok()?.program());
    programs.collect::<BTreeSet<String>>().into_iter().collect()
}
