//! `lockgate runs rm`: remove finished runs.

use super::super::help::examples;
use crate::authority::{Authority, Decision};
use crate::complete;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::prompt::{self, Confirmed};
use clap_complete::ArgValueCompleter;
use lockgate::code::Code;
use lockgate::removal::{REMOVE_RUN, RemovedRunView};
use lockgate::sanitize;
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use lockgate_runner::files::format_size;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Remove finished runs
///
/// Removes the history of each run, its logs and its outputs in .lockgate/runs, and its worktrees without work. Only runs that are complete, aborted or cancelled can be
/// removed; cancel others first. What the tasks changed in the project stays.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate runs rm d12cbewf",
    "lockgate runs rm d12cbewf 4mx81tzc --yes",
    "lockgate runs rm @ --dry-run",
]))]
pub(super) struct Arguments {
    /// Finished run: an id or its start, or a workflow or feature for its newest finished run, or @ for the newest of all
    #[arg(value_name = "RUN", required = true, add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The removed runs, as JSON.
#[derive(Serialize)]
struct RemovedView<'r> {
    dry_run: bool,
    runs: &'r [RemovedRunView],
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match self.runs.first() {
            Some(run) if !self.dry_run => Authority::Person(Decision::about_run(REMOVE_RUN, run)),
            Some(_) | None => Authority::Anyone,
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let (mut planned, mut known) = (Vec::new(), BTreeSet::new());
    // All of them are checked before any is removed.
    for named in &arguments.runs {
        let run = project.plan_removal(named).await?;
        if known.insert(run.run.clone()) {
            planned.push(run);
        }
    }
    if arguments.dry_run {
        report(&planned, arguments.json, true);
        return Ok(Exit::Done);
    }
    let confirmed = if arguments.yes { Confirmed::Yes } else { confirm(&planned).await? };
    if let Some(exit) = confirmed.declined() {
        print::say("Nothing was removed.");
        return Ok(exit);
    }
    let (caller, mut removed) = (project.caller(Channel::Command), Vec::new());
    for planned in &planned {
        match project.remove_run(&planned.run, &caller).await {
            Ok(run) => removed.push(run),
            Err(error) => {
                // The others are gone, and the caller must learn that.
                report(&removed, false, false);
                return Err(error.into());
            }
        }
    }
    report(&removed, arguments.json, false);
    Ok(Exit::Done)
}

/// Says what would be removed, and asks.
async fn confirm(planned: &[RemovedRunView]) -> Result<Confirmed, CommandError> {
    if !print::is_interactive() {
        return Err(CommandError::new(Code::TerminalRequired, "removing runs requires confirmation, which needs a terminal")
            .help("add --yes to remove them without asking, or --dry-run to see what would be removed"));
    }
    for run in planned {
        print::talk(&removed_line(run, true));
        note_worktrees(run);
    }
    print::say("Removed histories, logs and outputs cannot be restored.");
    prompt::confirm(if planned.len() == 1 { "Remove this run?" } else { "Remove these runs?" }, None).await
}

fn report(runs: &[RemovedRunView], json: bool, dry_run: bool) {
    if json {
        return print::json(&RemovedView { dry_run, runs });
    }
    print::data(&runs.iter().map(|run| removed_line(run, dry_run)).collect::<String>());
    runs.iter().for_each(note_worktrees);
}

/// One line about a run that was removed, or that would be.
pub(in crate::cli) fn removed_line(run: &RemovedRunView, dry_run: bool) -> String {
    let about = run.feature.as_deref().map(|feature| format!(", {feature}")).unwrap_or_default();
    let what = sanitize::line(&format!("{}{about}", run.workflow)).into_owned();
    let rows = run.rows.map_or_else(|| "its history".to_owned(), |rows| counted(rows, "row"));
    let word = if dry_run { "would remove" } else { "removed" };
    let files = format_size(run.file_bytes);
    format!("{word} run {} ({what}, {}): {rows}, and {files} of logs and outputs\n", run.run, run.status)
}

fn note_worktrees(run: &RemovedRunView) {
    for worktree in &run.kept_worktrees {
        let (path, branch) = (sanitize::line(&worktree.path).into_owned(), sanitize::line(&worktree.branch).into_owned());
        print::note(format_args!("{path} stays, because it contains work; merge its branch with `git merge {branch}`"));
    }
}
