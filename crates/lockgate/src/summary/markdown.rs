//! The summary as readable Markdown.

use super::{GapCheckSummary, HoldOutcome, HoldSummary, Omission, PhaseOutcome, PhaseSummary, StepSummary, Summary};
use crate::view::UsageView;
use crate::{human_time, phrases, sanitize};
use lockgate_engine::hold::HoldKind;
use lockgate_engine::plural::counted;
use lockgate_engine::run::state::StepStatus;
use lockgate_runner::files::format_size;
use std::collections::BTreeMap;
use std::time::Duration;

/// A task that fanned out into more items than this is one row, with additional rows only for items that did not succeed.
const FEW: usize = 8;

/// Renders the summary as Markdown.
pub fn markdown(summary: &Summary) -> String {
    let mut text = String::new();
    header(&mut text, summary);
    if !summary.phases.is_empty() {
        text += "\n## Done\n";
        summary.phases.iter().for_each(|phase| phase_text(&mut text, phase));
    }
    let of_kind =
        |wanted: fn(HoldKind) -> bool| summary.decisions.iter().filter(move |asked| wanted(asked.kind)).collect::<Vec<_>>();
    authentication_gates(&mut text, summary, &of_kind(|kind| kind == HoldKind::Authentication));
    section(&mut text, "Decided", &of_kind(|kind| !matches!(kind, HoldKind::Authentication | HoldKind::Verify)), |decided| {
        asked(decided)
    });
    section(&mut text, "Verified", &of_kind(|kind| kind == HoldKind::Verify), |verified| asked(verified));
    if !summary.deliverables.is_empty() || summary.finalization.is_some() {
        text += "\n## Produced\n\n| file | size | by |\n| --- | --- | --- |\n";
        for file in &summary.deliverables {
            text.push_str(&format!("| {} | {} | {} |\n", plain(&file.path), format_size(file.size_bytes), plain(&file.task)));
        }
        if let Some(file) = &summary.finalization {
            text.push_str(&format!("| {} | {} | finalization |\n", plain(&file.path), format_size(file.size_bytes)));
        }
    }
    section(&mut text, "Gap checks", &summary.gap_checks, gap_check);
    if !summary.omitted.is_empty() || !summary.tolerated.is_empty() {
        text += "\n## Deviations\n\n";
        summary.omitted.iter().for_each(|left| text += &without(left, "was left out"));
        summary.tolerated.iter().for_each(|left| text += &without(left, "failed, and the run continued without it"));
    }
    section(&mut text, "Worktrees", &summary.worktrees, |worktree| format!("- {}\n", plain(&worktree.line())));
    section(&mut text, "Warnings", &summary.warnings, |warning| format!("- {}\n", indented(warning)));
    if summary.usage.calls > 0 {
        text.push_str(&format!("\n## Used\n\n{}\n", usage(&summary.usage)));
    }
    text
}

fn header(text: &mut String, summary: &Summary) {
    let about = summary.feature.as_deref().map(|feature| format!(" ({})", plain(feature))).unwrap_or_default();
    text.push_str(&format!("# {}{about}: {}\n\n", plain(&summary.workflow), summary.status));
    text.push_str(&format!("Run {} started {}", summary.run, summary.started_at));
    match summary.ended_at {
        Some(ended) => text.push_str(&format!(" and ended {ended}.\n")),
        None => text.push_str(".\n"),
    }
    let so_far = if summary.ended_at.is_some() { "It took" } else { "So far it took" };
    let stopped = match summary.idle_ms {
        // A short gap between two processes is not worth mentioning.
        ..1000 => String::new(),
        stopped => format!(", and {} while it had failed or no process drove it", took(stopped)),
    };
    let waited = match summary.waited_ms {
        0 => "no waiting for people".to_owned(),
        waited => format!("{} of waiting for people", took(waited)),
    };
    text.push_str(&format!("{so_far} {}, with {waited}{stopped}.\n", took(summary.duration_ms)));
    if let Some(error) = &summary.error {
        text.push_str(&format!("\nError: {}\n", indented(error)));
    }
    if let Some(cancelled) = &summary.cancelled {
        text.push_str(&format!("\nCancelled {}\n", indented(&cancelled.words())));
    }
}

