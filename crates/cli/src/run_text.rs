//! Renders runs, steps and holds as text.

use crate::print::{ERROR, FAINT, HELP, STRONG, WARNING, styled};
use crate::style::Styled as _;
use lockgate::graph::{Mark, tally};
use lockgate::view::{DriverView, FileView, GapView, HoldView, RunStatus, RunView, StepView};
use lockgate::{human_time, sanitize};
use lockgate_engine::plural::counted;
use lockgate_engine::time::Timestamp;
use std::collections::BTreeMap;

/// The maximum number of output lines shown for a failed step.
pub(crate) const TAIL: usize = 20;

/// The maximum number of items listed individually.
const FEW: usize = 8;

/// What happens at the deadline of an open hold.
pub(crate) fn deadline_line(hold: &HoldView, now: Timestamp) -> Option<String> {
    hold.deadline_line(now).map(|line| styled(WARNING, human_time::localize(&line)))
}

pub(crate) fn run_text(view: &RunView, now: Timestamp) -> String {
    let about = view.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    let name = sanitize::line(&format!("{}{about}", view.workflow)).into_owned();
    let mut text = format!("{} {}  {}\n", styled(STRONG, &view.run), name, styled(view.status.style(), view.status));
    if let Some(error) = &view.error {
        text += &format!("{} {}\n", styled(ERROR, "error:"), hanging(error, "       "));
    }
    if let Some(cancelled) = &view.cancelled {
        text += &format!("cancelled {}\n", hanging(&cancelled.words(), "          "));
    }
    if view.status == RunStatus::Interrupted {
        let command = if view.detached { "lockgate worker".to_owned() } else { format!("lockgate resume {}", view.run) };
        text += &format!("no process drives it, and its state is saved; continue: {}\n", styled(HELP, command));
    }
    if let Some(driver) = &view.driver {
        text += &format!(
            "driven by process {} on {} since {}\n",
            driver.pid,
            sanitize::line(&driver.host),
            human_time::local(driver.since)
        );
    }
    if let Some(pipeline) = &view.pipeline {
        text += &crate::pipeline::text(pipeline, now);
    }
    for phase in view.phases.iter().filter(|phase| !is_in_pipeline(view, &phase.id)) {
        let again = if phase.iteration > 1 { format!(" (execution {})", phase.iteration) } else { String::new() };
        let status = styled(phase.status.style(), format_args!("{:<11}", phase.status));
        text += &format!("  {status} {}{again}\n", sanitize::line(&phase.id));
        if view.current_phase.as_ref() == Some(&phase.id) {
            text += &tasks(&view.tasks);
            view.gap_check.iter().for_each(|gap| text += &gap_check(gap));
            view.gates.iter().for_each(|gate| text += &step(gate, "gate "));
        }
    }
    if view.pipeline.is_some() {
        view.tasks.iter().filter(|task| task.error.is_some()).for_each(|task| text += &step(task, ""));
        view.gates.iter().filter(|gate| gate.error.is_some()).for_each(|gate| text += &step(gate, "gate "));
    }
    for hold in &view.holds {
        text += &hold_text(hold, view, now);
    }
    for worktree in &view.worktrees {
        text += &format!("worktree {}\n", worktree.line());
    }
    if let Some(snapshot) = &view.snapshot {
        let can = if snapshot.can_resume { "can resume" } else { "cannot resume" };
        let (trigger, ago) = (snapshot.trigger, human_time::ago(now, snapshot.created_at));
        text += &format!("snapshot {} ({trigger}, {ago}, {can})\n", snapshot.id);
    }
    for warning in &view.warnings {
        text += &format!("{} {}\n", styled(WARNING, "warning:"), hanging(warning, "         "));
    }
    text
}

/// Whether a phase is shown as part of the pipeline.
fn is_in_pipeline(view: &RunView, phase: &str) -> bool {
    let shown = view.pipeline.as_ref().map_or(0, |pipeline| pipeline.phases.len());
    view.phases.iter().take(shown).any(|known| known.id == phase)
}

/// The tasks of the current phase. Items of a fanned-out task share one line, followed by the items that need attention.
fn tasks(tasks: &[StepView]) -> String {
    let mut items: BTreeMap<&str, Vec<&StepView>> = BTreeMap::new();
    for task in tasks {
        items.entry(task.parent.as_deref().unwrap_or_default()).or_default().push(task);
    }
    let mut text = String::new();
    for task in tasks.iter().filter(|task| task.parent.is_none()) {
        let Some(items) = items.get(task.id.as_str()) else {
            text += &step(task, "");
            continue;
        };
        let status = styled(task.status.style(), format_args!("{:<11}", task.status));
        let counts = tally(items.iter().map(|item| item.mark)).join(", ");
        text += &format!("    {status} {}  {counts}\n", sanitize::line(&task.id));
        let shown = |item: &&&StepView| !matches!(item.mark, Mark::Done | Mark::Pending | Mark::Running);
        let wrong: Vec<_> = items.iter().filter(shown).collect();
        let running: Vec<_> = items.iter().filter(|item| item.mark == Mark::Running).collect();
        let running = if running.len() <= FEW { running } else { Vec::new() };
        let more = wrong.len().saturating_sub(FEW);
        for item in wrong.iter().take(FEW).chain(&running) {
            text.extend(step(item, "").lines().map(|line| format!("  {line}\n")));
        }
        if more > 0 {
            let verb = if more == 1 { "is" } else { "are" };
            text += &format!("      {}\n", styled(FAINT, format_args!("… and {more} more that {verb} not done")));
        }
    }
    text
}

