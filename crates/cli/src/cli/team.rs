//! `lockgate team`: show the agents of a run, their roles and their tasks.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunArgument;
use lockgate::sanitize;
use lockgate_engine::plural::counted;
use lockgate_engine::run::team::Member;
use std::path::Path;

/// Show the agents of a run, their roles and their tasks
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate team",
    "lockgate team d12cbewf --json",
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
    let members = project.team(&run).await?;
    if arguments.json {
        print::json(&members);
        return Ok(Exit::Done);
    }
    if members.is_empty() {
        print::say(format_args!("run {run} has no agents"));
    }
    print::data(&members.iter().map(line).collect::<String>());
    Ok(Exit::Done)
}

fn line(member: &Member) -> String {
    let role = member.role.as_deref().map(|role| format!(" ({role})")).unwrap_or_default();
    let name = sanitize::line(&format!("{}{role}", member.agent)).into_owned();
    let (done, left) = (counted(member.completed.len(), "task"), member.pending.len());
    format!("{name}  {}  {done} completed, {left} pending\n", member.status.as_str())
}
