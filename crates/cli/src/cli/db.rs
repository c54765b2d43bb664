//! `lockgate db`: maintain the database.

mod backup;
mod gc;
mod restore;
mod verify;

use super::help::examples;
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use std::path::Path;

/// Verify, back up, restore and clean up the database
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate db verify",
    "lockgate db backup lockgate-backup.db",
    "lockgate db gc --dry-run",
]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Verify(verify::Arguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    Gc(gc::Arguments),
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match &self.command {
            Command::Verify(_) | Command::Backup(_) => Authority::Anyone,
            Command::Restore(_) => restore::Arguments::authority(),
            Command::Gc(arguments) => arguments.authority(),
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    match arguments.command {
        Command::Verify(arguments) => verify::run(root, arguments).await,
        Command::Backup(arguments) => backup::run(root, arguments).await,
        Command::Restore(arguments) => restore::run(root, arguments).await,
        Command::Gc(arguments) => gc::run(root, arguments).await,
    }
}