fn gap_check(gap: &GapView) -> String {
    let follows = gap.action.map(|action| format!(": {}", action.as_str().replace('_', " "))).unwrap_or_default();
    let status = styled(gap.mark.style(), format_args!("{:<11}", gap.status.as_str()));
    let notes = gap.notes.iter().map(|note| format!("      {}\n", hanging(note, "      ")));
    format!("    {status} gap check{follows}\n{}", notes.collect::<String>())
}

fn step(step: &StepView, word: &str) -> String {
    let attempts = if step.attempts > 1 { format!(" (attempt {})", step.attempts) } else { String::new() };
    let error = step.error.as_deref().map(|error| format!(": {}", hanging(error, "      "))).unwrap_or_default();
    let status = styled(step.status.style(), format_args!("{:<11}", step.status.as_str().replace('_', " ")));
    let reason = step.reason.as_deref().map(|reason| format!(": {}", hanging(reason, "      "))).unwrap_or_default();
    let agent = step.agent.as_ref().map(|agent| styled(FAINT, format_args!("  {}", agent.line()))).unwrap_or_default();
    let name = sanitize::line(&step.id);
    format!("    {status} {word}{name}{attempts}{error}{reason}{agent}\n{}", failure_text(step, "      "))
}

/// The last output lines of a failed step, and the path of its log.
pub(crate) fn failure_text(step: &StepView, indent: &str) -> String {
    let mut text = String::new();
    if step.error.is_none() {
        return text;
    }
    if let Some(tail) = &step.tail {
        text += &tail_text(tail, indent);
    }
    if let Some(log) = &step.log {
        text += &format!("{indent}log: {}\n", sanitize::line(log));
    }
    text
}

pub(crate) fn tail_text(tail: &str, indent: &str) -> String {
    let tail = sanitize::lines(tail);
    let lines: Vec<&str> = tail.lines().collect();
    let last = lines[lines.len().saturating_sub(TAIL)..].iter();
    last.map(|line| format!("{indent}{} {line}\n", styled(FAINT, "│"))).collect()
}

/// A hold with the commands that answer it, or with its answer.
fn hold_text(hold: &HoldView, view: &RunView, now: Timestamp) -> String {
    let driver = view.driver.as_ref();
    let location = hold.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let what = sanitize::line(&format!("{}{location}", hold.kind)).into_owned();
    let name = styled(STRONG, format_args!("{}@{}", hold.id, hold.revision));
    if let Some(answered) = hold.answered().map(|answered| human_time::localize(&answered)) {
        return format!("{name} {what} is {answered}; {}\n", carried_out(&view.run, driver));
    }
    let mut text =
        format!("{name} {what} waits since {} ({})\n", human_time::local(hold.since), human_time::ago(now, hold.since));
    text.extend(deadline_line(hold, now).map(|line| format!("  {line}\n")));
    text.extend(sanitize::lines(hold.question()).lines().map(|line| format!("  {line}\n")));
    text += &shown_text(hold, "  ");
    let commands = hold.next_commands(&view.run, driver.is_none() && !view.detached, now);
    text.extend(commands.iter().map(|command| format!("  {}\n", styled(HELP, sanitize::line(command)))));
    text
}

fn carried_out(run: &str, driver: Option<&DriverView>) -> String {
    match driver {
        Some(driver) => format!("process {} on {} continues it", driver.pid, sanitize::line(&driver.host)),
        None => format!("continue with: {}", styled(HELP, format_args!("lockgate resume {run}"))),
    }
}

/// The content that is shown with a question: its notes, files and change.
pub(crate) fn shown_text(hold: &HoldView, indent: &str) -> String {
    let mut text = String::new();
    for note in &hold.notes {
        text.extend(sanitize::lines(note).lines().map(|line| format!("{indent}{} {line}\n", styled(WARNING, "!"))));
    }
    text.extend(hold.answered_before().map(|line| format!("{indent}{}\n", human_time::localize(&line))));
    text.extend(hold.files.iter().map(|file| file_text(file, indent)));
    text.extend(hold.diff.iter().map(|diff| crate::diff_text::cut(diff, indent, crate::diff_text::SHORT)));
    text
}

/// A file with its size and first lines.
pub(crate) fn file_text(file: &FileView, indent: &str) -> String {
    let path = styled(STRONG, sanitize::line(&file.path));
    let Some(preview) = &file.preview else { return format!("{indent}file {path}\n") };
    let mut text = format!("{indent}file {path} ({})\n", sanitize::line(&preview.size));
    let bar = styled(FAINT, "│");
    let line = |line: &String| format!("{indent}{bar} {}\n", sanitize::line(&line.replace('\t', "    ")));
    text.extend(preview.lines.iter().map(line));
    if preview.more > 0 {
        text += &format!("{indent}{bar} {}\n", styled(FAINT, format_args!("… and {}", counted(preview.more, "more line"))));
    }
    text
}

/// Indents all lines but the first, for text after a label.
pub(crate) fn hanging(text: &str, indent: &str) -> String {
    sanitize::lines(text.trim_end()).replace('\n', &format!("\n{indent}"))
}