pub(super) fn section<T>(text: &mut String, title: &str, items: &[T], line: impl Fn(&T) -> String) {
    if !items.is_empty() {
        text.push_str(&format!("\n## {title}\n\n"));
        items.iter().for_each(|item| *text += &line(item));
    }
}

fn phase_text(text: &mut String, phase: &PhaseSummary) {
    let again = if phase.iteration > 1 { format!(", execution {}", phase.iteration) } else { String::new() };
    if phase.status == PhaseOutcome::Skipped {
        text.push_str(&format!("\n### {}: skipped\n", plain(&phase.id)));
        return;
    }
    text.push_str(&format!("\n### {}{again}: {} after {}\n\n", plain(&phase.id), phase.status.as_str(), took(phase.duration_ms)));
    if let Some(feedback) = &phase.feedback {
        text.push_str(&format!("Repeated with feedback: {}\n\n", indented(feedback)));
    }
    let mut rows = task_rows(&phase.tasks);
    rows.extend(phase.gates.iter().map(|gate| row(format!("gate {}", plain(&gate.id)), gate)));
    if rows.is_empty() {
        *text += "It had no tasks.\n";
        return;
    }
    let agents = phase.tasks.iter().any(|task| task.usage.calls > 0);
    let columns = if agents { 7 } else { 4 };
    let titles = ["task", "result", "attempts", "time", "agent", "tokens", "cost"];
    text.push_str(&format!("| {} |\n", titles[..columns].join(" | ")));
    text.push_str(&format!("|{}\n", " --- |".repeat(columns)));
    for row in rows {
        text.push_str(&format!("| {} |\n", row[..columns].join(" | ")));
    }
}

type Row = [String; 7];

fn task_rows(tasks: &[StepSummary]) -> Vec<Row> {
    let mut became: BTreeMap<&str, Vec<&StepSummary>> = BTreeMap::new();
    for task in tasks {
        became.entry(task.parent.as_deref().unwrap_or_default()).or_default().push(task);
    }
    let mut rows = Vec::new();
    for task in tasks.iter().filter(|task| task.parent.is_none()) {
        let children = became.get(task.id.as_str()).map(Vec::as_slice).unwrap_or_default();
        if children.is_empty() {
            rows.push(row(plain(&task.id), task));
        } else if children.len() <= FEW {
            rows.push(row(format!("{} × {}", plain(&task.id), children.len()), task));
            rows.extend(children.iter().map(|child| row(plain(&child.id), child)));
        } else {
            rows.push(together(task, children));
            let wrong: Vec<_> = children.iter().filter(|child| child.status != StepStatus::Done).collect();
            rows.extend(wrong.iter().take(FEW).map(|child| row(plain(&child.id), child)));
            if wrong.len() > FEW {
                let mut more = Row::default();
                more[0] = format!("… and {} more", wrong.len() - FEW);
                rows.push(more);
            }
        }
    }
    rows
}

/// Many items of a task, as one row.
fn together(task: &StepSummary, children: &[&StepSummary]) -> Row {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut usage, mut attempts, mut duration_ms) = (UsageView::default(), 0, task.duration_ms);
    for child in children {
        *counts.entry(child.status.as_str()).or_default() += 1;
        attempts += child.attempts.len();
        duration_ms += child.duration_ms;
        child.attempts.iter().filter_map(|attempt| attempt.agent.as_ref()).for_each(|agent| usage.add(agent.usage()));
    }
    let result: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {}", words(status))).collect();
    let agent = children.iter().find_map(|child| child.attempts.last()?.agent.as_ref());
    let agent = agent.map_or_else(|| "-".to_owned(), |agent| plain(agent.name()));
    let name = format!("{} × {}", plain(&task.id), children.len());
    [name, result.join(", "), attempts.to_string(), took(duration_ms), agent, usage.tokens_text(), usage.cost_text()]
}

