//! `lockgate wait`: wait until a run has ended or needs a person.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::{drive, print};
use lockgate::run_status::{Changes, run_status};
use lockgate::{human_time, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::time::parse_duration;
use lockgate_runner::load::load;
use std::path::Path;
use std::time::Duration;

/// Waits until a run has ended or needs a person, whoever drives it, and ends as `resume` would
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Waits no longer than this, for example 30s or 5m, and then ends with 3
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Prints where the run stands as JSON at the end
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
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
    let mut changes = Changes::of(project.store(), run);
    loop {
        let now = run_status(project.store(), run).await?;
        if now.has_ended() || now.is_waiting() || now.is_interrupted() {
            let state = load(project.store(), run).await?;
            match state.status() {
                Status::Complete | Status::Failed | Status::Aborted | Status::Cancelled => {
                    return drive::ended(project.store(), &state).await;
                }
                Status::Waiting => return Ok(drive::waiting(&state)),
                Status::Running if now.is_interrupted() => {
                    if !project.is_abandoned(run).await? {
                        continue;
                    }
                    drive::print_stopped(&state);
                    return Ok(Exit::Waiting);
                }
                // Somebody set it going again between the two looks.
                Status::Running => {}
            }
        }
        changes.next().await?;
    }
}
