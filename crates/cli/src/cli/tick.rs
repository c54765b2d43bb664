//! `lockgate tick`: fire the deadlines and reminders that are due.

use crate::authority::{Authority, Decision};
use crate::background;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::sanitize;
use lockgate_engine::run::Status;
use lockgate_runner::driver::HoldTimer;
use lockgate_runner::driver::{Fired, fire_due};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Fires the deadlines and reminders that are due, whoever drives the runs; for a timer of the system, such as cron
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Prints what was fired as JSON
    #[arg(long)]
    json: bool,
}

/// A deadline or reminder that was fired.
#[derive(Serialize)]
struct FiredView {
    run: String,
    hold: String,
    kind: HoldTimer,
    /// Where the run stands now.
    status: Status,
}

impl FiredView {
    fn of(fired: &Fired) -> Self {
        let status = fired.now.status();
        Self { run: fired.run.to_string(), hold: fired.hold.clone(), kind: fired.kind, status }
    }
}

impl Arguments {
    pub(super) fn authority() -> Authority<'static> {
        // What is due is found by this process's clock, and a task can give what it starts another one.
        Authority::OutsideTasks(Decision::about_project("fire deadlines"))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let fired = fire_due(&project.runtime, |run| project.root.run_dir(run).is_dir()).await?;
    for fired in &fired {
        let what = match fired.kind {
            HoldTimer::Deadline => "nobody answered it in time",
            HoldTimer::Remind => "it still waits",
        };
        let hold = fired.now.holds.get(fired.hold.as_str()).map(|hold| lockgate::phrases::first_line(&hold.prompt));
        let hold = hold.map(|prompt| format!(": {}", sanitize::line(&prompt))).unwrap_or_default();
        print::say(format_args!("run {}, hold {}: {what}{hold}", fired.run, fired.hold));
    }
    if fired.is_empty() && !arguments.json {
        print::say("nothing is due");
    }
    let continue_run = |fired: &&Fired| fired.now.status() == Status::Running;
    let runs: BTreeSet<_> = fired.iter().filter(continue_run).map(|fired| (&fired.run, fired.now.detached)).collect();
    for (run, detached) in runs {
        if detached {
            let _ = background::ensure_driven(&project, run).await?;
        } else if project.store().driver_of(run).await?.is_none() {
            print::say(format_args!("  go on: lockgate resume {run}"));
        }
    }
    if arguments.json {
        print::json(&fired.iter().map(FiredView::of).collect::<Vec<_>>());
    }
    Ok(Exit::Done)
}
