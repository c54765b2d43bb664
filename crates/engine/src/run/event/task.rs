//! The parts of events that say what work is and what came of it.

use crate::digest::Digest;
use crate::id::{PhaseId, TaskId, TaskKey};
use crate::spec::workflow::{GapAction, Task};
use crate::stored_value::StoredValue;
use serde::{Deserialize, Serialize};

/// Whose script asked an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requester {
    /// That of a task.
    Task(TaskKey),
    /// That of a gap check.
    Gaps {
        phase: PhaseId,
        iteration: u32,
    },
}

/// What a gap check found, and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapsChecked {
    pub phase: PhaseId,
    pub iteration: u32,
    /// Which check of this phase it was, counted from 1.
    pub round: u32,
    /// The word that the check gave: `complete`, `incomplete`, or its own.
    pub status: String,
    pub gaps: Vec<String>,
    /// What follows; nothing when the work is whole.
    pub action: Option<GapAction>,
    /// What the check said besides.
    pub message: Option<String>,
    /// Who is called.
    pub agents: Vec<PlannedTask>,
}

/// A task that a phase will do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    pub task: TaskId,
    /// The item of a fan-out that it works on.
    pub item: Option<String>,
    #[serde(default)]
    pub value: Option<StoredValue>,
    /// What it does, where the definition does not say.
    #[serde(default)]
    pub spec: Option<Box<Task>>,
    /// The task that became this one and others.
    #[serde(default)]
    pub parent: Option<TaskId>,
}

impl PlannedTask {
    /// A task that the definition declares.
    pub fn declared(task: TaskId) -> Self {
        Self { task, item: None, value: None, spec: None, parent: None }
    }
}

/// Why there is an attempt. Only failures spend `retry.attempts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptReason {
    /// The task had not run.
    First,
    Retry,
    /// The last attempt was cut off.
    Interrupted,
    /// The last attempt lacked a login.
    Auth,
    /// A person found issues with the last attempt.
    Feedback,
    /// The last attempt went well, and what the task is done for does not hold yet.
    Until,
    /// The last attempt was ended by its budget, and a person allowed more.
    Budget,
    /// The agent of the last attempt handed over at a checkpoint, and a person answered.
    Answered,
}

/// The session that an agent works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    pub id: String,
    /// Whether it was there before, so that it is gone on with.
    pub resume: bool,
}

/// A file that a task left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Relative to the output directory.
    pub path: String,
    pub digest: Digest,
    pub bytes: u64,
    /// Whether its bytes are a stored value, so that another machine can go on; else only the digest is known.
    pub stored: bool,
}

/// Why a task or gate failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
    /// The last lines of output, secrets masked.
    pub tail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A process ended with this code.
    Exit(i32),
    /// A process was ended by this signal.
    Signal(i32),
    Timeout,
    /// A script threw, or used too much.
    Script,
    /// It could not be started.
    Start,
    /// A declared output is not there.
    Output,
    /// It was cut off, and `on_interrupt` says that this is a failure.
    Interrupted,
    /// It was asked to stop.
    Stopped,
    /// Its `when` could not be evaluated.
    Condition,
    /// Its agent reported an error, or gave no answer that can be used.
    Agent,
    /// Its agent has worked as long as its budget allows; a person is asked.
    Budget,
    /// It was silent for too long.
    Idle,
    /// It was done as often as `until` allows.
    Until,
    /// Tasks that it became failed.
    Items,
    /// A person found issues as often as work is done again for it.
    Issues,
    /// A login is missing, and a person says that it is a failure.
    Authentication,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionOutcome {
    /// The checkpoint is shown.
    True,
    /// The checkpoint is passed over.
    False,
    Error(String),
}
