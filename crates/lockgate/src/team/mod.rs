//! Agents that work together in a run: their messages, conflicts and knowledge, and the state of the team.
//!
//! The sender of a request is the task that this process belongs to, or the caller outside every task. It is never an argument.

mod conflicts;
mod knowledge;
mod messages;
mod view;

pub use conflicts::NewConflict;
pub use knowledge::{Captured, KnowledgeList, NewKnowledge};
pub use messages::NewMessage;
pub use view::{ConflictView, MessageView, ResolutionView, VoteView};

use crate::error::Error;
use crate::project::Project;
use crate::select;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Caller, CommandKind};
use lockgate_engine::run::team::{Member, TeamCommand, TeamRequest};
use lockgate_runner::driver::submit_values;
use lockgate_runner::identity;
use lockgate_runner::load::load;
use lockgate_runner::secret::Masks;
use std::sync::Arc;

impl Project {
    /// The run that a command about a team means: the named one, or the run of the task that this process belongs to, or the
    /// newest one.
    pub async fn team_run(&self, named: Option<&str>) -> Result<RunId, Error> {
        if let (None, Some(run)) = (named, self.outer_run().await) {
            return Ok(run);
        }
        Ok(select::run_or_ended(self.store(), named.unwrap_or(select::NEWEST)).await?.row.run)
    }

    /// The members of a run's team, with their roles and tasks.
    pub async fn team(&self, run: &RunId) -> Result<Vec<Member>, Error> {
        Ok(load(self.store(), run).await?.team_members())
    }

    /// Masks for the secrets in the environment, which a task may have put into what it says.
    async fn team_masks(&self, run: &RunId) -> Result<Arc<Masks>, Error> {
        Ok(self.runtime.perform.masks(&load(self.store(), run).await?).await)
    }

    /// Sends a request of a team, and says whether it changed anything.
    async fn request(
        &self,
        run: &RunId,
        request: TeamRequest,
        values: &[(Digest, Vec<u8>)],
        caller: Caller,
    ) -> Result<(Run, bool), Error> {
        let from = match &caller.actor().inside_task {
            Some(_) => identity::task_attempt(&self.root, &load(self.store(), run).await?),
            None => None,
        };
        let command = CommandKind::Team(Box::new(TeamCommand { from, request }));
        match submit_values(&self.runtime, run, caller.clone(), command, values).await {
            Ok(done) => Ok(done),
            Err(error) => Err(self.failed(&caller, run, "take part in the team", error).await),
        }
    }
}
