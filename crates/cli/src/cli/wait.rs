//! `lockgate wait`: wait until a run has ended or needs a person.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::run_argument::RunArgument;
use crate::{drive, print};
use lockgate::{human_time, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::time::parse_duration;
use lockgate_runner::load::load;
use std::path::Path;
use std::time::Duration;

/// Wait until a run ends or needs a person
///
/// It exits with the code that `lockgate resume` would exit with.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate wait",
    "lockgate wait login --timeout 30m",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Wait no longer than this, for example 30s or 5m, and exit with 3
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Print the final state as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), arguments.run.name()).await?;
    let run = &found.row.run;
    let exit = match arguments.timeout {
        None => until_stopped(&project, run).await?,
        Some(timeout) => match tokio::time::timeout(timeout, until_stopped(&project, run)).await {
            Ok(exit) => exit?,
            Err(_) => {
                print::say(format_args!("run {run} still runs after {}", human_time::duration(timeout)));
                Exit::Waiting
            }
        },
    };
    if arguments.json {
        print::json(&super::status::view_of(&project, run).await?);
    }
    Ok(exit)
}

async fn until_stopped(project: &Project, run: &RunId) -> Result<Exit, CommandError> {
    loop {
        let now = project.wait(run).await?;
        let state = load(project.store(), run).await?;
        match state.status() {
            Status::Complete | Status::Failed | Status::Aborted | Status::Cancelled => {
                return drive::ended(project, &state).await;
            }
            Status::Waiting => return Ok(drive::waiting(&state)),
            Status::Running if now.is_interrupted() => {
                drive::print_stopped(&state, None);
                return Ok(Exit::Waiting);
            }
            // Another process has resumed it in the meantime.
            Status::Running => {}
        }
    }
}
