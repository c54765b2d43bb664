//! Overrides by a person for single tasks and gates: retry and skip.

use crate::hold::{Action, Hold, HoldKind, HoldState, Scope};
use crate::id::{HoldId, IdSource, StepKey, TaskKey};
use crate::run::advance;
use crate::run::command::Envelope;
use crate::run::event::{Event, Failure};
use crate::run::phase::PhaseRun;
use crate::run::refusal::Refusal;
use crate::run::state::{End, GateRun, GateState, Run, StepStatus, TaskState};

/// A person requests a new attempt.
pub(super) fn retry(run: &Run, envelope: &Envelope, step: &StepKey, cut_off: Option<u32>) -> Result<Vec<Event>, Refusal> {
    envelope.caller.may_decide("retry a task")?;
    refuse_ended(run)?;
    let found = find(run, step)?;
    let mut events = match found.override_state(run, cut_off) {
        OverrideState::Running => return Err(Refusal::StepRunning { address: step.address() }),
        OverrideState::Done(state) => return Err(Refusal::StepDone { address: step.address(), state }),
        OverrideState::NotStarted => return Err(Refusal::NotStarted { address: step.address() }),
        OverrideState::Again => return Err(Refusal::RetryPending { address: step.address() }),
        OverrideState::Interrupted(interrupted) => interrupted.into_iter().collect(),
        OverrideState::Stopped => Vec::new(),
    };
    events.extend(void_question(run, &found, &Action::Rerun, envelope)?);
    events.push(match step.clone() {
        StepKey::Task(key) => Event::RetryRequested { key },
        StepKey::Gate { phase, iteration, gate } => Event::GateRetryRequested { phase, iteration, gate },
    });
    events.extend(still_failed(run, &found));
    Ok(events)
}

/// A person marks a task as done, or waives a gate.
pub(super) fn skip(
    run: &Run,
    envelope: &Envelope,
    step: &StepKey,
    reason: &str,
    cut_off: Option<u32>,
) -> Result<Vec<Event>, Refusal> {
    envelope.caller.may_decide("skip a task")?;
    refuse_ended(run)?;
    let found = find(run, step)?;
    if reason.trim().is_empty() {
        return Err(Refusal::ReasonRequired { address: step.address() });
    }
    let mut events = match found.override_state(run, cut_off) {
        OverrideState::Running => return Err(Refusal::StepRunning { address: step.address() }),
        OverrideState::Done(state) => return Err(Refusal::StepDone { address: step.address(), state }),
        OverrideState::Interrupted(interrupted) => interrupted.into_iter().collect(),
        OverrideState::NotStarted | OverrideState::Again | OverrideState::Stopped => Vec::new(),
    };
    events.extend(void_question(run, &found, &Action::CountAsDone, envelope)?);
    let reason = reason.trim().to_owned();
    events.push(match step.clone() {
        StepKey::Task(key) => Event::TaskSkipped { key, reason },
        StepKey::Gate { phase, iteration, gate } => Event::GateWaived { phase, iteration, gate, reason: Some(reason) },
    });
    events.extend(still_failed(run, &found));
    Ok(events)
}

/// Refuses a run that has ended for good. A failed run can continue.
fn refuse_ended(run: &Run) -> Result<(), Refusal> {
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => Err(Refusal::Ended { status: end.status() }),
        Some(End::Failed(_)) | None => Ok(()),
    }
}

/// A task or gate of the current phase.
struct Found<'r> {
    phase: &'r PhaseRun,
    what: What<'r>,
}

enum What<'r> {
    Task(usize),
    Gate(&'r GateRun),
}

/// The state of a task or gate, as far as it matters for an override.
enum OverrideState {
    /// It never ran, and will.
    NotStarted,
    /// It ran, and will run again by itself.
    Again,
    Running,
    /// An attempt was running when its driver died; for tasks, with the event that records that.
    Interrupted(Option<Event>),
    /// It failed or was interrupted.
    Stopped,
    Done(StepStatus),
}

fn find<'r>(run: &'r Run, step: &StepKey) -> Result<Found<'r>, Refusal> {
    let elsewhere =
        || Refusal::NotInCurrentPhase { address: step.address(), current: run.current.as_ref().map(|phase| phase.id.clone()) };
    let phase = run.current.as_ref().ok_or_else(elsewhere)?;
    let what = match step {
        StepKey::Task(key) => phase.find(key).map(What::Task),
        StepKey::Gate { phase: id, iteration, gate } if *id == phase.id && *iteration == phase.iteration => {
            phase.gates.iter().find(|known| known.gate == *gate).map(What::Gate)
        }
        StepKey::Gate { .. } => None,
    };
    Ok(Found { phase, what: what.ok_or_else(elsewhere)? })
}

