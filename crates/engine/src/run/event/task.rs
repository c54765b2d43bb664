//! The parts of events that describe tasks and their results.

use crate::digest::Digest;
use crate::id::{PhaseId, TaskId, TaskKey};
use crate::spec::workflow::{GapAction, Task};
use crate::stored_value::StoredValue;
use serde::{Deserialize, Serialize};

/// The script that queries an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requester {
    Task(TaskKey),
    Gaps { phase: PhaseId, iteration: u32 },
}

/// The result of a gap check, and what happens next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapsChecked {
    pub phase: PhaseId,
    pub iteration: u32,
    /// The number of the check in this phase, counted from 1.
    pub round: u32,
    /// `complete`, `incomplete`, or a word that the check chose.
    pub status: String,
    pub gaps: Vec<String>,
    /// What happens next. Absent if the work is complete.
    pub action: Option<GapAction>,
    pub message: Option<String>,
    /// The agents to start.
    pub agents: Vec<PlannedTask>,
}

/// A task that a phase is going to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    pub task: TaskId,
    /// The key of the fan-out item.
    pub item: Option<String>,
    #[serde(default)]
    pub value: Option<StoredValue>,
    /// The task itself, if the definition does not declare it.
    #[serde(default)]
    pub spec: Option<Box<Task>>,
    /// The task that was split into this one and others.
    #[serde(default)]
    pub parent: Option<TaskId>,
}

impl PlannedTask {
    pub fn declared(task: TaskId) -> Self {
        Self { task, item: None, value: None, spec: None, parent: None }
    }
}

/// Why a task is attempted. Only failures count against `retry.attempts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptReason {
    First,
    Retry,
    /// The last attempt was interrupted.
    Interrupted,
    /// The last attempt lacked a login.
    Auth,
    /// A person found issues with the last attempt.
    Feedback,
    /// The last attempt succeeded, but the `until` condition does not hold yet.
    Until,
    /// The budget stopped the last attempt, and a person allowed more.
    Budget,
    /// The last attempt's agent handed over at a checkpoint, and a person answered.
    Answered,
    /// The last attempt's agent handed the task to another agent.
    Handoff,
}

/// The session in which an agent works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    pub id: String,
    /// Whether the session already exists and is resumed.
    pub resume: bool,
}

/// A file that a task wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Relative to the output directory.
    pub path: String,
    pub digest: Digest,
    pub bytes: u64,
    /// Whether the bytes are a stored value, so that another machine can continue. Otherwise only the digest is known.
    pub stored: bool,
}

/// Why a task or gate failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    /// The last lines of output, with secrets masked.
    pub tail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A process exited with this code.
    Exit(i32),
    /// A process was killed by this signal.
    Signal(i32),
    Timeout,
    /// A script threw or exceeded a limit.
    Script,
    Start,
    /// A declared output does not exist.
    Output,
    /// The attempt was interrupted, and `on_interrupt` treats that as a failure.
    Interrupted,
    Stopped,
    Condition,
    /// The agent reported an error or gave no usable answer.
    Agent,
    /// The agent used up its time budget; a person decides.
    Budget,
    /// The process printed nothing for too long.
    Idle,
    /// The task reached the maximum number of `until` rounds.
    Until,
    /// Tasks of the fan-out failed.
    Items,
    /// A person found issues more often than the task may be redone.
    Issues,
    /// A login is missing, and a person chose to let the task fail.
    Authentication,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionOutcome {
    True,
    /// The checkpoint is skipped.
    False,
    Error(String),
}
