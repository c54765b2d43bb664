//! `lockgate db verify`: check that nothing in the database was changed or lost.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::code::Code;
use lockgate::verify::Verdict;
use lockgate::{sanitize, select};
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use lockgate_store::Finding;
use std::path::Path;

/// Check that nothing in the database was changed or lost
///
/// It checks the hash chain of every history, all stored values, the materialized states and the lists.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate db verify",
    "lockgate db verify d12cbewf",
]))]
pub(super) struct Arguments {
    /// Run to check [default: all]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Accept that recorded commits are missing, so that the runs can continue without them
    #[arg(long, conflicts_with = "run")]
    accept_missing: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    if arguments.accept_missing {
        project.accept_missing(&project.caller(Channel::Command))?;
    }
    let only = match &arguments.run {
        None => None,
        Some(named) => Some(select::run_or_ended(project.store(), named).await?.row.run),
    };
    let findings = project.verify(only.as_ref()).await?;
    if arguments.json {
        print::json(&Verdict::of(only.as_ref(), &findings));
    } else if findings.is_empty() {
        let what = only.map_or_else(|| "the database".to_owned(), |run| format!("run {run}"));
        print::data(&format!("{what} is intact\n"));
    } else {
        print::data(&text(&findings));
    }
    if findings.is_empty() {
        return Ok(Exit::Done);
    }
    let count = findings.len();
    let verb = if count == 1 { "was" } else { "were" };
    let error = CommandError::new(Code::IntegrityError, format!("{} {verb} changed or lost", counted(count, "record")));
    let error = error.help("keep a copy of the database, then restore a backup with `lockgate db restore BACKUP --force`");
    error.report();
    Ok(error.exit())
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let run = finding.run.as_ref().map(|run| format!("run {run}, ")).unwrap_or_default();
        text.push_str(&format!("{run}{}: {}\n", sanitize::line(&finding.location), sanitize::line(&finding.problem)));
    }
    text
}
