//! Loops: tasks that repeat `until` a condition is met.

use super::Script;
use crate::plural::counted;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Repeats a task until a condition is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Until {
    pub condition: UntilCondition,
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

/// The condition that ends a loop, evaluated after each round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntilCondition {
    /// An expression; `output` is the result of the round.
    Condition(Script),
    /// A shell command that must succeed; a template.
    Run(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(checks: usize) -> Until {
        let checks = (1..=checks).map(|number| format!("check {number}")).collect();
        Until { condition: UntilCondition::Run("true".into()), limit: 3, timeout: None, checks }
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
