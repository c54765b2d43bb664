//! Agents: who worked, in which session, and what it used. What an agent does not say is unknown, which is not zero.

use crate::sanitize;
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::{AgentReport, Usage};
use lockgate_engine::run::phase::PhaseRun;
use lockgate_engine::spec::workflow::DEFAULT_AGENT;
use serde::Serialize;

/// What is known about the agent behind an attempt.
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
    /// What an agent said about itself.
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

    /// The agent behind a task of the phase under way: what it said about itself, or what is known before it has.
    pub fn of_task(run: &Run, phase: &PhaseRun, index: usize) -> Option<Self> {
        let task = &phase.tasks[index];
        let session = task.session.as_ref().map(|session| session.id.clone());
        if let Some(report) = &task.agent {
            let view = Self::of(report);
            return Some(Self { session: view.session.or(session), ..view });
        }
        let declared = phase.declared(run.workflow.phases.get(phase.position)?, index)?;
        // A task that becomes several has no agent of its own; those that it becomes have.
        let fans_out = declared.for_each.is_some() && task.item.is_none();
        let work = declared.agent().filter(|_| !fans_out)?;
        let agent = run.agent.clone().or_else(|| work.agent.clone()).unwrap_or_else(|| DEFAULT_AGENT.to_owned());
        let (preset, version, model) = (None, None, work.model.clone());
        let (input_tokens, output_tokens, cost_micros) = (None, None, None);
        Some(Self { agent, preset, version, model, session, input_tokens, output_tokens, cost_micros, asks: 0 })
    }

    /// It in one line: who, in which session, and what it used as far as it said so.
    pub fn line(&self) -> String {
        let mut parts = vec![self.name().to_owned()];
        parts.extend(self.model.clone());
        parts.extend(self.usage().tokens().map(|tokens| format!("{} tokens", grouped(tokens))));
        parts.extend(self.cost_micros.map(dollars));
        parts.extend(self.session.as_ref().map(|session| format!("session {session}")));
        sanitize::line(&parts.join(" · ")).into_owned()
    }

    /// What people call it: the program where it is only known as the default one.
    pub fn name(&self) -> &str {
        match &self.preset {
            Some(preset) if self.agent == DEFAULT_AGENT => preset,
            Some(_) | None => &self.agent,
        }
    }

    /// What it used.
    pub fn usage(&self) -> Usage {
        Usage { cost_micros: self.cost_micros, input_tokens: self.input_tokens, output_tokens: self.output_tokens }
    }
}

/// What several agents used together: what is known of it, and how many did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsageView {
    /// How often an agent was called.
    pub calls: u32,
    /// Known tokens; none where nobody said.
    pub tokens: Option<u64>,
    /// Calls whose tokens are not known.
    pub unknown_tokens: u32,
    /// Known cost in millionths of a US dollar; none where nobody said.
    pub cost_micros: Option<u64>,
    /// Calls whose cost is not known.
    pub unknown_cost: u32,
}

impl UsageView {
    /// Counts one more call.
    pub fn add(&mut self, usage: Usage) {
        self.calls += 1;
        let more = |sum: &mut Option<u64>, unknown: &mut u32, one: Option<u64>| match one {
            Some(one) => *sum = Some(sum.unwrap_or(0).saturating_add(one)),
            None => *unknown += 1,
        };
        more(&mut self.tokens, &mut self.unknown_tokens, usage.tokens());
        more(&mut self.cost_micros, &mut self.unknown_cost, usage.cost_micros);
    }

    /// The tokens as people read them.
    pub fn tokens_text(&self) -> String {
        told(self.calls, self.tokens.map(grouped), self.unknown_tokens)
    }

    /// The cost as people read it.
    pub fn cost_text(&self) -> String {
        told(self.calls, self.cost_micros.map(dollars), self.unknown_cost)
    }
}

fn told(calls: u32, known: Option<String>, unknown: u32) -> String {
    match (calls, known, unknown) {
        (0, _, _) => "-".to_owned(),
        (_, None, _) => "unknown".to_owned(),
        (_, Some(known), 0) => known,
        (_, Some(known), unknown) => format!("{known} and {unknown} × unknown"),
    }
}

/// Millionths of a US dollar as people read them.
pub(super) fn dollars(micros: u64) -> String {
    match micros {
        // Less than a cent would look like nothing.
        1..10_000 => format!("${:.4}", micros as f64 / 1_000_000.0),
        _ => format!("${:.2}", micros as f64 / 1_000_000.0),
    }
}

/// A number with its thousands apart.
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