impl Found<'_> {
    fn hold(&self) -> Option<&HoldId> {
        match self.what {
            What::Task(index) => self.phase.tasks[index].hold.as_ref(),
            What::Gate(gate) => gate.hold.as_ref(),
        }
    }

    fn override_state(&self, run: &Run, cut_off: Option<u32>) -> OverrideState {
        match self.what {
            What::Task(index) => {
                let task = &self.phase.tasks[index];
                match &task.state {
                    TaskState::Waiting if task.attempts == 0 => OverrideState::NotStarted,
                    TaskState::Waiting => OverrideState::Again,
                    TaskState::Running if cut_off == Some(task.attempts) => {
                        OverrideState::Interrupted(Some(Event::TaskInterrupted {
                            key: self.phase.key(index),
                            attempt: task.attempts,
                        }))
                    }
                    TaskState::Running => OverrideState::Running,
                    TaskState::FannedOut => OverrideState::Running,
                    TaskState::Backoff { .. } | TaskState::Interrupted | TaskState::Failed(_) | TaskState::Blocked => {
                        OverrideState::Stopped
                    }
                    TaskState::Done | TaskState::Skipped | TaskState::Omitted { .. } | TaskState::Tolerated(_) => {
                        OverrideState::Done(task.state.status())
                    }
                }
            }
            What::Gate(gate) => match &gate.state {
                GateState::Waiting if gate.attempts == 0 => OverrideState::NotStarted,
                GateState::Waiting => OverrideState::Again,
                // A gate that was running when its driver was stopped has no event that says so.
                GateState::Running if run.stopping || cut_off == Some(gate.attempts) => OverrideState::Interrupted(None),
                GateState::Running => OverrideState::Running,
                GateState::Failed(_) => OverrideState::Stopped,
                GateState::Passed | GateState::Waived => OverrideState::Done(gate.state.status()),
            },
        }
    }
}

/// Voids the question about it, which has lost its subject. If the question was about others too, they are asked about again. An
/// answer that was recorded first still counts.
fn void_question(run: &Run, found: &Found<'_>, wanted: &Action, envelope: &Envelope) -> Result<Vec<Event>, Refusal> {
    let Some(hold) = found.hold().and_then(|hold| run.holds.get(hold)) else { return Ok(Vec::new()) };
    match hold.state {
        HoldState::Open => {}
        HoldState::Checking | HoldState::Settled | HoldState::Void => return Err(answered_before(hold, wanted)),
    }
    let reason = match wanted {
        Action::Rerun => "a person asked for a new attempt",
        Action::CountAsDone
        | Action::Continue
        | Action::RepeatPhase(_)
        | Action::SkipPhases(_)
        | Action::Abort
        | Action::RaiseBudget(_)
        | Action::Redo(_)
        | Action::Fail
        | Action::RerunRest
        | Action::Reply => "a person marked it as done",
    };
    let mut events = vec![Event::HoldVoided { hold: hold.id.clone(), reason: reason.to_owned() }];
    let others = others_asked_about(hold, found);
    if !others.is_empty() && hold.kind == HoldKind::Interrupted {
        events.push(advance::ask_about_interrupted(run, others, &mut IdSource::new(envelope.seed)));
    }
    Ok(events)
}

fn others_asked_about(hold: &Hold, found: &Found<'_>) -> Vec<TaskKey> {
    match (&hold.scope, &found.what) {
        (Scope::Tasks(keys), What::Task(index)) => {
            let own = found.phase.key(*index);
            keys.iter().filter(|key| **key != own).cloned().collect()
        }
        (
            Scope::Tasks(_) | Scope::Run | Scope::Phase { .. } | Scope::Gate { .. } | Scope::Gaps { .. },
            What::Task(_) | What::Gate(_),
        ) => Vec::new(),
    }
}

fn answered_before(hold: &Hold, wanted: &Action) -> Refusal {
    let (Some(answer), Some(chosen)) = (hold.answers.last(), hold.chosen()) else {
        return Refusal::HoldNotFound { hold: hold.id.clone() };
    };
    let (by, at) = (answer.actor.clone(), answer.at);
    if chosen.action == *wanted {
        return Refusal::AlreadyAnswered { by, at };
    }
    let given = hold.options.iter().find(|choice| choice.action == *wanted).map(|choice| choice.label.clone());
    Refusal::AnswerConflict { recorded: chosen.label.clone(), given: given.unwrap_or_default(), by, at }
}

/// A failed run stays failed if something else failed too. Resuming retries that.
fn still_failed(run: &Run, found: &Found<'_>) -> Option<Event> {
    if !matches!(run.end, Some(End::Failed(_))) {
        return None;
    }
    let message = |address: String, failure: &Failure| format!("{address} failed: {}", failure.message);
    let phase = found.phase;
    let tasks = phase.failed_or_interrupted().filter(|index| !matches!(found.what, What::Task(own) if own == *index));
    let mut tasks = tasks.filter_map(|index| {
        let task = &phase.tasks[index];
        let (TaskState::Failed(failure), None) = (&task.state, &task.hold) else { return None };
        Some(message(phase.key(index).address(), failure))
    });
    let gates = phase.gates.iter().filter(|gate| !matches!(found.what, What::Gate(own) if own.gate == gate.gate));
    let mut gates = gates.filter_map(|gate| {
        let (GateState::Failed(failure), None) = (&gate.state, &gate.hold) else { return None };
        Some(message(format!("{}/{}", phase.id, gate.gate), failure))
    });
    tasks.next().or_else(|| gates.next()).map(|message| Event::Failed { message })
}
