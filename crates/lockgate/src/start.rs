//! Starting runs.

use crate::pipeline;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::config::Config;
use std::num::NonZeroU32;

/// The workflow with the limits of the project where it has none of its own.
pub fn with_limits(workflow: Workflow, config: &Config) -> Workflow {
    let mut workflow = pipeline::with_settings(workflow, config);
    workflow.follow_policy(&config.policy);
    workflow.shell = workflow.shell.or_else(|| config.shell.clone());
    for commit in workflow.phases.iter_mut().flat_map(|phase| &mut phase.tasks).filter_map(|task| task.commit.as_mut()) {
        *commit = std::mem::take(commit).or(&config.commit);
    }
    Workflow { max_parallel: workflow.max_parallel.or(config.max_parallel.map(NonZeroU32::get)), ..workflow }
}
