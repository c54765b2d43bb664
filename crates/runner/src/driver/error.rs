//! What can go wrong while a run is driven.

use crate::load::LoadError;
use crate::runtime::OrphanError;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Refusal;
use lockgate_store::{DriverInfo, StoreError};

/// What went wrong while driving. The history is as good as it was.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Another live process drives the run.
    #[error("run {run} is driven by {by}")]
    DrivenBy {
        /// The run.
        run: RunId,
        /// Who drives it.
        by: DriverInfo,
    },
    /// Another process took the run over.
    #[error("another process has taken run {0} over")]
    TakenOver(RunId),
    /// The process could not renew its lease in time, so another one may take the run over.
    #[error(
        "this process could not renew its lease on run {0} in time: the database did not answer; the tasks that it ran were stopped"
    )]
    LeaseLost(RunId),
    /// A mistake in Lockgate: something that drives the run panicked.
    #[error("an internal error stopped run {run}: {detail}; please report this")]
    Panicked {
        /// The run.
        run: RunId,
        /// What the panic said.
        detail: String,
    },
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The run cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What an earlier driver left behind could not be ended.
    #[error("what was left running of run {run} could not be ended: {detail}")]
    Orphans {
        /// The run.
        run: RunId,
        /// Why.
        detail: OrphanError,
    },
}
