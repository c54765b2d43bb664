//! What follows from the state by itself: the loop over phases. Skip list, tasks, gates, checkpoint, next phase.

mod answers;
mod imported;
mod questions;
mod rework;
mod tasks;

pub(super) use answers::{needs_recheck, recorded, settle, takes_effect_at_once};
pub(super) use questions::{ask, ask_about_commits, ask_about_interrupted, ask_for_agent, ask_for_login};

use crate::hold::Scope;
use crate::id::IdSource;
use crate::run::command::Actor;
use crate::run::decide::{ask_about_open_conflict, void_others};
use crate::run::event::{ConditionOutcome, Event, PlannedTask};
use crate::run::phase::PhaseRun;
use crate::run::state::{GapState, GateRun, GateState, Run};
use crate::spec::workflow::question::MAX_AUTOMATIC_REPEATS;
use crate::spec::workflow::{Checkpoint, GapAction, OnConditionError, OnFail, Phase};
use crate::time::Timestamp;
use questions::ask_about_gaps;
use tasks::failed_for_good;

/// The next event, and who caused it if that was not Lockgate itself.
pub(super) struct Step {
    pub(super) actor: Option<Actor>,
    pub(super) event: Event,
}

impl From<Event> for Step {
    fn from(event: Event) -> Self {
        Self { actor: None, event }
    }
}

/// The events that follow from the state. Empty if something outside must happen first.
pub(super) fn next(run: &Run, at: Timestamp, ids: &mut IdSource) -> Vec<Step> {
    if run.end.is_some() || run.stopping {
        return Vec::new();
    }
    if let Some(steps) = answers::holds(run, at, ids) {
        return steps;
    }
    let follows = of_phases(run, at, ids);
    // Artifacts of workstreams are looked for while the run is active, because nothing would look for them after its end.
    let ends = follows.iter().any(|event| matches!(event, Event::Completed | Event::Failed { .. }));
    if ends && run.pipeline.as_ref().is_some_and(|known| !known.artifacts_unchecked.is_empty()) {
        return Vec::new();
    }
    steps(follows)
}

fn steps(events: Vec<Event>) -> Vec<Step> {
    events.into_iter().map(Step::from).collect()
}

/// The next events in the current phase, or between phases.
fn of_phases(run: &Run, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let Some(phase) = &run.current else { return enter(run) };
    // Nothing may change a file before the starting point of the change is known.
    if run.diff_bases.awaited.is_some() {
        return Vec::new();
    }
    let declared = &run.workflow.phases[phase.position];
    if !phase.tasks_done() {
        return tasks::tasks(run, phase, declared, at, ids);
    }
    if run.team_is_unsettled() {
        return if run.team_asks() { Vec::new() } else { ask_about_open_conflict(run, ids) };
    }
    if !phase.gaps_closed(declared) {
        return gaps(run, phase, ids);
    }
    match phase.next_gate() {
        Some(gate) => self::gate(run, phase, declared, gate, ids),
        None => checkpoint(phase, declared),
    }
}

/// Between phases: the next one is skipped or starts, or the run is done.
fn enter(run: &Run) -> Vec<Event> {
    let Some(phase) = run.workflow.phases.get(run.position) else {
        let made = run.workflow.finalization.is_none() || run.finalized.is_some();
        return if made { vec![Event::Completed] } else { Vec::new() };
    };
    if run.skip_list.contains(&phase.id) {
        return vec![Event::PhaseSkipped { phase: phase.id.clone() }];
    }
    if run.waits_for_review() {
        return Vec::new();
    }
    let iteration = run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0) + 1;
    let planned = phase.tasks.iter().map(|task| PlannedTask::declared(task.id.clone()));
    let mut events = vec![
        Event::PhaseStarted { phase: phase.id.clone(), iteration, feedback: run.feedback.clone() },
        Event::TasksPlanned { phase: phase.id.clone(), iteration, tasks: planned.collect() },
    ];
    if let Some(known) = run.pipeline.as_ref().filter(|known| known.imported.is_some() && iteration == 1) {
        events.extend(imported::done_before(run, known, phase));
    }
    events
}

