//! Git worktrees: separate directories and branches for runs or tasks.

use super::Shared;
use super::command::{Prepared, failure, start};
use crate::files::{RunDirs, output_exists};
use crate::process::Stop;
use crate::worktree::{self, NotMade, Tree};
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::{Gate, Phase, Task, Worktree};
use std::path::{Path, PathBuf};

/// The worktree for some work, and the one it branches off from.
pub(super) struct Wanted {
    tree: Tree,
    from: Option<Tree>,
}

impl Wanted {
    pub(super) fn same(&self) -> Self {
        Self { tree: self.tree.clone(), from: self.from.clone() }
    }

    pub(super) fn name(&self) -> String {
        self.tree.name.clone()
    }
}

/// The worktree of the whole run, if its workflow asks for one.
pub(super) fn of_run(run: &Run) -> Option<Wanted> {
    match run.workflow.worktree {
        Worktree::No => None,
        Worktree::Own => Some(Wanted { tree: Tree::of_run(&run.id), from: None }),
    }
}

/// The paths of a checkpoint's files where the run works: a file that is not an output is in its worktree, not in the root.
pub(super) fn shown(shared: &Shared, tree: Option<Wanted>, run_dirs: &RunDirs, paths: Vec<String>) -> Vec<String> {
    let Some(base) = tree.and_then(|wanted| worktree::place(&shared.root, &wanted.tree)) else { return paths };
    let Ok(base) = base.strip_prefix(&run_dirs.root).map(Path::to_owned) else { return paths };
    let in_output = |path: &str| {
        output_exists(run_dirs, path).unwrap_or_else(|error| {
            tracing::debug!(?error, path, "cannot tell whether a file is an output; treating it as a file of the worktree");
            false
        })
    };
    let outputs = run_dirs.output_dir.clone();
    let mut meant = Vec::new();
    for path in paths {
        let named = Path::new(&path).is_absolute() || Path::new(&path).starts_with(&outputs);
        if named {
            meant.push(path);
            continue;
        }
        let in_tree = base.join(&path);
        if in_output(&path) {
            meant.push(outputs.join(&path).to_string_lossy().into_owned());
            if !run_dirs.root.join(&in_tree).exists() {
                continue;
            }
        }
        meant.push(in_tree.to_string_lossy().into_owned());
    }
    meant
}

pub(super) fn wanted(run: &Run, key: &TaskKey, task: &Task) -> Option<Wanted> {
    let of_run = of_run(run);
    match task.worktree {
        Worktree::No => of_run,
        Worktree::Own => Some(Wanted { tree: Tree::of_task(&run.id, key), from: of_run.map(|wanted| wanted.tree) }),
    }
}

/// The worktree that a gate checks: that of its task, otherwise that of the run. The items of a list have one each, so a gate
/// for all of them uses that of the run.
pub(super) fn of_gate(run: &Run, phase: &Phase, iteration: u32, gate: &Gate) -> Option<Wanted> {
    let task = gate.task.as_ref().and_then(|id| phase.task(id.as_str())).filter(|task| task.for_each.is_none());
    match task {
        None => of_run(run),
        Some(task) => {
            let key = TaskKey { phase: phase.id.clone(), iteration, task: task.id.clone(), item: None };
            wanted(run, &key, task)
        }
    }
}

/// The directory of finished work: the root or its worktree. `None` if the worktree is missing, because the root is no
/// substitute.
pub(super) fn existing(shared: &Shared, wanted: Option<Wanted>) -> Option<PathBuf> {
    match wanted.filter(|_| shared.stubs.is_none()) {
        None => Some(shared.root.dir().to_owned()),
        Some(wanted) => worktree::place(&shared.root, &wanted.tree),
    }
}

/// The working directory: the root, or the worktree, which is created if it does not exist yet.
pub(super) async fn directory(shared: &Shared, wanted: Option<Wanted>, stop: &Stop) -> Result<PathBuf, Failure> {
    let Some(Wanted { tree, from }) = wanted.filter(|_| shared.stubs.is_none()) else {
        return Ok(shared.root.dir().to_owned());
    };
    let (root, stop) = (shared.root.clone(), stop.clone());
    let made = tokio::task::spawn_blocking(move || {
        if let Some(from) = &from {
            worktree::make(&root, from, None, &stop)?;
        }
        worktree::make(&root, &tree, from.as_ref(), &stop)
    });
    made.await.map_err(start)?.map_err(|why| match why {
        NotMade::Failed(why) => start(why),
        NotMade::Stopped => failure(FailureKind::Stopped, why),
    })
}

/// Creates the worktree if it does not exist yet, and makes it the working directory.
pub(super) async fn enter(shared: &Shared, prepared: &mut Prepared, wanted: Option<Wanted>, stop: &Stop) -> Result<(), Failure> {
    let Some(wanted) = wanted.filter(|_| shared.stubs.is_none()) else { return Ok(()) };
    let base = directory(shared, Some(wanted), stop).await?;
    prepared.ours.push(("LOCKGATE_WORKTREE".to_owned(), base.to_string_lossy().into_owned()));
    prepared.base = base;
    Ok(())
}
