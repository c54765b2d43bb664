//! Pipelines: starting, resuming and importing them, their reviews, state files and views.

mod check;
mod import;
mod resume;
mod review;
mod start;
mod state_file;
mod view;

pub use check::{check_state_file, execution_spec};
pub use import::{IMPORT, Import, ImportedFile, ImportedRun, ImportedView, SpecFile};
pub use resume::{PipelineResume, ResumeChoice, Situation};
pub use review::{OVERRIDE_REVIEW, Reviewed, review_gate};
pub use start::{ExistingRun, PipelineLock, reserve, with_settings};
pub use state_file::PutAside;
pub use view::{ErrorView, GateStatus, GateView, PipelinePhaseView, PipelineView, ReviewView, WorkstreamStatus, WorkstreamView};

use lockgate_engine::spec::workflow::{Gate, Workflow};

/// The title of a task. Workstreams have names in addition to their ids.
pub fn task_title(workflow: &Workflow, task: &str) -> String {
    let workstream = workflow.pipeline.as_ref().and_then(|pipeline| pipeline.workstream(task));
    match workstream.map(|workstream| workstream.name.as_str()).filter(|name| !name.is_empty() && *name != task) {
        Some(name) => format!("{task}: {name}"),
        None => task.to_owned(),
    }
}

/// The title of a gate. Gates of pipelines are titled as in the state file.
pub fn gate_title(workflow: &Workflow, gate: &Gate) -> String {
    if workflow.pipeline.is_some() { gate.title().to_owned() } else { gate.id.to_string() }
}
