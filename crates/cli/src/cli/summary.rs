//! `lockgate summary`: what a run did, decided and produced.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use lockgate::run_status::with_driver;
use lockgate::select;
use lockgate::summary::{self, Summary, markdown};
use lockgate_engine::id::RunId;
use std::path::Path;

/// Tells what a run did, decided and produced, what it left out, and how long it took and waited, as Markdown
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let summary = summary_of(&project, &found.row.run).await?;
    if arguments.json {
        print::json(&summary);
    } else {
        print::data(&markdown(&summary));
    }
    Ok(Exit::Done)
}

async fn summary_of(project: &Project, run: &RunId) -> Result<Summary, CommandError> {
    let (state, driver) = with_driver(project.store(), run).await?;
    // Whoever drove it may have ended before they were written.
    lockgate::plan_summaries::write_summaries(&project.runtime, &project.root, &state).await;
    let summary = summary::of(project.store(), &state, driver.is_some(), project.runtime.clock.now()).await?;
    let worktrees = lockgate::worktrees::of_run(project, &state).await.unwrap_or_else(|why| {
        print::warn(why.message());
        Vec::new()
    });
    Ok(Summary { worktrees, ..summary })
}
