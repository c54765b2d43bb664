//! Tasks and gates of the phase under way.

use lockgate_engine::id::{PhaseId, RunId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Failure;
use lockgate_engine::run::phase::{PhaseRun, TaskRun};
use lockgate_engine::run::state::{GateRun, GateState, TaskState};
use lockgate_engine::time::Timestamp;
use lockgate_runner::root::{Root, Step};
use serde::Serialize;

/// A task or gate of the phase under way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepView {
    pub(crate) id: String,
    pub(crate) status: &'static str,
    pub(crate) attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The last lines of what it printed before it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<String>,
    /// The file with all that its last attempt printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
}

impl StepView {
    fn with_failure(mut self, failure: Option<&Failure>) -> Self {
        self.error = failure.map(|failure| failure.message.clone());
        self.tail = failure.map(|failure| failure.tail.clone()).filter(|tail| !tail.trim().is_empty());
        self
    }
}

/// The tasks of the phase under way.
pub(super) fn tasks(run: &Run, phase: &PhaseRun, root: &Root) -> Vec<StepView> {
    phase.tasks.iter().map(|task| task_view(&run.id, phase, task, root)).collect()
}

fn task_view(run: &RunId, phase: &PhaseRun, task: &TaskRun, root: &Root) -> StepView {
    let (failure, has_log) = match &task.state {
        TaskState::Failed(failure) | TaskState::Tolerated(failure) => (Some(failure), true),
        TaskState::Running | TaskState::Backoff { .. } | TaskState::Interrupted => (None, true),
        TaskState::Waiting
        | TaskState::Done
        | TaskState::Skipped
        | TaskState::Spread
        | TaskState::Held
        | TaskState::LeftOut { .. } => (None, false),
    };
    let key =
        || TaskKey { phase: phase.id.clone(), iteration: phase.iteration, task: task.task.clone(), item: task.item.clone() };
    let view = StepView {
        id: task.item.as_ref().map_or_else(|| task.task.to_string(), |item| format!("{}[{item}]", task.task)),
        status: task.state.word(),
        attempts: task.attempts,
        since: task.since,
        error: None,
        tail: None,
        log: if has_log { log(root, run, Step::Task(&key()), task.attempts) } else { None },
    };
    view.with_failure(failure)
}

/// The gates of the phase under way.
pub(super) fn gates(run: &Run, phase: &PhaseRun, root: &Root) -> Vec<StepView> {
    phase.gates.iter().map(|gate| gate_view(&run.id, (&phase.id, phase.iteration), gate, root)).collect()
}

fn gate_view(run: &RunId, (phase, iteration): (&PhaseId, u32), gate: &GateRun, root: &Root) -> StepView {
    let (status, failure, has_log) = match &gate.state {
        GateState::Waiting => ("waiting", None, false),
        GateState::Running => ("running", None, true),
        GateState::Passed => ("passed", None, false),
        GateState::Failed(failure) => ("failed", Some(failure), true),
        GateState::Waived => ("waived", None, true),
    };
    let step = Step::Gate { phase, iteration, gate: &gate.gate };
    let view = StepView {
        id: gate.gate.to_string(),
        status,
        attempts: gate.attempts,
        since: None,
        error: None,
        tail: None,
        log: if has_log { log(root, run, step, gate.attempts) } else { None },
    };
    view.with_failure(failure)
}

/// The log of an attempt, where there is one.
fn log(root: &Root, run: &RunId, step: Step<'_>, attempt: u32) -> Option<String> {
    let path = root.log_file(run, step, attempt);
    path.is_file().then(|| path.to_string_lossy().into_owned())
}
