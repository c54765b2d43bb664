//! The state of each node in a run.

use super::{CheckpointBox, Drawing, PhaseBox, TaskBox};
use crate::view::{PhaseStatus, RunStatus};
use crate::{human_time, sanitize};
use lockgate_engine::hold::HoldKind;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::ConditionOutcome;
use lockgate_engine::run::phase::PhaseRun;
use lockgate_engine::run::state::{GapState, GateState, TaskState};
use lockgate_engine::spec::workflow::GapAction;
use std::collections::BTreeMap;

/// The state of a node, ordered by urgency: of several states, the last one is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Done,
    /// It was skipped.
    Skipped,
    /// It has not started.
    Pending,
    Running,
    /// A person must answer.
    Asking,
    /// It was interrupted.
    Interrupted,
    /// It was aborted or cancelled.
    Ended,
    Failed,
}

impl Mark {
    /// The symbol for the state.
    pub fn sign(self) -> char {
        match self {
            Self::Done => '✓',
            Self::Skipped => '–',
            Self::Pending => '…',
            Self::Running => '●',
            Self::Asking => '?',
            Self::Interrupted => '!',
            Self::Ended | Self::Failed => '✗',
        }
    }

    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Asking => "waiting",
            Self::Interrupted => "interrupted",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    /// The CSS class in diagrams.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Interrupted => "interrupted",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    /// The state for the status of a run.
    pub fn of_run(status: RunStatus) -> Self {
        match status {
            RunStatus::Complete => Self::Done,
            RunStatus::Running => Self::Running,
            RunStatus::Waiting => Self::Asking,
            RunStatus::Interrupted => Self::Interrupted,
            RunStatus::Failed => Self::Failed,
            RunStatus::Aborted | RunStatus::Cancelled => Self::Ended,
            RunStatus::Unknown => Self::Pending,
        }
    }

    /// The state for the status of a phase.
    pub fn of_phase(status: PhaseStatus) -> Self {
        match status {
            PhaseStatus::Pending => Self::Pending,
            PhaseStatus::Skipped => Self::Skipped,
            PhaseStatus::Current(status) => Self::of_run(status),
            PhaseStatus::Complete => Self::Done,
        }
    }

    /// The state of a task.
    pub fn of_task(state: &TaskState) -> Self {
        match state {
            TaskState::Waiting => Self::Pending,
            TaskState::Running | TaskState::Backoff { .. } | TaskState::FannedOut => Self::Running,
            TaskState::Blocked => Self::Asking,
            TaskState::Interrupted => Self::Interrupted,
            TaskState::Failed(_) | TaskState::Tolerated(_) => Self::Failed,
            TaskState::Done => Self::Done,
            TaskState::Skipped | TaskState::Omitted { .. } => Self::Skipped,
        }
    }

    /// Turns `Running` into `Interrupted` if no process drives the run.
    pub fn if_driven(self, driven: bool) -> Self {
        if self == Self::Running && !driven { Self::Interrupted } else { self }
    }

    /// The state of a gate.
    pub fn of_gate(state: &GateState) -> Self {
        match state {
            GateState::Waiting => Self::Pending,
            GateState::Running => Self::Running,
            GateState::Passed => Self::Done,
            GateState::Failed(_) => Self::Failed,
            GateState::Waived => Self::Skipped,
        }
    }
}

/// Counts the items of a fanned-out task by state.
pub fn tally(marks: impl Iterator<Item = Mark>) -> Vec<String> {
    let mut counts: BTreeMap<Mark, usize> = BTreeMap::new();
    marks.for_each(|mark| *counts.entry(mark).or_default() += 1);
    let count = |marks: &[Mark]| marks.iter().filter_map(|mark| counts.get(mark)).sum::<usize>();
    let mut parts = vec![format!("{}/{} done", count(&[Mark::Done]), counts.values().sum::<usize>())];
    for (marks, word) in [
        (&[Mark::Running] as &[Mark], "running"),
        (&[Mark::Failed, Mark::Ended], "failed"),
        (&[Mark::Interrupted], "interrupted"),
        (&[Mark::Asking], "blocked"),
        (&[Mark::Skipped], "left out"),
    ] {
        let count = count(marks);
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts
}

/// The state of a gap check. `whole` says whether the tasks that it checks are done.
pub fn gap_mark(state: &GapState, whole: bool) -> Mark {
    match state {
        GapState::Waiting if whole => Mark::Running,
        GapState::Waiting => Mark::Pending,
        GapState::Closed => Mark::Done,
        GapState::Waived => Mark::Skipped,
        GapState::Open { action: GapAction::Escalate, .. } => Mark::Asking,
        GapState::Open { action: GapAction::Retry | GapAction::SpawnAdditional | GapAction::Abort, .. } => Mark::Failed,
    }
}

/// Sets the states of all nodes in the diagram of a run.
pub(super) fn mark(drawing: &mut Drawing, run: &Run, status: RunStatus) {
    drawing.status = Some(status);
    for (at, (drawn, phase)) in drawing.phases.iter_mut().zip(&run.workflow.phases).enumerate() {
        let whole = Mark::of_phase(PhaseStatus::of(run, at, &phase.id, status));
        drawn.mark = Some(whole);
        drawn.iteration = run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0);
        match run.current.as_ref().filter(|current| current.id == phase.id) {
            Some(current) => mark_current(drawn, current, status != RunStatus::Interrupted),
            None => {
                drawn.tasks.iter_mut().for_each(|task| task.mark = Some(whole));
                drawn.gates.iter_mut().for_each(|gate| gate.mark = Some(whole));
            }
        }
        mark_completed(drawn, run);
        if let Some(checkpoint) = &mut drawn.checkpoint {
            mark_checkpoint(checkpoint, run, at, whole);
        }
    }
    // The node for finalization comes after all phases.
    if let Some(made) = drawing.phases.get_mut(run.workflow.phases.len()) {
        made.mark = Some(if run.finalized.is_some() { Mark::Done } else { Mark::Pending });
    }
}

