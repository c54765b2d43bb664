//! Commits exactly what a task changed.
//!
//! The working tree is recorded when an attempt starts and when it ends. The difference is the work of the attempt, and only
//! that is committed: the changes of all attempts are applied to the currently checked-out commit. Lines that a user had not
//! committed stay uncommitted, even in files that the task changed too; if the two cannot be separated, the commit is
//! refused.
//!
//! | Module | Purpose |
//! |---|---|
//! | `repository` | git plumbing in the directory of the task |
//! | `snapshot` | the working tree at one point in time |
//! | `attempts` | the snapshots of all attempts, kept by a ref until the commit is made |
//! | `merge` | changes between two trees, and merging versions of a file |
//! | `file_history` | what the attempts did to each file, separated from the changes of others |
//! | `make` | makes the commit, with the user's hooks, staged changes and identity |
//! | `user_index` | changing the user's index under git's own lock |

mod attempts;
mod file_history;
mod make;
mod merge;
pub(crate) mod repository;
pub(crate) mod snapshot;
mod user_index;

use crate::git::GitError;
use crate::process::Stop;
use attempts::{Attempt, Attempts};
use lockgate_engine::id::RunId;
use repository::Repository;
use snapshot::Snapshot;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long recording the work of a failed attempt may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a task works, and what its commit needs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The working directory of the task; changes outside it are not committed.
    pub dir: PathBuf,
    /// A directory for temporary files of this task.
    pub scratch: PathBuf,
    /// The lock that git and the user's hooks hold while they make the commit.
    pub lock: PathBuf,
    /// The name of this task's ref for snapshots.
    pub name: String,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub text: String,
    /// Whether the repository's hooks run.
    pub hooks: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// It failed, or a hook rejected it.
    #[error(transparent)]
    Failed(#[from] CommitError),
    #[error("it was stopped before its changes were committed")]
    Stopped,
}

impl From<GitError> for NotCommitted {
    fn from(error: GitError) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("git cannot be run: {0}")]
    NotRun(#[source] std::io::Error),
    #[error("`git commit` failed without a message; a hook may have rejected the commit")]
    Rejected,
    #[error("{} cannot be {does}: {error}", .path.display())]
    File { path: PathBuf, does: FileUse, error: std::io::Error },
    /// Processes that a killed driver left running could not be stopped.
    #[error(transparent)]
    Orphans(std::io::Error),
    /// A merge, rebase or similar operation is in progress.
    #[error("{0} is in progress in this repository; finish or abort it first")]
    InProgress(&'static str),
    #[error("git has no identity to commit with; set one with `git config user.name NAME` and `git config user.email ADDRESS`")]
    NoIdentity,
    #[error("the index has unmerged files or is damaged; resolve the conflicts first: {0}")]
    Unmerged(Box<CommitError>),
    #[error("another git process is using this repository; if none is running, remove {}", .lock.display())]
    Busy { lock: PathBuf },
    #[error(
        "other processes kept committing to this branch, so the commit was given up after {tries} tries; resume the run to try again"
    )]
    BranchMoves { tries: usize },
    #[error("the task changed lines that you have staged, in {files}; commit or unstage them, then resume the run")]
    StagedLines { files: String },
    #[error(
        "the task changed files that already had uncommitted changes, and the two cannot be separated: {files}; commit these files yourself, then resume the run"
    )]
    Mixed { files: String },
    #[error(
        "{reference} is damaged; delete it with `git update-ref -d {reference}`, commit the task's changes yourself, then resume the run"
    )]
    Damaged { reference: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    Opened,
    Read,
    Written,
    Removed,
}

impl std::fmt::Display for FileUse {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Opened => "opened",
            Self::Read => "read",
            Self::Written => "written",
            Self::Removed => "removed",
        })
    }
}

impl CommitError {
    fn file(path: &Path, does: FileUse, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), does, error }
    }
}

/// The work of a task that will be committed, while an attempt runs.
#[derive(Debug)]
pub struct Work {
    repository: Repository,
    name: String,
    attempts: Attempts,
}

