//! `lockgate summary`: summarize the tasks, decisions and outputs of a run.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunArgument;
use lockgate::select;
use lockgate::summary::markdown;
use std::path::Path;

/// Summarize a run as Markdown
///
/// The summary lists what the run did, decided, produced and skipped, and how long it worked and waited.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate summary",
    "lockgate summary d12cbewf > SUMMARY.md",
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
    let summary = project.summary(&found.row.run).await?;
    if arguments.json {
        print::json(&summary);
    } else {
        print::data(&markdown(&summary));
    }
    Ok(Exit::Done)
}
