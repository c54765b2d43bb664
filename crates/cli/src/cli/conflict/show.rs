//! `lockgate conflict show`: show a conflict with its positions.

use super::super::help::examples;
use super::list;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate::sanitize;
use lockgate::team::VoteView;
use lockgate_engine::id::ConflictId;
use std::path::Path;

/// Show a conflict with its positions
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate conflict show CONF-1789-0badcafe",
    "lockgate conflict show CONF-1789-0badcafe --run d12cbewf",
]))]
pub(super) struct Arguments {
    /// Conflict: its id
    #[arg(value_name = "CONFLICT")]
    conflict: String,
    #[command(flatten)]
    run: RunOption,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let conflict = project.conflict(&run, &ConflictId::new(arguments.conflict)).await?;
    if arguments.json {
        print::json(&conflict);
    } else {
        print::data(&(list::line(&conflict) + &conflict.positions.iter().map(position).collect::<String>()));
    }
    Ok(Exit::Done)
}

fn position(vote: &VoteView) -> String {
    let veto = vote.veto.map(|veto| format!(", {veto} veto")).unwrap_or_default();
    let text = format!("{}: {} (score {:.3}{veto}) {}", vote.agent, vote.choice, vote.score, vote.rationale);
    format!("  {}\n", sanitize::line(text.trim_end()))
}
