//! What follows from the state by itself: the loop of phases. Skip list, tasks, gates, checkpoint, next phase.

use crate::hold::{Action, Hold, HoldKind, HoldState, Scope, task_options};
use crate::id::{HoldId, IdSource, TaskKey};
use crate::run::command::{Actor, Way};
use crate::run::decide::void_others;
use crate::run::event::{ConditionOutcome, Event, Failure, HoldOpened, PlannedTask};
use crate::run::phase::PhaseRun;
use crate::run::state::{GateRun, GateState, Run, TaskState};
use crate::spec::workflow::{OnConditionError, OnFail, Phase};
use crate::time::Timestamp;

/// How often a phase is repeated because of failures before a person is asked.
pub(super) const REPEATS_BY_ITSELF: u32 = 3;

/// An event that follows, and who caused it when that was not Lockgate itself.
pub(super) struct Step {
    pub(super) actor: Option<Actor>,
    pub(super) event: Event,
}

impl From<Event> for Step {
    fn from(event: Event) -> Self {
        Self { actor: None, event }
    }
}

/// The next events that follow from the state; none when something outside must happen first.
pub(super) fn next(run: &Run, at: Timestamp, ids: &mut IdSource) -> Vec<Step> {
    if run.end.is_some() || run.stopping {
        return Vec::new();
    }
    if let Some(steps) = holds(run) {
        return steps;
    }
    let Some(phase) = &run.current else { return steps(enter(run)) };
    let declared = &run.workflow.phases[phase.position];
    if !phase.tasks_done() {
        return steps(tasks(run, phase, declared, at, ids));
    }
    match phase.gates.iter().find(|gate| !matches!(gate.state, GateState::Passed | GateState::Waived)) {
        Some(gate) => steps(self::gate(run, phase, declared, gate, ids)),
        None => steps(checkpoint(phase, declared)),
    }
}

fn steps(events: Vec<Event>) -> Vec<Step> {
    events.into_iter().map(Step::from).collect()
}

/// The run is between phases: the next one is passed over or starts, or there is none.
fn enter(run: &Run) -> Vec<Event> {
    let Some(phase) = run.workflow.phases.get(run.position) else { return vec![Event::Completed] };
    if run.skip_list.contains(&phase.id) {
        return vec![Event::PhaseSkipped { phase: phase.id.clone() }];
    }
    let iteration = run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0) + 1;
    let planned = phase.tasks.iter().map(|task| PlannedTask { task: task.id.clone(), item: None });
    vec![
        Event::PhaseStarted { phase: phase.id.clone(), iteration, feedback: run.feedback.clone() },
        Event::TasksPlanned { phase: phase.id.clone(), iteration, tasks: planned.collect() },
    ]
}

/// Answers in advance are used, and answers that need no second look take effect.
fn holds(run: &Run) -> Option<Vec<Step>> {
    for hold in run.holds.values() {
        match hold.state {
            HoldState::Open => {
                if let Some(step) = preset(run, hold) {
                    return Some(vec![step]);
                }
            }
            HoldState::Checking => {
                if !needs_second_look(hold) {
                    return Some(steps(settle(run, hold)));
                }
            }
            HoldState::Settled | HoldState::Void => {}
        }
    }
    None
}

/// An answer in advance was given without seeing anything, so it never answers what was opened again.
fn preset(run: &Run, hold: &Hold) -> Option<Step> {
    if hold.revision > 1 {
        return None;
    }
    let given = run.presets.iter().find(|given| hold.is_meant_by(&given.preset.selector))?;
    let choice = hold.option(&given.preset.option)?;
    let event = Event::Answered {
        hold: hold.id.clone(),
        option: choice.id.clone(),
        feedback: given.preset.feedback.clone(),
        revision: hold.revision,
    };
    Some(Step { actor: Some(Actor { way: Way::Preset, ..given.actor.clone() }), event })
}

/// Whether the files of an answered hold must be looked at again before its answer takes effect.
pub(super) fn needs_second_look(hold: &Hold) -> bool {
    !hold.files.is_empty() && hold.chosen().is_some_and(|choice| choice.action.goes_on())
}

