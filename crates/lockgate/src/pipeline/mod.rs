//! Pipelines: how they start, and what they look like.

mod resume;
mod start;
mod view;

pub use resume::{PipelineResume, ResumeFlagRequired, Situation};
pub use start::{ExistingRun, PipelineLock, reserve, with_settings};
pub use view::{ErrorView, GateStatus, GateView, PipelinePhaseView, PipelineView, ReviewView, WorkstreamStatus, WorkstreamView};

use lockgate_engine::spec::workflow::{Gate, Workflow};

/// What people call a task: workstreams also have names.
pub fn task_title(workflow: &Workflow, task: &str) -> String {
    let workstream = workflow.pipeline.as_ref().and_then(|pipeline| pipeline.workstream(task));
    match workstream.map(|workstream| workstream.name.as_str()).filter(|name| !name.is_empty() && *name != task) {
        Some(name) => format!("{task}: {name}"),
        None => task.to_owned(),
    }
}

/// What people call a gate: those of pipelines have titles, as in the state file.
pub fn gate_title(workflow: &Workflow, gate: &Gate) -> String {
    if workflow.pipeline.is_some() { gate.title().to_owned() } else { gate.id.to_string() }
}
