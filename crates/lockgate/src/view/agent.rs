//! Agents: their names, sessions and usage. Usage that an agent does not report is unknown, not zero.

use crate::sanitize;
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::{AgentReport, Usage};
use lockgate_engine::run::phase::PhaseRun;
use lockgate_engine::spec::workflow::DEFAULT_AGENT;
use serde::Serialize;

/// The agent of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentView {
    pub agent: String,
    pub preset: Option<String>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub session: Option<String>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_micros: Option<u64>,
    pub asks: u32,
}

impl AgentView {
    /// Creates the view from an agent's report.
    pub fn of(report: &AgentReport) -> Self {
        Self {
            agent: report.agent.clone(),
            preset: report.preset.clone(),
            version: report.version.clone(),
            model: report.model.clone(),
            session: report.session.clone(),
            input_tokens: report.usage.input_tokens,
            output_tokens: report.usage.output_tokens,
            cost_micros: report.usage.cost_micros,
            asks: report.asks,
        }
    }

    /// The agent of a task in the current phase, as reported or, before a report, as configured.
    pub fn of_task(run: &Run, phase: &PhaseRun, index: usize) -> Option<Self> {
        let task = &phase.tasks[index];
        let session = task.session.as_ref().map(|session| session.id.clone());
        if let Some(report) = &task.agent {
            let view = Self::of(report);
            return Some(Self { session: view.session.or(session), ..view });
        }
        let declared = phase.declared(run.workflow.phases.get(phase.position)?, index)?;
        // A task that fans out has no agent of its own; its items have.
        let fans_out = declared.for_each.is_some() && task.item.is_none();
        let work = declared.agent().filter(|_| !fans_out)?;
        let agent = run.agent.clone().or_else(|| work.agent.clone()).unwrap_or_else(|| DEFAULT_AGENT.to_owned());
        let (preset, version, model) = (None, None, work.model.clone());
        let (input_tokens, output_tokens, cost_micros) = (None, None, None);
        Some(Self { agent, preset, version, model, session, input_tokens, output_tokens, cost_micros, asks: 0 })
    }

    /// The agent in one line: its name, session and reported usage.
    pub fn line(&self) -> String {
        let mut parts = vec![self.name().to_owned()];
        parts.extend(self.model.clone());
        parts.extend(self.usage().tokens().map(|tokens| format!("{} tokens", grouped(tokens))));
        parts.extend(self.cost_micros.map(dollars));
        parts.extend(self.session.as_ref().map(|session| format!("session {session}")));
        sanitize::line(&parts.join(" · ")).into_owned()
    }

    /// The display name: the program, if the agent is only known as the default.
    pub fn name(&self) -> &str {
        match &self.preset {
            Some(preset) if self.agent == DEFAULT_AGENT => preset,
            Some(_) | None => &self.agent,
        }
    }

    /// The reported usage.
    pub fn usage(&self) -> Usage {
        Usage { cost_micros: self.cost_micros, input_tokens: self.input_tokens, output_tokens: self.output_tokens }
    }
}

/// The combined usage of several agents, and how many did not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageView {
    /// The number of calls of agents.
    pub calls: u32,
    /// Reported tokens; absent if no call reported them.
    pub tokens: Option<u64>,
    /// Calls that did not report tokens.
    pub unknown_tokens: u32,
    /// Reported cost in millionths of a US dollar; absent if no call reported it.
    pub cost_micros: Option<u64>,
    /// Calls that did not report their cost.
    pub unknown_cost: u32,
}

impl UsageView {
    /// Adds a call.
    pub fn add(&mut self, usage: Usage) {
        self.calls += 1;
        let more = |sum: &mut Option<u64>, unknown: &mut u32, one: Option<u64>| match one {
            Some(one) => *sum = Some(sum.unwrap_or(0).saturating_add(one)),
            None => *unknown += 1,
        };
        more(&mut self.tokens, &mut self.unknown_tokens, usage.tokens());
        more(&mut self.cost_micros, &mut self.unknown_cost, usage.cost_micros);
    }

    /// The tokens as text.
    pub fn tokens_text(&self) -> String {
        with_unknown(self.calls, self.tokens.map(grouped), self.unknown_tokens)
    }

    /// The cost as text.
    pub fn cost_text(&self) -> String {
        with_unknown(self.calls, self.cost_micros.map(dollars), self.unknown_cost)
    }
}

fn with_unknown(calls: u32, known: Option<String>, unknown: u32) -> String {
    match (calls, known, unknown) {
        (0, _, _) => "-".to_owned(),
        (_, None, _) => "unknown".to_owned(),
        (_, Some(known), 0) => known,
        (_, Some(known), unknown) => format!("{known} and {unknown} × unknown"),
    }
}

/// Formats millionths of a US dollar.
pub(super) fn dollars(micros: u64) -> String {
    match micros {
        // Less than a cent would be rounded to zero.
        1..10_000 => format!("${:.4}", micros as f64 / 1_000_000.0),
        _ => format!("${:.2}", micros as f64 / 1_000_000.0),
    }
}

/// Formats a number with thousands separators.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreported_usage_is_unknown_and_never_zero() {
        let mut used = UsageView::default();
        assert_eq!([used.tokens_text(), used.cost_text()], ["-", "-"]);
        used.add(Usage::default());
        assert_eq!([used.tokens_text(), used.cost_text()], ["unknown", "unknown"]);
        used.add(Usage { cost_micros: Some(1_250_000), input_tokens: Some(12_000), output_tokens: Some(345) });
        assert_eq!([used.tokens_text(), used.cost_text()], ["12,345 and 1 × unknown", "$1.25 and 1 × unknown"]);
    }

    #[test]
    fn a_fraction_of_a_cent_is_not_shown_as_zero() {
        assert_eq!([dollars(0), dollars(1_234), dollars(10_000)], ["$0.00", "$0.0012", "$0.01"]);
        assert_eq!([grouped(0), grouped(999), grouped(1_000), grouped(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }
}
