//! `lockgate skip`: let a task count as done, or waive a gate.

use super::step::{self, StepArguments};
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use lockgate::step::StepChange;
use std::path::Path;

/// Lets a task count as done, or a gate as passed, and keeps the reason
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    step: StepArguments,
    /// Why; it is kept in the history
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
