//! `lockgate pipeline`: work with pipelines whose state file is shared with other tools.

mod check;
mod export;
mod import;
mod note;
mod review;

use super::help::examples;
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use std::path::Path;

/// Work with pipeline state files
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate pipeline check checkpoints/PRD-009.json",
    "lockgate pipeline import checkpoints/PRD-009.json --spec specs/EXEC-009.md",
    "lockgate pipeline export PRD-009",
]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Arguments),
    Import(import::Arguments),
    Export(export::Arguments),
    Review(review::Arguments),
    Note(note::Arguments),
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match &self.command {
            Command::Check(_) | Command::Export(_) | Command::Note(_) => Authority::Anyone,
            Command::Import(arguments) => arguments.authority(),
            Command::Review(arguments) => arguments.authority(),
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    match arguments.command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Import(arguments) => import::run(root, arguments).await,
        Command::Export(arguments) => export::run(root, arguments).await,
        Command::Review(arguments) => review::run(root, arguments).await,
        Command::Note(arguments) => note::run(root, arguments).await,
    }
}
