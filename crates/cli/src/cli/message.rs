//! `lockgate message`: send, list and acknowledge messages between the agents of a run.

mod ack;
mod list;
mod send;
mod show;

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use std::path::Path;

/// Send and read messages between the agents of a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate message send --to reviewer --summary 'Please check the schema'",
    "lockgate message list",
]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Send(send::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
    Ack(ack::Arguments),
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    match arguments.command {
        Command::Send(arguments) => send::run(root, arguments).await,
        Command::List(arguments) => list::run(root, arguments).await,
        Command::Show(arguments) => show::run(root, arguments).await,
        Command::Ack(arguments) => ack::run(root, arguments).await,
    }
}
