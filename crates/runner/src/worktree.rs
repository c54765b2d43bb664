//! Git worktrees of runs and tasks: their directories, their branches, and creating them.

mod existing;
mod fork;

pub use existing::{ExistingWorktree, NotMerged, existing, merge, remove, remove_unused};
pub use fork::ForkBranches;

use crate::git::{GitError, git, git_command, outcome};
use crate::process::{Stop, run_locked};
use crate::root::Root;
use lockgate_engine::id::{RunId, TaskKey};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The directory inside the state directory that contains worktrees.
pub const WORKTREES_DIR: &str = "worktrees";

/// The prefix of all our branches.
pub const BRANCHES: &str = "lockgate/";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// The name of its directory in the worktrees of the root, and of its branch.
    pub name: String,
}

impl Tree {
    pub fn of_run(run: &RunId) -> Self {
        Self { name: run.to_string() }
    }

    /// The worktree of a task, the same for all its attempts and all iterations of its phase. Shortened ids may coincide, so
    /// digests of the full ids keep tasks apart. The name for an item starts with that of its task.
    pub fn of_task(run: &RunId, key: &TaskKey) -> Self {
        let plain = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).take(40).collect()
        };
        let (phase, task) = (key.phase.as_str(), key.task.as_str());
        let mut name = format!("{run}-{}-{}-{}", plain(phase), plain(task), short_digest(&format!("{phase}/{task}")));
        if let Some(item) = &key.item {
            name += &format!("-{}-{}", plain(item), short_digest(item));
        }
        Self { name }
    }

    pub fn branch(&self) -> String {
        format!("{BRANCHES}{}", self.name)
    }

    pub fn dir(&self, root: &Root) -> PathBuf {
        root.state_dir().join(WORKTREES_DIR).join(&self.name)
    }

    pub fn run(&self) -> RunId {
        RunId::new(self.name.split('-').next().unwrap_or_default())
    }

    /// A file that exists while the worktree is being created. A leftover one means that the worktree is incomplete.
    fn creating(&self, root: &Root) -> PathBuf {
        root.state_dir().join(WORKTREES_DIR).join(format!("{}.creating", self.name))
    }

    /// Whether its creation was started but not completed, so that nothing has worked in it.
    fn is_incomplete(&self, root: &Root) -> bool {
        self.creating(root).symlink_metadata().is_ok()
    }

    fn is_ready(&self, root: &Root) -> bool {
        self.dir(root).join(".git").exists() && !self.is_incomplete(root)
    }
}

/// A digest that is long enough to be unique among the tasks and items of a run.
fn short_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(12).collect()
}

/// Git cannot create two worktrees concurrently.
static MAKING: Mutex<()> = Mutex::new(());

#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    #[error(transparent)]
    Failed(#[from] WorktreeError),
    /// Its creation was stopped. The incomplete worktree is recreated next time.
    #[error("it was stopped while its worktree was being created")]
    Stopped,
}

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("a worktree needs a git repository at {}: {error}", .root.display())]
    NoRepository { root: PathBuf, error: GitError },
    #[error("a worktree needs a commit to start from, but this repository has none; commit something first")]
    NoCommit,
    #[error("{} cannot be created: {error}", .path.display())]
    NoDirectory { path: PathBuf, error: io::Error },
    #[error("{} exists and is not a git worktree; move it away, then try again", .path.display())]
    Occupied { path: PathBuf },
    #[error("the worktree {} cannot be created: {why}", .path.display())]
    NotCreated { path: PathBuf, why: NotCreated },
    #[error("{} cannot be removed: {why}", .path.display())]
    NotRemoved { path: PathBuf, why: NotRemoved },
    #[error("the incomplete worktree {} cannot be removed: {why}", .path.display())]
    IncompleteNotRemoved { path: PathBuf, why: NotRemoved },
    #[error("its branch cannot be removed: {0}")]
    BranchNotRemoved(#[source] GitError),
}

