//! `lockgate pipeline export`: print a run in the format of another tool.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunArgument;
use clap::ValueEnum;
use lockgate::select;
use lockgate_runner::load::load;
use std::path::Path;

/// Print the state file of a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate pipeline export PRD-009",
    "lockgate pipeline export d12cbewf > PRD-009.json",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Format
    #[arg(long, value_name = "FORMAT", default_value = "pipeline")]
    format: ExportFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// The state file of a pipeline
    Pipeline,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), arguments.run.name()).await?;
    let state = load(project.store(), &found.row.run).await?;
    let text = match arguments.format {
        ExportFormat::Pipeline => project.export_state_file(&state).await?,
    };
    print::data(&text);
    Ok(Exit::Done)
}
