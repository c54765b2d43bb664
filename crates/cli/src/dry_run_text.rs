//! Renders a dry run: the path taken, step by step.

use crate::print::{ERROR, FAINT, GOOD, STRONG, WARNING, styled};
use lockgate::dry_run::unused_answers;
use lockgate::phrases::first_line;
use lockgate::sanitize;
use lockgate_engine::hold::HoldKind;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Status;
use lockgate_runner::dry_run::{DryRunHold, DryRunOutcome, DryRunReport, DryRunWork, Step, StepKind};
use lockgate_runner::process::shell_text;

/// The maximum number of files listed.
const MOST_FILES: usize = 20;

pub(crate) fn reported(result: &DryRunReport, workflow: &str, feature: Option<&str>) -> String {
    let about = feature.map(|feature| format!(" ({feature})")).unwrap_or_default();
    let name = sanitize::line(&format!("{workflow}{about}")).into_owned();
    let mut text = format!("dry run of {}: nothing is executed or stored\n", styled(STRONG, name));
    for step in &result.steps {
        render_step(&mut text, step, &result.holds);
    }
    let own = shell_text(None);
    if result.steps.iter().any(|step| step.shell.as_deref() == Some(&own)) {
        line(&mut text, format_args!("commands run with `{own}`"));
    }
    end(&mut text, result);
    text
}

fn render_step(text: &mut String, step: &Step, holds: &[DryRunHold]) {
    let phase = sanitize::line(step.phase.as_deref().unwrap_or_default()).into_owned();
    let detail = step.detail.as_deref().map(|detail| sanitize::line(detail).into_owned());
    let because = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    match step.kind {
        StepKind::Phase => {
            let again = step.iteration.filter(|iteration| *iteration > 1);
            let again = again.map(|iteration| format!(" (execution {iteration})")).unwrap_or_default();
            line(text, format_args!("phase {}{again}", styled(STRONG, phase)));
            if let Some(feedback) = detail {
                line(text, format_args!("  with feedback: {feedback}"));
            }
        }
        StepKind::SkippedPhase => line(text, format_args!("phase {phase} {}", styled(FAINT, "is skipped"))),
        StepKind::Task | StepKind::Gate => work(text, step, &because),
        StepKind::AgentQuery => {
            let address = sanitize::line(step.address.as_deref().unwrap_or_default()).into_owned();
            line(text, format_args!("  the script of {address} asks {}", asked(step)));
        }
        StepKind::GapCheck => {
            let word = match step.outcome {
                Some(DryRunOutcome::Whole) => styled(GOOD, "finds no gaps"),
                Some(DryRunOutcome::CountsAsWhole) => styled(WARNING, "counts as passed, as answered"),
                Some(DryRunOutcome::Gaps(action)) => styled(WARNING, format_args!("finds gaps ({})", action.as_str())),
                // These belong to steps of other kinds.
                Some(
                    DryRunOutcome::Done
                    | DryRunOutcome::Again
                    | DryRunOutcome::FannedOut
                    | DryRunOutcome::Failed
                    | DryRunOutcome::Omitted
                    | DryRunOutcome::CountsAsDone
                    | DryRunOutcome::Tolerated
                    | DryRunOutcome::Stopped
                    | DryRunOutcome::Passed
                    | DryRunOutcome::CountsAsPassed
                    | DryRunOutcome::NotMet
                    | DryRunOutcome::Error,
                )
                | None => String::new(),
            };
            line(text, format_args!("  gap check {word}{because}"));
        }
        StepKind::Condition if step.outcome == Some(DryRunOutcome::Error) => {
            line(text, format_args!("  {}{because}", styled(WARNING, "the checkpoint's condition cannot be evaluated")));
        }
        StepKind::Condition => {
            line(text, format_args!("  checkpoint {}", styled(FAINT, "is skipped: its condition is not met")));
        }
        StepKind::Hold => {
            if let Some(hold) = step.hold.and_then(|hold| holds.get(hold)) {
                question(text, hold);
            }
        }
        StepKind::Repeat => line(text, format_args!("back to phase {phase}")),
        StepKind::SkipList => line(text, format_args!("  to be skipped{because}")),
        StepKind::Finalization => line(text, format_args!("in the end {} is written", files(&step.outputs))),
    }
}

