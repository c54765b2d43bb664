//! `lockgate restore`: a backup becomes the database again.

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

/// Makes a backup the database of this project again, after having verified it
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Moves a database that is there already aside, instead of refusing
    #[arg(long)]
    force: bool,
    /// Prints JSON
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
        let help = "`--force` moves it aside; `--root DIR` restores into another folder";
        CommandError::from(error).help_for(&[Code::DatabaseExists], help)
    })?;
    if arguments.json {
        print::json(&restored);
        return Ok(Exit::Done);
    }
    let Restored { runs, unfinished, moved_aside } = restored;
    if let Some(moved) = moved_aside {
        print::note(format_args!("what was there is now {}", sanitize::line(&moved.to_string_lossy())));
    }
    print::data(&format!("restored {}, {unfinished} unfinished\n", counted(runs, "run")));
    print::say("What happened after the backup was made is not in it: look at `lockgate runs` before you resume anything.");
    Ok(Exit::Done)
}
