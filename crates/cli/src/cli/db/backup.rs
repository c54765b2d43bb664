//! `lockgate db backup`: copy the database while it is in use.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::sanitize;
use lockgate::view::lockgate;
use lockgate_engine::plural::counted;
use lockgate_runner::files::format_size;
use std::path::{Path, PathBuf};

/// Copy the database to a file
///
/// Runs can continue during the backup. Logs and outputs are not part of the backup.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate db backup lockgate-backup.db",
    "lockgate db backup /mnt/backups/today.db --json",
]))]
pub(super) struct Arguments {
    /// File to create
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let backup = project.back_up(&arguments.file).await?;
    if arguments.json {
        print::json(&backup);
        return Ok(Exit::Done);
    }
    let shown = sanitize::line(&arguments.file.to_string_lossy()).into_owned();
    print::data(&format!("{shown}: {}, {}\n", counted(backup.runs, "run"), format_size(backup.bytes)));
    print::say(format_args!("Restore it with `{}`, here or in another directory.", lockgate(["db", "restore", &shown])));
    Ok(Exit::Done)
}