impl Work {
    /// Records the working tree before an attempt starts. Fails if no commit could be made afterwards.
    pub fn start(place: &Place, stop: &Stop) -> Result<Self, NotCommitted> {
        let repository = Repository::open(place, stop)?;
        user_index::recover(&repository)?;
        Attempts::recover(&repository, &place.name)?;
        make::refuse_unready(&repository)?;
        let mut attempts = Attempts::read(&repository, &place.name)?;
        // Everything changed until now counts as work of the interrupted attempt.
        if let Some(cut_off) = attempts.all.last_mut().filter(|attempt| attempt.end.is_none()) {
            cut_off.end = Some(cut_off.start.end(&repository)?);
        }
        let left_before = attempts.left(&repository)?;
        attempts.all.push(Attempt { start: Snapshot::take(&repository, &left_before)?, end: None });
        attempts.write(&repository, &place.name)?;
        Ok(Self { repository, name: place.name.clone(), attempts })
    }

    /// Records the work of an attempt that did not complete the task, so that it is committed with that of the next one.
    pub fn leave(mut self) -> Result<(), NotCommitted> {
        // This must be recorded even if the attempt was stopped, so it gets its own short time limit.
        let stop = Stop::new();
        self.repository.stop = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(LEAVE_TIMEOUT);
            stop.stop();
        });
        self.end()
    }

    /// Commits the changes of all attempts. If nothing is uncommitted, returns the last commit that the attempts made
    /// themselves, if any.
    pub fn commit(mut self, message: &Message) -> Result<Option<String>, NotCommitted> {
        self.end()?;
        let made = make::commit(&self.repository, &self.attempts.all, message);
        // Hooks that rejected the commit may have changed files, which counts as work of the attempt.
        if made.is_err()
            && let Err(error) = self.end()
        {
            tracing::warn!(%error, "cannot record the changes that hooks made");
        }
        let made = made?;
        Attempts::forget(&self.repository, &self.name)?;
        let before = self.attempts.all.first().and_then(|first| first.start.head.clone());
        let by_itself = self.repository.head()?.filter(|now| Some(now) != before.as_ref());
        match made.or(by_itself) {
            Some(commit) => Ok(Some(self.repository.line(&["rev-parse", "--short", &commit])?)),
            None => Ok(None),
        }
    }

    fn end(&mut self) -> Result<(), NotCommitted> {
        if let Some(attempt) = self.attempts.all.last_mut() {
            attempt.end = Some(attempt.start.end(&self.repository)?);
        }
        Ok(self.attempts.write(&self.repository, &self.name)?)
    }
}

/// Repairs the index of a working tree after a commit was interrupted by a kill, unless another process is committing right
/// now.
pub fn recover(place: &Place) -> Result<(), CommitError> {
    let Some(turn) = dir_lock_file(&place.dir).filter(|turn| user_index::is_left_behind(turn)) else { return Ok(()) };
    match open_dir_lock(&turn)?.try_lock() {
        Ok(()) => user_index::recover(&Repository::open(place, &Stop::new())?),
        Err(_) => Ok(()),
    }
}

/// Removes the snapshots of tasks that will not be committed any more because their runs are over. To remove all of them, git
/// locks the packed refs of the repository, and a kill would leave them locked.
pub fn forget_runs(dir: &Path, is_over: impl Fn(&RunId) -> bool, lock_refs: bool) -> Result<(), CommitError> {
    attempts::forget_runs(dir, is_over, lock_refs)
}

/// The file that is locked while a task of any run commits in a working tree; `None` outside git.
pub fn dir_lock_file(dir: &Path) -> Option<PathBuf> {
    repository::git_dir(dir).ok().map(|folder| folder.join("lockgate-commit.lock"))
}

/// Opens that file, creating it if it does not exist.
pub fn open_dir_lock(path: &Path) -> Result<File, CommitError> {
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| CommitError::file(path, FileUse::Opened, error))
}
