//! Committing exactly what a task changed.
//!
//! The working tree is recorded when an attempt starts and when it ends. What differs between the two is the work of the attempt, and
//! only that is committed: the changes of all attempts are put on top of the commit that is checked out by then. Lines that a user had
//! not committed stay uncommitted, even in files that the task changed too; where the two cannot be told apart, the commit is refused.
//!
//! | Module | Purpose |
//! |---|---|
//! | [`repository`] | git plumbing in the directory of the task |
//! | [`snapshot`] | the working tree at one point in time |
//! | [`attempts`] | the snapshots of all attempts, kept by a ref until the commit is made |
//! | [`merge`] | changes between two trees, and merging versions of a file |
//! | [`file_history`] | what the attempts did to each file, told apart from what others did |
//! | [`make`] | the commit itself, with the user's hooks, staged changes and identity |
//! | [`user_index`] | changing the user's index under git's own lock |

mod attempts;
mod file_history;
mod make;
mod merge;
mod repository;
mod snapshot;
mod user_index;

use crate::process::Stop;
use attempts::{Attempt, Attempts};
use lockgate_engine::id::RunId;
use repository::Repository;
use snapshot::Snapshot;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long it may take to record what an attempt left behind.
const TIME_TO_LEAVE: Duration = Duration::from_secs(2);

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
    #[error("{0}")]
    Failed(String),
    /// The run was stopped first.
    #[error("it was stopped before its changes were committed")]
    Stopped,
}

impl From<String> for NotCommitted {
    fn from(why: String) -> Self {
        Self::Failed(why)
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
            std::thread::sleep(TIME_TO_LEAVE);
            stop.stop();
        });
        self.end()
    }

    /// Commits what all attempts changed; returns the commit. Where they left nothing uncommitted, that is the last commit that they made
    /// themselves, if any.
    pub fn commit(mut self, message: &Message) -> Result<Option<String>, NotCommitted> {
        self.end()?;
        let made = make::commit(&self.repository, &self.attempts.all, message);
        if made.is_err() {
            // Hooks that refuse may have changed files, which counts as work of the attempt.
            let _ = self.end();
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
pub fn recover(place: &Place) -> Result<(), String> {
    let Some(turn) = turn_file(&place.dir).filter(|turn| user_index::is_left_behind(turn)) else { return Ok(()) };
    match open_turn(&turn)?.try_lock() {
        Ok(()) => user_index::recover(&Repository::open(place, &Stop::new())?),
        Err(_) => Ok(()),
    }
}

/// Removes the snapshots of tasks that will not be committed any more, since their runs are over. To remove all of them, git locks the
/// packed refs of the repository, and a kill would leave them locked.
pub fn forget_runs(dir: &Path, is_over: impl Fn(&RunId) -> bool, lock_refs: bool) -> Result<(), String> {
    attempts::forget_runs(dir, is_over, lock_refs)
}

/// The file that is locked while a task of any run commits what it does in a working tree; none outside git.
pub fn turn_file(dir: &Path) -> Option<PathBuf> {
    repository::git_dir(dir).ok().map(|folder| folder.join("lockgate-commit.lock"))
}

/// Opens that file, which is created where it does not exist.
pub fn open_turn(path: &Path) -> Result<File, String> {
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
    opened.map_err(|error| format!("{} cannot be opened: {error}", path.display()))
}
