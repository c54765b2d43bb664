//! `lockgate message list`: list the messages of a run.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunArgument;
use lockgate::sanitize;
use lockgate::team::MessageView;
use std::path::Path;

/// List the messages of a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate message list",
    "lockgate message list --pending --json",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// List only messages that a recipient has not acknowledged
    #[arg(long)]
    pending: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let mut messages = project.messages(&run).await?;
    messages.retain(|message| message.pending || !arguments.pending);
    if arguments.json {
        print::json(&messages);
        return Ok(Exit::Done);
    }
    if messages.is_empty() {
        print::say(format_args!("run {run} has no {}messages", if arguments.pending { "pending " } else { "" }));
    }
    print::data(&messages.iter().map(line).collect::<String>());
    Ok(Exit::Done)
}

pub(super) fn line(message: &MessageView) -> String {
    let to = message.to.as_deref().map(|to| format!(" to {to}")).unwrap_or_default();
    let pending = if message.pending { "  pending" } else { "" };
    let text = format!("{}  {}  {}{to}: {}{pending}", message.id, message.kind, message.from, message.summary);
    format!("{}\n", sanitize::line(&text))
}
