//! `lockgate conflict`: settle disagreements between the agents of a run by votes.

mod list;
mod open;
mod show;
mod vote;

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use std::path::Path;

/// Settle disagreements between the agents of a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate conflict open 'Which database?' --with reviewer",
    "lockgate conflict vote CONF-1789-0badcafe --choice sqlite --confidence 90",
    "lockgate conflict list",
]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Open(open::Arguments),
    Vote(vote::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    match arguments.command {
        Command::Open(arguments) => open::run(root, arguments).await,
        Command::Vote(arguments) => vote::run(root, arguments).await,
        Command::List(arguments) => list::run(root, arguments).await,
        Command::Show(arguments) => show::run(root, arguments).await,
    }
}
