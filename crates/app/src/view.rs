//! What a run looks like from outside. One model, shown as JSON and as text.

use crate::print::{ERROR, FAINT, GOOD, HELP, STRONG, WARNING, styled};
use crate::trouble::Trouble;
use crate::{moment, neutral};
use anstyle::Style;
use lockgate_engine::hold::{Choice, Hold, Seen};
use lockgate_engine::id::PhaseId;
use lockgate_engine::run::event::Failure;
use lockgate_engine::run::phase::PhaseRun;
use lockgate_engine::run::state::{End, GateState, TaskState};
use lockgate_engine::run::{Run, Status};
use lockgate_engine::spec::workflow::Reads;
use lockgate_engine::time::Timestamp;
use lockgate_store::{DriverInfo, Store};
use serde::Serialize;
use serde_json::Value;

/// A run as it stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunView {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) feature: Option<String>,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) current_phase: Option<String>,
    pub(crate) phases: Vec<PhaseView>,
    pub(crate) tasks: Vec<StepView>,
    pub(crate) gates: Vec<StepView>,
    pub(crate) holds: Vec<HoldView>,
    pub(crate) warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver: Option<DriverView>,
    pub(crate) started_at: Timestamp,
    pub(crate) output_dir: String,
    pub(crate) context: Value,
}

/// A phase as it stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: &'static str,
    pub(crate) iteration: u32,
}

/// A task or gate of the phase under way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepView {
    pub(crate) id: String,
    pub(crate) status: &'static str,
    pub(crate) attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A question that waits.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HoldView {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) phase: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) prompt: String,
    pub(crate) notes: Vec<String>,
    pub(crate) options: Vec<OptionView>,
    pub(crate) files: Vec<FileView>,
    pub(crate) revision: u32,
    pub(crate) since: Timestamp,
}

/// Something that may be answered.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OptionView {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) with_feedback: bool,
}

/// A file that a decision is about.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileView {
    pub(crate) path: String,
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_bytes: Option<u64>,
}

/// The process that drives a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DriverView {
    pub(crate) pid: u32,
    pub(crate) host: String,
    pub(crate) since: Timestamp,
}

impl From<DriverInfo> for DriverView {
    fn from(info: DriverInfo) -> Self {
        Self { pid: info.pid, host: info.host, since: info.since }
    }
}

/// The word for where a run stands: one that should run and that nobody drives was interrupted.
pub(crate) fn status_word(status: &str, driven: bool) -> &'static str {
    match status {
        "running" if driven => "running",
        "running" => "interrupted",
        "waiting" => "waiting",
        "failed" => "failed",
        "aborted" => "aborted",
        "cancelled" => "cancelled",
        "complete" => "complete",
        _ => "unknown",
    }
}

impl RunView {
    /// What a run looks like; `driver` is the living process that drives it, unless that is about to end.
    pub(crate) async fn of(run: &Run, driver: Option<DriverInfo>, store: &dyn Store) -> Result<Self, Trouble> {
        let status = status_word(run.status().word(), driver.is_some());
        let current = run.current.as_ref();
        Ok(Self {
            run: run.id.to_string(),
            workflow: run.workflow.name.clone(),
            feature: run.feature.clone(),
            status,
            error: match &run.end {
                Some(End::Failed(message)) => Some(message.clone()),
                Some(End::Complete | End::Aborted | End::Cancelled) | None => None,
            },
            current_phase: current.map(|phase| phase.id.to_string()),
            phases: phases(run, status),
            tasks: current.map(tasks).unwrap_or_default(),
            gates: current.map(gates).unwrap_or_default(),
            holds: holds(run),
            warnings: run.warnings.clone(),
            driver: driver.map(DriverView::from),
            started_at: run.started_at,
            output_dir: run.output_dir.clone(),
            context: context(run, store).await?,
        })
    }
}

async fn context(run: &Run, store: &dyn Store) -> Result<Value, Trouble> {
    let digests: Vec<_> = run.context(&Reads::All).stored.into_iter().map(|(_, digest)| digest).collect();
    let texts = if digests.is_empty() { Vec::new() } else { store.values(&digests).await? };
    Ok(run.full_context(&|wanted| {
        let at = digests.iter().position(|digest| digest == wanted)?;
        serde_json::from_slice(texts.get(at)?.as_deref()?).ok()
    }))
}

