//! Explains why a run does not progress: what it waits for, since when, who can act, and with which command.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::error::Error;
use crate::project::Project;
use crate::select;
use crate::view::{Aborted, DriverView, HoldView, RunStatus, RunView, StepView, lockgate, resume_command};
use lockgate_engine::hold::HoldKind;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::time::Timestamp;
use serde::Serialize;

/// How many failed tasks are listed with a command to skip them.
const MOST_SKIPS: usize = 5;

/// How many running tasks are listed.
const MOST_NAMED: usize = 8;

/// Why a run is in its current state.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    pub run: String,
    pub status: RunStatus,
    pub reasons: Vec<Reason>,
}

/// One reason why a run waits, or what it is doing.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    pub what: String,
    pub since: Timestamp,
    pub who: String,
    pub commands: Vec<String>,
    /// The hold, if the run waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldView>,
    /// Failed steps, with their last line of output and their logs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<StepView>,
}

impl Reason {
    fn new(what: impl Into<String>, since: Timestamp, who: impl Into<String>, commands: Vec<String>) -> Self {
        Self { what: what.into(), since, who: who.into(), commands, hold: None, failures: Vec::new() }
    }
}

impl Project {
    /// Explains what a run waits for, since when, who can act, and with which command.
    pub async fn why(&self, run: &RunId) -> Result<Why, Error> {
        let found = select::run_or_ended(self.store(), run.as_str()).await?;
        Ok(explain(&self.view(run).await?, found.row.changed_at, self.now()))
    }
}

/// Explains the state of a run. `changed_at` is the time of its last event.
pub fn explain(view: &RunView, changed_at: Timestamp, now: Timestamp) -> Why {
    let run = &view.run;
    let mut reasons: Vec<Reason> = view.holds.iter().map(|hold| question(hold, view, now)).collect();
    let fixed = view.pipeline.as_ref().filter(|pipeline| pipeline.status == Lifecycle::Failed).map(|_| "--fixed");
    let resume = vec![resume_command(run, fixed)];
    let drive = vec!["lockgate worker".to_owned()];
    let reason = |what: &str, who: &str, commands: Vec<String>| Reason::new(what, changed_at, who, commands);
    let unreviewed = view.pipeline.as_ref().is_some_and(|pipeline| pipeline.waits_for_review);
    if unreviewed {
        let what = "it starts only after a review permits it";
        let commands = vec![format!("lockgate pipeline review {run} --verdict ship --p0 0 --p1 0")];
        reasons.push(reason(what, "the reviewer; a person can override the review", commands));
    }
    match view.status {
        RunStatus::Failed if unreviewed => {}
        RunStatus::Running => reasons.extend(view.driver.as_ref().map(|driver| running(view, driver, changed_at))),
        // The reason of the answered hold already says that nothing drives the run.
        RunStatus::Interrupted if view.holds.iter().any(|hold| hold.answer.is_some()) => {}
        RunStatus::Interrupted if view.detached => {
            let what = "it is detached, and no background process drives it; its state is saved";
            reasons.push(reason(
                what,
                "a background process, or anyone who resumes it",
                drive.into_iter().chain(resume).collect(),
            ));
        }
        RunStatus::Interrupted => {
            let cut_off = named(view, StepStatus::Interrupted).map(|named| format!(" during {named}")).unwrap_or_default();
            let what = format!("it was interrupted{cut_off}: no process drives it, and its state is saved");
            reasons.push(reason(&what, "anyone who resumes it", resume));
        }
        RunStatus::Failed => {
            let error = view.error.as_deref().unwrap_or("something failed");
            let who = "anyone who fixes the cause and resumes it, which retries only failed tasks, or who skips them";
            let skip = failed(view).map(|(address, _)| format!("{} --reason \"…\"", lockgate(["skip", run, &address])));
            let commands = resume.into_iter().chain(skip.take(MOST_SKIPS)).collect();
            let failures = failed(view).map(|(_, step)| step.clone()).collect();
            reasons.push(Reason { failures, ..reason(error, who, commands) });
        }
        RunStatus::Complete => {
            reasons.push(reason("it is complete: all phases are done", "no one; there is nothing left to do", Vec::new()))
        }
        RunStatus::Waiting if view.holds.is_empty() && !unreviewed => {
            let what = "it was imported and has not started yet";
            let how = view.pipeline.as_ref().map_or("", |pipeline| pipeline.resume_flag());
            reasons.push(reason(what, "anyone who resumes it", vec![format!("lockgate resume {run}{how}")]));
        }
        RunStatus::Aborted | RunStatus::Cancelled if view.pipeline.is_some() => {
            let ended = if view.status == RunStatus::Aborted { aborted(view) } else { "it was cancelled".to_owned() };
            let what = format!("{ended}; its state file says that it is paused");
            reasons.push(reason(&what, "a person who resumes it", vec![format!("lockgate resume {run}")]));
        }
        RunStatus::Aborted => reasons.push(reason(&aborted(view), "no one; start a new run", Vec::new())),
        RunStatus::Cancelled => {
            let what = view.cancelled.as_ref().map(|cancelled| format!("it was cancelled {}", cancelled.words()));
            let since = view.cancelled.as_ref().map_or(changed_at, |cancelled| cancelled.at);
            let what = what.unwrap_or_else(|| "it was cancelled".to_owned());
            reasons.push(Reason::new(what, since, "no one; start a new run", Vec::new()));
        }
        RunStatus::Waiting | RunStatus::Unknown => {}
    }
    Why { run: run.clone(), status: view.status, reasons }
}

