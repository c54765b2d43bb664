//! Views of a single run: its state, its summary, and the blocks of the checkpoint protocol.

use crate::code::Code;
use crate::error::Error;
use crate::handover::{self, Done};
use crate::project::Project;
use crate::run_status::with_driver;
use crate::summary::{self, Summary};
use crate::view::RunView;
use crate::{plan_summaries, worktrees};
use lockgate_engine::id::RunId;
use lockgate_formats::handover::render;

impl Project {
    /// The current state of a run.
    pub async fn view(&self, run: &RunId) -> Result<RunView, Error> {
        let (state, driver) = with_driver(self.store(), run).await?;
        RunView::of(&state, driver, self).await
    }

    /// Summarizes what a run did, decided and produced. Also writes summaries of its plans that are missing.
    pub async fn summary(&self, run: &RunId) -> Result<Summary, Error> {
        let (state, driver) = with_driver(self.store(), run).await?;
        for written in plan_summaries::write_summaries(&self.runtime, &self.root, &state).await {
            if let Err(error) = written {
                tracing::debug!(run = %run, %error, "the summary of a plan is not written");
            }
        }
        let mut summary = summary::of(self.store(), &state, driver.is_some(), self.now()).await?;
        match worktrees::of_run(self, &state).await {
            Ok(worktrees) => summary.worktrees = worktrees,
            Err(error) => summary.warnings.push(error.message().to_owned()),
        }
        Ok(summary)
    }

    /// The block that describes where a run waits, for the agent that started it.
    pub async fn handover(&self, run: &RunId) -> Result<String, Error> {
        let (done, state) = Done::of(self, run).await?;
        let block = handover::handover(&done, &state, self.now()).ok_or_else(|| {
            Error::new(Code::HoldNotFound, format!("run {run} has no open hold"))
                .help(format!("see its current state with `lockgate why {run}`"))
        })?;
        Ok(render(&block))
    }

    /// The block with which a new agent continues after the latest answer.
    pub async fn continuation(&self, run: &RunId) -> Result<String, Error> {
        let (done, state) = Done::of(self, run).await?;
        let block = handover::continuation(&done, &state).ok_or_else(|| {
            Error::new(Code::HoldNotFound, format!("no checkpoint of run {run} has been answered yet"))
                .help(format!("see the open checkpoint with `lockgate agent handover {run}`"))
        })?;
        Ok(block.render())
    }
}
