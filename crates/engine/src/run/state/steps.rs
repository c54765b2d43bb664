//! Where the parts of a phase stand: its tasks, gates, gap check and checkpoint.

use crate::id::{GateId, HoldId, TimerId};
use crate::run::event::{ConditionOutcome, Failure, Requester};
use crate::spec::workflow::GapAction;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It has not started, or will start again.
    Waiting,
    /// An attempt is under way.
    Running,
    /// It failed and will be tried again at a moment.
    Backoff {
        timer: TimerId,
        /// The moment.
        due: Timestamp,
    },
    /// It was cut off, and a person is to decide.
    Interrupted,
    /// Its last try failed.
    Failed(Failure),
    Done,
    /// It counts as done.
    Skipped,
    /// It became several tasks, and is done when they are.
    FannedOut,
    /// It waits for the answer to a question: its own, or one about a budget or a login.
    Held,
    /// It is not done, and the run goes on without it.
    Omitted {
        reason: String,
        /// Whether that is because something that it needs failed.
        failed: bool,
    },
    /// Its last try failed, and the run goes on all the same.
    Tolerated(Failure),
}

impl TaskState {
    /// Why its last try failed, where it did and the run does not go on all the same.
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
            | Self::Held
            | Self::Omitted { .. }
            | Self::Tolerated(_) => None,
        }
    }

    /// The timer and the moment of its next try, where it waits for that.
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
            | Self::Held
            | Self::Omitted { .. }
            | Self::Tolerated(_) => None,
        }
    }

    /// The same without its details.
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
            Self::Held => StepStatus::Held,
            Self::Omitted { .. } => StepStatus::Omitted,
            Self::Tolerated(_) => StepStatus::Tolerated,
        }
    }
}

/// The status of a task or gate, or of one attempt of it, as views and messages show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It has not started, or starts again when it can.
    Waiting,
    /// An attempt of it runs.
    Running,
    /// Its next attempt waits for a timer.
    Backoff,
    Interrupted,
    Failed,
    Done,
    /// A person skipped it.
    Skipped,
    /// It runs once for each item of its list.
    FannedOut,
    /// It waits for rework that an answer asked for.
    Held,
    /// Its condition left it out.
    Omitted,
    /// It failed, and the phase continues without it.
    Tolerated,
    /// It was ended because another one failed.
    Stopped,
    /// An attempt was done, and the task runs again because its condition does not hold yet.
    Repeated,
    /// The agent of an attempt handed over to a person.
    HandedOver,
    Passed,
    /// A person waived a gate.
    Waived,
}

impl StepStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Backoff => "backoff",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::FannedOut => "fanned_out",
            Self::Held => "blocked",
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
        out.pad(self.word())
    }
}

/// Where the gap check of a phase stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRun {
    pub state: GapState,
    /// The hold that asks about it.
    pub hold: Option<HoldId>,
}

/// Where the gap check of a phase stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapState {
    /// It has not been made, or will be made again.
    #[default]
    Waiting,
    /// The work is whole.
    Closed,
    /// It is not, and a person let it pass.
    Waived,
    /// It is not, and this follows.
    Open {
        action: GapAction,
        /// What is missing, and what the check said.
        notes: Vec<String>,
    },
}

/// What an agent said to a script that asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentQuery {
    pub requester: Requester,
    /// What was asked, as a JSON text.
    pub prompt: StoredValue,
    /// What was said, as a JSON text; nothing yet when absent.
    pub text: Option<StoredValue>,
}

/// Where a gate stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRun {
    pub gate: GateId,
    pub attempts: u32,
    pub state: GateState,
    /// The hold that asks about its failure.
    pub hold: Option<HoldId>,
}

impl GateRun {
    /// A gate that has not run.
    pub(in crate::run) fn waiting(gate: &GateId) -> Self {
        Self { gate: gate.clone(), attempts: 0, state: GateState::Waiting, hold: None }
    }
}

/// Where a gate stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It has not run, or will run again.
    Waiting,
    Running,
    Passed,
    Failed(Failure),
    /// It failed, and a person let it pass.
    Waived,
}

impl GateState {
    /// Whether nothing more is asked of it.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Passed | Self::Waived => true,
            Self::Waiting | Self::Running | Self::Failed(_) => false,
        }
    }
}

impl GateState {
    /// The same without its details.
    pub fn status(&self) -> StepStatus {
        match self {
            Self::Waiting => StepStatus::Waiting,
            Self::Running => StepStatus::Running,
            Self::Passed => StepStatus::Passed,
            Self::Failed(_) => StepStatus::Failed,
            Self::Waived => StepStatus::Waived,
        }
    }

    /// Why it failed, where it did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Waiting | Self::Running | Self::Passed | Self::Waived => None,
        }
    }
}

/// Where a phase's checkpoint stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRun {
    /// What its condition gave.
    pub condition: Option<ConditionOutcome>,
    /// The hold that it opened.
    pub hold: Option<HoldId>,
}

impl CheckpointRun {
    /// What people are told about a condition that could not be evaluated.
    pub(in crate::run) fn condition_note(&self) -> Option<String> {
        match &self.condition {
            Some(ConditionOutcome::Error(error)) => {
                Some(format!("the condition could not be evaluated, so a person decides: {error}"))
            }
            Some(ConditionOutcome::True | ConditionOutcome::False) | None => None,
        }
    }
}
