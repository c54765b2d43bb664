//! `lockgate conflict vote`: vote in a conflict as an agent that takes part in it.

use super::super::help::examples;
use super::list;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::RunOption;
use lockgate_engine::id::ConflictId;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::team::{Compromise, Veto, VoteDraft};
use std::path::Path;

/// Vote in a conflict
///
/// A vote counts (weight + domain boost) × confidence × relevance. A CRITICAL veto wins; a HIGH veto asks a person.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate conflict vote CONF-1789-0badcafe --choice sqlite --confidence 90 --rationale 'one file'",
    "lockgate conflict vote CONF-1789-0badcafe --choice no --veto critical --veto-reason 'tokens leak'",
]))]
pub(super) struct Arguments {
    /// Conflict: its id
    #[arg(value_name = "CONFLICT")]
    conflict: String,
    /// What you want
    #[arg(long, value_name = "TEXT")]
    choice: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    rationale: String,
    /// What supports it; repeatable
    #[arg(long, value_name = "TEXT")]
    evidence: Vec<String>,
    /// How sure you are, from 0 to 100
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    confidence: u32,
    /// How much the conflict is about your domain, from 0 to 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    relevance: f64,
    /// Insist: do not accept another choice
    #[arg(long)]
    no_compromise: bool,
    /// What would make another choice acceptable; repeatable
    #[arg(long, value_name = "TEXT")]
    condition: Vec<String>,
    /// Veto every other choice
    #[arg(long, value_name = "SEVERITY", requires = "veto_reason")]
    veto: Option<Severity>,
    /// Why you veto
    #[arg(long, value_name = "TEXT")]
    veto_reason: Option<String>,
    #[command(flatten)]
    run: RunOption,
    /// Print the conflict as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Severity {
    Critical,
    High,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let run = project.team_run(arguments.run.named()).await?;
    let veto = arguments.veto.map(|severity| match severity {
        Severity::Critical => Veto::Critical,
        Severity::High => Veto::High,
    });
    let vote = VoteDraft {
        choice: arguments.choice,
        rationale: arguments.rationale,
        evidence: arguments.evidence,
        confidence: arguments.confidence,
        domain_relevance: arguments.relevance,
        compromise: Compromise { acceptable: !arguments.no_compromise, conditions: arguments.condition },
        veto,
        veto_reason: arguments.veto_reason,
    };
    let conflict = ConflictId::new(arguments.conflict);
    let voted = project.vote(&run, &conflict, vote, project.caller(Channel::Command)).await?;
    match arguments.json {
        true => print::json(&voted),
        false => {
            print::data(&list::line(&voted));
        }
    }
    Ok(Exit::Done)
}