/// Adds the duration and the number of artifacts to completed workstreams of a pipeline.
fn mark_completed(drawn: &mut PhaseBox, run: &Run) {
    let Some(known) = run.pipeline.as_deref() else { return };
    for task in drawn.tasks.iter_mut().filter(|task| task.mark == Some(Mark::Done)) {
        let worked = known.worked.get(task.id.as_str()).and_then(|worked| Some(worked.ended?.since(worked.began)));
        let time = worked.map(human_time::duration);
        let files = known.artifacts.get(task.id.as_str()).map(|paths| counted(paths.len(), "file"));
        let details: Vec<String> = time.into_iter().chain(files).collect();
        if !details.is_empty() {
            task.label = format!("{} ({})", task.label, details.join("; "));
        }
    }
}

fn mark_current(drawn: &mut PhaseBox, current: &PhaseRun, driven: bool) {
    let mut tasks: BTreeMap<String, Mark> = BTreeMap::new();
    for task in &current.tasks {
        let mark = Mark::of_task(&task.state).if_driven(driven);
        let known = tasks.entry(sanitize::line(task.task.as_str()).into_owned()).or_insert(mark);
        *known = (*known).max(mark);
    }
    fan_out(drawn, current, driven);
    for task in &mut drawn.tasks {
        task.mark = Some(tasks.get(&task.id).copied().unwrap_or(Mark::Pending));
    }
    // The gap check comes before the gates.
    let gap = (drawn.gates.len() > current.gates.len()).then(|| gap_mark(&current.gap.state, current.tasks_done()));
    let marks = gap.into_iter().chain(current.gates.iter().map(|gate| Mark::of_gate(&gate.state)));
    for (gate, mark) in drawn.gates.iter_mut().zip(marks) {
        gate.mark = Some(mark.if_driven(driven));
    }
}

/// Adds the items of fanned-out tasks, and agents that a script or a gap check started.
fn fan_out(drawn: &mut PhaseBox, current: &PhaseRun, driven: bool) {
    for task in &mut drawn.tasks {
        let items = current.tasks.iter().filter(|item| item.item.is_some() && sanitize::line(item.task.as_str()) == task.id);
        let marks: Vec<Mark> = items.map(|item| Mark::of_task(&item.state).if_driven(driven)).collect();
        if !marks.is_empty() {
            task.label = format!("{} × {}: {}", task.id, marks.len(), tally(marks.into_iter()).join(", "));
        }
    }
    for task in current.tasks.iter().filter(|task| task.spec.is_some() && task.item.is_none()) {
        let named = |name: &str| sanitize::line(name).into_owned();
        let parent =
            task.parent.as_ref().and_then(|parent| drawn.tasks.iter().position(|known| known.id == named(parent.as_str())));
        let layer = parent
            .map_or_else(|| drawn.tasks.iter().map(|task| task.layer + 1).max().unwrap_or(0), |at| drawn.tasks[at].layer + 1);
        let id = named(task.task.as_str());
        drawn.tasks.push(TaskBox { label: format!("{id} (agent)"), id, needs: parent.into_iter().collect(), layer, mark: None });
    }
}

fn mark_checkpoint(checkpoint: &mut CheckpointBox, run: &Run, at: usize, whole: Mark) {
    let phase = &run.workflow.phases[at].id;
    let current = run.current.as_ref().filter(|current| current.id == *phase);
    let asks = run.open_holds().iter().any(|hold| hold.kind == HoldKind::Checkpoint && hold.scope.phase() == Some(phase));
    let decided = run.decisions.iter().rev().find(|decision| match current {
        // A decision in an earlier execution of the phase does not count.
        Some(current) => current.checkpoint.hold.as_ref() == Some(&decision.hold),
        None => whole == Mark::Done && decision.checkpoint && decision.phase.as_ref() == Some(phase),
    });
    let passed_over = match current {
        Some(current) => current.checkpoint.condition == Some(ConditionOutcome::False),
        None => whole == Mark::Done,
    };
    checkpoint.chosen = decided.map(|decision| sanitize::line(&decision.label).into_owned());
    checkpoint.mark = Some(match decided {
        _ if asks => Mark::Asking,
        Some(_) => Mark::Done,
        None if passed_over || whole == Mark::Skipped => Mark::Skipped,
        None => Mark::Pending,
    });
}
