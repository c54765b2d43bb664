//! The argument that names a run.

use crate::complete;
use clap_complete::ArgValueCompleter;
use lockgate::select::NEWEST;

/// A run that a command reads or continues.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgument {
    /// Run: an id or its start, a workflow or feature, or @ for the newest, unfinished runs first [default: @]
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    run: Option<String>,
}

impl RunArgument {
    pub(crate) fn name(&self) -> &str {
        self.run.as_deref().unwrap_or(NEWEST)
    }
}

/// A run that a command ends, removes or permanently changes, so it must be named.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NamedRun {
    /// Run: an id or its start, a workflow or feature, or @ for the newest unfinished one
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: String,
}
