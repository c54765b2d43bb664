//! Renders notifications as plain lines.

use crate::print::{ERROR, FAINT, GOOD, STRONG, WARNING, styled};
use crate::run_text::{hanging, tail_text};
use lockgate::phrases::{again, asker, by, first_line, used};
use lockgate::{describe, human_time, sanitize};
use lockgate_engine::id::{PhaseId, TaskKey};
use lockgate_engine::plural::counted;
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{Failure, GapsChecked};
use lockgate_runner::notifications::{
    AgentQuery, Answer, GapCheck, Kind, Note, Notification, PhaseEnd, Retry, Skip, StepOutcome, Warning,
};
use lockgate_runner::root::Step;
use std::time::Duration;

/// Writes the lines of a notification. Fewer are needed above a tree, which shows the running tasks.
pub(super) fn write(text: &mut String, run: &Run, notification: &Notification<'_>, with_tree: bool) {
    match &notification.kind {
        Kind::RunStarted { workflow, feature } => {
            let about = feature.map(|feature| format!(" ({feature})")).unwrap_or_default();
            let name = format!("{workflow}{about}");
            line(text, format_args!("run {}: {}", styled(STRONG, &run.id), sanitize::line(&name)));
        }
        Kind::RunResumed => line(text, format_args!("run {} continues", styled(STRONG, &run.id))),
        Kind::PhaseStarted { phase, iteration, feedback } => {
            let again = if *iteration > 1 { format!(" (execution {iteration})") } else { String::new() };
            line(text, format_args!("phase {}{again}", styled(STRONG, name(phase))));
            if let Some(feedback) = feedback {
                indented(text, "feedback: ", feedback);
            }
        }
        Kind::PhaseEnded { phase, end } => phase_ended(text, phase, *end),
        Kind::StepStarted { step, attempt, reason } => {
            let Some(reason) = reason else { return };
            let why = again(*reason, *attempt);
            if with_tree && why.is_empty() {
                return;
            }
            line(text, format_args!("  {} {}{why}", title(*step), styled(FAINT, "started")));
        }
        Kind::StepEnded { step, took, outcome, agent, .. } => {
            let took = human_time::duration(took.unwrap_or(Duration::ZERO));
            step_ended(text, *step, &took, *outcome, *agent);
        }
        Kind::StepSkipped { step, skip } => step_skipped(text, *step, *skip),
        Kind::StepRetry { step, retry } => match retry {
            Retry::Scheduled { due } => {
                let pause = human_time::duration(due.since(notification.at));
                line(text, format_args!("  {} will be retried in {pause}", title(*step)));
            }
            Retry::Requested => line(text, format_args!("  {} will be retried", title(*step))),
        },
        Kind::ReworkRequested { tasks, stale, issues, .. } => rework(text, tasks, stale, issues),
        Kind::AgentQuery { by, query } => {
            let word = match query {
                AgentQuery::Started => styled(FAINT, "asks an agent"),
                AgentQuery::Answered { agent } => {
                    format!("{}{}", styled(FAINT, "got its answer"), agent.map(used).unwrap_or_default())
                }
            };
            line(text, format_args!("  {} {word}", sanitize::line(&asker(by))));
        }
        Kind::GapCheck(GapCheck::Ended(checked)) => gaps(text, checked),
        Kind::GapCheck(GapCheck::Waived { phase, .. }) => {
            let word = styled(WARNING, "counts as passed, because a person said so");
            line(text, format_args!("  gap check of {} {word}", name(phase)));
        }
        Kind::HoldOpened(opened) => {
            let question = first_line(&opened.prompt);
            line(text, format_args!("  hold {}: {question}", styled(STRONG, format_args!("{}@1", opened.hold))));
        }
        Kind::HoldAnswered { answer: Answer { label, feedback, .. }, .. } => {
            *text += &answered(label, notification.actor, *feedback);
        }
        Kind::AnswerChanged(Answer { hold, option, .. }) => {
            let (option, by) = (sanitize::line(option.as_str()), by(notification.actor));
            line(text, format_args!("  the answer to hold {hold} is now {option:?}, by {by}"));
        }
        Kind::HoldReopened { hold, revision, restored: true, .. } => {
            let hold = styled(STRONG, format_args!("{hold}@{revision}"));
            line(text, format_args!("  {} {hold}", styled(WARNING, "this hold is open again:")));
        }
        Kind::HoldReopened { hold, revision, differences, by_check, restored: false } => {
            let hold = styled(STRONG, format_args!("{hold}@{revision}"));
            let why = if *by_check { "its check failed" } else { "the shown content has changed" };
            line(text, format_args!("  {} {hold}", styled(WARNING, format_args!("{why}, so the hold is reopened:"))));
            differences.iter().for_each(|difference| indented(text, "", difference));
        }
        Kind::HoldVoided { hold, reason } => {
            line(text, format_args!("  hold {hold} was voided: {}", sanitize::line(reason)));
        }
        Kind::Note(noted) => note(text, *noted),
        Kind::Warning(warned) => warning(text, *warned),
        // The command that drove a run prints how it ended.
        Kind::RunInterrupted | Kind::RunEnded(_) | Kind::TasksPlanned { .. } | Kind::Recorded { .. } => {}
    }
}

