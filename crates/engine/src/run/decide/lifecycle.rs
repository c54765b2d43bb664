//! Taking over, interrupting and cancelling a run.

use super::backoff::next_try;
use crate::hold::HoldState;
use crate::id::{DriverId, IdSource};
use crate::run::command::Envelope;
use crate::run::event::{Event, Failure, FailureKind};
use crate::run::pipeline::Lifecycle;
use crate::run::refusal::Refusal;
use crate::run::state::{End, Run, TaskState};
use crate::spec::workflow::OnInterrupt;

/// A process takes over the run. Attempts that had started and not ended were interrupted.
///
/// A pipeline that was aborted or cancelled is `paused` in its state file, and a person may resume it.
pub(super) fn take_over(run: &Run, driver: &DriverId, detached: bool, envelope: &Envelope) -> Result<Vec<Event>, Refusal> {
    match &run.end {
        Some(End::Aborted | End::Cancelled) if run.pipeline.is_some() => {
            envelope.caller.may_decide("resume a pipeline that was ended")?;
            if run.waits_for_review() {
                return Err(Refusal::NotReviewed);
            }
        }
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => {
            return Err(Refusal::Ended { status: end.status() });
        }
        Some(End::Failed(_)) => {
            if run.waits_for_review() {
                return Err(Refusal::NotReviewed);
            }
            // Resuming a failed run retries what failed, and that is a person's decision.
            envelope.caller.outside_tasks("retry a failed run")?;
        }
        None => may_resume_imported(run, envelope)?,
    }
    let mut events = vec![Event::Resumed { driver: driver.clone(), detached }];
    events.extend(cut_off(run, envelope));
    Ok(events)
}

/// An imported pipeline has no open hold, although its file may say that it waits for a person. The first process that resumes it
/// answers that question, so it needs the authority for the answer.
fn may_resume_imported(run: &Run, envelope: &Envelope) -> Result<(), Refusal> {
    let imported = run.pipeline.as_ref().filter(|_| run.waits_for_resume()).and_then(|known| known.imported.as_deref());
    match imported.map(|imported| imported.status) {
        // It pauses after a phase, or tasks of it were interrupted: only a person says that it continues.
        Some(Lifecycle::Paused | Lifecycle::InProgress) => envelope.caller.may_decide("answer a hold"),
        Some(Lifecycle::Failed) => envelope.caller.outside_tasks("retry a failed run"),
        Some(Lifecycle::Initialized | Lifecycle::Complete) | None => Ok(()),
    }
}

/// The driver is shutting down and has stopped everything that was running.
pub(super) fn interrupt(run: &Run, signal: &str, envelope: &Envelope) -> Vec<Event> {
    if run.end.is_some() || run.stopping {
        return Vec::new();
    }
    let mut events = vec![Event::Interrupted { signal: signal.to_owned() }];
    events.extend(cut_off(run, envelope));
    events
}

fn cut_off(run: &Run, envelope: &Envelope) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    let mut ids = IdSource::new(envelope.seed);
    let mut events = Vec::new();
    for index in phase.running() {
        let task = &phase.tasks[index];
        if task.state != TaskState::Running {
            continue;
        }
        let (key, attempt) = (phase.key(index), task.attempts);
        events.push(Event::TaskInterrupted { key: key.clone(), attempt });
        let declared = phase.declared(&run.workflow.phases[phase.position], index);
        if declared.is_some_and(|task| task.on_interrupt == OnInterrupt::Fail) {
            let message = "interrupted before it finished, and on_interrupt is fail".to_owned();
            let failure = Failure { kind: FailureKind::Interrupted, message, tail: String::new() };
            events.push(Event::TaskFailed { key, attempt, failure, agent: None });
            events.extend(next_try(run, index, envelope.at, &mut ids));
        }
    }
    events
}

pub(super) fn cancel(run: &Run, reason: Option<String>) -> Result<Vec<Event>, Refusal> {
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => {
            return Err(Refusal::Ended { status: end.status() });
        }
        Some(End::Failed(_)) | None => {}
    }
    let mut events = void_others(run, None, "the run was cancelled");
    events.push(Event::Cancelled { reason });
    Ok(events)
}

/// Voids the holds that no longer apply.
pub(in crate::run) fn void_others(run: &Run, except: Option<&crate::id::HoldId>, reason: &str) -> Vec<Event> {
    let open = run.holds.values().filter(|hold| match hold.state {
        HoldState::Open | HoldState::Checking => Some(&hold.id) != except,
        HoldState::Settled | HoldState::Void => false,
    });
    open.map(|hold| Event::HoldVoided { hold: hold.id.clone(), reason: reason.to_owned() }).collect()
}
