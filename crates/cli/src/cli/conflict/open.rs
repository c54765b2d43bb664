//! `lockgate conflict open`: open a conflict between agents.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate::team::NewConflict;
use lockgate_engine::run::command::Channel;
use std::path::Path;

/// Open a conflict between agents
///
/// Each participant votes once per round. A conflict that three rounds do not settle goes to a person.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate conflict open 'Which database?' --with reviewer",
    "lockgate conflict open 'Keep users signed in?' --with ux --domain security",
]))]
pub(super) struct Arguments {
    /// What the participants disagree about
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// Participant; repeatable. The agent that opens the conflict always takes part
    #[arg(long = "with", value_name = "AGENT")]
    participants: Vec<String>,
    /// Domain, in which the settings can give agents more weight
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    #[command(flatten)]
    run: RunOption,
    /// Print the conflict as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let new = NewConflict { topic: arguments.topic, participants: arguments.participants, domain: arguments.domain };
    let opened = project.open_conflict(&run, new, project.caller(Channel::Command)).await?;
    match arguments.json {
        true => print::json(&opened),
        false => {
            print::data(&format!("{}\n", opened.id));
        }
    }
    Ok(Exit::Done)
}
