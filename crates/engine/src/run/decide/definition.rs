//! Going on with a definition whose files have changed.

use crate::digest::Digest;
use crate::run::event::{Event, FrozenFile};
use crate::run::refusal::Refusal;
use crate::run::state::{End, Run};
use crate::spec::workflow::Workflow;

/// A person accepts a changed definition. What the run has reached must still be in it.
pub(super) fn accept(run: &Run, definition: Digest, workflow: &Workflow, files: &[FrozenFile]) -> Result<Vec<Event>, Refusal> {
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => {
            return Err(Refusal::Ended { status: super::status_word(end) });
        }
        Some(End::Failed(_)) | None => {}
    }
    let reached = run.completed.iter().chain(run.current.as_ref().map(|phase| &phase.id));
    if let Some(gone) = reached.into_iter().find(|phase| workflow.phase(phase.as_str()).is_none()) {
        return Err(Refusal::PhaseVanished { phase: gone.clone() });
    }
    let places: Vec<usize> = run.completed.iter().filter_map(|phase| workflow.position(phase.as_str())).collect();
    let here = run.current.as_ref().and_then(|phase| workflow.position(phase.id.as_str()));
    let moved = run.completed.iter().zip(&places).find(|(_, place)| here.is_some_and(|here| **place > here));
    if let Some((phase, _)) = moved {
        return Err(Refusal::PhaseMoved { phase: phase.clone() });
    }
    Ok(vec![Event::DefinitionAccepted { definition, files: files.to_vec() }])
}
