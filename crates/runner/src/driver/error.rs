//! Errors of the drive loop.

use crate::load::LoadError;
use crate::runtime::OrphanError;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Refusal;
use lockgate_store::{DriverInfo, StoreError};

/// Why driving stopped with an error. The history is intact.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Another live process drives the run.
    #[error("run {run} is driven by {by}")]
    DrivenBy { run: RunId, by: DriverInfo },
    /// Another process took the run over.
    #[error("another process has taken run {0} over")]
    TakenOver(RunId),
    /// The lease was not renewed in time, so another process may take the run over.
    #[error(
        "this process could not renew its lease on run {0} in time: the database did not answer; the tasks that it ran were stopped"
    )]
    LeaseLost(RunId),
    /// A bug: something that drives the run panicked.
    #[error("an internal error stopped run {run}: {detail}; please report this")]
    Panicked { run: RunId, detail: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The run cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is already a run with this id.
    #[error("run {0} already exists")]
    RunExists(RunId),
    #[error("processes that were left running by run {run} could not be stopped: {detail}")]
    Orphans { run: RunId, detail: OrphanError },
}
