//! `lockgate export`: a run in the form of another tool.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use clap::ValueEnum;
use lockgate::select;
use lockgate_runner::load::load;
use std::path::Path;

/// Prints a run in the form of another tool
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or its PRD
    run: String,
    /// The form
    #[arg(long, value_name = "FORM", default_value = "pipeline")]
    format: ExportFormat,
}

/// A form that other tools read.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// The state file of a pipeline
    Pipeline,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let state = load(project.store(), &found.row.run).await?;
    let text = match arguments.format {
        ExportFormat::Pipeline => project.export_state_file(&state).await?,
    };
    print::data(&text);
    Ok(Exit::Done)
}
