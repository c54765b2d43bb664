//! `lockgate cancel`: end a run for good.

use crate::authority::{Authority, Decision};
use crate::code::Code;
use crate::exit::Exit;
use crate::open::Project;
use crate::trouble::Trouble;
use crate::view::CancelledView;
use crate::{print, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Refusal;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::{Channel, CommandKind};
use lockgate_runner::driver::{DriveError, submit};
use lockgate_runner::load::load;
use serde::Serialize;
use std::path::Path;

/// Ends a run for good; a process that drives it ends what is under way
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What became of the wish to cancel a run.
#[derive(Serialize)]
struct Recorded<'r> {
    run: &'r RunId,
    /// Whether it is new; false when it was cancelled before.
    recorded: bool,
    cancelled: Option<CancelledView>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        Authority::Person(Decision::about_run("cancel a run", &self.run))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = crate::open::open(root)?;
    let found = select::run(project.store(), &arguments.run).await?;
    let (run, caller) = (&found.row.run, project.caller(Channel::Command));
    let body = CommandKind::Cancel { reason: arguments.reason };
    let recorded = match submit(&project.world, run, caller, body).await {
        Ok(_) => true,
        Err(DriveError::Refused(Refusal::Ended { status: Status::Cancelled })) => false,
        Err(DriveError::Refused(Refusal::Ended { status })) => {
            end_leftovers(&project, run).await?;
            return Err(Trouble::new(Code::RunEnded, format!("run {run} is {status} already, so it cannot be cancelled"))
                .help(format!("see what it did with `lockgate log {run}`")));
        }
        Err(error) => return Err(error.into()),
    };
    end_leftovers(&project, run).await?;
    print::say(format_args!("run {run} {}", if recorded { "is cancelled" } else { "was cancelled before" }));
    if arguments.json {
        let state = load(project.store(), run).await?;
        print::json(&Recorded { run, recorded, cancelled: CancelledView::of(project.store(), &state).await? });
    }
    Ok(Exit::Done)
}

/// Ends what a driver that was killed left running; a live one ends its own.
async fn end_leftovers(project: &Project, run: &RunId) -> Result<(), Trouble> {
    if project.store().driver_of(run).await?.is_some() {
        return Ok(());
    }
    let state = load(project.store(), run).await.map_err(DriveError::from)?;
    let ended = project.world.perform.end_orphans(&state).await;
    ended.map_err(|detail| DriveError::Orphans { run: run.clone(), detail }.into())
}