fn phases(run: &Run, status: &'static str) -> Vec<PhaseView> {
    let view = |(position, phase): (usize, &lockgate_engine::spec::workflow::Phase)| PhaseView {
        id: phase.id.to_string(),
        name: phase.title().to_owned(),
        status: phase_status(run, position, &phase.id, status),
        iteration: run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0),
    };
    run.workflow.phases.iter().enumerate().map(view).collect()
}

fn phase_status(run: &Run, position: usize, phase: &PhaseId, status: &'static str) -> &'static str {
    if run.current.as_ref().is_some_and(|current| current.id == *phase) {
        return match run.status() {
            Status::Complete => "complete",
            Status::Running | Status::Waiting | Status::Failed | Status::Aborted | Status::Cancelled => status,
        };
    }
    if run.completed.contains(phase) {
        "complete"
    } else if run.skip_list.contains(phase) && (position < run.position || run.end.is_none()) {
        "skipped"
    } else {
        "pending"
    }
}

fn tasks(phase: &PhaseRun) -> Vec<StepView> {
    let view = |task: &lockgate_engine::run::phase::TaskRun| StepView {
        id: task.item.as_ref().map_or_else(|| task.task.to_string(), |item| format!("{}[{item}]", task.task)),
        status: task.state.word(),
        attempts: task.attempts,
        since: task.since,
        error: match &task.state {
            TaskState::Failed(failure) => Some(failure.message.clone()),
            TaskState::Waiting
            | TaskState::Running
            | TaskState::Backoff { .. }
            | TaskState::Interrupted
            | TaskState::Done
            | TaskState::Skipped => None,
        },
    };
    phase.tasks.iter().map(view).collect()
}

fn gates(phase: &PhaseRun) -> Vec<StepView> {
    let view = |gate: &lockgate_engine::run::state::GateRun| {
        let (status, failure): (_, Option<&Failure>) = match &gate.state {
            GateState::Waiting => ("waiting", None),
            GateState::Running => ("running", None),
            GateState::Passed => ("passed", None),
            GateState::Failed(failure) => ("failed", Some(failure)),
            GateState::Waived => ("waived", None),
        };
        let error = failure.map(|failure| failure.message.clone());
        StepView { id: gate.gate.to_string(), status, attempts: gate.attempts, since: None, error }
    };
    phase.gates.iter().map(view).collect()
}

fn holds(run: &Run) -> Vec<HoldView> {
    let mut holds: Vec<&Hold> = run.holds.values().collect();
    holds.sort_by_key(|hold| (hold.opened_at, hold.id.clone()));
    holds.into_iter().map(HoldView::of).collect()
}

impl HoldView {
    /// What a hold looks like.
    pub(crate) fn of(hold: &Hold) -> Self {
        let file = |file: &lockgate_engine::hold::ShownFile| FileView {
            path: file.path.clone(),
            digest: file.seen.digest().map(|digest| digest.to_string()),
            size_bytes: match &file.seen {
                Seen::File { bytes, .. } => Some(*bytes),
                Seen::Absent | Seen::Directory { .. } | Seen::Unreadable(_) => None,
            },
        };
        let option = |choice: &Choice| OptionView {
            id: choice.id.to_string(),
            label: choice.label.clone(),
            with_feedback: choice.with_feedback,
        };
        Self {
            id: hold.id.to_string(),
            kind: hold.kind.word(),
            phase: hold.scope.phase().map(ToString::to_string),
            state: hold.state.word(),
            prompt: hold.prompt.clone(),
            notes: hold.notes.clone(),
            options: hold.options.iter().map(option).collect(),
            files: hold.files.iter().map(file).collect(),
            revision: hold.revision,
            since: hold.since,
        }
    }

    /// The commands that answer it, one for each option.
    pub(crate) fn commands(&self) -> Vec<String> {
        let options = self.options.iter().enumerate();
        options.map(|(at, option)| answer_command(&self.id, self.revision, &option.label, at)).collect()
    }
}

/// The command that answers a hold with an option: by its label where that is plain, else by its number.
pub(crate) fn answer_command(hold: &str, revision: u32, label: &str, at: usize) -> String {
    let plain = |character: char| character.is_alphanumeric() || " -_.,!?".contains(character);
    let option = match label {
        _ if label.is_empty() || label.starts_with('-') || label.contains('!') || !label.chars().all(plain) => {
            (at + 1).to_string()
        }
        _ if label.contains(|character: char| !character.is_alphanumeric() && !"-_.".contains(character)) => {
            format!("\"{label}\"")
        }
        _ => label.to_owned(),
    };
    format!("lockgate answer {hold}@{revision} {option} --resume")
}

/// An option in a list.
pub(crate) fn option_line(at: usize, choice: &Choice) -> String {
    let asks = if choice.with_feedback { " (with feedback)" } else { "" };
    format!("{}. {}{asks}", at + 1, choice.label)
}

/// The style for a status.
pub(crate) fn status_style(status: &str) -> Style {
    match status {
        "complete" | "done" | "passed" => GOOD,
        "failed" | "aborted" | "cancelled" => ERROR,
        "waiting" | "interrupted" => WARNING,
        "running" => HELP,
        _ => FAINT,
    }
}

/// A run as text.
pub(crate) fn text(view: &RunView, now: Timestamp) -> String {
    let about = view.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    let name = neutral::line(&format!("{}{about}", view.workflow)).into_owned();
    let mut text = format!("{} {}  {}\n", styled(STRONG, &view.run), name, styled(status_style(view.status), view.status));
    if let Some(error) = &view.error {
        text += &format!("{} {}\n", styled(ERROR, "error:"), neutral::line(error));
    }
    if let Some(driver) = &view.driver {
        text += &format!("driven by process {} on {} since {}\n", driver.pid, neutral::line(&driver.host), driver.since);
    }
    for phase in &view.phases {
        let again = if phase.iteration > 1 { format!(" (execution {})", phase.iteration) } else { String::new() };
        let status = styled(status_style(phase.status), format_args!("{:<11}", phase.status));
        text += &format!("  {status} {}{again}\n", neutral::line(&phase.id));
        if view.current_phase.as_ref() == Some(&phase.id) {
            view.tasks.iter().for_each(|task| text += &step("", task));
            view.gates.iter().for_each(|gate| text += &step("gate ", gate));
        }
    }
    for hold in &view.holds {
        text += &hold_text(hold, now);
    }
    for warning in &view.warnings {
        text += &format!("{} {}\n", styled(WARNING, "warning:"), neutral::line(warning));
    }
    text
}

fn step(word: &str, step: &StepView) -> String {
    let attempts = if step.attempts > 1 { format!(" (attempt {})", step.attempts) } else { String::new() };
    let error = step.error.as_deref().map(|error| format!(": {}", neutral::line(error))).unwrap_or_default();
    let status = styled(status_style(step.status), format_args!("{:<11}", step.status));
    format!("    {status} {word}{}{attempts}{error}\n", neutral::line(&step.id))
}

/// A hold as text, with how to answer it.
pub(crate) fn hold_text(hold: &HoldView, now: Timestamp) -> String {
    let place = hold.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let name = neutral::line(&format!("{}{place}", hold.kind)).into_owned();
    let mut text = format!(
        "{} {name} waits since {} ({})\n",
        styled(STRONG, format_args!("{}@{}", hold.id, hold.revision)),
        hold.since,
        moment::ago(now, hold.since)
    );
    text.extend(neutral::lines(&hold.prompt).lines().map(|line| format!("  {line}\n")));
    for note in &hold.notes {
        text.extend(neutral::lines(note).lines().map(|line| format!("  {} {line}\n", styled(WARNING, "!"))));
    }
    text.extend(hold.files.iter().map(|file| format!("  file {}\n", neutral::line(&file.path))));
    text.extend(hold.commands().iter().map(|command| format!("  {}\n", styled(HELP, neutral::line(command)))));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_options_so_that_a_shell_understands_them() {
        assert_eq!(answer_command("abc", 2, "Continue", 0), "lockgate answer abc@2 Continue --resume");
        assert_eq!(answer_command("abc", 1, "Looks good", 1), "lockgate answer abc@1 \"Looks good\" --resume");
        assert_eq!(answer_command("abc", 1, "$(rm -rf /)", 1), "lockgate answer abc@1 2 --resume");
        assert_eq!(answer_command("abc", 1, "--force", 0), "lockgate answer abc@1 1 --resume");
        assert_eq!(answer_command("abc", 1, "\x1b[31m", 2), "lockgate answer abc@1 3 --resume");
    }
}
