//! `lockgate worktrees`: what runs left in their git worktrees, and merging or removing it.

use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, STRONG, styled};
use lockgate::worktrees::ListedWorktree;
use lockgate::{sanitize, select};
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Channel;
use std::path::Path;

/// Lists the git worktrees of runs, merges them, and removes them
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    /// Only those of this run: its id, a beginning of it, or a feature's name
    run: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    act: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Merges the branch of a worktree into what the root has checked out, and removes the worktree
    Merge(Which),
    /// Removes a worktree and its branch
    Remove {
        #[command(flatten)]
        which: Which,
        /// Also where commits or changes are lost with it
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// The task whose worktree you mean: PHASE/TASK, TASK, or its listed name; without it, the run's own worktree
    task: Option<String>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match &self.act {
            None => Authority::Anyone,
            Some(Action::Merge(which)) => Authority::Person(Decision::about_run("merge a worktree", &which.run)),
            Some(Action::Remove { which, .. }) => Authority::Person(Decision::about_run("remove a worktree", &which.run)),
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    match arguments.act {
        None => list(&project, arguments.run.as_deref(), arguments.json).await,
        Some(Action::Merge(which)) => merge_one(&project, &which).await,
        Some(Action::Remove { which, force }) => remove_one(&project, &which, force).await,
    }
}

async fn list(project: &Project, named: Option<&str>, json: bool) -> Result<Exit, CommandError> {
    let run = match named {
        Some(named) => Some(select::run_or_ended(project.store(), named).await?.row.run),
        None => None,
    };
    let listed = project.worktrees(run.as_ref()).await?;
    if json {
        print::json(&listed.into_iter().map(|listed| listed.worktree).collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    let line = |listed: &ListedWorktree| {
        let (view, status) = (&listed.worktree, listed.status.map_or("unknown", Status::as_str));
        format!("{} ({status})  {}\n", styled(STRONG, &view.run), view.line())
    };
    let text: String = listed.iter().map(line).collect();
    print::data(if text.is_empty() { "there is no worktree\n" } else { &text });
    Ok(Exit::Done)
}

async fn merge_one(project: &Project, which: &Which) -> Result<Exit, CommandError> {
    let merged = project.merge_worktree(&which.run, which.task.as_deref(), &project.caller(Channel::Command)).await?;
    let (path, branch) = (sanitize::line(&merged.worktree.path), sanitize::line(&merged.worktree.branch));
    print::say(format_args!("{branch} is merged into {}", sanitize::line(&merged.into)));
    match merged.removed {
        true => print::say(format_args!("{path} is removed, and its branch")),
        false => print::note(format_args!("{path} stays: it holds work that its branch does not have")),
    }
    Ok(Exit::Done)
}

async fn remove_one(project: &Project, which: &Which, force: bool) -> Result<Exit, CommandError> {
    let caller = project.caller(Channel::Command);
    let view = project.remove_worktree(&which.run, which.task.as_deref(), force, &caller).await?;
    print::say(format_args!("{} is removed, and its branch {}", sanitize::line(&view.path), sanitize::line(&view.branch)));
    Ok(Exit::Done)
}
