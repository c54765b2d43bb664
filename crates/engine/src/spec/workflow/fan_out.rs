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
    /// The check that failed, according to the exit status of the command; only if the command consists of several checks.
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

    /// The failure message after the last round. `failed_check` is the position of the failed check, if known.
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

/// The exit status of a command made of several checks if the first check fails. Each further check has the next status.
pub const FIRST_CHECK_STATUS: i32 = 101;

/// How many checks have their own exit status. Statuses above 125 have a meaning in shells; the last check shares its status with the
/// checks after it.
pub const NUMBERED_CHECKS: usize = 20;

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
