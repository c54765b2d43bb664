//! `lockgate conflict list`: list the conflicts of a run.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunArgument;
use lockgate::sanitize;
use lockgate::team::ConflictView;
use std::path::Path;

/// List the conflicts of a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate conflict list",
    "lockgate conflict list d12cbewf --json",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let conflicts = project.conflicts(&run).await?;
    if arguments.json {
        print::json(&conflicts);
        return Ok(Exit::Done);
    }
    if conflicts.is_empty() {
        print::say(format_args!("run {run} has no conflicts"));
    }
    print::data(&conflicts.iter().map(line).collect::<String>());
    Ok(Exit::Done)
}

pub(super) fn line(conflict: &ConflictView) -> String {
    let state = match (&conflict.resolution, &conflict.hold) {
        (Some(resolution), _) => format!("resolved by {}: {}", resolution.by, resolution.choice),
        (None, Some(hold)) => format!("a person decides in hold {hold}"),
        (None, None) => format!("round {}, waiting for {}", conflict.round, conflict.missing.join(", ")),
    };
    format!("{}\n", sanitize::line(&format!("{}  {}  {state}", conflict.id, conflict.topic)))
}
