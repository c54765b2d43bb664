//! Store errors. Each message says what happened, where, and what to do next.

use crate::store::{DriverInfo, Missing};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::OpenEnum;
use std::path::PathBuf;

/// Why a store operation failed. Unless it is [`StoreError::OutcomeUnknown`], nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("no space left to write {}: nothing was recorded; free some space, then try again", .0.display())]
    Full(PathBuf),
    #[error("{} cannot be written; make it and its directory writable, then try again", .0.display())]
    ReadOnly(PathBuf),
    #[error("another process keeps {} locked; stop the process that holds it (a backup or a database browser?), then try again", .0.display())]
    Locked(PathBuf),
    /// The database is damaged, or the file is not a database.
    #[error("{0}; keep a copy of it, then restore a backup, or move it away to start fresh")]
    Corrupt(String),
    /// The database was written by a later release.
    #[error("{} has format {found}, and this release of Lockgate knows up to {supported}; use a newer release", path.display())]
    Newer {
        path: PathBuf,
        found: i64,
        /// The newest format that this release knows.
        supported: i64,
    },
    /// Acknowledged commits are missing from the database.
    #[error("{} has lost recorded commits: {}", path.display(), list(missing))]
    CommitsMissing {
        path: PathBuf,
        /// The missing commits of each run.
        missing: Vec<Missing>,
    },
    /// The open database was moved or deleted.
    #[error("{} was removed or moved while it was in use, so nothing more can be recorded there", .0.display())]
    Gone(PathBuf),
    #[error("there is no {}; is this the right directory? `lockgate run` creates one", .0.display())]
    NotFound(PathBuf),
    #[error("it is not known whether this was recorded: {0}; check the run before you try again")]
    OutcomeUnknown(String),
    #[error("there is no run {0}; `lockgate runs` lists all runs")]
    NoRun(RunId),
    /// The caller violated the contract of the store: a bug.
    #[error("the store was used wrongly: {0}; please report this")]
    Misused(String),
    /// Any other error of the operating system or the database.
    #[error("{0}")]
    Io(String),
}

fn list(missing: &[Missing]) -> String {
    let runs: Vec<String> = missing.iter().map(|missing| format!("{} of run {}", missing.commits(), missing.run)).collect();
    runs.join(", ")
}

/// Why an append was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The history does not end at the expected version: reload the run.
    #[error("the run has changed meanwhile")]
    Conflict,
    #[error("another process has taken the run over")]
    Fenced,
    /// The append would claim the run, but another live process drives it.
    #[error("the run is driven by {0}")]
    DrivenBy(DriverInfo),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("the run is driven by {0}")]
    DrivenBy(DriverInfo),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run was not removed. Nothing was removed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// Another process has claimed the run.
    #[error("another process has taken the run over")]
    Fenced,
    /// The run has a status that it must not have.
    #[error("the run is {0}")]
    Status(OpenEnum<Status>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