fn row(name: String, task: &StepSummary) -> Row {
    let reason = match task.status {
        StepStatus::Failed | StepStatus::Tolerated | StepStatus::Stopped => {
            task.reason.as_deref().map(|reason| format!(": {}", plain(reason)))
        }
        StepStatus::Waiting
        | StepStatus::Running
        | StepStatus::Backoff
        | StepStatus::Interrupted
        | StepStatus::Done
        | StepStatus::Skipped
        | StepStatus::FannedOut
        | StepStatus::Blocked
        | StepStatus::Omitted
        | StepStatus::Repeated
        | StepStatus::HandedOver
        | StepStatus::Passed
        | StepStatus::Waived => None,
    };
    let result = format!("{}{}", words(task.status.as_str()), reason.unwrap_or_default());
    let agent = task.attempts.iter().rev().find_map(|attempt| attempt.agent.as_ref());
    let agent = agent.map(|agent| {
        let model = agent.model.as_deref().map(|model| format!(" ({})", plain(model))).unwrap_or_default();
        let session = agent.session.as_deref().map_or_else(String::new, |session| format!(", session {}", plain(session)));
        format!("{}{model}{session}", plain(agent.name()))
    });
    let attempts = task.attempts.len().to_string();
    let time = if task.attempts.is_empty() { "-".to_owned() } else { took(task.duration_ms) };
    let agent = agent.unwrap_or_else(|| "-".to_owned());
    [name, result, attempts, time, agent, task.usage.tokens_text(), task.usage.cost_text()]
}

pub(super) fn words(status: &str) -> String {
    status.replace('_', " ")
}

pub(super) fn asked(asked: &HoldSummary) -> String {
    let place = asked.phase.as_deref().map(|phase| format!(" in {}", plain(phase))).unwrap_or_default();
    let agent = asked.agent.as_deref().map(|agent| format!(", by the agent of {}", plain(agent))).unwrap_or_default();
    let mut text = format!("- {}{place}{agent}: {}\n", asked.kind.as_str(), indented(&asked.question));
    let again = if asked.revision > 1 { format!(" (opening {})", asked.revision) } else { String::new() };
    let waited = took(asked.waited_ms);
    match (&asked.answer, asked.state) {
        (Some(answer), _) => {
            let by =
                asked.by.as_ref().map_or_else(|| "lockgate".to_owned(), |by| plain(&phrases::by_channel(&by.name, by.channel)));
            text.push_str(&format!("  - **{}** by {by}, after {waited}{again}\n", plain(answer)));
            if let Some(diff) = &asked.diff {
                let (files, since) = (counted(diff.files, "file"), plain(&diff.since));
                let lines = format!("+{} -{}", diff.added, diff.removed);
                text.push_str(&format!(
                    "  - shown change since {since}: {files}, {lines}, digest `{}`, git tree `{}`\n",
                    diff.digest, diff.tree
                ));
            }
            if let Some(feedback) = &asked.feedback {
                text.push_str(&format!("  - feedback: {}\n", indented(feedback).replace('\n', "\n  ")));
            }
        }
        (None, HoldOutcome::Void) => {
            text.push_str(&format!("  - voided after {waited}{again}\n"));
        }
        (None, HoldOutcome::Open | HoldOutcome::Answered) => {
            text.push_str(&format!("  - no answer yet, for {waited}{again}\n"));
        }
    }
    text
}

fn gap_check(check: &GapCheckSummary) -> String {
    let follows = match (check.action, check.waived) {
        (None, _) => String::new(),
        (Some(_), true) => ", waived by a person".to_owned(),
        (Some(action), false) => format!(", so: {}", words(action.as_str())),
    };
    let mut text = format!("- {}, check {}: {}{follows}\n", plain(&check.phase), check.round, plain(&check.status));
    for finding in check.message.iter().chain(&check.gaps) {
        text.push_str(&format!("  - {}\n", indented(finding).replace('\n', "\n  ")));
    }
    if !check.agents.is_empty() {
        text.push_str(&format!("  - called: {}\n", plain(&check.agents.join(", "))));
    }
    text
}

