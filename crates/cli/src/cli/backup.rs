//! `lockgate backup`: a copy of the database while it is in use.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::sanitize;
use lockgate::view::lockgate;
use lockgate_engine::plural::counted;
use lockgate_runner::files::format_size;
use std::path::{Path, PathBuf};

/// Copies the database into a file while runs go on; logs and outputs stay where they are
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The file to write, which must not be there yet
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Prints JSON
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
    print::say(format_args!("`{}` brings it back, here or in another folder.", lockgate(["restore", &shown])));
    Ok(Exit::Done)
}
