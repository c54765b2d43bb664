//! `lockgate handover` and `lockgate continuation`: where a run stands, in the blocks of the checkpoint protocol.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::code::Code;
use lockgate::handover::{Done, continuation, handover};
use lockgate::{sanitize, select};
use lockgate_formats::handover::render;
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
    let (done, run) = Done::of(&project, &found.row.run).await?;
    let block = handover(&done, &run, project.runtime.clock.now()).ok_or_else(|| {
        CommandError::new(Code::HoldNotFound, format!("run {} waits for nobody", run.id))
            .help(format!("`lockgate why {}` says where it stands", run.id))
    })?;
    print::data(&sanitize::lines(&render(&block)));
    Ok(Exit::Done)
}

pub(super) async fn show_continuation(root: Option<&Path>, arguments: ContinuationArguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let (done, run) = Done::of(&project, &found.row.run).await?;
    let block = continuation(&done, &run).ok_or_else(|| {
        CommandError::new(Code::HoldNotFound, format!("nobody has answered a checkpoint of run {} yet", run.id))
            .help(format!("`lockgate handover {}` shows the one that it waits at", run.id))
    })?;
    print::data(&sanitize::lines(&block.render()));
    Ok(Exit::Done)
}