/// A task or gate: its work and its outcome.
fn work(text: &mut String, step: &Step, because: &str) {
    let address = sanitize::line(step.address.as_deref().unwrap_or_default()).into_owned();
    let name = if step.kind == StepKind::Gate { format!("gate {address}") } else { address };
    let again = step.attempt.filter(|attempt| *attempt > 1).map(|attempt| format!(" (attempt {attempt})")).unwrap_or_default();
    let does = match (&step.command, step.work) {
        (Some(command), _) => format!(" runs{}: {}", with_shell(step), first_line(command)),
        (None, Some(DryRunWork::Agent)) if step.prompt.is_some() => format!(" asks {}", asked(step)),
        (None, Some(DryRunWork::Script)) if step.attempt.is_some() => " is a script".to_owned(),
        (None, Some(DryRunWork::Pass)) if step.attempt.is_some() => " does nothing".to_owned(),
        (None, _) => String::new(),
    };
    let result = match step.outcome {
        Some(DryRunOutcome::Omitted) => format!(" {}{because}", styled(FAINT, "is left out")),
        Some(DryRunOutcome::Failed) => format!("\n    {}{because}", styled(ERROR, "fails")),
        Some(DryRunOutcome::Again) => format!("\n    {}{because}", styled(FAINT, "runs again")),
        Some(DryRunOutcome::FannedOut) => {
            let tasks: usize = step.detail.as_deref().and_then(|count| count.parse().ok()).unwrap_or_default();
            format!(" becomes {}", counted(tasks, "task"))
        }
        Some(DryRunOutcome::CountsAsDone) => format!(" {}", styled(WARNING, "counts as done, as answered")),
        Some(DryRunOutcome::CountsAsPassed) => format!(" {}", styled(WARNING, "counts as passed, as answered")),
        Some(DryRunOutcome::Tolerated) => format!(" {}", styled(WARNING, "failed; the run continues without it")),
        Some(DryRunOutcome::Stopped) => format!("\n    {}{because}", styled(FAINT, "is stopped")),
        Some(
            DryRunOutcome::Done
            | DryRunOutcome::Passed
            | DryRunOutcome::Whole
            | DryRunOutcome::Gaps(_)
            | DryRunOutcome::CountsAsWhole
            | DryRunOutcome::NotMet
            | DryRunOutcome::Error,
        )
        | None => match &step.detail {
            Some(detail) => format!(" ({})", sanitize::line(detail)),
            None => String::new(),
        },
    };
    line(text, format_args!("  {}{again}{does}{result}", styled(STRONG, name)));
    if let Some(until) = &step.until {
        line(text, format_args!("    until this succeeds: {}", first_line(until)));
    }
    if !step.outputs.is_empty() {
        line(text, format_args!("    writes {}", files(&step.outputs)));
    }
}

/// Names the shell of a command, unless it is the default.
fn with_shell(step: &Step) -> String {
    let own = shell_text(None);
    let other = step.shell.as_deref().filter(|shell| *shell != own);
    other.map(|shell| format!(" with `{}`", sanitize::line(shell))).unwrap_or_default()
}

fn asked(step: &Step) -> String {
    let prompt = step.prompt.as_deref().map(|prompt| first_line(prompt.trim_start())).unwrap_or_default();
    match &step.agent {
        Some(agent) => format!("the agent {}: {prompt}", sanitize::line(agent)),
        None => format!("an agent ({}): {prompt}", styled(WARNING, "none is configured")),
    }
}

fn question(text: &mut String, hold: &DryRunHold) {
    let names: Vec<String> = hold.addresses.iter().map(|address| sanitize::line(address).into_owned()).collect();
    let about = if names.is_empty() { String::new() } else { format!(" about {}", names.join(", ")) };
    let what = if hold.kind == HoldKind::Checkpoint { "checkpoint".to_owned() } else { format!("hold{about}") };
    line(text, format_args!("  {}: {}", styled(STRONG, what), first_line(&hold.prompt)));
    for note in &hold.notes {
        line(text, format_args!("    {} {}", styled(WARNING, "note:"), sanitize::line(note)));
    }
    if !hold.files.is_empty() {
        line(text, format_args!("    shows {}", files(&hold.files)));
    }
    if let Some(diff) = &hold.diff {
        line(text, format_args!("    shows {}", sanitize::line(&diff.title)));
    }
    let options: Vec<String> =
        hold.options.iter().enumerate().map(|(at, label)| format!("{}. {}", at + 1, sanitize::line(label))).collect();
    line(text, format_args!("    options: {}", options.join("  ")));
    if let Some(answer) = &hold.answer {
        let given = if answer.given { "as given" } else { "the first option" };
        let feedback = answer.feedback.as_deref().filter(|feedback| !feedback.is_empty());
        let feedback = feedback.map(|feedback| format!(", with feedback: {}", first_line(feedback))).unwrap_or_default();
        let option = styled(GOOD, sanitize::line(&answer.option));
        line(text, format_args!("    answered {option} ({given}){feedback}"));
    }
}

fn end(text: &mut String, result: &DryRunReport) {
    if let Some(why) = &result.truncated {
        line(text, format_args!("{} {}", styled(ERROR, "cut short:"), sanitize::line(why)));
    } else {
        let status = result.status.as_str();
        let word = match result.status {
            Status::Complete => styled(GOOD, status),
            Status::Failed | Status::Aborted | Status::Cancelled | Status::Waiting | Status::Running => styled(ERROR, status),
        };
        let why = result.error.as_deref().map(|error| format!(": {}", sanitize::line(error))).unwrap_or_default();
        line(text, format_args!("the run would end {word}{why}"));
    }
    let path: Vec<String> = result.path.iter().map(|phase| sanitize::line(phase).into_owned()).collect();
    if !path.is_empty() {
        line(text, format_args!("path: {}", path.join(" → ")));
    }
    if !result.files.is_empty() {
        line(text, format_args!("files in {}: {}", sanitize::line(&result.output_dir), files(&result.files)));
    }
    for unused in unused_answers(result) {
        line(text, format_args!("{} the answer {:?} was never asked for", styled(WARNING, "warning:"), sanitize::line(&unused)));
    }
}

fn files(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(MOST_FILES).map(|name| sanitize::line(name).into_owned()).collect();
    if names.len() > MOST_FILES {
        shown.push(format!("and {} more", names.len() - MOST_FILES));
    }
    shown.join(", ")
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.push_str(&format!("{what}\n"));
}
