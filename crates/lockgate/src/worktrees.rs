//! Listing, merging and removing the worktrees of runs.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::sanitize;
use crate::select;
use crate::view::{WorktreeView, is_meant, shell_word, worktree_command};
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::state::End;
use lockgate_engine::run::{Run, Status};
use lockgate_engine::spec::workflow::{Workflow, Worktree};
use lockgate_runner::commit::forget_runs;
use lockgate_runner::git::GitError;
use lockgate_runner::load::load;
use lockgate_runner::root::Root;
use lockgate_runner::worktree::{ExistingWorktree, NotMerged, existing, merge, remove, remove_unused};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Whether a workflow or any of its tasks uses worktrees.
pub fn uses(workflow: &Workflow) -> bool {
    let asks = |worktree: Worktree| match worktree {
        Worktree::No => false,
        Worktree::Own => true,
    };
    asks(workflow.worktree) || workflow.phases.iter().any(|phase| phase.tasks.iter().any(|task| asks(task.worktree)))
}

/// Lists the worktrees of a run. Calls git only if the workflow uses worktrees.
pub async fn of_run(project: &Project, run: &Run) -> Result<Vec<WorktreeView>, Error> {
    if !uses(&run.workflow) {
        return Ok(Vec::new());
    }
    let (root, id) = (project.root.clone(), run.id.clone());
    let found = tokio::task::spawn_blocking(move || existing(&root, Some(&id))).await;
    match found {
        Ok(found) => viewed(found, &project.root, run),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Removes unused worktrees of a complete run, and returns the remaining ones. Other runs keep theirs, because they may be
/// resumed.
pub fn settle(root: &Root, run: &Run) -> Result<Vec<WorktreeView>, Error> {
    if matches!(run.end, Some(End::Complete | End::Aborted | End::Cancelled))
        && (run.workflow.commits() || run.workflow.shows_diff())
        && let Err(error) = forget_runs(root.dir(), |over| *over == run.id, false)
    {
        // `lockgate db gc` removes the remaining ones.
        tracing::debug!(run = %run.id, %error, "snapshots of tasks stay behind");
    }
    // An aborted run may be resumed and ask its questions again.
    if matches!(run.end, Some(End::Complete)) && run.workflow.shows_diff() {
        lockgate_runner::diff::forget(root, &run.id);
    }
    if !uses(&run.workflow) {
        return Ok(Vec::new());
    }
    let stays = match run.end {
        Some(End::Complete) => remove_unused(root, &run.id),
        Some(End::Failed(_) | End::Aborted | End::Cancelled) | None => existing(root, Some(&run.id)),
    };
    viewed(stays, root, run)
}

fn viewed(found: Result<Vec<ExistingWorktree>, GitError>, root: &Root, run: &Run) -> Result<Vec<WorktreeView>, Error> {
    match found {
        Ok(found) => Ok(found.iter().map(|existing| WorktreeView::of(existing, root, Some(&run.workflow))).collect()),
        Err(why) => {
            let message = format!("the worktrees of run {} cannot be listed: {}", run.id, sanitize::line(&why.to_string()));
            Err(Error::new(Code::GitError, message))
        }
    }
}

/// A worktree with the status of its run.
#[derive(Clone, Debug)]
pub struct ListedWorktree {
    /// The worktree.
    pub worktree: WorktreeView,
    /// The status of its run; absent if the run is no longer in the database.
    pub status: Option<Status>,
}

/// The result of merging a worktree.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The worktree before the merge.
    pub worktree: WorktreeView,
    /// The branch that it was merged into.
    pub into: String,
    /// Whether it was removed. Otherwise it still contains work that was not merged.
    pub removed: bool,
}

/// A selected worktree and its run.
struct Meant {
    run: Run,
    existing: ExistingWorktree,
    view: WorktreeView,
}

impl Project {
    /// Lists the worktrees of a run, or of all runs.
    pub async fn worktrees(&self, run: Option<&RunId>) -> Result<Vec<ListedWorktree>, Error> {
        let found = existing(&self.root, run).map_err(git_error)?;
        let mut runs: BTreeMap<RunId, Option<Run>> = BTreeMap::new();
        for existing in &found {
            if let Entry::Vacant(unknown) = runs.entry(existing.run()) {
                // The worktree may belong to a run that is no longer in the database.
                let run = load(self.store(), unknown.key()).await.ok();
                unknown.insert(run);
            }
        }
        let listed = |existing: &ExistingWorktree| {
            let run = runs.get(&existing.run()).and_then(Option::as_ref);
            let worktree = WorktreeView::of(existing, &self.root, run.map(|run| &*run.workflow));
            ListedWorktree { worktree, status: run.map(Run::status) }
        };
        Ok(found.iter().map(listed).collect())
    }

    /// Merges the branch of a worktree into the branch that is checked out in the root, and removes the worktree. Without `task`,
    /// selects the worktree of the run itself.
    pub async fn merge_worktree(&self, run: &str, task: Option<&str>, caller: &Caller) -> Result<Merged, Error> {
        let Meant { run, existing: tree, view } = self.meant_worktree(run, task).await?;
        self.may_decide(caller, &run.id, "merge a worktree").await?;
        if run.end.is_none() || run.status() == Status::Failed {
            return Err(not_over(&run, "merged").help(format!("you can inspect it in {}", view.path)));
        }
        let into = merge(&self.root, &tree).map_err(|why| not_merged(why, &view))?;
        // Read the worktree again, because merged commits no longer count as its work.
        let now = existing(&self.root, Some(&run.id)).map_err(git_error)?;
        let idle = now.iter().find(|now| now.tree == tree.tree).filter(|existing| !existing.has_work());
        if let Some(idle) = idle {
            remove(&self.root, idle, false).map_err(git_error)?;
        }
        Ok(Merged { worktree: view, into, removed: idle.is_some() })
    }

    /// Removes a worktree and its branch. With `force`, even if this loses commits or changes.
    pub async fn remove_worktree(
        &self,
        run: &str,
        task: Option<&str>,
        force: bool,
        caller: &Caller,
    ) -> Result<WorktreeView, Error> {
        let Meant { run, existing, view } = self.meant_worktree(run, task).await?;
        self.may_decide(caller, &run.id, "remove a worktree").await?;
        let over = run.end.is_some() && run.status() != Status::Failed;
        let driven = self.store().driver_of(&run.id).await?.is_some();
        if driven || (!over && !force) {
            return Err(not_over(&run, "removed"));
        }
        if existing.has_work() && !force {
            let message = format!("{} contains work that would be lost: {}", view.path, view.holds());
            return Err(Error::new(Code::WorkWouldBeLost, message).help(format!("keep it with `{}`", command("merge", &view))));
        }
        remove(&self.root, &existing, force).map_err(git_error)?;
        Ok(view)
    }

    async fn meant_worktree(&self, run: &str, task: Option<&str>) -> Result<Meant, Error> {
        let found = select::run_or_ended(self.store(), run).await?;
        let run = load(self.store(), &found.row.run).await?;
        let all = existing(&self.root, Some(&run.id)).map_err(git_error)?;
        let viewed: Vec<(ExistingWorktree, WorktreeView)> = all
            .into_iter()
            .map(|existing| {
                let view = WorktreeView::of(&existing, &self.root, Some(&run.workflow));
                (existing, view)
            })
            .collect();
        let listed: Vec<String> = viewed.iter().map(|(_, view)| view.line()).collect();
        let meant = |(existing, view): &(ExistingWorktree, WorktreeView)| match task {
            None => existing.part().is_none(),
            Some(task) => is_meant(task, existing, view, Some(&run.workflow)),
        };
        let mut fitting: Vec<(ExistingWorktree, WorktreeView)> = viewed.into_iter().filter(meant).collect();
        match (fitting.pop(), fitting.is_empty()) {
            (Some((existing, view)), true) => Ok(Meant { run, existing, view }),
            (found, _) => {
                let of = match task {
                    Some(task) => format!(" of {task}"),
                    None if listed.is_empty() => String::new(),
                    None => " of its own; name the task whose worktree you mean".to_owned(),
                };
                let (code, message) = match found {
                    None => (Code::WorktreeNotFound, format!("run {} has no worktree{of}", run.id)),
                    Some(_) => (Code::AmbiguousName, format!("run {} has several worktrees{of}", run.id)),
                };
                let error = Error::new(code, message);
                Err(listed.into_iter().fold(error, |error, line| error.help(format!("existing worktree: {line}"))))
            }
        }
    }
}

fn command(what: &str, view: &WorktreeView) -> String {
    worktree_command(what, &view.run, view.task.as_deref())
}

fn not_merged(why: NotMerged, view: &WorktreeView) -> Error {
    let branch = &view.branch;
    match why {
        NotMerged::RootChanged(files) => {
            let message = format!("the root has uncommitted changes, so {branch} is not merged: {}", files.join(", "));
            Error::new(Code::UncommittedChanges, message).help("commit or stash them, then merge again")
        }
        NotMerged::Uncommitted => {
            let message = format!("{} has uncommitted changes ({}), so it is not merged", view.path, view.holds());
            Error::new(Code::UncommittedChanges, message)
                .help(format!("commit them there (`git -C {} commit`), then merge again", shell_word(&view.path)))
        }
        NotMerged::NoBranch => {
            let message = format!("the root has no branch checked out, so {branch} is not merged");
            Error::new(Code::GitError, message).help("check out the target branch with `git switch BRANCH`")
        }
        NotMerged::OtherHead => {
            let message = format!("{} does not have its branch {branch} checked out, so it is not merged", view.path);
            let switch = format!("git -C {} switch {}", shell_word(&view.path), shell_word(branch));
            Error::new(Code::GitError, message)
                .help(format!("move your commits to the branch (`{switch}`, then `git merge COMMIT` there), then merge again"))
        }
        NotMerged::Conflict(files) => {
            let message = format!("{branch} conflicts with the root's branch in: {}", files.join(", "));
            Error::new(Code::MergeConflict, message).help("the merge was rolled back; nothing has changed").help(format!(
                "merge it yourself with `git merge {}`, then `{}`",
                shell_word(branch),
                command("remove", view)
            ))
        }
        NotMerged::Git(why) => git_error(why),
    }
}

fn not_over(run: &Run, done: &str) -> Error {
    let status = run.status();
    let message = format!("run {} is {status}, and still needs its worktree, so it is not {done}", run.id);
    Error::new(Code::RunNotEnded, message).help(format!("wait until it ends, or cancel it with `lockgate cancel {}`", run.id))
}

/// Converts an error of git.
pub(crate) fn git_error(why: impl std::fmt::Display) -> Error {
    Error::new(Code::GitError, format!("git failed: {why}")).help("fix the problem that git reports, then try again")
}