fn phase_ended(text: &mut String, phase: &PhaseId, end: PhaseEnd<'_>) {
    match end {
        PhaseEnd::Completed { .. } => {}
        PhaseEnd::Repeated { target, by_failure, .. } => {
            let why = if by_failure { ", because it failed" } else { "" };
            line(text, format_args!("back to phase {}{why}", name(target)));
        }
        PhaseEnd::Skipped => line(text, format_args!("phase {}: {}", name(phase), styled(FAINT, "skipped"))),
    }
}

fn step_ended(text: &mut String, step: Step<'_>, took: &str, outcome: StepOutcome<'_>, agent: Option<&AgentReport>) {
    let step = title(step);
    match outcome {
        StepOutcome::Done { .. } => {
            let used = agent.map(used).unwrap_or_default();
            line(text, format_args!("  {step} {} in {took}{used}", styled(GOOD, "done")));
        }
        StepOutcome::Passed => line(text, format_args!("  {step} {} in {took}", styled(GOOD, "passed"))),
        StepOutcome::Repeated { .. } => {
            line(text, format_args!("  {step} done in {took} and runs again: its `until` condition is not met yet"));
        }
        StepOutcome::FannedOut { tasks } => line(text, format_args!("  {step} becomes {}", counted(tasks.len(), "task"))),
        StepOutcome::HandedOver(handover) => {
            let word = styled(WARNING, "reached a checkpoint");
            let progress = format!("{}/{} tasks complete", handover.done, handover.total);
            line(text, format_args!("  {step} {word} after {took}, {progress}"));
        }
        StepOutcome::Failed(failure) => failed(text, &step, took, failure),
        StepOutcome::Interrupted => line(text, format_args!("  {step} {}", styled(WARNING, "was interrupted"))),
        StepOutcome::Stopped { reason } => {
            line(text, format_args!("  {step} {}: {}", styled(WARNING, "was stopped"), sanitize::line(reason)));
        }
    }
}

fn failed(text: &mut String, step: &str, took: &str, failure: &Failure) {
    let word = styled(ERROR, "failed");
    line(text, format_args!("  {step} {word} after {took}: {}", hanging(&failure.message, "    ")));
    *text += &tail_text(&failure.tail, "    ");
}

fn step_skipped(text: &mut String, step: Step<'_>, skip: Skip<'_>) {
    let step = title(step);
    match skip {
        Skip::CountsAsDone { reason } => {
            line(text, format_args!("  {step} {} {}", styled(WARNING, "counts as done:"), sanitize::line(reason)));
        }
        Skip::Omitted { reason } => {
            line(text, format_args!("  {step} {} {}", styled(FAINT, "left out:"), sanitize::line(reason)));
        }
        Skip::Tolerated => {
            line(text, format_args!("  {step} {}", styled(WARNING, "failed; the run continues without it")));
        }
        Skip::Waived { reason, by_person } => {
            let who = if by_person { ", because a person said so" } else { "" };
            let why = reason.map(|reason| format!(": {}", sanitize::line(reason))).unwrap_or_default();
            line(text, format_args!("  {step} {}{why}", styled(WARNING, format_args!("counts as passed{who}"))));
        }
    }
}

