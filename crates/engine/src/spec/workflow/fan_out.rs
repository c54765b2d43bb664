//! What a workflow says about tasks that become several, may be left out, or go round.

use super::Script;
use crate::words::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// A task that is done once for each item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForEach {
    /// Where the items come from.
    pub over: ItemSource,
    /// How many of them may be worked on at once; no limit when absent.
    pub max_parallel: Option<u32>,
}

/// Where the items of a list come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemSource {
    /// The list itself.
    List(Vec<Value>),
    /// The list under this name in `vars`.
    Var(String),
    /// A script returns them.
    Script(Script),
    /// The lines of a file in the output directory or under the root, empty ones left out; a template.
    Lines(String),
}

/// When a task that needs several others may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// When all of them are done; it is left out when one of them failed.
    #[default]
    All,
    /// As soon as one of them is done; it is left out when none of them is in the end.
    Any,
    /// When all of them have ended, however they did.
    Done,
}

/// A task that is done again and again until something holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    pub holds: UntilCondition,
    /// So many rounds at most; then the task has failed.
    pub limit: u32,
    /// How long the command may take; as long as the task when absent.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// The checks of a plan that the command is made of, as people wrote them.
    #[serde(default)]
    pub checks: Vec<String>,
}

impl Until {
    /// What is told when the last round has ended; `why` is what the command printed.
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

/// What stands before the check that failed, where there are several.
pub const CHECK_FAILED: &str = "this check failed: ";

/// What must hold after a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntilCondition {
    /// A condition is true; `output` in it is what the round gave.
    Condition(Script),
    /// A shell command succeeds; a template.
    Run(String),
}

/// A value that a run is given when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// What people are told about it.
    pub description: Option<String>,
    pub kind: InputKind,
    /// What counts when it is not given.
    pub default: Option<Value>,
    /// Whether a run may begin without it.
    pub required: bool,
}

/// What an input must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    String,
    Number,
    Boolean,
    List,
    /// One of these.
    Choice(Vec<String>),
}

/// How what a task changed is committed with git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The template of its message; where nothing is said, the address and the name of the task.
    pub message: Option<String>,
    /// Whether the repository's hooks are run; where nothing is said, they are.
    pub hooks: Option<bool>,
}

impl Commit {
    /// Fills in what is not said.
    pub fn or(self, settings: &Self) -> Self {
        Self { message: self.message.or_else(|| settings.message.clone()), hooks: self.hooks.or(settings.hooks) }
    }
}

/// Where the work of a run or task happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worktree {
    /// In the root itself.
    #[default]
    No,
    /// In a git worktree with a branch of its own.
    Own,
}

/// Why a value does not fit an input, as it completes "the input `size` …".
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InputError {
    #[error("must be a number, not {0}")]
    NotANumber(Value),
    /// It is neither true nor false.
    #[error("must be true or false, not {0}")]
    NotABoolean(Value),
    #[error("must be a list, not {0}")]
    NotAList(Value),
    /// It is none of the values that the workflow allows.
    #[error("must be one of {choices}, not {given}")]
    NotAChoice {
        /// Those that are allowed.
        choices: String,
        given: Value,
    },
}
