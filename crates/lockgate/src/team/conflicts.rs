//! Opening conflicts, and voting in them.

use super::view::ConflictView;
use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::{ConflictId, RunId};
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::team::{Compromise, TeamRefusal, TeamRequest, VoteDraft};
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::load::load;

/// A conflict to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConflict {
    /// What the participants disagree about.
    pub topic: String,
    /// The participants. The agent that opens the conflict is one of them in any case.
    pub participants: Vec<String>,
    /// The domain, in which some members may count for more.
    pub domain: Option<String>,
}

impl Project {
    /// Opens a conflict between members of a run's team.
    pub async fn open_conflict(&self, run: &RunId, new: NewConflict, caller: Caller) -> Result<ConflictView, Error> {
        let NewConflict { topic, participants, domain } = new;
        let topic = self.team_masks(run).await?.mask_text(&topic).into_owned();
        let (run, _) = self.request(run, TeamRequest::OpenConflict { topic, participants, domain }, &[], caller).await?;
        let opened = run.team.iter().flat_map(|team| &team.conflicts).next_back();
        let opened = opened.ok_or_else(|| Error::new(Code::InternalError, "the conflict was not recorded"))?;
        Ok(ConflictView::of(opened))
    }

    /// Votes in a conflict. The last vote of a round settles the conflict, starts another round, or asks a person.
    pub async fn vote(&self, run: &RunId, id: &ConflictId, vote: VoteDraft, caller: Caller) -> Result<ConflictView, Error> {
        let masks = self.team_masks(run).await?;
        let mask = |text: &String| masks.mask_text(text).into_owned();
        let vote = VoteDraft {
            choice: mask(&vote.choice),
            rationale: mask(&vote.rationale),
            evidence: vote.evidence.iter().map(mask).collect(),
            compromise: Compromise { conditions: vote.compromise.conditions.iter().map(mask).collect(), ..vote.compromise },
            veto_reason: vote.veto_reason.as_ref().map(mask),
            ..vote
        };
        let request = TeamRequest::Vote { conflict: id.clone(), vote };
        let (state, _) = self.request(run, request, &[], caller).await?;
        view(&state, id)
    }

    /// The conflicts of a run, in the order in which they were opened.
    pub async fn conflicts(&self, run: &RunId) -> Result<Vec<ConflictView>, Error> {
        let run = load(self.store(), run).await?;
        Ok(run.team.iter().flat_map(|team| &team.conflicts).map(ConflictView::of).collect())
    }

    /// A conflict of a run.
    pub async fn conflict(&self, run: &RunId, id: &ConflictId) -> Result<ConflictView, Error> {
        view(&load(self.store(), run).await?, id)
    }
}

fn view(run: &Run, id: &ConflictId) -> Result<ConflictView, Error> {
    let found = run.team.as_ref().and_then(|team| team.conflict(id.as_str())).map(ConflictView::of);
    found.ok_or_else(|| Refusal::from(TeamRefusal::ConflictNotFound(id.clone())).into())
}
