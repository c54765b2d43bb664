//! Continuing with a definition whose files have changed.

use crate::digest::Digest;
use crate::hold::{Hold, HoldState, Scope, Topic};
use crate::id::TaskKey;
use crate::run::advance;
use crate::run::event::{Event, FrozenFile};
use crate::run::phase::PhaseRun;
use crate::run::refusal::Refusal;
use crate::run::state::{End, Run};
use crate::spec::workflow::{Phase, Workflow};

/// A person accepts a changed definition. It must contain everything that the run has reached. Questions that lost their subject
/// or changed their text are voided, and asked again if they still apply.
pub(super) fn accept(run: &Run, definition: Digest, workflow: &Workflow, files: &[FrozenFile]) -> Result<Vec<Event>, Refusal> {
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => {
            return Err(Refusal::Ended { status: end.status() });
        }
        Some(End::Failed(_)) | None => {}
    }
    let reached = run.completed.iter().chain(run.current.as_ref().map(|phase| &phase.id));
    if let Some(gone) = reached.into_iter().find(|phase| workflow.phase(phase.as_str()).is_none()) {
        return Err(Refusal::PhaseVanished { phase: gone.clone() });
    }
    let here = run.current.as_ref().and_then(|phase| workflow.position(phase.id.as_str()));
    let ahead = here.map_or(&[][..], |here| &workflow.phases[here..]);
    if let Some(moved) = ahead.iter().find(|phase| run.completed.contains(&phase.id)) {
        return Err(Refusal::PhaseMoved { phase: moved.id.clone() });
    }
    let mut events = lost_questions(run, workflow)?;
    events.push(Event::DefinitionAccepted { definition, files: files.to_vec() });
    Ok(events)
}

/// Voids the questions of the current phase that the changed definition no longer asks, or not in these words. A recorded answer
/// counts: it takes effect before the definition changes, or the definition is refused until it has.
fn lost_questions(run: &Run, workflow: &Workflow) -> Result<Vec<Event>, Refusal> {
    let Some(phase) = &run.current else { return Ok(Vec::new()) };
    let Some(new) = workflow.phase(phase.id.as_str()) else { return Ok(Vec::new()) };
    let change = Change { phase, old: &run.workflow.phases[phase.position], new };
    let mut lost = Vec::new();
    for hold in run.holds.values().filter(|hold| !advance::takes_effect_at_once(hold)) {
        match (hold.state, change.reason(hold)) {
            (HoldState::Open, Some(reason)) => lost.push(Event::HoldVoided { hold: hold.id.clone(), reason }),
            (HoldState::Checking, Some(_)) => return Err(Refusal::AnswerUnchecked { hold: hold.id.clone() }),
            (HoldState::Open | HoldState::Checking, None) | (HoldState::Settled | HoldState::Void, _) => {}
        }
    }
    Ok(lost)
}

/// The current phase in the old and the new definition.
struct Change<'r> {
    phase: &'r PhaseRun,
    old: &'r Phase,
    new: &'r Phase,
}

impl Change<'_> {
    /// Why a question cannot stay open.
    fn reason(&self, hold: &Hold) -> Option<String> {
        match &hold.scope {
            Scope::Run => None,
            Scope::Tasks(keys) => self.lost_task(keys).or_else(|| self.other_question(hold, keys)),
            Scope::Gate { gate, .. } => {
                let declared = |phase: &Phase| phase.gate(gate.as_str()).is_some();
                let gone = declared(self.old) && !declared(self.new);
                gone.then(|| format!("the changed definition has no gate {gate}"))
            }
            Scope::Phase { .. } if self.new.checkpoint.is_none() => {
                Some("the changed definition has no checkpoint here".to_owned())
            }
            Scope::Phase { .. } if self.new.checkpoint != self.old.checkpoint => Some(OTHER_WORDS.to_owned()),
            Scope::Phase { .. } | Scope::Gaps { .. } if self.has_new_work() => {
                Some("the changed definition has more to do before it".to_owned())
            }
            Scope::Gaps { .. } if self.new.gap_check.is_none() => Some("the changed definition has no gap check here".to_owned()),
            Scope::Phase { .. } | Scope::Gaps { .. } => None,
        }
    }

    fn lost_task(&self, keys: &[TaskKey]) -> Option<String> {
        let gone = keys.iter().find(|key| self.phase.find(key).is_some_and(|index| self.phase.is_lost(index, self.new)))?;
        Some(format!("the changed definition has no task {}", gone.task))
    }

    /// Why a question of the definition cannot stay open: its text changed, or it is no longer asked.
    fn other_question(&self, hold: &Hold, keys: &[TaskKey]) -> Option<String> {
        let by_agent = matches!(hold.question.as_ref().map(|asked| &asked.topic), Some(Topic::Handover(_)));
        if !hold.kind.is_declared() || by_agent {
            return None;
        }
        let asks = |phase: &Phase| keys.first().and_then(|key| phase.task(key.task.as_str())?.checkpoint().cloned());
        (asks(self.old) != asks(self.new)).then(|| OTHER_WORDS.to_owned())
    }

    fn has_new_work(&self) -> bool {
        let task = self.new.tasks.iter().any(|task| self.old.task(task.id.as_str()).is_none());
        task || self.new.gates.iter().any(|gate| self.old.gate(gate.id.as_str()).is_none())
    }
}

const OTHER_WORDS: &str = "the changed definition asks something else here";
