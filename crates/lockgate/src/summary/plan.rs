//! The summary of a single plan, which is written next to it.

use super::markdown::{asked, authentication_gates, plain, section, took, words};
use super::{HoldSummary, StepSummary, Summary};
use lockgate_engine::hold::HoldKind;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::spec::workflow::PlanPart;

/// The prefix of the second line of a summary, followed by the run. A file without it was not written by Lockgate.
pub const MARK: &str = "lockgate_run: ";

/// Renders the summary as Markdown. `files` returns the files of a commit.
pub fn markdown(summary: &Summary, run: &Run, part: &PlanPart, files: &dyn Fn(&str) -> Vec<String>) -> String {
    let mut text = format!("---\n{MARK}{}\nsummary_of: {}\n---\n\n", summary.run, part.id);
    text.push_str(&format!("# Plan {}: {}\n\n", plain(&part.id), summary.status));
    if !part.purpose.is_empty() {
        text.push_str(&format!("{}\n\n", plain(&part.purpose)));
    }
    let ended = summary.ended_at.map_or_else(String::new, |ended| format!(" and ended {ended}"));
    let waited = took(summary.waited_ms);
    text.push_str(&format!("It started {}{ended}, with {waited} of waiting for people.\n", summary.started_at));
    text += "\n## Tasks\n\n| task | name | result | attempts | commit | files |\n| --- | --- | --- | --- | --- | --- |\n";
    let declared = run.workflow.phase(part.phase.as_str());
    let mut deviations = Vec::new();
    for (number, id) in (1..).zip(&part.tasks) {
        let planned = declared.and_then(|phase| phase.task(id.as_str()));
        let name = planned.map_or(id.as_str(), |task| task.title());
        let Some(task) = done(summary, part, id.as_str()) else { continue };
        let commits = commits(summary, part, id.as_str());
        let commit = if commits.is_empty() { "-".to_owned() } else { commits.join(", ") };
        let mut changed: Vec<String> = Vec::new();
        for file in commits.iter().flat_map(|commit| files(commit)) {
            if !changed.contains(&file) {
                changed.push(file);
            }
        }
        let changed = if changed.is_empty() { "-".to_owned() } else { plain(&changed.join(", ")) };
        let attempts = task.attempts.len();
        let (name, status) = (plain(name), words(task.status.as_str()));
        text.push_str(&format!("| {number} | {name} | {status} | {attempts} | {} | {changed} |\n", plain(&commit)));
        deviations.extend(deviation(number, &name, task, planned.is_some_and(|task| task.agent().is_some())));
    }
    let gates: Vec<&StepSummary> = last_phase(summary, part).into_iter().flat_map(|phase| &phase.gates).collect();
    let gates: Vec<&StepSummary> = gates.into_iter().filter(|gate| is_ours(part, &gate.id)).collect();
    if !gates.is_empty() {
        text += "\n## Must-haves\n\n| gate | result |\n| --- | --- |\n";
        for gate in gates {
            text.push_str(&format!("| {} | {} |\n", plain(&gate.id), words(gate.status.as_str())));
            if gate.status != StepStatus::Passed {
                let why = gate.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
                deviations.push(format!("gate {} {}{why}", plain(&gate.id), words(gate.status.as_str())));
            }
        }
    }
    let ours: Vec<&HoldSummary> = summary.decisions.iter().filter(|hold| is_about(part, hold)).collect();
    let of_kind = |wanted: fn(HoldKind) -> bool| ours.iter().copied().filter(move |hold| wanted(hold.kind)).collect::<Vec<_>>();
    authentication_gates(&mut text, summary, &of_kind(|kind| kind == HoldKind::Authentication));
    section(&mut text, "Decisions", &of_kind(|kind| !matches!(kind, HoldKind::Authentication | HoldKind::Verify)), |hold| {
        asked(hold)
    });
    section(&mut text, "Verifications", &of_kind(|kind| kind == HoldKind::Verify), |hold| asked(hold));
    text += "\n## Deviations\n\n";
    match deviations.as_slice() {
        [] => text += "None: the plan was carried out as written.\n",
        some => some.iter().for_each(|deviation| text += &format!("- {deviation}\n")),
    }
    text
}

fn last_phase<'s>(summary: &'s Summary, part: &PlanPart) -> Option<&'s super::PhaseSummary> {
    summary.phases.iter().rev().find(|phase| phase.id == part.phase.as_str())
}

/// The task in the latest execution of its phase in which it ran.
fn done<'s>(summary: &'s Summary, part: &PlanPart, id: &str) -> Option<&'s StepSummary> {
    let executions = summary.phases.iter().rev().filter(|phase| phase.id == part.phase.as_str());
    let mut tasks = executions.filter_map(|phase| phase.tasks.iter().find(|task| task.id == id));
    let last = tasks.next()?;
    match last.attempts.is_empty() {
        true => tasks.find(|task| !task.attempts.is_empty()).or(Some(last)),
        false => Some(last),
    }
}

/// All commits of a task, in all executions.
fn commits<'s>(summary: &'s Summary, part: &PlanPart, id: &str) -> Vec<&'s str> {
    let executions = summary.phases.iter().filter(|phase| phase.id == part.phase.as_str());
    let tasks = executions.filter_map(|phase| phase.tasks.iter().find(|task| task.id == id));
    tasks.flat_map(|task| &task.commits).map(String::as_str).collect()
}

/// Whether a gate was generated from the plan.
fn is_ours(part: &PlanPart, gate: &str) -> bool {
    part.file.is_none() || gate.strip_prefix(&part.id).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether a question concerned the plan.
fn is_about(part: &PlanPart, hold: &HoldSummary) -> bool {
    let named = |address: &String| {
        let within = address.strip_prefix(part.phase.as_str()).and_then(|rest| rest.strip_prefix('/'));
        within.is_some_and(|id| part.tasks.iter().any(|task| task.as_str() == id) || is_ours(part, id))
    };
    hold.phase.as_deref() == Some(part.phase.as_str()) && (hold.tasks.is_empty() || hold.tasks.iter().any(named))
}

/// Describes how a task deviated from the plan.
fn deviation(number: usize, name: &str, task: &StepSummary, by_agent: bool) -> Option<String> {
    let count = |status: StepStatus| task.attempts.iter().filter(|attempt| attempt.status == status).count();
    let some = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let mut said: Vec<String> = [
        some(count(StepStatus::Failed), "failed"),
        some(count(StepStatus::Repeated), "did not pass its check"),
        some(count(StepStatus::Interrupted), "interrupted"),
        some(count(StepStatus::HandedOver), "stopped to ask a person"),
        // Asking a question again is not work.
        some(count(StepStatus::Done).saturating_sub(1), "done again because of issues").filter(|_| by_agent),
    ]
    .into_iter()
    .flatten()
    .collect();
    if matches!(task.status, StepStatus::Skipped | StepStatus::Omitted | StepStatus::Tolerated) {
        let why = task.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
        said.push(format!("{}{why}", words(task.status.as_str())));
    }
    let attempts = counted(task.attempts.len(), "attempt");
    (!said.is_empty()).then(|| format!("task {number} ({name}), of {attempts}: {}", said.join(", ")))
}
