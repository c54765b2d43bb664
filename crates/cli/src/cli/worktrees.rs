//! `lockgate worktrees`: list, merge and remove the git worktrees of runs.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, STRONG, styled};
use crate::run_argument::NamedRun;
use lockgate::worktrees::ListedWorktree;
use lockgate::{sanitize, select};
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Channel;
use std::path::Path;

/// List, merge and remove the git worktrees of runs
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = examples(&[
    "lockgate worktrees",
    "lockgate worktrees merge d12cbewf",
    "lockgate worktrees remove d12cbewf build/compile",
]))]
pub(super) struct Arguments {
    /// Only the worktrees of this run
    run: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    act: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Merge the branch of a worktree into the checked-out branch, and remove the worktree
    #[command(after_help = examples(&["lockgate worktrees merge d12cbewf", "lockgate worktrees merge d12cbewf build/compile"]))]
    Merge(Which),
    /// Remove a worktree and its branch
    #[command(after_help = examples(&["lockgate worktrees remove d12cbewf", "lockgate worktrees remove d12cbewf build/compile --force"]))]
    Remove {
        #[command(flatten)]
        which: Which,
        /// Remove it even if commits or changes are lost
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    #[command(flatten)]
    run: NamedRun,
    /// Task whose worktree you mean: PHASE/TASK, TASK, or the listed name [default: the worktree of the run]
    task: Option<String>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match &self.act {
            None => Authority::Anyone,
            Some(Action::Merge(which)) => Authority::Person(Decision::about_run("merge a worktree", &which.run.run)),
            Some(Action::Remove { which, .. }) => Authority::Person(Decision::about_run("remove a worktree", &which.run.run)),
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
    print::data(if text.is_empty() { "no worktrees\n" } else { &text });
    Ok(Exit::Done)
}

async fn merge_one(project: &Project, which: &Which) -> Result<Exit, CommandError> {
    let merged = project.merge_worktree(&which.run.run, which.task.as_deref(), &project.caller(Channel::Command)).await?;
    let (path, branch) = (sanitize::line(&merged.worktree.path), sanitize::line(&merged.worktree.branch));
    print::say(format_args!("{branch} is merged into {}", sanitize::line(&merged.into)));
    match merged.removed {
        true => print::say(format_args!("removed {path} and its branch")),
        false => print::note(format_args!("{path} is kept because it contains work that is not on its branch")),
    }
    Ok(Exit::Done)
}

async fn remove_one(project: &Project, which: &Which, force: bool) -> Result<Exit, CommandError> {
    let caller = project.caller(Channel::Command);
    let view = project.remove_worktree(&which.run.run, which.task.as_deref(), force, &caller).await?;
    print::say(format_args!("removed {} and its branch {}", sanitize::line(&view.path), sanitize::line(&view.branch)));
    Ok(Exit::Done)
}
