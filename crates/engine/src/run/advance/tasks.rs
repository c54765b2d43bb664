//! Tasks of the current phase: failed and interrupted ones are handled first, then ready ones start.

use super::questions::{ask_about_budget, ask_about_failed, ask_about_interrupted};
use super::{MAX_AUTOMATIC_REPEATS, gate_on_fail, gate_scope, start_gate};
use crate::hold::{Action, HoldState, Scope, gate_options, task_options};
use crate::id::{HoldId, IdSource, TaskKey};
use crate::run::budget::BudgetScope;
use crate::run::decide::void_others;
use crate::run::event::{AttemptReason, Event, Failure, FailureKind, SessionStart};
use crate::run::phase::PhaseRun;
use crate::run::state::{GateState, Run, TaskState};
use crate::run::team::TeamEvent;
use crate::spec::workflow::{OnFail, Phase, Session, Task};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The next events for the tasks of the current phase.
pub(super) fn tasks(run: &Run, phase: &PhaseRun, declared: &Phase, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let gathered: Vec<Event> = phase.gathered().map(|index| gathered(phase, index)).collect();
    if !gathered.is_empty() {
        return gathered;
    }
    // The end of a backoff is recorded even if the task cannot start yet, so that nothing waits for a timer that has fired.
    let over: Vec<Event> = due(phase, at).map(|index| Event::RetryDue { key: phase.key(index) }).collect();
    if !over.is_empty() {
        return over;
    }
    let interrupted: Vec<TaskKey> = phase
        .failed_or_interrupted()
        .filter(|index| phase.tasks[*index].state == TaskState::Interrupted && phase.tasks[*index].hold.is_none())
        .map(|index| phase.key(index))
        .collect();
    if !interrupted.is_empty() {
        return vec![ask_about_interrupted(run, interrupted, ids)];
    }
    let mut failed: Option<(Scope, &Failure, OnFail)> = None;
    for index in phase.failed_or_interrupted() {
        let task = &phase.tasks[index];
        let (TaskState::Failed(failure), None) = (&task.state, &task.hold) else { continue };
        let spec = phase.declared(declared, index);
        if spec.is_some_and(|task| task.continue_on_error) {
            return vec![Event::FailureTolerated { key: phase.key(index) }];
        }
        match spec.map_or(OnFail::Fail, |task| task.on_fail) {
            OnFail::Ask => {
                return failed_for_good(run, phase, Scope::Tasks(vec![phase.key(index)]), failure, OnFail::Ask, ids);
            }
            on_fail @ (OnFail::Fail | OnFail::Repeat) => {
                if failed.as_ref().is_none_or(|(_, _, known)| *known == OnFail::Repeat) {
                    failed = Some((Scope::Tasks(vec![phase.key(index)]), failure, on_fail));
                }
            }
        }
    }
    for index in phase.failed_gates() {
        let gate = &phase.gates[index];
        let (GateState::Failed(failure), None) = (&gate.state, &gate.hold) else { continue };
        match gate_on_fail(declared, gate) {
            OnFail::Ask => return failed_for_good(run, phase, gate_scope(phase, gate), failure, OnFail::Ask, ids),
            on_fail @ (OnFail::Fail | OnFail::Repeat) => {
                if failed.as_ref().is_none_or(|(_, _, known)| *known == OnFail::Repeat) {
                    failed = Some((gate_scope(phase, gate), failure, on_fail));
                }
            }
        }
    }
    // A task is finished when its own gates are, so these start even if nothing else does.
    let checks: Vec<Event> = phase.ready_gates().map(|index| start_gate(phase, &phase.gates[index])).collect();
    let Some((scope, failure, on_fail)) = failed else {
        let started = start_ready(run, phase, declared, ids);
        return checks.into_iter().chain(started).collect();
    };
    if !declared.fail_fast && !checks.is_empty() {
        return checks;
    }
    let works = phase.running().any(|index| phase.tasks[index].state == TaskState::Running);
    let drained = !works && (declared.fail_fast || phase.running_gates().next().is_none());
    if drained { failed_for_good(run, phase, scope, failure, on_fail, ids) } else { Vec::new() }
}

/// All tasks of a fan-out have ended, so the parent ends too. It fails if one of them did.
fn gathered(phase: &PhaseRun, index: usize) -> Event {
    let (bad, all) = phase.children_failed(index);
    if bad > 0 {
        let message = format!("{bad} of its {all} tasks failed");
        let failure = Failure { kind: FailureKind::Items, message, tail: String::new() };
        return Event::TaskFailed { key: phase.key(index), attempt: phase.tasks[index].attempts, failure, agent: None };
    }
    Event::TaskFinished {
        key: phase.key(index),
        attempt: phase.tasks[index].attempts,
        result: None,
        outputs: Vec::new(),
        agent: None,
        commit: None,
    }
}

