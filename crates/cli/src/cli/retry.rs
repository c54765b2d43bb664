//! `lockgate retry`: retry a task or gate that failed or was interrupted.

use super::help::examples;
use super::step::{self, StepArguments};
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use lockgate::step::StepChange;
use std::path::Path;

/// Retry a task or gate that failed or was interrupted
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate retry build/compile",
    "lockgate retry d12cbewf build/compile",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    step: StepArguments,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        self.step.authority("retry a task")
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    step::run(root, arguments.step, StepChange::Retry).await
}
