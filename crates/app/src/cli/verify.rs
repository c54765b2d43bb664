//! `lockgate verify`: check that nothing was changed or lost in the store.

use crate::code::Code;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use crate::trouble::Trouble;
use crate::{neutral, select};
use lockgate_runner::verify::{verify_all, verify_one};
use lockgate_store::Finding;
use std::fmt::Write as _;
use std::path::Path;

/// Checks that nothing was changed or lost: the chain of commits, stored values, folded states and lists
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run; all when absent
    run: Option<String>,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = Project::open(root)?;
    let (what, findings) = match &arguments.run {
        None => ("the store".to_owned(), verify_all(project.store()).await?),
        Some(named) => {
            let found = select::run(project.store(), named).await?;
            (format!("run {}", found.row.run), verify_one(project.store(), &found.row.run).await?.unwrap_or_default())
        }
    };
    if findings.is_empty() {
        print::data(&format!("{what} is as it was written\n"));
        return Ok(Exit::Done);
    }
    print::data(&text(&findings));
    let count = findings.len();
    let found = if count == 1 { "1 thing is".to_owned() } else { format!("{count} things are") };
    let trouble = Trouble::new(Code::NotAsWritten, format!("{found} not as they were written"));
    let trouble = trouble.help("keep a copy of the database and put back a backup");
    trouble.tell();
    Ok(trouble.exit())
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let run = finding.run.as_ref().map(|run| format!("run {run}, ")).unwrap_or_default();
        let _ = writeln!(text, "{run}{}: {}", neutral::line(&finding.place), neutral::line(&finding.problem));
    }
    text
}
