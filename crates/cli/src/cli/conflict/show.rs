//! `lockgate conflict show`: show a conflict with its positions.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate_engine::id::ConflictId;
use std::path::Path;

/// Show a conflict as JSON
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate conflict show CONF-1789-0badcafe",
    "lockgate conflict show CONF-1789-0badcafe --run d12cbewf",
]))]
pub(super) struct Arguments {
    /// Conflict: its id
    #[arg(value_name = "CONFLICT")]
    conflict: String,
    #[command(flatten)]
    run: RunOption,
    /// Print JSON, which is the default
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    print::json(&project.conflict(&run, &ConflictId::new(arguments.conflict)).await?);
    Ok(Exit::Done)
}
