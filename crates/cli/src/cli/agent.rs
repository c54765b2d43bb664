//! `lockgate agent handover` and `lockgate agent continuation`: the state of a run in the blocks of the checkpoint protocol, for programs
//! that orchestrate agents.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunArgument;
use lockgate::{sanitize, select};
use std::path::Path;

/// Print protocol blocks for programs that orchestrate agents
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["lockgate agent handover d12cbewf", "lockgate agent continuation d12cbewf"]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the CHECKPOINT REACHED block of the hold that a run waits at
    #[command(after_help = examples(&["lockgate agent handover", "lockgate agent handover d12cbewf"]))]
    Handover(RunArgument),
    /// Print the block with which a fresh agent continues after the last answer
    #[command(after_help = examples(&["lockgate agent continuation", "lockgate agent continuation d12cbewf"]))]
    Continuation(RunArgument),
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let text = match arguments.command {
        Command::Handover(named) => {
            let found = select::run_or_ended(project.store(), named.name()).await?;
            project.handover(&found.row.run).await?
        }
        Command::Continuation(named) => {
            let found = select::run_or_ended(project.store(), named.name()).await?;
            project.continuation(&found.row.run).await?
        }
    };
    print::data(&sanitize::lines(&text));
    Ok(Exit::Done)
}
