//! The usage of agents so far, and when a person must allow more.

use crate::id::{PhaseId, TaskId};
use crate::run::agent::AgentReport;
use crate::run::state::Run;
use crate::spec::workflow::{Budget, Task};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a budget applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    Run,
    /// A phase, across all its executions.
    Phase(PhaseId),
    /// A task, across all its attempts.
    Task(PhaseId, TaskId),
}

impl BudgetScope {
    pub fn title(&self) -> String {
        match self {
            Self::Run => "this run".into(),
            Self::Phase(phase) => format!("phase {phase}"),
            Self::Task(phase, task) => format!("{phase}/{task}"),
        }
    }
}

/// The usage counted against one budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Known cost in millionths of a US dollar.
    pub cost_micros: u64,
    pub tokens: u64,
    /// Milliseconds that agents worked.
    pub time_ms: u64,
    /// Attempts whose cost is not known.
    pub unknown_cost: u32,
    /// Attempts whose tokens are not known.
    pub unknown_tokens: u32,
    /// How many times a person raised the budget by its original amount.
    pub raised: u32,
    /// Attempts of unknown cost or tokens that a person accepted.
    pub accepted_unknown: u32,
}

impl Spent {
    fn add(&mut self, report: &AgentReport, time_ms: u64) {
        self.time_ms = self.time_ms.saturating_add(time_ms);
        match report.usage.cost_micros {
            Some(cost) => self.cost_micros = self.cost_micros.saturating_add(cost),
            None => self.unknown_cost = self.unknown_cost.saturating_add(1),
        }
        match report.usage.tokens() {
            Some(tokens) => self.tokens = self.tokens.saturating_add(tokens),
            None => self.unknown_tokens = self.unknown_tokens.saturating_add(1),
        }
    }

    pub(super) fn raise(&mut self) {
        self.raised = self.raised.saturating_add(1);
        self.accepted_unknown = self.unknown_cost.max(self.unknown_tokens);
    }

    /// The limit, multiplied each time a person raises it.
    fn allowed(&self, limit: u64) -> u64 {
        limit.saturating_mul(u64::from(self.raised).saturating_add(1))
    }

    /// Why a person must be asked before more is used. `None` while the budget lasts.
    fn exhausted(&self, budget: &Budget) -> Option<String> {
        let dollars = |micros: u64| format!("${:.2}", micros as f64 / 1_000_000.0);
        if let Some(limit) = budget.max_cost_micros {
            if self.cost_micros >= self.allowed(limit) {
                return Some(format!("{} of {} spent", dollars(self.cost_micros), dollars(self.allowed(limit))));
            }
            if self.unknown_cost > self.accepted_unknown {
                return Some(unknown("cost", self.unknown_cost));
            }
        }
        if let Some(limit) = budget.max_tokens {
            if self.tokens >= self.allowed(limit) {
                return Some(format!("{} of {} tokens used", self.tokens, self.allowed(limit)));
            }
            if self.unknown_tokens > self.accepted_unknown {
                return Some(unknown("number of tokens", self.unknown_tokens));
            }
        }
        if let Some(limit) = budget.max_time {
            let allowed = self.allowed(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            if self.time_ms >= allowed {
                return Some(format!("agents worked {} of {} minutes", minutes(self.time_ms), minutes(allowed)));
            }
        }
        None
    }
}

fn minutes(milliseconds: u64) -> String {
    let minutes = milliseconds as f64 / 60_000.0;
    format!("{minutes:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn unknown(what: &str, attempts: u32) -> String {
    match attempts {
        1 => format!("the {what} of one attempt is unknown"),
        _ => format!("the {what} of {attempts} attempts is unknown"),
    }
}

impl Run {
    pub fn spent(&self, scope: &BudgetScope) -> Spent {
        self.spent.iter().find(|(known, _)| known == scope).map(|(_, spent)| *spent).unwrap_or_default()
    }

    pub(super) fn spent_mut(&mut self, scope: &BudgetScope) -> &mut Spent {
        let index = match self.spent.iter().position(|(known, _)| known == scope) {
            Some(index) => index,
            None => {
                self.spent.push((scope.clone(), Spent::default()));
                self.spent.len() - 1
            }
        };
        &mut self.spent[index].1
    }

    /// Adds the usage of an attempt to every budget that it counts against.
    pub(super) fn spend(&mut self, phase: &PhaseId, task: &TaskId, report: &AgentReport, time_ms: u64) {
        let (phase_scope, task_scope) = (BudgetScope::Phase(phase.clone()), BudgetScope::Task(phase.clone(), task.clone()));
        for scope in [BudgetScope::Run, phase_scope, task_scope] {
            self.spent_mut(&scope).add(report, time_ms);
        }
    }

    /// The budgets that apply to a task.
    fn budgets(&self, phase: &PhaseId, task: &Task) -> [(BudgetScope, Budget); 3] {
        let of_phase = self.workflow.phase(phase.as_str()).map(|phase| phase.budget).unwrap_or_default();
        [
            (BudgetScope::Task(phase.clone(), task.id.clone()), task.budget),
            (BudgetScope::Phase(phase.clone()), of_phase),
            (BudgetScope::Run, self.workflow.budget),
        ]
    }

    /// The first exhausted budget of an agent task, and why it is exhausted.
    pub(super) fn exhausted(&self, phase: &PhaseId, task: &Task) -> Option<(BudgetScope, String)> {
        task.agent()?;
        let mut budgets = self.budgets(phase, task).into_iter().filter(|(_, budget)| budget.is_some());
        budgets.find_map(|(scope, budget)| Some((scope.clone(), self.spent(&scope).exhausted(&budget)?)))
    }

    /// How long an agent may work on a task before a person is asked.
    pub fn time_left(&self, phase: &PhaseId, task: &Task) -> Option<Duration> {
        let left = |(scope, budget): (BudgetScope, Budget)| {
            let spent = self.spent(&scope);
            let allowed = spent.allowed(u64::try_from(budget.max_time?.as_millis()).unwrap_or(u64::MAX));
            Some(Duration::from_millis(allowed.saturating_sub(spent.time_ms)))
        };
        self.budgets(phase, task).into_iter().filter_map(left).min()
    }

    /// How much an agent's work on a task may cost before a person is asked, in millionths of a US dollar.
    pub fn cost_left(&self, phase: &PhaseId, task: &Task) -> Option<u64> {
        let left = |(scope, budget): (BudgetScope, Budget)| {
            let spent = self.spent(&scope);
            Some(spent.allowed(budget.max_cost_micros?).saturating_sub(spent.cost_micros))
        };
        self.budgets(phase, task).into_iter().filter_map(left).min()
    }
}