/// What happens to a task that is ready.
enum Verdict {
    Start,
    Omitted,
    /// A person must decide whether more may be used.
    Ask(BudgetScope, String),
}

fn verdict(run: &Run, phase: &PhaseRun, task: &Task, index: usize) -> Verdict {
    if phase.lacks(index) {
        return Verdict::Omitted;
    }
    match run.exhausted(&phase.id, task) {
        Some((scope, why)) => Verdict::Ask(scope, why),
        None => Verdict::Start,
    }
}

/// Whether a task has to fan out.
fn fans_out(phase: &PhaseRun, task: &Task, index: usize) -> bool {
    task.for_each.is_some() && phase.tasks[index].item.is_none()
}

fn start_ready(run: &Run, phase: &PhaseRun, declared: &Phase, ids: &mut IdSource) -> Vec<Event> {
    let is_running = |index: &usize| phase.tasks[*index].state == TaskState::Running;
    let mut free = match run.workflow.max_parallel {
        None => usize::MAX,
        Some(limit) => (limit as usize).saturating_sub(phase.running().filter(is_running).count()),
    };
    let mut rooms = Slots::default();
    let mut events = Vec::new();
    let mut held: Vec<(TaskKey, BudgetScope, String)> = Vec::new();
    let mut addressed = BTreeSet::new();
    let mut queue = phase.queue();
    while free > 0
        && let Some(index) = queue.next()
    {
        let Some(task) = phase.declared(declared, index) else {
            let key = phase.key(index);
            events.push(if run.may_have_run(&key) { unverified(phase, index) } else { start(run, phase, None, index, ids) });
            continue;
        };
        if phase.tasks[index].stays_skipped() {
            let reason = "a person skipped it before it ran".to_owned();
            events.push(Event::TaskSkipped { key: phase.key(index), reason });
            continue;
        }
        match verdict(run, phase, task, index) {
            Verdict::Omitted => events.push(omitted(phase, task, index)),
            Verdict::Ask(scope, why) => held.push((phase.key(index), scope, why)),
            // It needs no capacity, so that one question covers all tasks that are ready.
            Verdict::Start if run.may_have_run(&phase.key(index)) => events.push(unverified(phase, index)),
            Verdict::Start if !rooms.take(phase, declared, index) => queue.leave_list(),
            Verdict::Start => {
                free -= 1;
                events.push(start(run, phase, Some(task), index, ids));
                events.extend(deliver(run, phase, task, index, &mut addressed));
            }
        }
    }
    events.extend(ask_for_more(run, held, ids));
    events
}

/// A task that may already have run is treated like one that was interrupted: a person decides.
fn unverified(phase: &PhaseRun, index: usize) -> Event {
    Event::TaskInterrupted { key: phase.key(index), attempt: phase.tasks[index].attempts + 1 }
}

/// How many more tasks of each fan-out may run concurrently, by parent.
#[derive(Default)]
struct Slots {
    left: BTreeMap<usize, usize>,
}

impl Slots {
    fn take(&mut self, phase: &PhaseRun, declared: &Phase, index: usize) -> bool {
        let Some(parent) = phase.parent(index) else { return true };
        let limit = phase.declared(declared, parent).and_then(|task| task.for_each.as_ref()?.max_parallel);
        let Some(limit) = limit else { return true };
        let running = || {
            let running = phase.running().filter(|index| phase.tasks[*index].state == TaskState::Running);
            running.filter(|index| phase.parent(*index) == Some(parent)).count()
        };
        let left = self.left.entry(parent).or_insert_with(|| (limit as usize).saturating_sub(running()));
        let has_room = *left > 0;
        *left = left.saturating_sub(1);
        has_room
    }
}

fn due(phase: &PhaseRun, at: Timestamp) -> impl Iterator<Item = usize> + '_ {
    phase.running().filter(move |index| phase.tasks[*index].state.next_try().is_some_and(|(_, due)| due <= at))
}

fn omitted(phase: &PhaseRun, task: &Task, index: usize) -> Event {
    let needs: Vec<&str> = task.needs.iter().map(|need| need.as_str()).collect();
    let reason = format!("it depends on {}, which did not succeed", needs.join(", "));
    Event::TaskOmitted { key: phase.key(index), reason, failed: true }
}

