//! The state of a phase's parts: tasks, gates, gap check, checkpoint.

use crate::id::{GateId, HoldId, TimerId};
use crate::run::event::{ConditionOutcome, Failure, Requester};
use crate::spec::workflow::GapAction;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It has not started, or will start again.
    Waiting,
    Running,
    /// The task failed and will be retried when the timer fires.
    Backoff {
        timer: TimerId,
        due: Timestamp,
    },
    /// The attempt was interrupted, and a person decides what happens.
    Interrupted,
    /// The last attempt failed.
    Failed(Failure),
    Done,
    /// A person marked it as done.
    Skipped,
    /// The task was split into several, and is done when they are.
    FannedOut,
    /// The task waits for an answer: to its own question, or to one about a budget or a login.
    Blocked,
    /// The task is left out, and the run continues without it.
    Omitted {
        reason: String,
        /// Whether a dependency of the task failed.
        failed: bool,
    },
    /// The last attempt failed, and the run continues despite that.
    Tolerated(Failure),
}

impl TaskState {
    /// Why the last attempt failed, unless the run continues despite that.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Waiting
            | Self::Running
            | Self::Backoff { .. }
            | Self::Interrupted
            | Self::Done
            | Self::Skipped
            | Self::FannedOut
            | Self::Blocked
            | Self::Omitted { .. }
            | Self::Tolerated(_) => None,
        }
    }

    /// The timer and due time of the next attempt, if the task is backing off.
    pub fn next_try(&self) -> Option<(&TimerId, Timestamp)> {
        match self {
            Self::Backoff { timer, due } => Some((timer, *due)),
            Self::Waiting
            | Self::Running
            | Self::Interrupted
            | Self::Failed(_)
            | Self::Done
            | Self::Skipped
            | Self::FannedOut
            | Self::Blocked
            | Self::Omitted { .. }
            | Self::Tolerated(_) => None,
        }
    }

    pub fn status(&self) -> StepStatus {
        match self {
            Self::Waiting => StepStatus::Waiting,
            Self::Running => StepStatus::Running,
            Self::Backoff { .. } => StepStatus::Backoff,
            Self::Interrupted => StepStatus::Interrupted,
            Self::Failed(_) => StepStatus::Failed,
            Self::Done => StepStatus::Done,
            Self::Skipped => StepStatus::Skipped,
            Self::FannedOut => StepStatus::FannedOut,
            Self::Blocked => StepStatus::Blocked,
            Self::Omitted { .. } => StepStatus::Omitted,
            Self::Tolerated(_) => StepStatus::Tolerated,
        }
    }
}

/// The status of a task or gate, or of one attempt, as shown in views and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It has not started, or will start again as soon as it can.
    Waiting,
    Running,
    /// The next attempt waits for a timer.
    Backoff,
    Interrupted,
    Failed,
    Done,
    /// A person skipped it.
    Skipped,
    /// It runs once per item of its list.
    FannedOut,
    /// It waits for rework requested by an answer.
    Blocked,
    /// Its condition is false.
    Omitted,
    /// It failed, and the phase continues without it.
    Tolerated,
    /// It was stopped because another task failed.
    Stopped,
    /// An attempt succeeded, and the task runs again because its condition does not hold yet.
    Repeated,
    /// The agent handed over to a person.
    HandedOver,
    Passed,
    Waived,
}

impl StepStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Backoff => "backoff",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::FannedOut => "fanned_out",
            Self::Blocked => "blocked",
            Self::Omitted => "omitted",
            Self::Tolerated => "tolerated",
            Self::Stopped => "stopped",
            Self::Repeated => "repeated",
            Self::HandedOver => "handed_over",
            Self::Passed => "passed",
            Self::Waived => "waived",
        }
    }
}

impl std::fmt::Display for StepStatus {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.as_str())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRun {
    pub state: GapState,
    /// The hold that asks about it.
    pub hold: Option<HoldId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapState {
    /// The check has not run, or will run again.
    #[default]
    Waiting,
    /// The work is complete.
    Closed,
    /// There are gaps, and a person accepted them.
    Waived,
    /// There are gaps, and `action` handles them.
    Open {
        action: GapAction,
        /// The gaps, and the message of the check.
        notes: Vec<String>,
    },
}

/// A script's query to an agent, and the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentQuery {
    pub requester: Requester,
    /// The query as JSON.
    pub prompt: StoredValue,
    /// The reply as JSON; absent until the agent has replied.
    pub text: Option<StoredValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRun {
    pub gate: GateId,
    pub attempts: u32,
    pub state: GateState,
    /// The hold that asks about its failure.
    pub hold: Option<HoldId>,
}

impl GateRun {
    pub(in crate::run) fn waiting(gate: &GateId) -> Self {
        Self { gate: gate.clone(), attempts: 0, state: GateState::Waiting, hold: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It has not run, or will run again.
    Waiting,
    Running,
    Passed,
    Failed(Failure),
    /// It failed, and a person waived it.
    Waived,
}

impl GateState {
    /// Whether the gate needs nothing more.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Passed | Self::Waived => true,
            Self::Waiting | Self::Running | Self::Failed(_) => false,
        }
    }
}

impl GateState {
    pub fn status(&self) -> StepStatus {
        match self {
            Self::Waiting => StepStatus::Waiting,
            Self::Running => StepStatus::Running,
            Self::Passed => StepStatus::Passed,
            Self::Failed(_) => StepStatus::Failed,
            Self::Waived => StepStatus::Waived,
        }
    }

    /// The reason, if the gate failed.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Waiting | Self::Running | Self::Passed | Self::Waived => None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRun {
    /// The result of its condition.
    pub condition: Option<ConditionOutcome>,
    /// The hold that it opened.
    pub hold: Option<HoldId>,
}

impl CheckpointRun {
    /// The note shown with a question whose condition could not be evaluated.
    pub(in crate::run) fn condition_note(&self) -> Option<String> {
        match &self.condition {
            Some(ConditionOutcome::Error(error)) => {
                Some(format!("the condition could not be evaluated, so a person decides: {error}"))
            }
            Some(ConditionOutcome::True | ConditionOutcome::False) | None => None,
        }
    }
}