/// What an answer does.
pub(super) fn settle(run: &Run, hold: &Hold) -> Vec<Event> {
    let Some(choice) = hold.chosen() else { return Vec::new() };
    let feedback = hold.answers.last().and_then(|answer| answer.feedback.clone()).filter(|text| !text.is_empty());
    let mut events = vec![Event::HoldSettled { hold: hold.id.clone() }];
    match &choice.action {
        Action::Continue => events.extend(complete_phase(run)),
        Action::SkipPhases(phases) => {
            events.push(Event::PhasesSkipListed { phases: phases.clone() });
            events.extend(complete_phase(run));
        }
        Action::RepeatPhase(target) => {
            let from = run.current.as_ref().map_or_else(|| target.clone(), |phase| phase.id.clone());
            events.extend(void_others(run, Some(&hold.id), "the phase runs again"));
            events.push(Event::PhaseRepeated { from, target: target.clone(), feedback, by_itself: false });
        }
        Action::Abort => {
            events.extend(void_others(run, Some(&hold.id), "the run was aborted"));
            events.push(Event::Aborted { hold: hold.id.clone() });
        }
        // Settling puts what it was about back among what waits; it starts when its turn comes.
        Action::Rerun => {}
        Action::CountAsDone => events.extend(count_as_done(hold)),
    }
    events
}

fn complete_phase(run: &Run) -> Option<Event> {
    let phase = run.current.as_ref()?;
    Some(Event::PhaseCompleted { phase: phase.id.clone(), iteration: phase.iteration })
}

fn count_as_done(hold: &Hold) -> Vec<Event> {
    match &hold.scope {
        Scope::Run | Scope::Phase { .. } => Vec::new(),
        Scope::Tasks(keys) => {
            let reason = "a person counted it as done";
            keys.iter().map(|key| Event::TaskSkipped { key: key.clone(), reason: reason.to_owned() }).collect()
        }
        Scope::Gate { phase, iteration, gate } => {
            vec![Event::GateWaived { phase: phase.clone(), iteration: *iteration, gate: gate.clone(), reason: None }]
        }
    }
}

/// Tasks: those in trouble are dealt with first, then what is ready starts.
fn tasks(run: &Run, phase: &PhaseRun, declared: &Phase, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let interrupted: Vec<TaskKey> = phase
        .troubled()
        .filter(|index| phase.tasks[*index].state == TaskState::Interrupted && phase.tasks[*index].hold.is_none())
        .map(|index| phase.key(index))
        .collect();
    if !interrupted.is_empty() {
        return vec![ask_about_interrupted(interrupted, ids)];
    }
    let mut failed = None;
    for index in phase.troubled() {
        let task = &phase.tasks[index];
        let (TaskState::Failed(failure), None) = (&task.state, &task.hold) else { continue };
        match phase.declared(declared, index).map_or(OnFail::Fail, |task| task.on_fail) {
            OnFail::Ask => {
                return vec![ask_about_failed(Scope::Tasks(vec![phase.key(index)]), &phase.key(index).address(), failure, ids)];
            }
            on_fail @ (OnFail::Fail | OnFail::Repeat) => {
                if failed.is_none_or(|(_, _, known)| known == OnFail::Repeat) {
                    failed = Some((index, failure, on_fail));
                }
            }
        }
    }
    if let Some((index, failure, on_fail)) = failed {
        let drained = !phase.running().any(|index| phase.tasks[index].state == TaskState::Running);
        let scope = Scope::Tasks(vec![phase.key(index)]);
        return if drained { failed_for_good(run, phase, scope, failure, on_fail, ids) } else { Vec::new() };
    }
    start_ready(run, phase, at)
}

fn start_ready(run: &Run, phase: &PhaseRun, at: Timestamp) -> Vec<Event> {
    let is_running = |index: &usize| phase.tasks[*index].state == TaskState::Running;
    let free = match run.workflow.max_parallel {
        None => usize::MAX,
        Some(limit) => (limit as usize).saturating_sub(phase.running().filter(is_running).count()),
    };
    let due = phase.running().filter(|index| match &phase.tasks[*index].state {
        TaskState::Backoff { due, .. } => *due <= at,
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::Done
        | TaskState::Skipped => false,
    });
    due.chain(phase.ready()).take(free).map(|index| start(phase, index)).collect()
}

fn start(phase: &PhaseRun, index: usize) -> Event {
    let task = &phase.tasks[index];
    Event::TaskStarted { key: phase.key(index), attempt: task.attempts + 1, reason: task.next_reason }
}

