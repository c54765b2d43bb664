//! `lockgate message show`: show a message with its payload.

use super::super::help::examples;
use super::list;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate::sanitize;
use lockgate_engine::id::MessageId;
use std::path::Path;

/// Show a message with its payload
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate message show MSG-1789-0badcafe",
    "lockgate message show MSG-1789-0badcafe --run d12cbewf",
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
    let project = crate::open::open_read_only(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let message = project.message(&run, &MessageId::new(arguments.message)).await?;
    if arguments.json {
        print::json(&message);
    } else {
        let payload = serde_json::to_string_pretty(&message.payload).unwrap_or_default();
        print::data(&format!("{}{}\n", list::line(&message), sanitize::lines(&payload)));
    }
    Ok(Exit::Done)
}