fn aborted(view: &RunView) -> String {
    view.aborted.as_ref().map_or_else(|| "it was aborted".to_owned(), Aborted::why)
}

fn running(view: &RunView, driver: &DriverView, since: Timestamp) -> Reason {
    let what = match named(view, StepStatus::Running) {
        Some(busy) => format!("it is running {busy}"),
        None => "it is running".to_owned(),
    };
    let who = format!("process {} on {}, which has been driving it since {}", driver.pid, driver.host, driver.since);
    Reason::new(what, since, who, vec![format!("lockgate cancel {}", view.run)])
}

/// The names of the tasks and gates with this status.
fn named(view: &RunView, status: StepStatus) -> Option<String> {
    let names: Vec<&str> =
        view.tasks.iter().chain(&view.gates).filter(|step| step.status == status).map(|step| step.id.as_str()).collect();
    match names.as_slice() {
        [] => None,
        names if names.len() > MOST_NAMED => {
            Some(format!("{} and {} more", names[..MOST_NAMED].join(", "), names.len() - MOST_NAMED))
        }
        names => Some(names.join(", ")),
    }
}

/// The failed steps of the current phase, with their addresses.
fn failed(view: &RunView) -> impl Iterator<Item = (String, &StepView)> {
    let phase = view.current_phase.as_deref().unwrap_or_default();
    let steps = view.tasks.iter().chain(&view.gates).filter(|step| step.error.is_some());
    steps.map(move |step| (format!("{phase}/{}", step.id), step))
}

/// The reason for a hold, which waits for an answer or whose answer has not taken effect yet.
fn question(hold: &HoldView, view: &RunView, now: Timestamp) -> Reason {
    let place = hold.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let name = format!("hold {}@{}{place}", hold.id, hold.revision);
    let process = view.driver.as_ref().map(|driver| format!("process {} on {}", driver.pid, driver.host));
    let failures = failed(view).filter(|(address, _)| hold.tasks.contains(address)).map(|(_, step)| step.clone()).collect();
    let reason = match (hold.answered(), process) {
        (Some(answered), Some(process)) => {
            let what = format!("{name} is {answered}, and the run is continuing");
            Reason::new(what, hold.since, format!("{process}, which drives it"), Vec::new())
        }
        (Some(answered), None) => {
            let what = format!("{name} is {answered}, but no process drives the run, so it has not continued yet");
            Reason::new(what, hold.since, "anyone who resumes it", vec![format!("lockgate resume {}", view.run)])
        }
        (None, process) => {
            let also = process.as_ref().map(|process| format!("; {process} then continues the run")).unwrap_or_default();
            let asks = match &hold.text {
                Some(text) => format!("\n\n{text}"),
                None => format!(" {}", hold.prompt),
            };
            let commands = hold.next_commands(&view.run, process.is_none() && !view.detached, now);
            if hold.is_overdue(now) {
                let what = format!("{name} no longer accepts answers, because its deadline has passed:{asks}");
                let who = process
                    .map_or_else(|| "the next command that fires the deadline".to_owned(), |by| format!("{by}, which drives it"));
                Reason::new(what, hold.since, who, commands)
            } else {
                let what = format!("it waits for an answer to {name}:{asks}");
                let who = format!("a person{}{also}", can_do(&hold.kind));
                Reason::new(what, hold.since, who, commands)
            }
        }
    };
    let since = hold.answer.as_ref().map_or(reason.since, |answer| answer.at);
    Reason { since, hold: Some(hold.clone()), failures, ..reason }
}

/// The possible decisions about a hold whose options do not explain themselves.
fn can_do(kind: &OpenEnum<HoldKind>) -> &'static str {
    match kind.known() {
        Some(HoldKind::Gaps) => ", who repeats the phase with the list of gaps, waives the gaps, or aborts the run",
        Some(HoldKind::Budget) => ", who extends the budget, skips the tasks, or aborts the run",
        Some(
            HoldKind::Checkpoint
            | HoldKind::Interrupted
            | HoldKind::Failed
            | HoldKind::Verify
            | HoldKind::Decision
            | HoldKind::Action
            | HoldKind::Authentication
            | HoldKind::Handover
            | HoldKind::Escalation
            | HoldKind::Conflict,
        )
        | None => "",
    }
}