/// A failure that no retry mends: the run fails, or the phase repeats a few times and then a person is asked.
fn failed_for_good(
    run: &Run,
    phase: &PhaseRun,
    scope: Scope,
    failure: &Failure,
    on_fail: OnFail,
    ids: &mut IdSource,
) -> Vec<Event> {
    let what = match &scope {
        Scope::Tasks(keys) => keys.first().map(TaskKey::address).unwrap_or_default(),
        Scope::Gate { phase, gate, .. } => format!("{phase}/{gate}"),
        Scope::Run | Scope::Phase { .. } => phase.id.to_string(),
    };
    let message = format!("{what} failed: {}", failure.message);
    match on_fail {
        OnFail::Fail => vec![Event::Failed { message }],
        OnFail::Repeat if run.repeats_by_itself < REPEATS_BY_ITSELF => {
            let mut events = void_others(run, None, "the phase runs again");
            events.push(Event::PhaseRepeated {
                from: phase.id.clone(),
                target: phase.id.clone(),
                feedback: Some(message),
                by_itself: true,
            });
            events
        }
        OnFail::Repeat | OnFail::Ask => vec![ask_about_failed(scope, &what, failure, ids)],
    }
}

fn gate(run: &Run, phase: &PhaseRun, declared: &Phase, gate: &GateRun, ids: &mut IdSource) -> Vec<Event> {
    match &gate.state {
        GateState::Waiting => vec![start_gate(phase, gate)],
        GateState::Failed(failure) if gate.hold.is_none() => {
            let scope = Scope::Gate { phase: phase.id.clone(), iteration: phase.iteration, gate: gate.gate.clone() };
            let on_fail = declared.gate(gate.gate.as_str()).map_or(OnFail::Fail, |gate| gate.on_fail);
            failed_for_good(run, phase, scope, failure, on_fail, ids)
        }
        GateState::Failed(_) | GateState::Running | GateState::Passed | GateState::Waived => Vec::new(),
    }
}

fn start_gate(phase: &PhaseRun, gate: &GateRun) -> Event {
    Event::GateStarted {
        phase: phase.id.clone(),
        iteration: phase.iteration,
        gate: gate.gate.clone(),
        attempt: gate.attempts + 1,
    }
}

/// The phase's work is done: its checkpoint, if it has one that shows, comes before the next phase.
fn checkpoint(phase: &PhaseRun, declared: &Phase) -> Vec<Event> {
    let done = Event::PhaseCompleted { phase: phase.id.clone(), iteration: phase.iteration };
    let Some(checkpoint) = &declared.checkpoint else { return vec![done] };
    match (&checkpoint.condition, &phase.checkpoint.condition) {
        (Some(_), Some(ConditionOutcome::False)) => vec![done],
        (Some(_), Some(ConditionOutcome::Error(_))) if checkpoint.on_condition_error == OnConditionError::Skip => {
            vec![done]
        }
        (Some(_) | None, _) => Vec::new(),
    }
}

/// Whether the checkpoint of the phase under way is to be shown, and is not yet.
pub(super) fn must_show(phase: &PhaseRun, declared: &Phase) -> bool {
    let Some(checkpoint) = &declared.checkpoint else { return false };
    let evaluated = checkpoint.condition.is_none() || phase.checkpoint.condition.is_some();
    evaluated && phase.checkpoint.hold.is_none()
}

pub(super) fn ask_about_interrupted(keys: Vec<TaskKey>, ids: &mut IdSource) -> Event {
    let names: Vec<String> = keys.iter().map(TaskKey::address).collect();
    let prompt = match names.as_slice() {
        [name] => format!("{name} was cut off before it finished. What shall become of it?"),
        _ => format!("{} tasks were cut off before they finished: {}. What shall become of them?", names.len(), names.join(", ")),
    };
    question(HoldKind::Interrupted, Scope::Tasks(keys), prompt, Vec::new(), ids)
}

fn ask_about_failed(scope: Scope, what: &str, failure: &Failure, ids: &mut IdSource) -> Event {
    let mut notes = vec![failure.message.clone()];
    if !failure.tail.is_empty() {
        notes.push(failure.tail.clone());
    }
    question(HoldKind::Failed, scope, format!("{what} failed. What shall become of it?"), notes, ids)
}

fn question(kind: HoldKind, scope: Scope, prompt: String, notes: Vec<String>, ids: &mut IdSource) -> Event {
    Event::HoldOpened(Box::new(HoldOpened {
        hold: HoldId::new(ids.next_id()),
        kind,
        scope,
        prompt,
        files: Vec::new(),
        options: task_options(),
        notes,
        blocking: true,
        quorum: 1,
    }))
}
