//! `lockgate summary`: what a run did, decided and produced.

use crate::exit::Exit;
use crate::open::Project;
use crate::summary::{Collector, Summary, markdown};
use crate::trouble::Trouble;
use crate::{print, select, view, worktrees};
use lockgate_engine::id::RunId;
use lockgate_runner::load::load;
use std::path::Path;

/// How many commits are read at once.
const COMMITS: usize = 1000;

/// Tells what a run did, decided and produced, what it left out, and how long it took and waited, as Markdown
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = Project::open(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let summary = summary_of(&project, &found.row.run).await?;
    if arguments.json {
        print::json(&summary);
    } else {
        print::data(&markdown(&summary));
    }
    Ok(Exit::Done)
}

async fn summary_of(project: &Project, run: &RunId) -> Result<Summary, Trouble> {
    let state = load(project.store(), run).await?;
    let driven = project.store().driver_of(run).await?.is_some();
    let mut collector = Collector::default();
    let mut after = 0;
    // As far as the state was read: what is committed meanwhile belongs to a later summary.
    while after < state.version {
        let commits = project.store().commits(run, after, COMMITS).await?;
        let Some(last) = commits.last() else { break };
        after = last.version;
        for sealed in commits.iter().filter(|sealed| sealed.version <= state.version) {
            sealed.open()?.entries.iter().for_each(|entry| collector.take(entry));
        }
    }
    let status = view::status_word(state.status().word(), driven);
    let summary = collector.summary(&state, status, project.world.clock.now());
    Ok(Summary { worktrees: worktrees::of_run(project, &state).await, ..summary })
}