fn rework(text: &mut String, tasks: &[TaskKey], stale: &[TaskKey], issues: &str) {
    for key in tasks {
        line(text, format_args!("  {} {}", address(key), styled(WARNING, "runs again with the issues that were found")));
    }
    for key in stale {
        line(text, format_args!("  {} {}", address(key), styled(WARNING, "depends on it and runs again")));
    }
    indented(text, "issues: ", issues);
}

fn gaps(text: &mut String, checked: &GapsChecked) {
    let word = match checked.action {
        None => styled(GOOD, "finds no gaps"),
        Some(action) => styled(WARNING, format_args!("finds gaps: {}", action.as_str())),
    };
    line(text, format_args!("  gap check of {} {word}", name(&checked.phase)));
    checked.message.iter().chain(&checked.gaps).for_each(|line| indented(text, "", line));
}

fn note(text: &mut String, note: Note<'_>) {
    match note {
        Note::CheckpointSkipped { phase, .. } => {
            let word = styled(FAINT, "skipped: its condition is not met");
            line(text, format_args!("  checkpoint of {} {word}", name(phase)));
        }
        Note::CheckPassed => line(text, format_args!("  {}", styled(GOOD, "its check passed"))),
        Note::DeadlinePassed { hold, then } => {
            let word = styled(WARNING, "no one answered in time:");
            line(text, format_args!("  hold {hold}: {word} {}", sanitize::line(&describe::at_deadline(then))));
        }
        Note::Reminder { hold } => line(text, format_args!("  hold {hold} {}", styled(WARNING, "still waits for an answer"))),
        Note::BudgetRaised { scope } => {
            line(text, format_args!("  the budget of {} is raised by as much again", sanitize::line(&scope.title())));
        }
        Note::Finalized { file } => line(text, format_args!("  wrote {}", sanitize::line(&file.path))),
        Note::Pipeline(fact) => line(text, format_args!("  {}", sanitize::line(&describe::of_pipeline(fact)))),
        Note::Team(event) => line(text, format_args!("  {}", sanitize::line(&describe::of_team(event)))),
        Note::AgentChanged { agent } => line(text, format_args!("the agent is now {}", sanitize::line(agent))),
        Note::DefinitionAccepted => line(text, format_args!("the changed definition was accepted")),
        Note::Rewound(rewound) => {
            line(text, format_args!("the run was rewound to snapshot {}", sanitize::line(rewound.snapshot.as_str())));
        }
        Note::PhasesSkipListed { phases } => {
            let names: Vec<String> = phases.iter().map(name).collect();
            line(text, format_args!("  phases to skip: {}", names.join(", ")));
        }
    }
}

fn warning(text: &mut String, warning: Warning<'_>) {
    let label = styled(WARNING, "warning:");
    match warning {
        Warning::ConditionFailed { phase, error, .. } => {
            let error = hanging(error, "    ");
            line(text, format_args!("{label} the condition of {}'s checkpoint failed: {error}", name(phase)));
        }
        Warning::AttemptRefused(refused) => {
            let (what, reason) = (sanitize::line(&refused.what), sanitize::line(&refused.reason));
            line(text, format_args!("{label} an attempt to {what} was refused: {reason}"));
        }
    }
}

/// The lines for an answered hold.
pub(crate) fn answered(label: &str, actor: Option<&Actor>, feedback: Option<&str>) -> String {
    let mut text = String::new();
    let label = sanitize::line(label).into_owned();
    line(&mut text, format_args!("  answered {} by {}", styled(GOOD, format_args!("{label:?}")), by(actor)));
    if let Some(feedback) = feedback.filter(|feedback| !feedback.is_empty()) {
        indented(&mut text, "feedback: ", feedback);
    }
    text
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.push_str(&format!("{what}\n"));
}

fn indented(text: &mut String, label: &str, what: &str) {
    let what = sanitize::lines(what);
    for (at, what) in what.lines().enumerate() {
        let label = if at == 0 { label } else { "" };
        line(text, format_args!("    {label}{what}"));
    }
}

fn title(step: Step<'_>) -> String {
    match step {
        Step::Task(key) => address(key),
        Step::Gate { gate, .. } => format!("gate {}", sanitize::line(gate.as_str())),
    }
}

fn name(phase: &PhaseId) -> String {
    sanitize::line(phase.as_str()).into_owned()
}

fn address(key: &TaskKey) -> String {
    sanitize::line(&key.address()).into_owned()
}
