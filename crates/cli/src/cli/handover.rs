//! `lockgate handover` and `lockgate continuation`: where a run stands, in the blocks of the checkpoint protocol.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::{sanitize, select};
use std::path::Path;

/// Prints the CHECKPOINT REACHED block of the question that a run waits at, for whoever orchestrates it
#[derive(Debug, clap::Args)]
pub(super) struct HandoverArguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
}

/// Prints the block with which a fresh agent goes on after the last answer: what is done, where to begin, what was said
#[derive(Debug, clap::Args)]
pub(super) struct ContinuationArguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
}

pub(super) async fn show_handover(root: Option<&Path>, arguments: HandoverArguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    print::data(&sanitize::lines(&project.handover(&found.row.run).await?));
    Ok(Exit::Done)
}

pub(super) async fn show_continuation(root: Option<&Path>, arguments: ContinuationArguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    print::data(&sanitize::lines(&project.continuation(&found.row.run).await?));
    Ok(Exit::Done)
}
