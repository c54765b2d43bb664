//! `lockgate message send`: send a message to an agent, to all agents or to a person.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate::code::Code;
use lockgate::team::NewMessage;
use lockgate_engine::id::MessageId;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::team::{MessageKind, Priority};
use serde_json::Value;
use std::path::Path;

/// Send a message
///
/// The sender is the task that runs this command, or you outside a task.
///
/// A REQUEST waits for a RESPONSE. A HANDOFF lets another agent continue the sender's task. An ESCALATE asks a person, whose
/// answer comes back as a RESPONSE. A BROADCAST goes to every agent.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate message send --to reviewer --summary 'Please check the schema'",
    "lockgate message send --type RESPONSE --reply-to MSG-1789-0badcafe --summary 'It is fine'",
    "lockgate message send --type ESCALATE --summary 'Which region?' --option eu --option us",
]))]
pub(super) struct Arguments {
    /// Type of the message
    #[arg(long = "type", value_name = "TYPE", default_value = "REQUEST", ignore_case = true, value_parser = kind)]
    kind: MessageKind,
    /// Recipient of a REQUEST or HANDOFF: the name of an agent
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// Message that a RESPONSE responds to
    #[arg(long, value_name = "MESSAGE")]
    reply_to: Option<String>,
    /// CRITICAL, HIGH, NORMAL or LOW
    #[arg(long, value_name = "PRIORITY", default_value = "NORMAL", value_parser = priority)]
    priority: Priority,
    /// What the message is about, in one line
    #[arg(long, value_name = "TEXT")]
    summary: String,
    /// Content for the recipient, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Answer that a person can choose at an ESCALATE; repeatable
    #[arg(long = "option", value_name = "TEXT")]
    options: Vec<String>,
    #[command(flatten)]
    run: RunOption,
    /// Print the message as JSON
    #[arg(long)]
    json: bool,
}

fn kind(text: &str) -> Result<MessageKind, String> {
    let known = MessageKind::ALL.iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text));
    known.copied().ok_or_else(|| names(MessageKind::ALL.iter().map(|kind| kind.as_str())))
}

fn priority(text: &str) -> Result<Priority, String> {
    let known = Priority::ALL.iter().find(|priority| priority.as_str().eq_ignore_ascii_case(text));
    known.copied().ok_or_else(|| names(Priority::ALL.iter().map(|priority| priority.as_str())))
}

fn names(known: impl Iterator<Item = &'static str>) -> String {
    format!("use one of {}", known.collect::<Vec<_>>().join(", "))
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let payload = match &arguments.payload {
        None => Value::Null,
        Some(text) => serde_json::from_str(text).map_err(|error| {
            CommandError::new(Code::NotJson, format!("--payload is not JSON: {error}"))
                .help("put text into quotes, as in --payload '\"text\"'")
        })?,
    };
    let project = crate::open::open(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let new = NewMessage {
        kind: arguments.kind,
        to: arguments.to,
        reply_to: arguments.reply_to.map(MessageId::new),
        priority: arguments.priority,
        summary: arguments.summary,
        payload,
        options: arguments.options,
    };
    let sent = project.send_message(&run, new, project.caller(Channel::Command)).await?;
    match arguments.json {
        true => print::json(&sent),
        false => {
            print::data(&format!("{}\n", sent.id));
        }
    }
    Ok(Exit::Done)
}
