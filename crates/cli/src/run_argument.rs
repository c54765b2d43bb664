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

    /// The name, if one was given.
    pub(crate) fn named(&self) -> Option<&str> {
        self.run.as_deref()
    }
}

/// A run as an option, for commands whose argument names something in a run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOption {
    /// Run: an id or its start, a workflow or feature [default: the run of this task, or the newest]
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    run: Option<String>,
}

impl RunOption {
    pub(crate) fn named(&self) -> Option<&str> {
        self.run.as_deref()
    }
}

/// A run that a command ends, removes or permanently changes, so it must be named.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NamedRun {
    /// Run: an id or its start, a workflow or feature, or @ for the newest unfinished one
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: String,
}