#[derive(Debug, thiserror::Error)]
pub enum NotCreated {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the post-checkout hook of the repository failed: {0}")]
    Hook(#[source] GitError),
    #[error(transparent)]
    File(#[from] io::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum NotRemoved {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    File(#[from] io::Error),
}

/// Creates a worktree unless it exists, branching off from another one or from the root's checked-out commit. Returns the
/// directory in it that corresponds to the root.
pub fn make(root: &Root, tree: &Tree, from: Option<&Tree>, stop: &Stop) -> Result<PathBuf, NotMade> {
    let _alone = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let prefix = git(root.dir(), &["rev-parse", "--show-prefix"])
        .map_err(|error| WorktreeError::NoRepository { root: root.dir().to_owned(), error })?;
    if !tree.is_ready(root) {
        if stop.is_stopped() {
            return Err(NotMade::Stopped);
        }
        let start = from.map_or_else(|| "HEAD".to_owned(), Tree::branch);
        make_room(root, tree, &start)?;
        create(root, tree, &start, stop)?;
    }
    Ok(tree.dir(root).join(prefix.trim()))
}

/// Checks that a worktree can be created, and removes the leftovers of an interrupted creation.
fn make_room(root: &Root, tree: &Tree, start: &str) -> Result<(), WorktreeError> {
    if git(root.dir(), &["rev-parse", "--verify", "--quiet", &format!("{start}^{{commit}}")]).is_err() {
        return Err(WorktreeError::NoCommit);
    }
    let folder = tree.dir(root);
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).map_err(|error| WorktreeError::NoDirectory { path: parent.to_owned(), error })?;
    }
    if tree.is_incomplete(root) {
        discard(root, &folder)?;
    }
    // Forget a directory that was removed manually.
    git(root.dir(), &["worktree", "prune"])?;
    if folder.symlink_metadata().is_ok() && std::fs::remove_dir(&folder).is_err() {
        return Err(WorktreeError::Occupied { path: folder });
    }
    Ok(())
}

/// Lets git create a worktree. From before git starts until it has succeeded, a marker file says that the worktree is
/// incomplete.
fn create(root: &Root, tree: &Tree, start: &str, stop: &Stop) -> Result<(), NotMade> {
    let (folder, branch) = (tree.dir(root), tree.branch());
    let path = folder.to_string_lossy().into_owned();
    let cannot = |why: NotCreated| NotMade::Failed(WorktreeError::NotCreated { path: folder.clone(), why });
    mark_as_creating(&tree.creating(root)).map_err(|error| cannot(error.into()))?;
    let known = git(root.dir(), &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
    let mut command = git_command(root.dir());
    match known {
        true => command.args(["worktree", "add", &path, &branch]),
        false => command.args(["worktree", "add", "-b", &branch, &path, start]),
    };
    let ran =
        run_locked(command, &root.worktree_lock(&tree.run(), &tree.name), None, stop).map_err(|error| cannot(error.into()))?;
    if let Err(why) = outcome(ran.ok_or(NotMade::Stopped)?) {
        // Git removes what it could not complete. Only a failing hook leaves the worktree behind, and must run again next
        // time.
        let why = match folder.join(".git").exists() {
            false => NotCreated::Git(why),
            true => {
                discard(root, &folder)?;
                NotCreated::Hook(why)
            }
        };
        if folder.symlink_metadata().is_err() {
            std::fs::remove_file(tree.creating(root)).map_err(|error| cannot(error.into()))?;
        }
        return Err(cannot(why));
    }
    std::fs::remove_file(tree.creating(root)).map_err(|error| cannot(error.into()))
}

/// Durably records that a worktree is being created, before any of it exists.
fn mark_as_creating(path: &Path) -> std::io::Result<()> {
    std::fs::File::create(path)?.sync_all()?;
    path.parent().map_or(Ok(()), |parent| std::fs::File::open(parent)?.sync_all())
}

/// Removes a worktree that no task has worked in. Its branch stays.
fn discard(root: &Root, folder: &Path) -> Result<(), WorktreeError> {
    // Given twice, it also removes a worktree that git itself locked while creating it.
    let removed = git(root.dir(), &["worktree", "remove", "--force", "--force", &folder.to_string_lossy()]);
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let why = removed.err().map_or(NotRemoved::File(error), NotRemoved::Git);
            Err(WorktreeError::IncompleteNotRemoved { path: folder.to_owned(), why })
        }
    }
}

/// The directory in a worktree that corresponds to the root, if the worktree exists.
pub fn place(root: &Root, tree: &Tree) -> Option<PathBuf> {
    if !tree.is_ready(root) {
        return None;
    }
    let prefix = git(root.dir(), &["rev-parse", "--show-prefix"]).ok()?;
    Some(tree.dir(root).join(prefix.trim()))
}
