//! The worktrees of runs, as the commands see them: what a run left, and what is told about it in the end.

use crate::neutral;
use crate::open::Project;
use crate::print::{self, HELP, styled};
use crate::view::{WorktreeView, worktree_command};
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_engine::spec::workflow::{Workflow, Worktree};
use lockgate_runner::commit::forget_runs;
use lockgate_runner::root::Root;
use lockgate_runner::worktree::{Kept, kept, tidy};

/// Whether a workflow, or something in it, works in worktrees.
pub(crate) fn uses(workflow: &Workflow) -> bool {
    let asks = |worktree: Worktree| match worktree {
        Worktree::No => false,
        Worktree::Own => true,
    };
    asks(workflow.worktree) || workflow.phases.iter().any(|phase| phase.tasks.iter().any(|task| asks(task.worktree)))
}

/// The worktrees of a run. Git is called only for workflows that use them.
pub(crate) async fn of_run(project: &Project, run: &Run) -> Vec<WorktreeView> {
    if !uses(&run.workflow) {
        return Vec::new();
    }
    let (root, id) = (project.root.clone(), run.id.clone());
    let found = tokio::task::spawn_blocking(move || kept(&root, Some(&id))).await;
    viewed(found.unwrap_or_else(|error| Err(error.to_string())), &project.root, run)
}

/// Removes what a run that ended well left and that holds no work, and gives what stays. Nothing else is removed by itself: whoever
/// mends and resumes a run goes on in its worktree.
pub(crate) fn settle(root: &Root, run: &Run) -> Vec<WorktreeView> {
    if matches!(run.end, Some(End::Complete | End::Aborted | End::Cancelled)) && run.workflow.commits() {
        // What stays is removed by `gc`.
        let _ = forget_runs(root.dir(), |over| *over == run.id, false);
    }
    if !uses(&run.workflow) {
        return Vec::new();
    }
    let stays = match run.end {
        Some(End::Complete) => tidy(root, &run.id),
        Some(End::Failed(_) | End::Aborted | End::Cancelled) | None => kept(root, Some(&run.id)),
    };
    viewed(stays, root, run)
}

fn viewed(found: Result<Vec<Kept>, String>, root: &Root, run: &Run) -> Vec<WorktreeView> {
    match found {
        Ok(found) => found.iter().map(|kept| WorktreeView::of(kept, root, Some(&run.workflow))).collect(),
        Err(why) => {
            print::warn(format_args!("the worktrees of run {} cannot be looked at: {}", run.id, neutral::line(&why)));
            Vec::new()
        }
    }
}

/// Settles the worktrees of a run that has ended, and tells what stays and what can be done with it.
pub(crate) fn tell(root: &Root, run: &Run) {
    let stays = settle(root, run);
    for worktree in &stays {
        print::say(format_args!("  worktree {}", worktree.line()));
        if run.end == Some(End::Complete) {
            let merge = worktree_command("merge", run.id.as_str(), worktree.task.as_deref());
            print::say(format_args!("  take it over: {}", styled(HELP, neutral::line(&merge))));
        }
    }
}
