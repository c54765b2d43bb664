//! The ends of tasks and gates.

use crate::id::{GateId, IdSource, PhaseId, TaskKey, TimerId};
use crate::run::command::TaskOutcome;
use crate::run::event::{Event, Failure};
use crate::run::state::{GateState, Run, TaskState};
use crate::spec::workflow::{OnFail, Retry};
use crate::time::Timestamp;
use std::time::Duration;

/// An outcome counts only for the attempt that is under way; any other came too late and changes nothing.
pub(super) fn task_ended(
    run: &Run,
    key: &TaskKey,
    attempt: u32,
    outcome: &TaskOutcome,
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    let Some(index) = phase.find(key) else { return Vec::new() };
    let task = &phase.tasks[index];
    if task.state != TaskState::Running || task.attempts != attempt {
        return Vec::new();
    }
    let key = key.clone();
    match outcome {
        TaskOutcome::Finished { result, outputs } => {
            vec![Event::TaskFinished { key, attempt, result: result.clone(), outputs: outputs.clone() }]
        }
        TaskOutcome::Failed(failure) => {
            let mut events = vec![Event::TaskFailed { key: key.clone(), attempt, failure: failure.clone() }];
            let declared = phase.declared(&run.workflow.phases[phase.position], index);
            let retry = declared.map_or_else(Retry::default, |task| task.retry);
            let failures = task.failures + 1;
            if failures < retry.attempts {
                let due = at.plus(backoff(retry.backoff, failures));
                events.push(Event::RetryScheduled { key, timer: TimerId::new(ids.next_id()), due });
            } else if declared.is_none_or(|task| task.on_fail != OnFail::Ask) {
                events.extend(stop_the_others(run, index));
            }
            events
        }
    }
}

/// How long to wait after so many failures: doubled each time.
fn backoff(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// With `fail_fast`, whatever else is under way ends with the first failure, and is tried again with it.
fn stop_the_others(run: &Run, failed: usize) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    if !run.workflow.phases[phase.position].fail_fast {
        return Vec::new();
    }
    let reason = format!("{} failed", phase.key(failed).address());
    let others = phase.running().filter(|index| *index != failed && phase.tasks[*index].state == TaskState::Running);
    others
        .map(|index| Event::TaskStopped { key: phase.key(index), attempt: phase.tasks[index].attempts, reason: reason.clone() })
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
    let under_way = current.id == *phase
        && current.iteration == iteration
        && current
            .gates
            .iter()
            .any(|known| known.gate == *gate && known.attempts == attempt && known.state == GateState::Running);
    if !under_way {
        return Vec::new();
    }
    let (phase, gate) = (phase.clone(), gate.clone());
    vec![match failure {
        None => Event::GatePassed { phase, iteration, gate, attempt },
        Some(failure) => Event::GateFailed { phase, iteration, gate, attempt, failure: failure.clone() },
    }]
}
