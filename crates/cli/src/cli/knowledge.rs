//! `lockgate knowledge`: capture what the project learned, for later prompts.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::sanitize;
use lockgate::team::NewKnowledge;
use lockgate_engine::run::command::Channel;
use lockgate_runner::knowledge::KnownEntry;
use serde_json::{Value, json};
use std::path::Path;

/// Capture and list what the project learned
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate knowledge add --type decision --content '{\"title\": \"use SQLite\"}' --tag storage",
    "lockgate knowledge list",
]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(Add),
    List(List),
    Show(Show),
}

/// Capture knowledge
///
/// The same type and content are captured once. Prompts include entries by tag: `knowledge: { inject: [TAG] }`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate knowledge add --type decision --content '{\"title\": \"use SQLite\"}' --tag storage",
    "lockgate knowledge add --type pattern --content 'retry with a backoff' --tag api --tag network",
]))]
struct Add {
    /// Type: decision, resolution, pattern, incident or another word
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// Content, as JSON or text
    #[arg(long, value_name = "CONTENT")]
    content: String,
    /// Tag that prompts select it by; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Run whose history records it [default: the run of the task that runs this command]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the project's knowledge
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate knowledge list",
    "lockgate knowledge list --tag storage --json",
]))]
struct List {
    /// List only entries with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show an entry
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate knowledge show KE-decision-0badcafe",
    "lockgate knowledge show KE-decision-0badcafe --json",
]))]
struct Show {
    /// Entry: its id or the start of it
    #[arg(value_name = "ENTRY")]
    entry: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    match arguments.command {
        Command::Add(arguments) => add(root, arguments).await,
        Command::List(arguments) => list(root, &arguments),
        Command::Show(arguments) => {
            show(&crate::open::open_read_only(root)?.knowledge_entry(&arguments.entry)?, arguments.json);
            Ok(Exit::Done)
        }
    }
}

fn show(entry: &KnownEntry, json: bool) {
    if json {
        return print::json(entry);
    }
    let content = serde_json::to_string_pretty(&entry.content).unwrap_or_default();
    let tags = sanitize::line(&entry.tags.join(", ")).into_owned();
    print::data(&format!("{}  {tags}\n{}\n", entry.id, sanitize::lines(&content)));
}

async fn add(root: Option<&Path>, arguments: Add) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let caller = project.caller(Channel::Command);
    let run = match (&arguments.run, &caller.actor().inside_task) {
        (None, None) => None,
        (named, _) => Some(project.team_run(named.as_deref()).await?),
    };
    let content = serde_json::from_str(&arguments.content).unwrap_or(Value::String(arguments.content));
    let new = NewKnowledge { kind: arguments.kind, content, tags: arguments.tags };
    let captured = project.add_knowledge(run.as_ref(), new, caller).await?;
    if arguments.json {
        print::json(&json!({"entry": captured.entry, "new": captured.new}));
        return Ok(Exit::Done);
    }
    if !captured.new {
        print::say(format_args!("{} was captured before", captured.entry.id));
    }
    print::data(&format!("{}\n", captured.entry.id));
    Ok(Exit::Done)
}

fn list(root: Option<&Path>, arguments: &List) -> Result<Exit, CommandError> {
    let mut known = crate::open::open_read_only(root)?.knowledge();
    if let Some(tag) = &arguments.tag {
        known.entries.retain(|entry| entry.tags.contains(tag));
    }
    for problem in &known.problems {
        print::warn(format_args!("not an entry: {}", sanitize::line(problem)));
    }
    if arguments.json {
        print::json(&known.entries);
        return Ok(Exit::Done);
    }
    let line = |id: &str, tags: &[String]| format!("{}\n", sanitize::line(&format!("{id}  {}", tags.join(", "))));
    print::data(&known.entries.iter().map(|entry| line(entry.id.as_str(), &entry.tags)).collect::<String>());
    Ok(Exit::Done)
}
