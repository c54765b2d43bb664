//! Commands for a pipeline: a review before it starts, notes, another execution of its phase.

use super::void_others;
use crate::run::command::Envelope;
use crate::run::event::Event;
use crate::run::pipeline::{Lifecycle, MAX_REVIEWS, PipelineCommand, PipelineEvent, Review, Verdict};
use crate::run::refusal::Refusal;
use crate::run::state::{End, Run};

/// Ends an imported run if its state file says that it ended.
pub(super) fn as_imported(run: &Run) -> Option<Event> {
    let imported = run.pipeline.as_ref()?.imported.as_ref()?;
    match imported.status {
        Lifecycle::Initialized | Lifecycle::InProgress | Lifecycle::Paused => None,
        Lifecycle::Failed => {
            let message = imported.error.as_ref().map_or_else(
                || "it failed before it was imported".to_owned(),
                |error| format!("{} failed: {}", error.workstream, error.message),
            );
            Some(Event::Failed { message })
        }
        Lifecycle::Complete => Some(Event::Completed),
    }
}

pub(super) fn pipeline_command(
    run: &Run,
    envelope: &Envelope,
    pipeline_command: &PipelineCommand,
) -> Result<Vec<Event>, Refusal> {
    let known = run.pipeline.as_ref().ok_or(Refusal::NotAPipeline)?;
    match pipeline_command {
        PipelineCommand::Review(review) => file_review(run, envelope, review),
        PipelineCommand::Note(notes) if notes.is_empty() => Ok(Vec::new()),
        PipelineCommand::Note(notes) => Ok(vec![pipeline_event(PipelineEvent::Noted(notes.clone()))]),
        PipelineCommand::ArtifactsFound { key, .. } if !known.artifacts_unchecked.contains(key) => Ok(Vec::new()),
        PipelineCommand::ArtifactsFound { key, paths, missing } => {
            let (key, paths, missing) = (key.clone(), paths.clone(), missing.clone());
            Ok(vec![pipeline_event(PipelineEvent::ArtifactsFound { key, paths, missing })])
        }
        PipelineCommand::Restart => restart(run, envelope),
    }
}

fn pipeline_event(pipeline_event: PipelineEvent) -> Event {
    Event::Pipeline(Box::new(pipeline_event))
}

/// A review counts until the first phase starts. Two may be filed, and after that a person decides. A filed review that allows
/// the start is replaced only by one that forbids it.
fn file_review(run: &Run, envelope: &Envelope, review: &Review) -> Result<Vec<Event>, Refusal> {
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => return Err(Refusal::Ended { status: end.status() }),
        Some(End::Failed(_)) | None => {}
    }
    if run.current.is_some() || run.position > 0 {
        return Err(Refusal::ReviewTooLate);
    }
    let filed = run.pipeline.as_ref().and_then(|known| known.review.as_ref());
    let attempts = filed.map_or(0, |filed| filed.attempt);
    let mut review = review.clone();
    match review.verdict {
        Verdict::Overridden => {
            envelope.caller.may_decide("override a review")?;
            let said = review.override_reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
            review.override_reason = Some(said.ok_or(Refusal::NoOverrideReason)?.to_owned());
            review.attempt = attempts.max(1);
            // The earlier findings still exist.
            if let (Some(filed), 0, 0) = (filed, review.p0, review.p1) {
                (review.p0, review.p1) = (filed.p0, filed.p1);
                review.findings = review.findings.or_else(|| filed.findings.clone());
            }
        }
        Verdict::Ship | Verdict::ShipWithGates | Verdict::DoNotShip => {
            if let Some(filed) = filed.filter(|filed| filed.verdict.allows_start() && review.verdict.allows_start()) {
                return Err(Refusal::ReviewStands { verdict: filed.verdict.as_str() });
            }
            // A review that forbids the start can always replace one that allows it, because it takes nothing away from a person.
            let forbids = review.verdict == Verdict::DoNotShip && filed.is_some_and(|filed| filed.verdict.allows_start());
            if attempts >= MAX_REVIEWS && !forbids {
                return Err(Refusal::ReviewsSpent { attempts });
            }
            review.override_reason = None;
            review.attempt = (attempts + 1).min(MAX_REVIEWS);
        }
    }
    if review.verdict == Verdict::ShipWithGates && review.gates.is_empty() {
        return Err(Refusal::NoGatesNamed);
    }
    let mut named = std::collections::BTreeSet::new();
    if let Some(gate) = review.gates.iter().find(|gate| run.has_gate(&gate.id) || !named.insert(&gate.id)) {
        return Err(Refusal::GateKnown { gate: gate.id.clone() });
    }
    // The gates of an earlier review must pass whatever a later one says.
    let mut gates = filed.map(|filed| filed.gates.clone()).unwrap_or_default();
    for gate in std::mem::take(&mut review.gates) {
        match gates.iter().find(|kept| kept.id == gate.id) {
            Some(kept) if *kept == gate => {}
            Some(_) => return Err(Refusal::GateKnown { gate: gate.id }),
            None => gates.push(gate),
        }
    }
    review.gates = gates;
    let (p0, p1, allows_start) = (review.p0, review.p1, review.verdict.allows_start());
    let mut events = vec![pipeline_event(PipelineEvent::Reviewed(review))];
    if !allows_start {
        events.push(Event::Failed { message: format!("the review says do_not_ship: {p0} P0 and {p1} P1 findings") });
    }
    Ok(events)
}

fn restart(run: &Run, envelope: &Envelope) -> Result<Vec<Event>, Refusal> {
    envelope.caller.may_decide("run a phase again")?;
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => return Err(Refusal::Ended { status: end.status() }),
        Some(End::Failed(_)) | None => {}
    }
    let Some(phase) = &run.current else { return Ok(Vec::new()) };
    let mut events = void_others(run, None, "the phase runs again");
    let (from, target) = (phase.id.clone(), phase.id.clone());
    let (carry, restores) = (Vec::new(), Vec::new());
    events.push(Event::PhaseRepeated { from, target, feedback: None, by_failure: false, gaps: false, carry, restores });
    Ok(events)
}