/// The work of the phase is incomplete, or has not been checked yet.
fn gaps(run: &Run, phase: &PhaseRun, ids: &mut IdSource) -> Vec<Event> {
    let (GapState::Open { action, notes }, None) = (&phase.gap.state, &phase.gap.hold) else { return Vec::new() };
    match action {
        GapAction::Retry => {
            let mut events = void_others(run, None, "the phase runs again");
            events.push(Event::PhaseRepeated {
                from: phase.id.clone(),
                target: phase.id.clone(),
                feedback: Some(notes.join("\n")).filter(|notes| !notes.is_empty()),
                by_failure: true,
                gaps: true,
                carry: Vec::new(),
                restores: Vec::new(),
            });
            events
        }
        GapAction::Escalate | GapAction::SpawnAdditional => vec![ask_about_gaps(&phase.id, phase.iteration, notes, ids)],
        GapAction::Abort => {
            vec![Event::Failed { message: format!("the work of phase {} is incomplete: {}", phase.id, notes.join("; ")) }]
        }
    }
}

fn gate(run: &Run, phase: &PhaseRun, declared: &Phase, gate: &GateRun, ids: &mut IdSource) -> Vec<Event> {
    match &gate.state {
        GateState::Waiting => vec![start_gate(phase, gate)],
        GateState::Failed(failure) if gate.hold.is_none() => {
            failed_for_good(run, phase, gate_scope(phase, gate), failure, gate_on_fail(declared, gate), ids)
        }
        GateState::Failed(_) | GateState::Running | GateState::Passed | GateState::Waived => Vec::new(),
    }
}

fn gate_scope(phase: &PhaseRun, gate: &GateRun) -> Scope {
    Scope::Gate { phase: phase.id.clone(), iteration: phase.iteration, gate: gate.gate.clone() }
}

fn gate_on_fail(declared: &Phase, gate: &GateRun) -> OnFail {
    declared.gate(gate.gate.as_str()).map_or(OnFail::Fail, |gate| gate.on_fail)
}

fn start_gate(phase: &PhaseRun, gate: &GateRun) -> Event {
    Event::GateStarted {
        phase: phase.id.clone(),
        iteration: phase.iteration,
        gate: gate.gate.clone(),
        attempt: gate.attempts + 1,
    }
}

/// The phase's work is done. Its checkpoint, if it applies, comes before the next phase.
fn checkpoint(phase: &PhaseRun, declared: &Phase) -> Vec<Event> {
    let passed_by = declared.checkpoint.as_ref().is_none_or(|checkpoint| is_passed_by(phase, checkpoint));
    let done = passed_by.then(|| Event::PhaseCompleted { phase: phase.id.clone(), iteration: phase.iteration });
    done.into_iter().collect()
}

/// Whether the condition of a checkpoint says not to show it.
fn is_passed_by(phase: &PhaseRun, checkpoint: &Checkpoint) -> bool {
    match (&checkpoint.condition, &phase.checkpoint.condition) {
        (Some(_), Some(ConditionOutcome::False)) => true,
        (Some(_), Some(ConditionOutcome::Error(_))) => checkpoint.on_condition_error == OnConditionError::Skip,
        (Some(_), Some(ConditionOutcome::True) | None) | (None, _) => false,
    }
}

/// Whether the checkpoint of the current phase has to be shown and has not been yet.
pub(super) fn must_show(phase: &PhaseRun, declared: &Phase) -> bool {
    let Some(checkpoint) = &declared.checkpoint else { return false };
    let evaluated = checkpoint.condition.is_none() || phase.checkpoint.condition.is_some();
    evaluated && !is_passed_by(phase, checkpoint) && phase.checkpoint.hold.is_none()
}
