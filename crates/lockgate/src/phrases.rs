//! Phrases that several views and reports share.

use crate::sanitize;
use lockgate_engine::hold::GAP_CHECK;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::{Actor, Channel};

use lockgate_engine::plural::counted;
use lockgate_engine::run::event::{AttemptReason, Requester};

/// Why a task is attempted again.
pub fn again(reason: AttemptReason, attempt: u32) -> String {
    match reason {
        AttemptReason::First => String::new(),
        AttemptReason::Retry => format!(" (attempt {attempt}: the previous one failed)"),
        AttemptReason::Interrupted => format!(" (attempt {attempt}: the previous one was interrupted)"),
        AttemptReason::Auth => format!(" (attempt {attempt}: the previous one required a login)"),
        AttemptReason::Feedback => format!(" (attempt {attempt}: with feedback)"),
        AttemptReason::Until => format!(" (attempt {attempt}: `until` not met)"),
        AttemptReason::Answered => format!(" (attempt {attempt}: with the answer)"),
        AttemptReason::Budget => format!(" (attempt {attempt}: with more budget)"),
        AttemptReason::Handoff => format!(" (attempt {attempt}: handed to another agent)"),
    }
}

/// The reported usage of an agent.
pub fn used(report: &AgentReport) -> String {
    let tokens = report.usage.tokens().map(|tokens| counted(tokens, "token"));
    let cost = report.usage.cost_micros.map(|micros| format!("${:.2}", micros as f64 / 1_000_000.0));
    let parts: Vec<String> = tokens.into_iter().chain(cost).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// The address of the script that queries an agent.
pub fn asker(requester: &Requester) -> String {
    match requester {
        Requester::Task(key) => key.address(),
        Requester::Gaps { phase, .. } => format!("{phase}/{GAP_CHECK}"),
    }
}

/// The first line of a text, safe to print to a terminal.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{}{more}", sanitize::line(first))
}

/// Who did something, and through which channel.
pub fn by(actor: Option<&Actor>) -> String {
    actor.map_or_else(|| "lockgate".to_owned(), |actor| by_channel(&actor.name, actor.channel))
}

/// Like [`by`], for a name.
pub fn by_channel(name: &str, channel: Channel) -> String {
    let channel = match channel {
        Channel::Prompt => "at the prompt",
        Channel::Command => "by command",
        Channel::Program => "through a program",
        Channel::Preset => "in advance",
        Channel::Driver => "by itself",
        Channel::Policy => "without a person",
        Channel::Default => "as no answer is required",
        Channel::Deadline => "as no one answered in time",
    };
    format!("{} {channel}", sanitize::line(name))
}
