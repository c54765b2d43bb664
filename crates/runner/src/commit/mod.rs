//! Committing exactly what a task changed.
//!
//! The working tree is recorded when an attempt starts and when it ends. What differs between the two is the work of the attempt, and
//! only that is committed: the changes of all attempts are put on top of the commit that is checked out by then. Lines that a user had
//! not committed stay uncommitted, even in files that the task changed too; where the two cannot be told apart, the commit is refused.
//!
//! | Module | Purpose |
//! |---|---|
//! | `repository` | git plumbing in the directory of the task |
//! | `snapshot` | the working tree at one point in time |
//! | `attempts` | the snapshots of all attempts, kept by a ref until the commit is made |
//! | `merge` | changes between two trees, and merging versions of a file |
//! | `file_history` | what the attempts did to each file, told apart from what others did |
//! | `make` | the commit itself, with the user's hooks, staged changes and identity |
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

/// How long it may take to record what an attempt left behind.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a task works, and what else its commit needs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory that the task works in; what it changes outside is not committed.
    pub dir: PathBuf,
    /// A directory for temporary files, of this task alone.
    pub scratch: PathBuf,
    /// The lock that git and the user's hooks hold while they make the commit.
    pub lock: PathBuf,
    /// The name of the ref that keeps the snapshots, of this task alone.
    pub name: String,
}

/// How to commit.
#[derive(Clone, Debug)]
pub struct Message {
    /// The message itself.
    pub text: String,
    /// Whether the repository's hooks are run.
    pub hooks: bool,
}

/// Why what a task changed was not committed.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// It cannot be, or a hook refused it.
    #[error(transparent)]
    Failed(#[from] CommitError),
    /// The run was stopped first.
    #[error("it was stopped before its changes were committed")]
    Stopped,
}

impl From<GitError> for NotCommitted {
    fn from(error: GitError) -> Self {
        Self::Failed(error.into())
    }
}

/// Why a commit cannot be made or repaired.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Git failed, or a hook refused it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Git cannot be run together with the user's programs.
    #[error("git cannot be run: {0}")]
    NotRun(#[source] std::io::Error),
    /// The commit failed, and neither git nor a hook said why.
    #[error("`git commit` failed without a message; a hook may have rejected the commit")]
    Rejected,
    /// A file next to the index, or one of our own, fails.
    #[error("{} cannot be {does}: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What cannot be done with it.
        does: FileUse,
        /// Why.
        error: std::io::Error,
    },
    /// What a killed driver left running cannot be ended.
    #[error(transparent)]
    Orphans(std::io::Error),
    /// Git is in the middle of something that a commit would end.
    #[error("{0} is in progress in this repository; finish or abort it first")]
    InProgress(&'static str),
    /// Git does not know who commits.
    #[error("git has no identity to commit with; set one with `git config user.name NAME` and `git config user.email ADDRESS`")]
    NoIdentity,
    /// The index cannot become a tree.
    #[error("the index has unmerged files or is damaged; resolve the conflicts first: {0}")]
    Unmerged(Box<CommitError>),
    /// Another git process holds the index.
    #[error("another git process is using this repository; if none is running, remove {}", .lock.display())]
    Busy {
        /// Its lock.
        lock: PathBuf,
    },
    /// Other processes were faster every time.
    #[error(
        "other processes kept committing to this branch, so the commit was given up after {tries} tries; resume the run to try again"
    )]
    BranchMoves {
        /// How often it was tried.
        tries: usize,
    },
    /// The work of the task and what a user staged are in the same lines.
    #[error("the task changed lines that you have staged, in {files}; commit or unstage them, then resume the run")]
    StagedLines {
        /// The first of these files.
        files: String,
    },
    /// The work of the task and what a user had not committed cannot be told apart.
    #[error(
        "the task changed files that already had uncommitted changes, and the two cannot be separated: {files}; commit these files yourself, then resume the run"
    )]
    Mixed {
        /// The first of these files.
        files: String,
    },
    /// The ref that keeps the snapshots is damaged.
    #[error(
        "{reference} is damaged; delete it with `git update-ref -d {reference}`, commit the task's changes yourself, then resume the run"
    )]
    Damaged {
        /// The ref.
        reference: String,
    },
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// It is opened.
    Opened,
    /// It is read.
    Read,
    /// It is written.
    Written,
    /// It is removed.
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

/// The work of a task that is to be committed, while an attempt runs.
#[derive(Debug)]
pub struct Work {
    repository: Repository,
    name: String,
    attempts: Attempts,
}

impl Work {
    /// Records the working tree before an attempt starts. Refuses where no commit could be made afterwards.
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

    /// Records what an attempt did that did not complete the task, so that it is committed with what the next one does.
    pub fn leave(mut self) -> Result<(), NotCommitted> {
        // This still has to be recorded if the attempt was stopped, so it gets its own short time limit.
        let stop = Stop::new();
        self.repository.stop = stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(LEAVE_TIMEOUT);
            stop.stop();
        });
        self.end()
    }

    /// Commits what all attempts changed; returns the commit. Where they left nothing uncommitted, that is the last commit that they made
    /// themselves, if any.
    pub fn commit(mut self, message: &Message) -> Result<Option<String>, NotCommitted> {
        self.end()?;
        let made = make::commit(&self.repository, &self.attempts.all, message);
        // Hooks that refuse may have changed files, which counts as work of the attempt.
        if made.is_err()
            && let Err(error) = self.end()
        {
            tracing::warn!(%error, "what hooks changed is not recorded as work of the attempt");
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

/// Repairs the index of a working tree after a commit in it was cut off by a kill, unless another process is committing right now.
pub fn recover(place: &Place) -> Result<(), CommitError> {
    let Some(turn) = dir_lock_file(&place.dir).filter(|turn| user_index::is_left_behind(turn)) else { return Ok(()) };
    match open_dir_lock(&turn)?.try_lock() {
        Ok(()) => user_index::recover(&Repository::open(place, &Stop::new())?),
        Err(_) => Ok(()),
    }
}

/// Removes the snapshots of tasks that will not be committed any more, since their runs are over. To remove all of them, git locks the
/// packed refs of the repository, and a kill would leave them locked.
pub fn forget_runs(dir: &Path, is_over: impl Fn(&RunId) -> bool, lock_refs: bool) -> Result<(), CommitError> {
    attempts::forget_runs(dir, is_over, lock_refs)
}

/// The file that is locked while a task of any run commits what it does in a working tree; none outside git.
pub fn dir_lock_file(dir: &Path) -> Option<PathBuf> {
    repository::git_dir(dir).ok().map(|folder| folder.join("lockgate-commit.lock"))
}

/// Opens that file, which is created where it does not exist.
pub fn open_dir_lock(path: &Path) -> Result<File, CommitError> {
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| CommitError::file(path, FileUse::Opened, error))
}
