//! Git worktrees: a run or a task that works in a folder and on a branch of its own.

use super::Shared;
use super::command::{Prepared, start};
use crate::worktree::{self, Tree};
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Failure;
use lockgate_engine::spec::workflow::{Task, Worktree};

/// The worktree that something works in, and the one that it branches off from.
pub(super) struct Wanted {
    tree: Tree,
    from: Option<Tree>,
}

/// The worktree of the whole run, where its workflow asks for one.
pub(super) fn of_run(run: &Run) -> Option<Wanted> {
    match run.workflow.worktree {
        Worktree::No => None,
        Worktree::Own => Some(Wanted { tree: Tree::of_run(&run.id), from: None }),
    }
}

/// The worktree that a task works in.
pub(super) fn wanted(run: &Run, key: &TaskKey, task: &Task) -> Option<Wanted> {
    let of_run = of_run(run);
    match task.worktree {
        Worktree::No => of_run,
        Worktree::Own => Some(Wanted { tree: Tree::of_task(&run.id, key), from: of_run.map(|wanted| wanted.tree) }),
    }
}

/// Makes the worktree where it is not there yet, and lets the work happen in it.
pub(super) async fn enter(shared: &Shared, prepared: &mut Prepared, wanted: Option<Wanted>) -> Result<(), Failure> {
    let Some(Wanted { tree, from }) = wanted.filter(|_| shared.stubs.is_none()) else { return Ok(()) };
    let root = shared.root.clone();
    let made = tokio::task::spawn_blocking(move || {
        if let Some(from) = &from {
            worktree::make(&root, from, None)?;
        }
        worktree::make(&root, &tree, from.as_ref())
    });
    let base = made.await.map_err(|error| start(error.to_string()))?.map_err(start)?;
    prepared.ours.push(("LOCKGATE_WORKTREE".to_owned(), base.to_string_lossy().into_owned()));
    prepared.base = base;
    Ok(())
}
