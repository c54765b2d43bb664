//! Outcomes of tasks and gates.

use super::{backoff, fan_out};
use crate::hold::Scope;
use crate::id::{GateId, IdSource, PhaseId, TaskKey};
use crate::run::advance;
use crate::run::agent::AgentReport;
use crate::run::command::TaskOutcome;
use crate::run::event::{DiffBase, Event, Failure, FailureKind, Requester};
use crate::run::state::{AwaitedBase, GateRun, GateState, Run, TaskState};
use crate::run::team::{Message, TeamEvent};
use crate::spec::workflow::OnFail;
use crate::time::Timestamp;

/// Handles the outcome of an attempt. It counts only for the running attempt; any other is too late and changes nothing.
pub(super) fn task_ended(
    run: &Run,
    (key, attempt): (&TaskKey, u32),
    outcome: &TaskOutcome,
    agent: Option<Box<AgentReport>>,
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    let Some(index) = phase.find(key) else { return Vec::new() };
    let task = &phase.tasks[index];
    if task.state != TaskState::Running || task.attempts != attempt {
        return Vec::new();
    }
    let declared = phase.declared(&run.workflow.phases[phase.position], index);
    let key = key.clone();
    if let Some(handoff) = handed_off(run, &key, attempt, outcome) {
        let (to, message) = (handoff.to.clone().unwrap_or_default(), handoff.id.clone());
        return vec![TeamEvent::HandedOff { key, attempt, to, message, agent }.into()];
    }
    match outcome {
        TaskOutcome::Finished { result, outputs } => {
            vec![Event::TaskFinished { key, attempt, result: result.clone(), outputs: outputs.clone(), agent, commit: None }]
        }
        TaskOutcome::Again { result, outputs, why, failed_check } => match declared.and_then(|task| task.until.as_ref()) {
            Some(until) if task.rounds + 1 >= until.limit => {
                let message = until.given_up(*failed_check);
                let failure = Failure { kind: FailureKind::Until, message, tail: why.clone() };
                failed(run, index, &failure, agent, at, ids)
            }
            Some(_) | None => {
                let (result, outputs, why) = (result.clone(), outputs.clone(), why.clone());
                vec![Event::TaskRepeated { key, attempt, result, outputs, agent, why }]
            }
        },
        TaskOutcome::Items(items) => fan_out::items(phase, index, items),
        TaskOutcome::Agents(agents) => fan_out::agents(run, phase, index, agents),
        TaskOutcome::QueriesAgent(prompt) => {
            vec![Event::AgentQueryStarted { requester: Requester::Task(key), prompt: prompt.clone() }]
        }
        // An attempt that its budget stopped continues when a person allows it.
        TaskOutcome::Failed(Failure { kind: FailureKind::Budget, message, .. }) => {
            vec![Event::TaskStopped { key, attempt, reason: message.clone(), agent, by_budget: true }]
        }
        TaskOutcome::Asks(presentation) => match declared.and_then(|task| task.checkpoint()) {
            Some(checkpoint) => vec![advance::ask(run, Scope::Tasks(vec![key]), checkpoint, presentation, at, ids)],
            None => Vec::new(),
        },
        TaskOutcome::HandsOver(handover) => {
            let asked = advance::ask_for_agent(run, &key, handover, ids);
            vec![Event::HandedOver { key, attempt, handover: handover.clone(), agent }, asked]
        }
        TaskOutcome::CommitsMissing(commits) => match task.exchange.as_ref().and_then(|exchange| exchange.handover.as_ref()) {
            Some(handover) => {
                let reason = format!("commits that it builds on are missing: {}", commits.join(", "));
                let stopped = Event::TaskStopped { key: key.clone(), attempt, reason, agent, by_budget: false };
                vec![stopped, advance::ask_about_commits(run, &key, handover, commits, ids)]
            }
            None => Vec::new(),
        },
        TaskOutcome::Unauthenticated { missing, probe } => {
            let reason = format!("it lacks a login: {}", missing.error);
            let stopped = Event::TaskStopped { key: key.clone(), attempt, reason, agent, by_budget: false };
            vec![stopped, advance::ask_for_login(run, &key, missing, probe.as_ref(), ids)]
        }
        TaskOutcome::Failed(failure) => failed(run, index, failure, agent, at, ids),
    }
}

