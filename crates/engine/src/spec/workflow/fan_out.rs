//! Fan-out, joins, loops and inputs in a workflow.

use super::Script;
use crate::words::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Runs a task once per item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForEach {
    pub over: ItemSource,
    /// How many items may run in parallel; unlimited if absent.
    pub max_parallel: Option<u32>,
}

/// The source of the items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemSource {
    List(Vec<Value>),
    /// The list with this name in `vars`.
    Var(String),
    Script(Script),
    /// A template for a file in the output directory or the root. Its non-empty lines are the items.
    Lines(String),
}

/// When a task with several dependencies may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// When all of them are done. The task is left out if one of them failed.
    #[default]
    All,
    /// As soon as one of them is done. The task is left out if none of them is done in the end.
    Any,
    /// When all of them have ended, in any way.
    Done,
}

/// Repeats a task until something holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    pub holds: UntilCondition,
    /// The maximum number of rounds; then the task has failed.
    pub limit: u32,
    /// The timeout of the command; that of the task if absent.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// The checks of a plan from which the command was built, as written by the author.
    #[serde(default)]
    pub checks: Vec<String>,
}

impl Until {
    /// The failure message after the last round. `why` is the output of the command.
    pub fn given_up(&self, why: &str) -> String {
        let is_it = |check: &&String| why.contains(&format!("{CHECK_FAILED}{check}"));
        let rounds = counted(self.limit, "round");
        match self.checks.as_slice() {
            [] => format!("`until` did not hold after {rounds}"),
            [one] => format!("its check did not succeed after {rounds}: {one}"),
            several => {
                let which = several.iter().find(is_it).map_or_else(|| several.join("; "), Clone::clone);
                format!("one of its checks did not succeed after {rounds}: {which}")
            }
        }
    }
}

/// The line that precedes the failed check in the output, if there are several checks.
pub const CHECK_FAILED: &str = "this check failed: ";

/// The condition that must hold after a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntilCondition {
    /// An expression; `output` is the result of the round.
    Condition(Script),
    /// A shell command that must succeed; a template.
    Run(String),
}

/// A value that is given when a run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub description: Option<String>,
    pub kind: InputKind,
    /// The value if none is given.
    pub default: Option<Value>,
    /// Whether a run cannot start without it.
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    String,
    Number,
    Boolean,
    List,
    Choice(Vec<String>),
}

/// How the changes of a task are committed with git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// A template; by default the address and the name of the task.
    pub message: Option<String>,
    /// Whether the repository's hooks run; by default they do.
    pub hooks: Option<bool>,
}

impl Commit {
    /// Fills in absent settings.
    pub fn or(self, settings: &Self) -> Self {
        Self { message: self.message.or_else(|| settings.message.clone()), hooks: self.hooks.or(settings.hooks) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worktree {
    #[default]
    No,
    /// In a git worktree with its own branch.
    Own,
}

/// Why a value is not valid for an input. Completes "the input `size` …".
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InputError {
    #[error("must be a number, not {0}")]
    NotANumber(Value),
    #[error("must be true or false, not {0}")]
    NotABoolean(Value),
    #[error("must be a list, not {0}")]
    NotAList(Value),
    #[error("must be one of {choices}, not {given}")]
    NotAChoice { choices: String, given: Value },
}