fn without(without: &Omission, what: &str) -> String {
    let again = if without.iteration > 1 { format!(" (execution {})", without.iteration) } else { String::new() };
    format!("- {}{again} {what}: {}\n", plain(&without.what), indented(&without.reason))
}

/// Missing logins, presented as normal gates.
pub(super) fn authentication_gates(text: &mut String, summary: &Summary, gates: &[&HoldSummary]) {
    if gates.is_empty() {
        return;
    }
    *text += "\n## Authentication Gates\n\nDuring execution, these authentication requirements were handled:\n\n";
    for (index, gate) in gates.iter().enumerate() {
        let title = gate.title.as_deref().unwrap_or_default();
        text.push_str(&format!("{}. Task {}: authentication was required\n", index + 1, plain(title)));
        text.push_str(&format!("   - Paused for {}\n", plain(gate.login.as_deref().unwrap_or("a login"))));
        let result = match (gate.answer.as_deref(), ended(summary, gate)) {
            (None, _) => "Still waiting for it".to_owned(),
            (Some("Done"), Some(StepStatus::Done)) => "Resumed after authentication\n   - Finished successfully".to_owned(),
            (Some("Done"), other) => {
                format!(
                    "Resumed after authentication\n   - {}",
                    other.map_or_else(|| "not finished".to_owned(), |status| words(status.as_str()))
                )
            }
            (Some(answer), _) => plain(answer),
        };
        text.push_str(&format!("   - {result}\n"));
    }
    *text += "\nThese are normal gates, not errors.\n";
}

/// The status of the task that required a login.
fn ended(summary: &Summary, gate: &HoldSummary) -> Option<StepStatus> {
    let address = gate.tasks.first()?;
    let tasks = summary.phases.iter().rev().flat_map(|phase| phase.tasks.iter().map(move |task| (phase, task)));
    let mut found = tasks.filter(|(phase, task)| format!("{}/{}", phase.id, task.id) == *address);
    found.next().map(|(_, task)| task.status)
}

fn usage(usage: &UsageView) -> String {
    let calls = counted(usage.calls, "call");
    format!("{calls} of agents; tokens: {}; cost: {}.", usage.tokens_text(), usage.cost_text())
}

pub(super) fn took(milliseconds: u64) -> String {
    human_time::duration(Duration::from_millis(milliseconds))
}

/// A single line in which no character has a meaning for a terminal or for Markdown.
pub(super) fn plain(text: &str) -> String {
    escaped(&sanitize::line(text.trim()))
}

/// Several lines, indented below a list item.
fn indented(text: &str) -> String {
    escaped(&sanitize::lines(text.trim())).replace('\n', "\n  ")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '|' | '<' | '*') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    // Brackets are harmless unless they form a link.
    escaped.replace("](", "]\\(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_terminals_and_markdown() {
        assert_eq!(plain("a|b <b> *x*\x1b[2J\n[l](u)"), "a\\|b \\<b> \\*x\\*␛[2J␊[l]\\(u)");
        assert_eq!(indented("one\ntwo\r\n"), "one\n  two");
    }

    #[test]
    fn a_thousand_items_are_one_row_plus_the_failed_ones() {
        let mut tasks = vec![StepSummary::named("lint", None, StepStatus::Done)];
        for number in 0..1000 {
            let status = if number % 100 == 0 { StepStatus::Failed } else { StepStatus::Done };
            tasks.push(StepSummary::named(&format!("lint[{number}]"), Some("lint"), status));
        }
        let rows = task_rows(&tasks);
        assert_eq!(rows.len(), 1 + FEW + 1);
        assert_eq!(rows[0][..2], ["lint × 1000", "990 done, 10 failed"]);
        assert_eq!(rows[FEW + 1][0], "… and 2 more");
    }

    impl StepSummary {
        fn named(id: &str, parent: Option<&str>, status: StepStatus) -> Self {
            let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
            Self {
                id,
                parent,
                status,
                reason: None,
                duration_ms: 0,
                attempts: Vec::new(),
                usage: UsageView::default(),
                commit: None,
                commits: Vec::new(),
            }
        }
    }
}
