//! `lockgate status`: show the state of a run.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::run_argument::RunArgument;
use crate::{pipeline, print};
use lockgate::run_status::with_driver;
use lockgate::select;
use lockgate::view::RunView;
use lockgate_engine::id::RunId;
use std::path::Path;

/// Show the state of a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate status",
    "lockgate status login",
    "lockgate status @ --json",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), arguments.run.name()).await?;
    let view = view_of(&project, &found.row.run).await?;
    if arguments.json {
        print::json(&view);
    } else {
        print::data(&crate::run_text::run_text(&view, project.now()));
    }
    Ok(Exit::Done)
}

pub(super) async fn view_of(project: &Project, run: &RunId) -> Result<RunView, CommandError> {
    refresh(project, run).await?;
    Ok(project.view(run).await?)
}

/// Writes the state file of a pipeline if the process that last drove it could not.
pub(super) async fn refresh(project: &Project, run: &RunId) -> Result<(), CommandError> {
    let (state, driver) = with_driver(project.store(), run).await?;
    pipeline::print_put_aside(&project.write_state_file(&state, driver.is_some()).await);
    Ok(())
}
