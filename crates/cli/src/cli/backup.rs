//! `lockgate backup`: a copy of the database while it is in use.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate::view::lockgate;
use lockgate_engine::words::counted;
use lockgate_runner::files::format_size;
use lockgate_store::Page;
use serde::Serialize;
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

/// What was written, for programs.
#[derive(Serialize)]
struct Written<'f> {
    file: &'f Path,
    runs: usize,
    bytes: u64,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let file = &arguments.file;
    let shown = sanitize::line(&file.to_string_lossy()).into_owned();
    if file.symlink_metadata().is_ok() {
        return Err(CommandError::new(
            Code::FileExists,
            format!("{} is there already, and nothing is overwritten", file.display()),
        )
        .help("choose another name, or move it away"));
    }
    let project = crate::open::open_read_only(root)?;
    project.store().back_up(file.clone()).await?;
    let bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    let runs = project.store().runs(Page::ALL).await?.len();
    if arguments.json {
        print::json(&Written { file, runs, bytes });
        return Ok(Exit::Done);
    }
    let runs = counted(runs, "run");
    print::data(&format!("{shown}: {runs}, {}\n", format_size(bytes)));
    print::say(format_args!("`{}` brings it back, here or in another folder.", lockgate(["restore", &shown])));
    Ok(Exit::Done)
}
