//! Tasks and gates of the current phase.

use super::AgentView;
use crate::graph::{Mark, gap_mark};
use lockgate_engine::id::{PhaseId, RunId};
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Failure;
use lockgate_engine::run::phase::{PhaseRun, TaskRun};
use lockgate_engine::run::state::{GapState, GateRun, GateState, StepStatus, TaskState};
use lockgate_engine::spec::workflow::GapAction;
use lockgate_engine::time::Timestamp;
use lockgate_runner::root::{Root, Step};
use serde::Serialize;

/// A task or gate of the current phase.
#[derive(Clone, Debug, Serialize)]
pub struct StepView {
    pub id: String,
    pub status: StepStatus,
    pub attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The task that fanned out into this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Why it was omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent that works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentView>,
    #[serde(skip)]
    pub mark: Mark,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last lines of its output before it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// The log of its last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl StepView {
    /// Marks a running step as interrupted if no process drives the run. The history has no event for this, because the driver
    /// died.
    fn if_driven(mut self, driven: bool) -> Self {
        self.mark = self.mark.if_driven(driven);
        if self.status == StepStatus::Running && !driven {
            self.status = StepStatus::Interrupted;
        }
        self
    }

    fn with_failure(mut self, failure: Option<&Failure>) -> Self {
        self.error = failure.map(|failure| failure.message.clone());
        self.tail = failure.map(|failure| failure.tail.clone()).filter(|tail| !tail.trim().is_empty());
        self
    }
}

/// The tasks of the current phase.
pub(super) fn tasks(run: &Run, phase: &PhaseRun, root: &Root, driven: bool) -> Vec<StepView> {
    (0..phase.tasks.len()).map(|index| task_view(run, phase, index, root).if_driven(driven)).collect()
}

/// Why a task was omitted.
fn omitted(state: &TaskState) -> Option<String> {
    let TaskState::Omitted { reason, .. } = state else { return None };
    Some(reason.clone())
}

fn task_view(run: &Run, phase: &PhaseRun, index: usize, root: &Root) -> StepView {
    let task: &TaskRun = &phase.tasks[index];
    let (failure, has_log) = match &task.state {
        TaskState::Failed(failure) | TaskState::Tolerated(failure) => (Some(failure), true),
        TaskState::Running | TaskState::Backoff { .. } | TaskState::Interrupted => (None, true),
        TaskState::Waiting
        | TaskState::Done
        | TaskState::Skipped
        | TaskState::FannedOut
        | TaskState::Blocked
        | TaskState::Omitted { .. } => (None, false),
    };
    let view = StepView {
        id: task.item.as_ref().map_or_else(|| task.task.to_string(), |item| format!("{}[{item}]", task.task)),
        status: task.state.status(),
        attempts: task.attempts,
        since: task.since,
        parent: task.parent.as_ref().map(ToString::to_string),
        reason: omitted(&task.state),
        agent: AgentView::of_task(run, phase, index),
        mark: Mark::of_task(&task.state),
        error: None,
        tail: None,
        log: if has_log { log(root, &run.id, Step::Task(&phase.key(index)), task.attempts) } else { None },
    };
    view.with_failure(failure)
}

/// The gap check of the current phase.
#[derive(Clone, Debug, Serialize)]
pub struct GapView {
    pub status: GapStatus,
    /// How many consecutive checks found gaps.
    pub rounds: u32,
    /// The consequence of the gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<GapAction>,
    /// The gaps, and the message of the check.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub mark: Mark,
}

/// The status of a gap check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapStatus {
    Waiting,
    Closed,
    Waived,
    Open,
}

impl GapStatus {
    /// The name of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Closed => "closed",
            Self::Waived => "waived",
            Self::Open => "open",
        }
    }
}

/// The gap check of the current phase, if it has one.
pub(super) fn gap_check(run: &Run, phase: &PhaseRun, driven: bool) -> Option<GapView> {
    run.workflow.phases.get(phase.position)?.gap_check.as_ref()?;
    let (status, action, notes) = match &phase.gap.state {
        GapState::Waiting => (GapStatus::Waiting, None, Vec::new()),
        GapState::Closed => (GapStatus::Closed, None, Vec::new()),
        GapState::Waived => (GapStatus::Waived, None, Vec::new()),
        GapState::Open { action, notes } => (GapStatus::Open, Some(*action), notes.clone()),
    };
    let mark = gap_mark(&phase.gap.state, phase.tasks_done()).if_driven(driven);
    Some(GapView { status, rounds: run.gap_rounds, action, notes, mark })
}

/// The gates of the current phase.
pub(super) fn gates(run: &Run, phase: &PhaseRun, root: &Root, driven: bool) -> Vec<StepView> {
    let view = |gate| gate_view(&run.id, (&phase.id, phase.iteration), gate, root).if_driven(driven);
    phase.gates.iter().map(view).collect()
}

fn gate_view(run: &RunId, (phase, iteration): (&PhaseId, u32), gate: &GateRun, root: &Root) -> StepView {
    let has_log = match &gate.state {
        GateState::Waiting | GateState::Passed => false,
        GateState::Running | GateState::Failed(_) | GateState::Waived => true,
    };
    let step = Step::Gate { phase, iteration, gate: &gate.gate };
    let view = StepView {
        id: gate.gate.to_string(),
        status: gate.state.status(),
        attempts: gate.attempts,
        since: None,
        parent: None,
        reason: None,
        agent: None,
        mark: Mark::of_gate(&gate.state),
        error: None,
        tail: None,
        log: if has_log { log(root, run, step, gate.attempts) } else { None },
    };
    view.with_failure(gate.state.failure())
}

/// The log of an attempt, if it exists.
fn log(root: &Root, run: &RunId, step: Step<'_>, attempt: u32) -> Option<String> {
    let path = root.log_file(run, step, attempt);
    path.is_file().then(|| path.to_string_lossy().into_owned())
}
