//! `lockgate message ack`: acknowledge a message, so that it is not delivered again.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate_engine::id::MessageId;
use lockgate_engine::run::command::Channel;
use serde_json::json;
use std::path::Path;

/// Acknowledge a message, so that prompts no longer include it
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate message ack MSG-1789-0badcafe",
    "lockgate message ack MSG-1789-0badcafe --json",
]))]
pub(super) struct Arguments {
    /// Message: its id
    #[arg(value_name = "MESSAGE")]
    message: String,
    #[command(flatten)]
    run: RunOption,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let id = MessageId::new(arguments.message);
    let was_pending = project.acknowledge_message(&run, &id, project.caller(Channel::Command)).await?;
    match (arguments.json, was_pending) {
        (true, _) => print::json(&json!({"message": id, "acknowledged": was_pending})),
        (false, true) => print::say(format_args!("{id} is acknowledged")),
        (false, false) => print::say(format_args!("{id} was already acknowledged")),
    }
    Ok(Exit::Done)
}
