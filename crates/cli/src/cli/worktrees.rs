//! `lockgate worktrees`: what runs left in their git worktrees, and merging or removing it.

use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, STRONG, styled};
use lockgate::code::Code;
use lockgate::view::{WorktreeView, is_meant, shell_word, worktree_command};
use lockgate::{sanitize, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::Status;
use lockgate_runner::load::load;
use lockgate_runner::worktree::{ExistingWorktree, NotMerged, existing, merge, remove};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
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
    let found = existing(&project.root, run.as_ref()).map_err(git_error)?;
    let mut runs: BTreeMap<RunId, Option<Run>> = BTreeMap::new();
    for existing in &found {
        if let Entry::Vacant(unknown) = runs.entry(existing.run()) {
            // A run that is no longer in the database may have left one.
            let run = load(project.store(), unknown.key()).await.ok();
            unknown.insert(run);
        }
    }
    let view = |existing: &ExistingWorktree| {
        let run = runs.get(&existing.run()).and_then(Option::as_ref);
        (
            WorktreeView::of(existing, &project.root, run.map(|run| &*run.workflow)),
            run.map_or("unknown", |run| run.status().word()),
        )
    };
    let views: Vec<(WorktreeView, &str)> = found.iter().map(view).collect();
    if json {
        print::json(&views.into_iter().map(|(view, _)| view).collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    let line = |(view, status): &(WorktreeView, &str)| format!("{} ({status})  {}\n", styled(STRONG, &view.run), view.line());
    let text: String = views.iter().map(line).collect();
    print::data(if text.is_empty() { "there is no worktree\n" } else { &text });
    Ok(Exit::Done)
}

async fn merge_one(project: &Project, which: &Which) -> Result<Exit, CommandError> {
    let (state, existing, view) = find(project, which).await?;
    if state.end.is_none() || state.status() == Status::Failed {
        return Err(not_over(&state, "merged").help(format!("it can be looked at in {}", view.path)));
    }
    match merge(&project.root, &existing) {
        Ok(into) => print::say(format_args!("{} is merged into {}", sanitize::line(&view.branch), sanitize::line(&into))),
        Err(why) => return Err(not_merged(why, &view)),
    }
    // Looked at again: what was merged is no longer its own.
    let now = lockgate_runner::worktree::existing(&project.root, Some(&state.id)).map_err(git_error)?;
    if let Some(existing) = now.iter().find(|now| now.tree == existing.tree).filter(|existing| !existing.has_work()) {
        remove(&project.root, existing, false).map_err(git_error)?;
        print::say(format_args!("{} is removed, and its branch", sanitize::line(&view.path)));
    } else {
        print::note(format_args!("{} stays: it holds work that its branch does not have", sanitize::line(&view.path)));
    }
    Ok(Exit::Done)
}

fn not_merged(why: NotMerged, view: &WorktreeView) -> CommandError {
    let branch = &view.branch;
    match why {
        NotMerged::RootChanged(files) => {
            let message = format!("the root has changes that are not committed, so {branch} is not merged: {}", files.join(", "));
            CommandError::new(Code::UncommittedChanges, message)
                .help("commit them or put them aside (`git stash`), then merge again")
        }
        NotMerged::Uncommitted => {
            let message = format!("{} has changes that are not committed ({}), so it is not merged", view.path, view.holds());
            CommandError::new(Code::UncommittedChanges, message)
                .help(format!("commit them there (`git -C {} commit`), then merge again", shell_word(&view.path)))
        }
        NotMerged::NoBranch => {
            let message = format!("the root has no branch checked out, so {branch} is not merged");
            CommandError::new(Code::GitError, message).help("check out the branch that is to have it (`git switch BRANCH`)")
        }
        NotMerged::OtherHead => {
            let message = format!("{} has something other than its branch {branch} checked out, so it is not merged", view.path);
            let switch = format!("git -C {} switch {}", shell_word(&view.path), shell_word(branch));
            CommandError::new(Code::GitError, message).help(format!(
                "put the commits that you want on the branch (`{switch}`, then `git merge COMMIT` there), then merge again"
            ))
        }
        NotMerged::Conflict(files) => {
            let message = format!("{branch} conflicts with what the root has checked out, in: {}", files.join(", "));
            CommandError::new(Code::MergeConflict, message).help("nothing has changed: the merge was taken back").help(format!(
                "merge it yourself with `git merge {}`, then `{}`",
                shell_word(branch),
                command("remove", view)
            ))
        }
        NotMerged::Git(why) => git_error(why),
    }
}

fn command(what: &str, view: &WorktreeView) -> String {
    worktree_command(what, &view.run, view.task.as_deref())
}

async fn remove_one(project: &Project, which: &Which, force: bool) -> Result<Exit, CommandError> {
    let (state, existing, view) = find(project, which).await?;
    let over = state.end.is_some() && state.status() != Status::Failed;
    let driven = project.store().driver_of(&state.id).await?.is_some();
    if driven || (!over && !force) {
        return Err(not_over(&state, "removed"));
    }
    if existing.has_work() && !force {
        let message = format!("{} holds work that would be lost: {}", view.path, view.holds());
        return Err(CommandError::new(Code::WorkWouldBeLost, message)
            .help(format!("take it over with `{}`, or remove it all the same with --force", command("merge", &view))));
    }
    remove(&project.root, &existing, force).map_err(git_error)?;
    print::say(format_args!("{} is removed, and its branch {}", sanitize::line(&view.path), sanitize::line(&view.branch)));
    Ok(Exit::Done)
}

/// The worktree that the command line names.
async fn find(project: &Project, which: &Which) -> Result<(Run, ExistingWorktree, WorktreeView), CommandError> {
    let found = select::run_or_ended(project.store(), &which.run).await?;
    let state = load(project.store(), &found.row.run).await?;
    let all = existing(&project.root, Some(&state.id)).map_err(git_error)?;
    let viewed: Vec<(ExistingWorktree, WorktreeView)> = all
        .into_iter()
        .map(|existing| {
            let view = WorktreeView::of(&existing, &project.root, Some(&state.workflow));
            (existing, view)
        })
        .collect();
    let listed: Vec<String> = viewed.iter().map(|(_, view)| view.line()).collect();
    let meant = |(existing, view): &(ExistingWorktree, WorktreeView)| match &which.task {
        None => existing.part().is_none(),
        Some(task) => is_meant(task, existing, view, Some(&state.workflow)),
    };
    let mut fitting: Vec<(ExistingWorktree, WorktreeView)> = viewed.into_iter().filter(meant).collect();
    match (fitting.pop(), fitting.is_empty()) {
        (Some((existing, view)), true) => Ok((state, existing, view)),
        (found, _) => {
            let of = match &which.task {
                Some(task) => format!(" of {task}"),
                None if listed.is_empty() => String::new(),
                None => " of its own; name the task whose worktree you mean".to_owned(),
            };
            let (code, message) = match found {
                None => (Code::WorktreeNotFound, format!("run {} has no worktree{of}", state.id)),
                Some(_) => (Code::AmbiguousName, format!("run {} has several worktrees{of}", state.id)),
            };
            let error = CommandError::new(code, message);
            Err(listed.into_iter().fold(error, |error, line| error.help(format!("there is {line}"))))
        }
    }
}

fn not_over(state: &Run, done: &str) -> CommandError {
    let message = format!(
        "run {} is {}, and what works in its worktree goes on there, so it is not {done}",
        state.id,
        state.status().word()
    );
    let help = format!("let it come to its end, or end it with `lockgate cancel {}`", state.id);
    CommandError::new(Code::RunNotEnded, message).help(help)
}

pub(super) fn git_error(why: impl std::fmt::Display) -> CommandError {
    CommandError::new(Code::GitError, format!("git could not do it: {why}")).help("mend what git says, then try again")
}
