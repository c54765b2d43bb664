//! `lockgate skip`: mark a task as done, or waive a gate.

use super::help::examples;
use super::step::{self, StepArguments};
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use lockgate::step::StepChange;
use std::path::Path;

/// Skip a task, or waive a gate
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate skip build/lint --reason \"the linter is broken\"",
    "lockgate skip d12cbewf tests --reason \"known failure, see issue 12\"",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    step: StepArguments,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        self.step.authority("skip a task")
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    step::run(root, arguments.step, StepChange::Skip(arguments.reason)).await
}
