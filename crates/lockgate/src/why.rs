//! What a run waits for, since when, who can move it, and with which command.
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

/// How many failed tasks are told with the command that skips them.
const MOST_SKIPS: usize = 5;

/// How many tasks that run are named.
const MOST_NAMED: usize = 8;

/// Why a run is where it is.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    pub run: String,
    pub status: RunStatus,
    pub reasons: Vec<Reason>,
}

/// Something that keeps a run from continuing, or moves it.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    pub what: String,
    pub since: Timestamp,
    pub who: String,
    pub commands: Vec<String>,
    /// The question, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldView>,
    /// What failed, with its last words and its log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<StepView>,
}

impl Reason {
    fn new(what: impl Into<String>, since: Timestamp, who: impl Into<String>, commands: Vec<String>) -> Self {
        Self { what: what.into(), since, who: who.into(), commands, hold: None, failures: Vec::new() }
    }
}

impl Project {
    /// What a run waits for, since when, who can move it, and with which command.
    pub async fn why(&self, run: &RunId) -> Result<Why, Error> {
        let found = select::run_or_ended(self.store(), run.as_str()).await?;
        Ok(explain(&self.view(run).await?, found.row.changed_at, self.now()))
    }
}

/// Why a run is where it is; `changed_at` is when its last event was committed.
pub fn explain(view: &RunView, changed_at: Timestamp, now: Timestamp) -> Why {
    let run = &view.run;
    let mut reasons: Vec<Reason> = view.holds.iter().map(|hold| question(hold, view, now)).collect();
    let fixed = view.pipeline.as_ref().filter(|pipeline| pipeline.status == Lifecycle::Failed).map(|_| "--fixed");
    let resume = vec![resume_command(run, fixed)];
    let drive = vec!["lockgate worker".to_owned()];
    let reason = |what: &str, who: &str, commands: Vec<String>| Reason::new(what, changed_at, who, commands);
    let unreviewed = view.pipeline.as_ref().is_some_and(|pipeline| pipeline.waits_for_review);
    if unreviewed {
        let what = "nothing begins before a review lets it";
        let commands = vec![format!("lockgate pipeline review {run} --verdict ship --p0 0 --p1 0")];
        reasons.push(reason(what, "whoever reviews it; a person may override what was found", commands));
    }
    match view.status {
        RunStatus::Failed if unreviewed => {}
        RunStatus::Running => reasons.extend(view.driver.as_ref().map(|driver| under_way(view, driver, changed_at))),
        // An answer that nobody carries out says all there is to say.
        RunStatus::Interrupted if view.holds.iter().any(|hold| hold.answer.is_some()) => {}
        RunStatus::Interrupted if view.detached => {
            let what = "it was left to the background, and nothing drives there now; its state is saved";
            reasons.push(reason(
                what,
                "whoever drives in the background, or resumes it",
                drive.into_iter().chain(resume).collect(),
            ));
        }
        RunStatus::Interrupted => {
            let cut_off = named(view, StepStatus::Interrupted).map(|named| format!(" during {named}")).unwrap_or_default();
            let what = format!("it was interrupted{cut_off}: nothing drives it, and its state is saved");
            reasons.push(reason(&what, "whoever resumes it", resume));
        }
        RunStatus::Failed => {
            let error = view.error.as_deref().unwrap_or("something failed");
            let who = "whoever mends it and resumes it; only what failed is tried again, or counts as done when it is skipped";
            let skip = failed(view).map(|(address, _)| format!("{} --reason \"…\"", lockgate(["skip", run, &address])));
            let commands = resume.into_iter().chain(skip.take(MOST_SKIPS)).collect();
            let failures = failed(view).map(|(_, step)| step.clone()).collect();
            reasons.push(Reason { failures, ..reason(error, who, commands) });
        }
        RunStatus::Complete => {
            reasons.push(reason("it is complete: all phases are done", "nobody; there is nothing left to do", Vec::new()))
        }
        RunStatus::Waiting if view.holds.is_empty() && !unreviewed => {
            let what = "it was imported, and nothing has started since";
            let how = view.pipeline.as_ref().map_or("", |pipeline| pipeline.resume_flag());
            reasons.push(reason(what, "whoever resumes it", vec![format!("lockgate resume {run}{how}")]));
        }
        RunStatus::Aborted | RunStatus::Cancelled if view.pipeline.is_some() => {
            let ended = if view.status == RunStatus::Aborted { aborted(view) } else { "a person cancelled it".to_owned() };
            let what = format!("{ended}; its file says that it is paused");
            reasons.push(reason(&what, "a person who resumes it", vec![format!("lockgate resume {run}")]));
        }
        RunStatus::Aborted => reasons.push(reason(&aborted(view), "nobody; begin a new run", Vec::new())),
        RunStatus::Cancelled => {
            let what = view.cancelled.as_ref().map(|cancelled| format!("it was cancelled {}", cancelled.words()));
            let since = view.cancelled.as_ref().map_or(changed_at, |cancelled| cancelled.at);
            let what = what.unwrap_or_else(|| "somebody cancelled it".to_owned());
            reasons.push(Reason::new(what, since, "nobody; begin a new run", Vec::new()));
        }
        RunStatus::Waiting | RunStatus::Unknown => {}
    }
    Why { run: run.clone(), status: view.status, reasons }
}

