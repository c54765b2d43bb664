//! `lockgate verify`: check that nothing was changed or lost in the store.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::{Project, database_of};
use crate::print;
use lockgate::code::Code;
use lockgate::{sanitize, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Channel;
use lockgate_engine::words::counted;
use lockgate_runner::verify::{verify_all, verify_one};
use lockgate_store::{Finding, SqliteStore};
use serde::Serialize;
use std::path::Path;

/// Checks that nothing was changed or lost: the chain of commits, stored values, folded states and lists
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run; all when absent
    run: Option<String>,
    /// Accepts that commits are missing which were recorded, so that the runs can continue without them
    #[arg(long, conflicts_with = "run")]
    accept_missing: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What was found, for programs.
#[derive(Serialize)]
struct Verdict<'f> {
    /// The run that was checked; all where there is none.
    run: Option<&'f RunId>,
    intact: bool,
    findings: Vec<FindingView<'f>>,
}

#[derive(Serialize)]
struct FindingView<'f> {
    run: Option<&'f RunId>,
    place: &'f str,
    problem: &'f str,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    if arguments.accept_missing {
        accept_missing(&project)?;
    }
    let (only, findings) = match &arguments.run {
        None => (None, verify_all(project.store()).await?),
        Some(named) => {
            let run = select::run_or_ended(project.store(), named).await?.row.run;
            let findings = verify_one(project.store(), &run).await?.unwrap_or_default();
            (Some(run), findings)
        }
    };
    if arguments.json {
        print::json(&verdict(only.as_ref(), &findings));
    } else if findings.is_empty() {
        let what = only.map_or_else(|| "the store".to_owned(), |run| format!("run {run}"));
        print::data(&format!("{what} is as it was written\n"));
    } else {
        print::data(&text(&findings));
    }
    if findings.is_empty() {
        return Ok(Exit::Done);
    }
    let count = findings.len();
    let verb = if count == 1 { "is not as it was" } else { "are not as they were" };
    let error = CommandError::new(Code::IntegrityError, format!("{} {verb} written", counted(count, "thing")));
    let error = error.help("keep a copy of the database and put back a backup");
    error.report();
    Ok(error.exit())
}

/// A person takes the database as it is, without what was recorded in it before.
fn accept_missing(project: &Project) -> Result<(), CommandError> {
    project.caller(Channel::Command).may_decide("accept that commits are missing")?;
    if database_of(&project.config).is_none() {
        SqliteStore::accept_missing(&project.root.folder())?;
    }
    Ok(())
}

fn verdict<'f>(run: Option<&'f RunId>, findings: &'f [Finding]) -> Verdict<'f> {
    let view = |finding: &'f Finding| FindingView { run: finding.run.as_ref(), place: &finding.place, problem: &finding.problem };
    Verdict { run, intact: findings.is_empty(), findings: findings.iter().map(view).collect() }
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let run = finding.run.as_ref().map(|run| format!("run {run}, ")).unwrap_or_default();
        text.push_str(&format!("{run}{}: {}\n", sanitize::line(&finding.place), sanitize::line(&finding.problem)));
    }
    text
}
