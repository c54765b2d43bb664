//! `lockgate cancel`: end a run for good.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::NamedRun;
use lockgate::select;
use lockgate::view::CancelledView;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Channel;
use lockgate_runner::load::load;
use serde::Serialize;
use std::path::Path;

/// Cancel a run
///
/// The process that drives it ends the running tasks. A cancelled run cannot be resumed.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate cancel d12cbewf",
    "lockgate cancel login --reason \"replaced by the new design\"",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: NamedRun,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of cancelling a run.
#[derive(Serialize)]
struct Recorded<'r> {
    run: &'r RunId,
    /// False if the run was cancelled before.
    recorded: bool,
    cancelled: Option<CancelledView>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        Authority::Person(Decision::about_run("cancel a run", &self.run.run))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let found = select::run(project.store(), &arguments.run.run).await?;
    let run = &found.row.run;
    let recorded = project.cancel(run, arguments.reason, project.caller(Channel::Command)).await?;
    print::say(format_args!("run {run} {}", if recorded { "is cancelled" } else { "was cancelled before" }));
    if arguments.json {
        let state = load(project.store(), run).await?;
        print::json(&Recorded { run, recorded, cancelled: CancelledView::of(project.store(), &state).await? });
    }
    Ok(Exit::Done)
}
