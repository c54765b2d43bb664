//! Committing exactly what a task changed.
//!
//! The working tree is recorded when an attempt starts and when it ends. What differs between the two is the work of the attempt, and
//! only that is committed: the changes of all attempts are put on top of the commit that is checked out by then. Lines that a user had
//! not committed stay uncommitted, in the files that the task changed too; where the two cannot be told apart, the commit is refused.
//!
//! | Module | Purpose |
//! |---|---|
//! | [`repository`] | git plumbing in the directory of the task |
//! | [`snapshot`] | the working tree at a moment |
//! | [`attempts`] | the snapshots of all attempts, kept by a ref until the commit is made |
//! | [`merge`] | changes between two trees, and putting them on top of a third |
//! | [`make`] | the commit itself, with the user's hooks, staged changes and identity |

mod attempts;
mod make;
mod merge;
mod repository;
mod snapshot;

use crate::process::Stop;
use attempts::{Attempt, Attempts};
use repository::Repository;
use snapshot::Snapshot;
use std::path::PathBuf;

/// Where a task works, and what its commit needs besides.
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

/// What a commit is to be like.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its message.
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
    /// It was stopped before.
    #[error("it was stopped before what it changed was committed")]
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
    place: Place,
    attempts: Attempts,
}

impl Work {
    /// Records the working tree before an attempt starts. Refuses where no commit could be made afterwards.
    pub fn start(place: Place) -> Result<Self, String> {
        let repository = Repository::open(&place.dir, &place.scratch)?;
        make::refuse_unready(&repository)?;
        let mut attempts = Attempts::read(&repository, &place.name)?;
        // An attempt that was cut off did whatever was done until now.
        if let Some(cut_off) = attempts.all.last_mut().filter(|attempt| attempt.end.is_none()) {
            cut_off.end = Some(cut_off.start.end(&repository)?);
        }
        let left_before = attempts.left(&repository)?;
        attempts.all.push(Attempt { start: Snapshot::take(&repository, &left_before)?, end: None });
        attempts.write(&repository, &place.name)?;
        Ok(Self { repository, place, attempts })
    }

    /// Records what an attempt did that did not complete the task, so that it is committed with what the next one does.
    pub fn leave(mut self) -> Result<(), String> {
        self.end()
    }

    /// Commits what all attempts changed; returns the commit. Where they left nothing uncommitted, that is the last commit that they made
    /// themselves, if any.
    pub fn commit(mut self, message: &Message, stop: &Stop) -> Result<Option<String>, NotCommitted> {
        self.end()?;
        let made = make::commit(&self.repository, &self.place, &self.attempts.all, message, stop)?;
        Attempts::forget(&self.repository, &self.place.name)?;
        let before = self.attempts.all.first().and_then(|first| first.start.head.clone());
        let now = self.repository.head()?;
        match made || now != before {
            true => Ok(Some(self.repository.line(&["rev-parse", "--short", "HEAD"])?)),
            false => Ok(None),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        if let Some(attempt) = self.attempts.all.last_mut() {
            attempt.end = Some(attempt.start.end(&self.repository)?);
        }
        self.attempts.write(&self.repository, &self.place.name)
    }
}
