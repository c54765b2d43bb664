//! `lockgate db restore`: replace the database with a backup.

use super::super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::{options, settings};
use crate::print;
use lockgate::backup::{RESTORE, Restored, restore};
use lockgate::code::Code;
use lockgate::project::caller_at;
use lockgate::sanitize;
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use std::path::{Path, PathBuf};

/// Replace the database with a backup
///
/// The backup is verified first.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate db restore lockgate-backup.db",
    "lockgate db restore lockgate-backup.db --force",
]))]
pub(super) struct Arguments {
    /// Backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Move an existing database aside instead of refusing
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority() -> Authority<'static> {
        Authority::Person(Decision::about_project(RESTORE))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let (root, config) = settings(root)?;
    let caller = caller_at(&root, &config, Channel::Command);
    let restored = restore(&root, &arguments.file, arguments.force, &options(), &caller).await.map_err(|error| {
        let help = "move it aside with `--force`, or restore into another directory with `--root DIR`";
        CommandError::from(error).help_for(&[Code::DatabaseExists], help)
    })?;
    if arguments.json {
        print::json(&restored);
        return Ok(Exit::Done);
    }
    let Restored { runs, unfinished, moved_aside } = restored;
    if let Some(moved) = moved_aside {
        print::note(format_args!("the previous database is kept as {}", sanitize::line(&moved.to_string_lossy())));
    }
    print::data(&format!("restored {}, {unfinished} unfinished\n", counted(runs, "run")));
    print::say("Everything after the backup is missing: check `lockgate runs` before you resume a run.");
    Ok(Exit::Done)
}
