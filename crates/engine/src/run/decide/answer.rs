//! Opening checkpoints, answering holds, and looking again before an answer takes effect.

use crate::hold::{HoldKind, HoldState, Scope, ShownFile};
use crate::id::{HoldId, IdSource, PhaseId};
use crate::run::command::{Command, Way};
use crate::run::event::{Event, HoldOpened};
use crate::run::follow;
use crate::run::refusal::{Refusal, may_decide, settled_before};
use crate::run::state::{Decision, Run};

/// A checkpoint was made ready: its question waits from now on.
pub(super) fn shown(
    run: &Run,
    (phase, iteration): (&PhaseId, u32),
    prompt: &str,
    files: &[ShownFile],
    notes: &[String],
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(current) = &run.current else { return Vec::new() };
    let declared = &run.workflow.phases[current.position];
    let expected = current.id == *phase && current.iteration == iteration && follow::must_show(current, declared);
    let (true, Some(checkpoint), None, false) = (expected, &declared.checkpoint, &run.end, run.stopping) else {
        return Vec::new();
    };
    let notes = current.checkpoint.condition_note().into_iter().chain(notes.iter().cloned()).collect();
    vec![Event::HoldOpened(Box::new(HoldOpened {
        hold: HoldId::new(ids.next_id()),
        kind: HoldKind::Checkpoint,
        scope: Scope::Phase { phase: phase.clone(), iteration },
        prompt: prompt.to_owned(),
        files: files.to_vec(),
        options: checkpoint.options.clone(),
        notes,
        blocking: true,
        quorum: 1,
    }))]
}

/// An answer: recorded when it is a person's, names what was seen, and is the first.
pub(super) fn answer(
    run: &Run,
    command: &Command,
    id: &HoldId,
    revision: Option<u32>,
    option: &str,
    feedback: Option<String>,
) -> Result<Vec<Event>, Refusal> {
    may_decide(&command.actor, command.require_terminal, "answer a hold")?;
    let Some(hold) = run.holds.get(id) else { return Err(gone(run, id, option, feedback.as_deref())) };
    let choice = hold.option(option).ok_or_else(|| Refusal::NoSuchOption {
        hold: id.clone(),
        given: option.to_owned(),
        options: hold.options.clone(),
    })?;
    match hold.state {
        HoldState::Open => {}
        HoldState::Checking | HoldState::Settled | HoldState::Void => {
            return Err(answered_before(hold, choice, feedback.as_deref()));
        }
    }
    match revision {
        Some(given) if given != hold.revision => {
            return Err(Refusal::StaleRevision { hold: id.clone(), given, current: hold.revision });
        }
        None if !hold.files.is_empty() && command.actor.way != Way::Prompt => {
            return Err(Refusal::RevisionNeeded { hold: id.clone(), current: hold.revision });
        }
        Some(_) | None => {}
    }
    Ok(vec![Event::Answered { hold: id.clone(), option: choice.id.clone(), feedback, revision: hold.revision }])
}

fn answered_before(hold: &crate::hold::Hold, choice: &crate::hold::Choice, feedback: Option<&str>) -> Refusal {
    let Some(recorded) = hold.answers.last() else { return Refusal::RunEnded { hold: hold.id.clone() } };
    let (by, at) = (recorded.actor.clone(), recorded.at);
    if recorded.option == choice.id && (feedback.is_none() || feedback == recorded.feedback.as_deref()) {
        return Refusal::AlreadyAnswered { by, at };
    }
    let label = hold.options.iter().find(|known| known.id == recorded.option).map(|known| known.label.clone());
    Refusal::AnswerConflicts { recorded: label.unwrap_or_default(), given: choice.label.clone(), by, at }
}

fn gone(run: &Run, id: &HoldId, option: &str, feedback: Option<&str>) -> Refusal {
    let decision: Option<&Decision> = run.decisions.iter().rev().find(|decision| decision.hold == *id);
    match decision {
        Some(decision) => settled_before(decision, option, feedback),
        None if run.end.is_some() => Refusal::RunEnded { hold: id.clone() },
        None => Refusal::NoSuchHold { hold: id.clone() },
    }
}

/// The files of an answered hold were looked at again: the answer takes effect only if they are as they were shown.
pub(super) fn rechecked(run: &Run, id: &HoldId, revision: u32, files: &[ShownFile], differences: &[String]) -> Vec<Event> {
    let Some(hold) = run.holds.get(id) else { return Vec::new() };
    if hold.state != HoldState::Checking || hold.revision != revision || run.end.is_some() || run.stopping {
        return Vec::new();
    }
    let unchanged = hold.files.len() == files.len()
        && hold.files.iter().zip(files).all(|(then, now)| then.path == now.path && then.seen == now.seen);
    if unchanged {
        return follow::settle(run, hold);
    }
    vec![Event::HoldReopened {
        hold: id.clone(),
        revision: revision + 1,
        files: files.to_vec(),
        differences: differences.to_vec(),
    }]
}
