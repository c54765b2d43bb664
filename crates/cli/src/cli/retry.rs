//! `lockgate retry`: another attempt of a task or gate that failed or was cut off.

use super::step::{self, StepArguments};
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use lockgate::step::StepChange;
use std::path::Path;

/// Asks for another attempt of a task or gate that failed or was cut off
#[derive(Debug, clap::Args)]
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
