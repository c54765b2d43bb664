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
    /// What must hold.
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
    /// The check that failed, by the status that the command ended with; only where it is made of several checks.
    pub fn failed_check(&self, status: i32) -> Option<usize> {
        let position = usize::try_from(status.checked_sub(FIRST_CHECK_STATUS)?).ok()?;
        let numbered = match self.checks.len() {
            0 | 1 => 0,
            few if few <= NUMBERED_CHECKS => few,
            // The last status is shared.
            _ => NUMBERED_CHECKS - 1,
        };
        (position < numbered).then_some(position)
    }

    /// What is told when the last round has ended; `failed_check` is the position of the check that failed, where it is known.
    pub fn given_up(&self, failed_check: Option<usize>) -> String {
        let rounds = counted(self.limit, "round");
        match self.checks.as_slice() {
            [] => format!("`until` did not hold after {rounds}"),
            [one] => format!("its check did not succeed after {rounds}: {one}"),
            several => {
                let which = failed_check.and_then(|at| several.get(at)).map_or_else(|| several.join("; "), Clone::clone);
                format!("one of its checks did not succeed after {rounds}: {which}")
            }
        }
    }
}

/// The status with which a command made of several checks ends when its first one fails; the next one has the next status.
pub const FIRST_CHECK_STATUS: i32 = 101;

/// How many checks have a status of their own. Statuses above 125 mean something to shells; the last check shares its status with those
/// behind it.
pub const NUMBERED_CHECKS: usize = 20;

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
    /// What it must be.
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
    /// A text.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
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
    /// It is no number.
    #[error("must be a number, not {0}")]
    NotANumber(Value),
    /// It is neither true nor false.
    #[error("must be true or false, not {0}")]
    NotABoolean(Value),
    /// It is no list.
    #[error("must be a list, not {0}")]
    NotAList(Value),
    /// It is none of the values that the workflow allows.
    #[error("must be one of {choices}, not {given}")]
    NotAChoice {
        /// Those that are allowed.
        choices: String,
        /// What was given.
        given: Value,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(checks: usize) -> Until {
        let checks = (1..=checks).map(|number| format!("check {number}")).collect();
        Until { holds: UntilCondition::Run("true".into()), limit: 3, timeout: None, checks }
    }

    #[test]
    fn the_status_of_a_command_says_which_of_its_checks_failed() {
        assert_eq!(until(3).failed_check(FIRST_CHECK_STATUS), Some(0));
        assert_eq!(until(3).failed_check(FIRST_CHECK_STATUS + 2), Some(2));
        for status in [0, 1, FIRST_CHECK_STATUS - 1, FIRST_CHECK_STATUS + 3, i32::MIN, i32::MAX] {
            assert_eq!(until(3).failed_check(status), None, "{status}");
        }
        assert_eq!(until(1).failed_check(FIRST_CHECK_STATUS), None, "a single check ends with its own status");
        let last = FIRST_CHECK_STATUS + NUMBERED_CHECKS as i32 - 1;
        assert_eq!(until(NUMBERED_CHECKS).failed_check(last), Some(NUMBERED_CHECKS - 1));
        assert_eq!(until(NUMBERED_CHECKS + 1).failed_check(last), None, "several checks share it");
    }

    #[test]
    fn the_check_that_failed_is_named_where_it_is_known() {
        assert_eq!(until(2).given_up(Some(1)), "one of its checks did not succeed after 3 rounds: check 2");
        assert_eq!(until(2).given_up(None), "one of its checks did not succeed after 3 rounds: check 1; check 2");
        assert_eq!(until(1).given_up(None), "its check did not succeed after 3 rounds: check 1");
        assert_eq!(until(0).given_up(None), "`until` did not hold after 3 rounds");
    }
}
