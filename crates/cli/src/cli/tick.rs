//! `lockgate tick`: fire the deadlines and reminders that are due.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::background;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::deadlines::FiredView;
use lockgate::sanitize;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Channel;
use lockgate_runner::driver::{Fired, HoldTimer};
use std::collections::BTreeSet;
use std::path::Path;

/// Apply the deadlines and reminders that are due
///
/// Workers and driven runs do this by themselves. Use it with a system timer, such as cron, if none runs.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate tick",
    "lockgate tick --json",
]))]
pub(super) struct Arguments {
    /// Print the applied deadlines and reminders as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority() -> Authority<'static> {
        // The clock of this process decides which timers are due, and a task could start it with a wrong clock.
        Authority::OutsideTasks(Decision::about_project("fire deadlines"))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let fired = project.fire_due(&project.caller(Channel::Command)).await?;
    for fired in &fired {
        let what = match fired.kind {
            HoldTimer::Deadline => "its deadline passed without an answer",
            HoldTimer::Remind => "reminder: it waits for an answer",
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
            print::say(format_args!("  continue: lockgate resume {run}"));
        }
    }
    if arguments.json {
        print::json(&fired.iter().map(FiredView::of).collect::<Vec<_>>());
    }
    Ok(Exit::Done)
}
