//! Opening checkpoints, answering holds, and checking files again before an answer takes effect.

use crate::hold::{Due, Hold, HoldState, PresentedFile, Remind, Scope, ShownDiff, Terms};
use crate::id::{HoldId, IdSource, PhaseId, TimerId};
use crate::run::advance;
use crate::run::command::{Channel, Envelope, Presentation};
use crate::run::event::{Event, Failure};
use crate::run::refusal::{self, Refusal, already_settled};
use crate::run::state::{Decision, End, Run};
use crate::time::Timestamp;

/// Opens the hold of a checkpoint that is ready to be shown.
pub(super) fn shown(
    run: &Run,
    (phase, iteration): (&PhaseId, u32),
    presentation: &Presentation,
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(current) = &run.current else { return Vec::new() };
    let declared = &run.workflow.phases[current.position];
    let expected = current.id == *phase && current.iteration == iteration && advance::must_show(current, declared);
    let (true, Some(checkpoint), None, false) = (expected, &declared.checkpoint, &run.end, run.stopping) else {
        return Vec::new();
    };
    let notes = current.checkpoint.condition_note().into_iter().chain(presentation.notes.iter().cloned()).collect();
    let presentation = Presentation { notes, ..presentation.clone() };
    vec![advance::ask(run, Scope::Phase { phase: phase.clone(), iteration }, checkpoint, &presentation, at, ids)]
}

/// Records an answer if it comes from a person, names the revision that was seen, and is the first.
pub(super) fn answer(
    run: &Run,
    envelope: &Envelope,
    id: &HoldId,
    revision: Option<u32>,
    option: &str,
    feedback: Option<String>,
) -> Result<Vec<Event>, Refusal> {
    envelope.caller.may_decide("answer a hold")?;
    let Some(hold) = run.holds.get(id) else { return Err(gone(run, id, option, feedback.as_deref())) };
    let choice = hold.option(option).ok_or_else(|| Refusal::OptionNotFound {
        hold: id.clone(),
        revision: Some(hold.revision),
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
        None if hold.shows_content() && envelope.caller.actor().channel != Channel::Prompt => {
            return Err(Refusal::RevisionRequired { hold: id.clone(), current: hold.revision });
        }
        Some(_) | None => {}
    }
    if choice.requires_feedback && feedback.as_deref().is_none_or(|words| words.trim().is_empty()) {
        return Err(Refusal::FeedbackRequired { hold: id.clone(), label: choice.label.clone() });
    }
    Ok(vec![Event::Answered { hold: id.clone(), option: choice.id.clone(), feedback, revision: hold.revision }])
}

fn answered_before(hold: &crate::hold::Hold, choice: &crate::hold::Choice, feedback: Option<&str>) -> Refusal {
    let Some(recorded) = hold.answers.last() else { return Refusal::RunEnded { hold: hold.id.clone() } };
    let (by, at) = (recorded.actor.clone(), recorded.at);
    if recorded.option == choice.id && (feedback.is_none() || feedback == recorded.feedback.as_deref()) {
        return Refusal::AlreadyAnswered { by, at };
    }
    let label = hold.choice(&recorded.option).map(|known| known.label.clone());
    Refusal::AnswerConflict { recorded: label.unwrap_or_default(), given: choice.label.clone(), by, at }
}

fn gone(run: &Run, id: &HoldId, option: &str, feedback: Option<&str>) -> Refusal {
    let mut known = run.decisions.iter().rev().filter(|decision| decision.hold == *id);
    // A hold that a rewind opened again has several answers, of which at most one counts.
    let decision: Option<&Decision> = known.clone().find(|decision| !decision.void).or_else(|| known.next());
    match (decision, &run.end) {
        (Some(decision), _) if !decision.void => already_settled(decision, option, feedback),
        // For a hold that was voided with the run, report the end of the run.
        (None, Some(End::Aborted | End::Cancelled)) => Refusal::RunEnded { hold: id.clone() },
        (Some(_) | None, _) => refusal::gone(run, id),
    }
}

/// The files of an answered hold were digested again. The answer takes effect only if they have not changed.
pub(super) fn rechecked(
    run: &Run,
    (id, revision): (&HoldId, u32),
    (files, diff): (&[PresentedFile], Option<&ShownDiff>),
    differences: &[String],
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(hold) = run.holds.get(id) else { return Vec::new() };
    if hold.state != HoldState::Checking || hold.revision != revision || run.end.is_some() || run.stopping {
        return Vec::new();
    }
    let same_files =
        hold.files.len() == files.len() && hold.files.iter().zip(files).all(|(then, now)| now.is_unchanged_from(then));
    let same_diff = match (&hold.diff, diff) {
        (Some(then), Some(now)) => now.is_unchanged_from(then),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    if same_files && same_diff {
        return advance::settle(run, hold, at, ids);
    }
    vec![reopened(hold, (files, diff), differences.to_vec(), false, at, ids)]
}

/// The next revision of a hold. No one has seen it yet, so it gets as much time as the revision before it.
pub(super) fn reopened(
    hold: &Hold,
    (files, diff): (&[PresentedFile], Option<&ShownDiff>),
    differences: Vec<String>,
    by_check: bool,
    at: Timestamp,
    ids: &mut IdSource,
) -> Event {
    let mut timer = || TimerId::new(ids.next_id());
    let Terms { deadline, remind, .. } = &hold.terms;
    Event::HoldReopened {
        hold: hold.id.clone(),
        revision: hold.revision + 1,
        files: files.to_vec(),
        differences,
        by_check,
        deadline: deadline.as_ref().map(|due| {
            let at = at.plus(due.at.since(hold.since));
            Box::new(Due { timer: timer(), at, then: due.then.clone(), over: false })
        }),
        remind: remind.as_ref().map(|remind| {
            let every = remind.every;
            Box::new(Remind { timer: timer(), at: at.plus(every), every, sent: 0 })
        }),
        diff: diff.cloned().map(Box::new),
        restored: false,
    }
}

/// The check of an answer ended. If it failed, the hold is reopened with the reason.
pub(super) fn checked(
    run: &Run,
    (id, revision): (&HoldId, u32),
    failure: Option<&Failure>,
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(hold) = run.holds.get(id) else { return Vec::new() };
    let expected = hold.state == HoldState::Checking && hold.revision == revision && hold.needs_check();
    if !expected || run.end.is_some() || run.stopping {
        return Vec::new();
    }
    let Some(failure) = failure else { return vec![Event::CheckPassed { hold: id.clone() }] };
    let command = hold.terms.check.as_ref().map(|check| check.shown().to_owned()).unwrap_or_default();
    let mut differences = vec![format!("the check failed: `{command}`: {}", failure.message)];
    differences.extend(Some(failure.tail.trim_end().to_owned()).filter(|tail| !tail.is_empty()));
    vec![reopened(hold, (&hold.files, hold.diff.as_deref()), differences, true, at, ids)]
}
