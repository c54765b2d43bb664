//! The worktrees that runs left.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::sanitize;
use crate::view::WorktreeView;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_engine::spec::workflow::{Workflow, Worktree};
use lockgate_runner::commit::forget_runs;
use lockgate_runner::git::GitError;
use lockgate_runner::root::Root;
use lockgate_runner::worktree::{ExistingWorktree, existing, remove_unused};

/// Whether a workflow, or something in it, works in worktrees.
pub fn uses(workflow: &Workflow) -> bool {
    let asks = |worktree: Worktree| match worktree {
        Worktree::No => false,
        Worktree::Own => true,
    };
    asks(workflow.worktree) || workflow.phases.iter().any(|phase| phase.tasks.iter().any(|task| asks(task.worktree)))
}

/// The worktrees of a run. Git is called only for workflows that use them.
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

/// Removes what a run that ended well left and that holds no work, and gives what stays. Nothing else is removed by itself: whoever
/// mends and resumes a run goes on in its worktree.
pub fn settle(root: &Root, run: &Run) -> Result<Vec<WorktreeView>, Error> {
    if matches!(run.end, Some(End::Complete | End::Aborted | End::Cancelled))
        && (run.workflow.commits() || run.workflow.shows_diff())
        && let Err(error) = forget_runs(root.dir(), |over| *over == run.id, false)
    {
        // `gc` removes what stays.
        tracing::debug!(run = %run.id, %error, "snapshots of tasks stay behind");
    }
    // An aborted run may be resumed, and its questions asked again.
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
            let message = format!("the worktrees of run {} cannot be looked at: {}", run.id, sanitize::line(&why.to_string()));
            Err(Error::new(Code::GitError, message))
        }
    }
}
