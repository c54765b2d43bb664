//! Retrying or skipping a single task or gate.

use crate::error::Error;
use crate::project::Project;
use crate::run_status::run_status;
use crate::select::StepName;
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::command::{Caller, CommandKind};
use lockgate_engine::run::state::{GateState, StepStatus, TaskState};
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::driver::{DriveError, submit};
use lockgate_runner::load::load;

/// A decision about a task or gate.
pub enum StepChange {
    /// Run it again.
    Retry,
    /// Count it as done, for this reason.
    Skip(String),
}

impl StepChange {
    fn command(&self, step: StepKey, cut_off: Option<u32>) -> CommandKind {
        match self {
            Self::Retry => CommandKind::RetryTask { step, cut_off },
            Self::Skip(reason) => CommandKind::SkipTask { step, reason: reason.clone(), cut_off },
        }
    }

    /// The action, as it completes "may not …".
    fn what(&self) -> &'static str {
        match self {
            Self::Retry => "retry a task",
            Self::Skip(_) => "skip a task",
        }
    }

    /// Whether a refusal only means that the decision has already been made.
    fn is_granted_by(&self, refusal: &Refusal) -> bool {
        match (self, refusal) {
            (Self::Retry, Refusal::RetryPending { .. }) => true,
            (Self::Skip(_), Refusal::StepDone { state, .. }) => matches!(state, StepStatus::Skipped | StepStatus::Waived),
            (_, refusal) => matches!(refusal, Refusal::AlreadyAnswered { .. }),
        }
    }
}

/// The result of retrying or skipping a task or gate.
#[derive(Debug)]
pub struct StepChanged {
    /// The task or gate, in the execution of its phase that the decision concerns.
    pub key: StepKey,
    /// The run with the decision, or the refusal if it had been made before.
    pub outcome: Result<Box<Run>, Refusal>,
}

impl Project {
    /// Retries or skips a task or gate.
    pub async fn change_step(
        &self,
        run: &RunId,
        step: &StepName,
        change: &StepChange,
        caller: Caller,
    ) -> Result<StepChanged, Error> {
        let state = load(self.store(), run).await?;
        let cut_off = cut_off(self, &state, step).await?;
        let key = step.key(state.iteration_counts.get(step.phase().as_str()).copied().unwrap_or(1));
        let outcome = match submit(&self.runtime, run, caller.clone(), change.command(key.clone(), cut_off)).await {
            Ok(now) => Ok(Box::new(now)),
            Err(DriveError::Refused(refusal)) if change.is_granted_by(&refusal) => Err(refusal),
            Err(error) => return Err(self.failed(&caller, run, change.what(), error).await),
        };
        Ok(StepChanged { key, outcome })
    }
}

/// The attempt that was running when its driver died. Its leftover processes are ended first.
async fn cut_off(project: &Project, state: &Run, step: &StepName) -> Result<Option<u32>, Error> {
    let Some(attempt) = running_attempt(state, step) else { return Ok(None) };
    if !run_status(project.store(), &state.id).await?.is_interrupted() {
        return Ok(None);
    }
    let ended = project.runtime.perform.end_orphans(state).await;
    ended.map_err(|detail| Error::from(DriveError::Orphans { run: state.id.clone(), detail }))?;
    Ok(Some(attempt))
}

/// The running attempt of a task or gate, according to the history.
pub fn running_attempt(state: &Run, step: &StepName) -> Option<u32> {
    let phase = state.current.as_ref().filter(|phase| phase.id == *step.phase() && state.end.is_none())?;
    match step {
        StepName::Task(_, id, item) => {
            let task = phase.tasks.iter().find(|task| task.task == *id && task.item == *item)?;
            (task.state == TaskState::Running).then_some(task.attempts)
        }
        StepName::Gate(_, id) => {
            let gate = phase.gates.iter().find(|gate| gate.gate == *id)?;
            (gate.state == GateState::Running && !state.stopping).then_some(gate.attempts)
        }
    }
}
