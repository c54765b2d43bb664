//! What an agent hands over when it reaches a checkpoint. Its text forms live in the `formats` crate.

use crate::spec::workflow::question::DecisionOption;
use serde::{Deserialize, Serialize};

/// The kind of checkpoint that an agent reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoverKind {
    /// A person verifies the work.
    Verify,
    /// A person chooses an option.
    Decision,
    /// A person does something that no program can do.
    Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoverStatus {
    Blocked,
    /// It waits for a person to check it.
    AwaitingVerification,
    /// It waits for a decision.
    AwaitingDecision,
}

/// The task at which the agent stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentTask {
    pub number: String,
    pub name: String,
    pub status: HandoverStatus,
    pub blocked_by: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedTask {
    /// The number in the plan, such as `2` or `2b`.
    pub number: String,
    pub name: String,
    pub commit: Option<String>,
    /// The files that it created or changed.
    pub files: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    pub kind: HandoverKind,
    /// The plan id, such as `07.2-05`.
    pub plan: String,
    /// Completed tasks.
    pub done: u32,
    /// All tasks.
    pub total: u32,
    pub completed: Vec<CompletedTask>,
    pub current: CurrentTask,
    /// The text shown to the person.
    pub details: String,
    /// The input that the agent needs from the person.
    pub awaiting: String,
    /// The options of a decision, each with its own id. They duplicate part of the details, so that no code has to parse that
    /// text again. Empty if the agent does not ask for a decision or lists no options.
    #[serde(default)]
    pub options: Vec<DecisionOption>,
}
