//! Git worktrees of a run: where they lie, on which branch, and what would be lost with them.

use crate::sanitize;
use lockgate_engine::id::{PhaseId, RunId, TaskId, TaskKey};
use lockgate_engine::plural::counted;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::root::Root;
use lockgate_runner::worktree::{ExistingWorktree, Tree};
use serde::Serialize;

/// A worktree that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorktreeView {
    pub run: String,
    /// The task that works in it; none where all of the run does.
    pub task: Option<String>,
    /// Where it lies, relative to the root.
    pub path: String,
    /// Whether it still lies there, not only its branch.
    pub exists: bool,
    pub branch: String,
    /// How many commits nothing else has.
    pub commits: u64,
    /// How many files hold changes that were not committed; unknown where git could not say.
    pub uncommitted: Option<u64>,
}

impl WorktreeView {
    /// What is there; the workflow of its run tells which task it belongs to.
    pub fn of(existing: &ExistingWorktree, root: &Root, workflow: Option<&Workflow>) -> Self {
        Self {
            run: existing.run().to_string(),
            task: existing.part().map(|part| task(&existing.run(), part, workflow)),
            path: existing.folder.strip_prefix(root.dir()).unwrap_or(&existing.folder).to_string_lossy().into_owned(),
            exists: existing.has_folder,
            branch: existing.tree.branch(),
            commits: existing.commits,
            uncommitted: existing.uncommitted,
        }
    }

    /// It as one line, neutral already.
    pub fn line(&self) -> String {
        let place = if self.exists { self.path.as_str() } else { "(its folder is gone)" };
        let task = self.task.as_deref().map(|task| format!(" of {task}")).unwrap_or_default();
        let line = format!("{place} on branch {}{task}: {}", self.branch, self.holds());
        sanitize::line(&line).into_owned()
    }

    /// What would be lost with it.
    pub fn holds(&self) -> String {
        let commits = (self.commits > 0).then(|| counted(self.commits, "commit"));
        let uncommitted = match self.uncommitted {
            None => Some("git cannot say what was not committed".to_owned()),
            Some(0) => None,
            Some(files) => Some(counted(files, "uncommitted file")),
        };
        let parts: Vec<String> = commits.into_iter().chain(uncommitted).collect();
        if parts.is_empty() { "no work of its own".to_owned() } else { parts.join(", ") }
    }
}

/// The address of the task whose worktree has this name, where its workflow tells.
fn task(run: &RunId, part: &str, workflow: Option<&Workflow>) -> String {
    let phases = workflow.into_iter().flat_map(|workflow| &workflow.phases);
    let mut addresses = phases.flat_map(|phase| phase.tasks.iter().map(|task| (phase.id.clone(), task.id.clone())));
    let found = addresses.find_map(|(phase, task)| {
        let address = format!("{phase}/{task}");
        let name = Tree::of_task(run, &key(phase, task, None)).name;
        let rest = format!("{run}-{part}").strip_prefix(&name)?.to_owned();
        match rest.strip_prefix('-').and_then(|item| item.rsplit_once('-')) {
            // A readable form of the item and a digest, so that no two are called the same.
            Some((item, _)) => Some(format!("{address}[{item}]")),
            None => rest.is_empty().then_some(address),
        }
    });
    found.unwrap_or_else(|| part.to_owned())
}

/// Whether somebody who names a task means this worktree: by its address or its id, with the item in brackets, or as it is listed.
pub fn is_meant(named: &str, existing: &ExistingWorktree, view: &WorktreeView, workflow: Option<&Workflow>) -> bool {
    let listed = view.task.as_deref().unwrap_or_default();
    if named == listed || Some(named) == existing.part() || listed.split_once('/').is_some_and(|(_, task)| task == named) {
        return true;
    }
    let (address, item) = match named.strip_suffix(']').and_then(|named| named.split_once('[')) {
        Some((address, item)) => (address, Some(item.to_owned())),
        None => (named, None),
    };
    let phases: Vec<PhaseId> = match address.split_once('/') {
        Some((phase, _)) => vec![PhaseId::new(phase)],
        None => workflow.into_iter().flat_map(|workflow| &workflow.phases).map(|phase| phase.id.clone()).collect(),
    };
    let task = TaskId::new(address.split_once('/').map_or(address, |(_, task)| task));
    phases.into_iter().any(|phase| Tree::of_task(&existing.run(), &key(phase, task.clone(), item.clone())) == existing.tree)
}

fn key(phase: PhaseId, task: TaskId, item: Option<String>) -> TaskKey {
    TaskKey { phase, iteration: 1, task, item }
}
