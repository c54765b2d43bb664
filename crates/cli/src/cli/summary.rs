//! `lockgate summary`: what a run did, decided and produced.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::select;
use lockgate::summary::markdown;
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
    let summary = project.summary(&found.row.run).await?;
    if arguments.json {
        print::json(&summary);
    } else {
        print::data(&markdown(&summary));
    }
    Ok(Exit::Done)
}