fn aborted(view: &RunView) -> String {
    view.aborted.as_ref().map_or_else(|| "it was aborted".to_owned(), Aborted::why)
}

fn under_way(view: &RunView, driver: &DriverView, since: Timestamp) -> Reason {
    let what = match named(view, StepStatus::Running) {
        Some(busy) => format!("it is running {busy}"),
        None => "it is running".to_owned(),
    };
    let who = format!("process {} on {}, which drives it since {}", driver.pid, driver.host, driver.since);
    Reason::new(what, since, who, vec![format!("lockgate cancel {}", view.run)])
}

/// The tasks and gates that stand so, by name.
fn named(view: &RunView, status: StepStatus) -> Option<String> {
    let so: Vec<&str> =
        view.tasks.iter().chain(&view.gates).filter(|step| step.status == status).map(|step| step.id.as_str()).collect();
    match so.as_slice() {
        [] => None,
        so if so.len() > MOST_NAMED => Some(format!("{} and {} more", so[..MOST_NAMED].join(", "), so.len() - MOST_NAMED)),
        so => Some(so.join(", ")),
    }
}

/// What failed in the phase under way, with its address.
fn failed(view: &RunView) -> impl Iterator<Item = (String, &StepView)> {
    let phase = view.current_phase.as_deref().unwrap_or_default();
    let steps = view.tasks.iter().chain(&view.gates).filter(|step| step.error.is_some());
    steps.map(move |step| (format!("{phase}/{}", step.id), step))
}

/// A hold: it waits for an answer, or has one that has not taken effect yet.
fn question(hold: &HoldView, view: &RunView, now: Timestamp) -> Reason {
    let place = hold.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let name = format!("hold {}@{}{place}", hold.id, hold.revision);
    let process = view.driver.as_ref().map(|driver| format!("process {} on {}", driver.pid, driver.host));
    let failures = failed(view).filter(|(address, _)| hold.tasks.contains(address)).map(|(_, step)| step.clone()).collect();
    let reason = match (hold.answered(), process) {
        (Some(answered), Some(process)) => {
            let what = format!("{name} is {answered}; what follows from it has begun");
            Reason::new(what, hold.since, format!("{process}, which drives it"), Vec::new())
        }
        (Some(answered), None) => {
            let what = format!("{name} is {answered}; nothing drives the run, so nothing has followed from it yet");
            Reason::new(what, hold.since, "whoever resumes it", vec![format!("lockgate resume {}", view.run)])
        }
        (None, process) => {
            let also = process.as_ref().map(|process| format!("; {process} goes on once it is answered")).unwrap_or_default();
            let asks = match &hold.text {
                Some(text) => format!("\n\n{text}"),
                None => format!(" {}", hold.prompt),
            };
            let commands = hold.next_commands(&view.run, process.is_none() && !view.detached, now);
            if hold.is_overdue(now) {
                let what = format!("{name} no longer takes answers because its deadline has passed:{asks}");
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

/// What a person can do about a question whose answers do not say it by themselves.
fn can_do(kind: &OpenEnum<HoldKind>) -> &'static str {
    match kind.known() {
        Some(HoldKind::Gaps) => {
            ", who lets the phase run again with what is missing at hand, lets the gaps pass, or aborts the run"
        }
        Some(HoldKind::Budget) => ", who allows as much again, lets the tasks count as done without it, or aborts the run",
        Some(
            HoldKind::Checkpoint
            | HoldKind::Interrupted
            | HoldKind::Failed
            | HoldKind::Verify
            | HoldKind::Decision
            | HoldKind::Action
            | HoldKind::Authentication
            | HoldKind::Handover,
        )
        | None => "",
    }
}