fn start(run: &Run, phase: &PhaseRun, declared: Option<&Task>, index: usize, ids: &mut IdSource) -> Event {
    let task = &phase.tasks[index];
    let key = phase.key(index);
    let agent = declared.filter(|task| !fans_out(phase, task, index)).and_then(Task::agent);
    let session = agent.map(|work| {
        let known = match work.session {
            // An attempt that the budget stopped continues in its session.
            Session::Fresh if task.next_reason == AttemptReason::Budget => run.session_to_resume(&key, None, false),
            Session::Fresh => None,
            Session::Same => run.session_to_resume(&key, run.agent_of(&key).filter(|_| work.agent.is_some()), true),
            // The session belongs to the agent that handed the task off.
            Session::Resume if task.next_reason == AttemptReason::Handoff => None,
            Session::Resume => run.session_to_resume(&key, None, false),
        };
        match known {
            Some(known) => SessionStart { id: known.id.clone(), resume: true },
            None => SessionStart { id: ids.next_uuid(), resume: false },
        }
    });
    Event::TaskStarted { key, attempt: task.attempts + 1, reason: task.next_reason, session }
}

/// The messages for an agent enter the prompt of the attempt that starts; the first one, if several start together.
fn deliver<'r>(run: &'r Run, phase: &PhaseRun, task: &Task, index: usize, addressed: &mut BTreeSet<&'r str>) -> Option<Event> {
    if run.team.is_none() || task.agent().is_none() || fans_out(phase, task, index) {
        return None;
    }
    let (key, attempt) = (phase.key(index), phase.tasks[index].attempts + 1);
    let member = run.agent_of(&key)?;
    if !addressed.insert(member) {
        return None;
    }
    let messages = run.messages_to_deliver(member);
    (!messages.is_empty()).then(|| TeamEvent::MessagesDelivered { key, attempt, messages }.into())
}

/// Asks once about each exhausted budget. Later tasks wait for the same answer.
fn ask_for_more(run: &Run, held: Vec<(TaskKey, BudgetScope, String)>, ids: &mut IdSource) -> Vec<Event> {
    let mut by_scope: BTreeMap<BudgetScope, (Vec<TaskKey>, String)> = BTreeMap::new();
    for (key, scope, why) in held {
        by_scope.entry(scope).or_insert_with(|| (Vec::new(), why)).0.push(key);
    }
    let asked = |scope: &BudgetScope| -> Option<HoldId> {
        let raises = Action::RaiseBudget(scope.clone());
        let mut open = run.holds.values().filter(|hold| hold.state == HoldState::Open);
        open.find(|hold| hold.options.iter().any(|choice| choice.action == raises)).map(|hold| hold.id.clone())
    };
    by_scope
        .into_iter()
        .map(|(scope, (keys, why))| match asked(&scope) {
            Some(hold) => Event::TasksBlocked { keys, hold },
            None => ask_about_budget(keys, scope, why, ids),
        })
        .collect()
}

/// Handles a failure that is not retried: the run fails, or the phase is repeated a few times and then a person is asked.
pub(super) fn failed_for_good(
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
        Scope::Run | Scope::Phase { .. } | Scope::Gaps { .. } => phase.id.to_string(),
    };
    let message = format!("{what} failed: {}", failure.message);
    match on_fail {
        OnFail::Fail => vec![Event::Failed { message }],
        OnFail::Repeat if run.repeats_by_failure < MAX_AUTOMATIC_REPEATS => {
            let mut events = void_others(run, None, "the phase runs again");
            events.push(Event::PhaseRepeated {
                from: phase.id.clone(),
                target: phase.id.clone(),
                feedback: Some(with_output(message, failure)),
                by_failure: true,
                gaps: false,
                carry: Vec::new(),
                restores: Vec::new(),
            });
            events
        }
        OnFail::Repeat | OnFail::Ask => {
            let options = if checks_the_phase(phase, &scope) { gate_options(&phase.id) } else { task_options() };
            vec![ask_about_failed(scope, &what, failure, options, ids)]
        }
    }
}

/// The failure and its last lines of output, as feedback for the rework.
fn with_output(message: String, failure: &Failure) -> String {
    let tail = failure.tail.trim_end();
    if tail.is_empty() { message } else { format!("{message}\n\n{tail}") }
}

/// Whether it is a gate of the whole phase, not of one of its tasks.
fn checks_the_phase(phase: &PhaseRun, scope: &Scope) -> bool {
    match scope {
        Scope::Gate { gate, .. } => {
            let place = phase.gates.iter().position(|known| known.gate == *gate);
            place.is_some_and(|index| phase.gated_task(index).is_none())
        }
        Scope::Tasks(_) | Scope::Run | Scope::Phase { .. } | Scope::Gaps { .. } => false,
    }
}
