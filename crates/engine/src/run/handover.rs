//! What an agent hands over when it reaches a checkpoint. Its text forms are no part of the engine.

use crate::spec::workflow::question::DecisionOption;
use serde::{Deserialize, Serialize};

/// The kind of checkpoint that an agent reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoverKind {
    /// A person checks what was built.
    Verify,
    /// A person chooses.
    Decision,
    /// A person does what no program can do.
    Action,
}

/// The status of the task at which the agent stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoverStatus {
    /// It cannot continue.
    Blocked,
    /// It waits for a person to check it.
    AwaitingVerification,
    /// It waits for a choice.
    AwaitingDecision,
}

/// The task at which the agent stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentTask {
    /// Its number in the plan.
    pub number: String,
    pub name: String,
    pub status: HandoverStatus,
    /// What it waits for.
    pub blocked_by: String,
}

/// A task that is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedTask {
    /// Its number in the plan, such as `2` or `2b`.
    pub number: String,
    pub name: String,
    /// The commit that holds its work.
    pub commit: Option<String>,
    /// The files that it created or changed.
    pub files: Vec<String>,
}

/// What an agent hands over at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    pub kind: HandoverKind,
    /// The plan, such as `07.2-05`.
    pub plan: String,
    /// How many tasks are done.
    pub done: u32,
    /// How many tasks there are.
    pub total: u32,
    pub completed: Vec<CompletedTask>,
    /// The task at which the agent stopped.
    pub current: CurrentTask,
    /// What the person is shown.
    pub details: String,
    /// What the person is asked for.
    pub awaiting: String,
    /// The options of a decision, each with an id of its own. They repeat what the details say, so that nothing has to read that
    /// text again; empty where the agent asks for no decision or lists no options.
    #[serde(default)]
    pub options: Vec<DecisionOption>,
}
