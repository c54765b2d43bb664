//! What can go wrong in a store. Each message says what, where, and what to do next.

use crate::store::{DriverInfo, Missing};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::OpenEnum;
use std::path::PathBuf;

/// Why a store could not do what was asked. Unless it is [`StoreError::OutcomeUnknown`], nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no room.
    #[error("there is no room left for {}: nothing was recorded; free some space, then do it again", .0.display())]
    Full(PathBuf),
    /// The database or its folder cannot be written.
    #[error("{} cannot be written; make it and its folder writable for you, then do it again", .0.display())]
    ReadOnly(PathBuf),
    /// Another process holds the database.
    #[error("another process keeps {} locked; end what holds it (a backup or a database browser?), then do it again", .0.display())]
    Locked(PathBuf),
    /// The database is damaged, or is something else.
    #[error("{0}; keep a copy of it, then put back a backup, or move it away to begin anew")]
    Corrupt(String),
    /// The database was written by a later release.
    #[error("{} has format {found}, and this release of Lockgate knows up to {supported}; use a newer release", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this release knows.
        supported: i64,
    },
    /// Commits that were acknowledged are no longer in the database.
    #[error("{} lacks what was recorded: {}", path.display(), list(missing))]
    CommitsMissing {
        /// The database.
        path: PathBuf,
        /// What is missing.
        missing: Vec<Missing>,
    },
    /// The database that is open is no longer at its path.
    #[error("{} was removed or moved while it was in use, so nothing more can be recorded there", .0.display())]
    Gone(PathBuf),
    /// There is no database.
    #[error("there is no {}; is this the right folder? `lockgate run` makes one", .0.display())]
    NotFound(PathBuf),
    /// It may or may not have been recorded.
    #[error("it is not known whether this was recorded: {0}; look at the run before you do it again")]
    OutcomeUnknown(String),
    /// The run that was named is not in the store.
    #[error("there is no run {0}; `lockgate runs` lists those that are")]
    NoRun(RunId),
    /// The caller broke the rules of the store: a mistake in Lockgate.
    #[error("the store was used wrongly: {0}; please report this")]
    Misused(String),
    /// Anything else that the operating system or the database said.
    #[error("{0}")]
    Io(String),
}

/// What is missing, run by run.
fn list(missing: &[Missing]) -> String {
    let runs: Vec<String> = missing.iter().map(|missing| format!("{} of run {}", missing.commits(), missing.run)).collect();
    runs.join(", ")
}

/// Why an append was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The history does not end where the caller thought: read it again.
    #[error("the run has changed meanwhile")]
    Conflict,
    /// Another driver has taken the run over.
    #[error("another process has taken the run over")]
    Fenced,
    /// The append would claim the run, and another live process drives it.
    #[error("the run is driven by {0}")]
    DrivenBy(DriverInfo),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run could not be claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Another live process drives it.
    #[error("the run is driven by {0}")]
    DrivenBy(DriverInfo),
    /// The store failed.
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
