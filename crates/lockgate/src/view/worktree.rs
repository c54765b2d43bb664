//! Git worktrees of a run: their paths and branches, and the work in them.

use crate::sanitize;
use lockgate_engine::id::{PhaseId, RunId, TaskId, TaskKey};
use lockgate_engine::plural::counted;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::root::Root;
use lockgate_runner::worktree::{ExistingWorktree, Tree};
use serde::Serialize;

/// An existing worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorktreeView {
    pub run: String,
    /// The task that uses it; absent if the whole run uses it.
    pub task: Option<String>,
    /// Its path, relative to the root.
    pub path: String,
    /// Whether the directory exists, not only the branch.
    pub exists: bool,
    pub branch: String,
    /// The number of commits that are on no other branch.
    pub commits: u64,
    /// The number of files with uncommitted changes; absent if git cannot tell.
    pub uncommitted: Option<u64>,
}

impl WorktreeView {
    /// Creates the view. The workflow is needed to find the task that the worktree belongs to.
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

    /// The worktree in one line, safe to print to a terminal.
    pub fn line(&self) -> String {
        let place = if self.exists { self.path.as_str() } else { "(its directory is missing)" };
        let task = self.task.as_deref().map(|task| format!(" of {task}")).unwrap_or_default();
        let line = format!("{place} on branch {}{task}: {}", self.branch, self.holds());
        sanitize::line(&line).into_owned()
    }

    /// Describes the work that would be lost with it.
    pub fn holds(&self) -> String {
        let commits = (self.commits > 0).then(|| counted(self.commits, "commit"));
        let uncommitted = match self.uncommitted {
            None => Some("uncommitted changes unknown".to_owned()),
            Some(0) => None,
            Some(files) => Some(counted(files, "uncommitted file")),
        };
        let parts: Vec<String> = commits.into_iter().chain(uncommitted).collect();
        if parts.is_empty() { "no work of its own".to_owned() } else { parts.join(", ") }
    }
}

/// The address of the task whose worktree has this name, if the workflow is known.
fn task(run: &RunId, part: &str, workflow: Option<&Workflow>) -> String {
    let phases = workflow.into_iter().flat_map(|workflow| &workflow.phases);
    let mut addresses = phases.flat_map(|phase| phase.tasks.iter().map(|task| (phase.id.clone(), task.id.clone())));
    let found = addresses.find_map(|(phase, task)| {
        let address = format!("{phase}/{task}");
        let name = Tree::of_task(run, &key(phase, task, None)).name;
        let rest = format!("{run}-{part}").strip_prefix(&name)?.to_owned();
        match rest.strip_prefix('-').and_then(|item| item.rsplit_once('-')) {
            // The name contains a readable form of the item and a digest, so that names are unique.
            Some((item, _)) => Some(format!("{address}[{item}]")),
            None => rest.is_empty().then_some(address),
        }
    });
    found.unwrap_or_else(|| part.to_owned())
}

/// Whether a name selects this worktree: the address or id of its task, with the item in brackets, or the name in lists.
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