/// The handoff that an attempt asked for. However the attempt ended, another agent continues, and that costs no retry.
fn handed_off<'a>(run: &'a Run, key: &TaskKey, attempt: u32, outcome: &TaskOutcome) -> Option<&'a Message> {
    match outcome {
        TaskOutcome::Failed(Failure { kind: FailureKind::Budget, .. }) => None,
        TaskOutcome::Finished { .. } | TaskOutcome::Again { .. } | TaskOutcome::Failed(_) => run.handoff_of(key, attempt),
        TaskOutcome::Items(_)
        | TaskOutcome::Agents(_)
        | TaskOutcome::QueriesAgent(_)
        | TaskOutcome::Asks(_)
        | TaskOutcome::Unauthenticated { .. }
        | TaskOutcome::HandsOver(_)
        | TaskOutcome::CommitsMissing(_) => None,
    }
}

/// The agent of the running attempt reported its session. The last report counts.
pub(super) fn session_named(run: &Run, (key, attempt): (&TaskKey, u32), session: &str, dir: Option<&str>) -> Vec<Event> {
    let under_way = run.task_run(key).is_some_and(|task| task.state == TaskState::Running && task.attempts == attempt);
    let known = run.session_to_resume(key, None, false).is_some_and(|known| known.id == session && known.confirmed);
    if !under_way || known {
        return Vec::new();
    }
    vec![Event::SessionNamed { key: key.clone(), attempt, session: session.to_owned(), dir: dir.map(str::to_owned) }]
}

/// An attempt failed: it is retried after a backoff, or this was the last attempt.
pub(in crate::run) fn failed(
    run: &Run,
    index: usize,
    failure: &Failure,
    agent: Option<Box<AgentReport>>,
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    let (key, task) = (phase.key(index), &phase.tasks[index]);
    let mut events = vec![Event::TaskFailed { key: key.clone(), attempt: task.attempts, failure: failure.clone(), agent }];
    let declared = phase.declared(&run.workflow.phases[phase.position], index);
    if let Some(scheduled) = backoff::next_try(run, index, at, ids) {
        events.push(scheduled);
    } else if declared.is_none_or(|task| task.on_fail != OnFail::Ask && !task.continue_on_error) {
        events.extend(stop_others(run, Some(index), &phase.key(index).address()));
    }
    events
}

/// With `fail_fast`, the first failure stops everything else that is running. It is retried together with the failed task.
fn stop_others(run: &Run, failed: Option<usize>, what: &str) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    if !run.workflow.phases[phase.position].fail_fast {
        return Vec::new();
    }
    let reason = format!("{what} failed");
    let others = phase.running().filter(|index| Some(*index) != failed && phase.tasks[*index].state == TaskState::Running);
    others
        .map(|index| Event::TaskStopped {
            key: phase.key(index),
            attempt: phase.tasks[index].attempts,
            reason: reason.clone(),
            agent: None,
            by_budget: false,
        })
        .collect()
}

pub(super) fn gate_ended(
    run: &Run,
    (phase, iteration): (&PhaseId, u32),
    gate: &GateId,
    attempt: u32,
    failure: Option<&Failure>,
) -> Vec<Event> {
    let Some(current) = &run.current else { return Vec::new() };
    let is_meant = |known: &GateRun| known.gate == *gate && known.attempts == attempt && known.state == GateState::Running;
    let index = current.gates.iter().position(is_meant);
    let Some(index) = index.filter(|_| current.id == *phase && current.iteration == iteration) else { return Vec::new() };
    let (phase, gate) = (phase.clone(), gate.clone());
    let Some(failure) = failure else { return vec![Event::GatePassed { phase, iteration, gate, attempt }] };
    let declared = run.workflow.phases[current.position].gate(gate.as_str());
    let what = format!("{phase}/{gate}");
    let mut events = vec![Event::GateFailed { phase, iteration, gate, attempt, failure: failure.clone() }];
    if current.gated_task(index).is_some() && declared.is_none_or(|gate| gate.on_fail != OnFail::Ask) {
        events.extend(stop_others(run, None, &what));
    }
    events
}

/// The files at the start of a phase were recorded.
pub(super) fn diff_base_recorded(run: &Run, (phase, iteration): (&PhaseId, u32), base: &DiffBase) -> Vec<Event> {
    let is_current = run.current.as_ref().is_some_and(|current| current.id == *phase && current.iteration == iteration);
    let awaited = run.diff_bases.awaited.filter(|_| is_current);
    let recorded = awaited.map(|awaited| {
        let starts_run = awaited == AwaitedBase::RunAndPhase;
        Event::DiffBaseRecorded { phase: phase.clone(), iteration, base: base.clone(), starts_run }
    });
    recorded.into_iter().collect()
}
