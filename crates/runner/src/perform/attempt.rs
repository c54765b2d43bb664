//! The start and end of an attempt: exclusive use of its directory, `until`, and the commit of its changes.

use super::commit::{Commit, Started};
use super::dir_lock::{self, DirLock};
use super::loops::{Until, Verdict, evaluate_until};
use super::{Shared, TaskCall, failed, worktree};
use crate::process::Stop;
use crate::runtime::Performed;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::{CommandKind, TaskOutcome};
use lockgate_engine::run::event::{Failure, FailureKind};
use std::sync::Arc;

/// Ends an attempt: evaluates `until` after its work succeeded.
pub(super) struct Ending {
    shared: Arc<Shared>,
    key: TaskKey,
    attempt: u32,
    until: Option<Until>,
    commit: Option<Commit>,
    turn: Option<dir_lock::Wanted>,
    resources: AttemptResources,
    stop: Stop,
}

/// What an attempt holds while it works.
#[derive(Default)]
struct AttemptResources {
    commit: Option<Started>,
    /// Dropped last.
    turn: Option<DirLock>,
}

impl Ending {
    pub(super) fn new(shared: Arc<Shared>, run: &Run, call: TaskCall<'_>, stop: Stop) -> Self {
        let until = call.task.until.as_ref().map(|until| Until::new(&shared, run, call, until));
        let tree = worktree::wanted(run, call.key, call.task);
        let turn = dir_lock::Wanted::of_task(run, call.phase, call.task, call.key.address(), tree.as_ref());
        let (commit, resources) = (Commit::of(run, call), AttemptResources::default());
        Self { shared, key: call.key.clone(), attempt: call.attempt, until, commit, turn, resources, stop }
    }

    /// Waits for exclusive use of its directory, and records the state of the files before the work starts.
    pub(super) async fn start(&mut self) -> Result<(), Failure> {
        if self.shared.stubs.is_some() {
            return Ok(());
        }
        if let Some(turn) = self.turn.take() {
            self.resources.turn = Some(turn.take(&self.shared, &self.stop).await?);
        }
        if let Some(commit) = self.commit.take() {
            self.resources.commit = Some(commit.start(&self.shared, &self.stop).await?);
        }
        Ok(())
    }

    /// Reports the outcome of the attempt.
    pub(super) async fn end(
        self,
        outcome: TaskOutcome,
        values: Vec<(Digest, Vec<u8>)>,
        agent: Option<Box<AgentReport>>,
    ) -> Performed {
        let Self { shared, key, attempt, until, resources, stop, .. } = self;
        let outcome = match (outcome, until) {
            (TaskOutcome::Finished { result, outputs }, Some(until)) => {
                match evaluate_until(&shared, until, result.as_ref(), &values, &stop).await {
                    Ok(Verdict::Met) => TaskOutcome::Finished { result, outputs },
                    Ok(Verdict::Not { why, failed_check }) => TaskOutcome::Again { result, outputs, why, failed_check },
                    Err(why) => failed(FailureKind::Condition, format!("its `until` could not be evaluated: {why}")),
                }
            }
            (outcome, _) => outcome,
        };
        let (outcome, commit) = match (outcome, resources.commit) {
            (outcome @ TaskOutcome::Finished { .. }, Some(commit)) => match commit.complete().await {
                Ok(made) => (outcome, made),
                Err(failure) => (TaskOutcome::Failed(failure), None),
            },
            (outcome, Some(commit)) => {
                commit.leave().await;
                (outcome, None)
            }
            (outcome, None) => (outcome, None),
        };
        drop(resources.turn);
        Performed { command: CommandKind::TaskEnded { key, attempt, outcome, agent, commit }, values }
    }
}
