//! The claim under which a driver works, and whether it can be relied on now.
//!
//! A lease that the process could not renew in time ends the driver while there is still time to end what it runs. A process that
//! slept through the end of its lease comes too late for that: it starts nothing before the store says that no other process has claimed the run.

use super::DriveError;
use lockgate_engine::id::RunId;
use lockgate_store::{Lease, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a process that slept through the end of its lease waits for the store to say who drives the run.
const PATIENCE: Duration = Duration::from_secs(5);

/// A claim on a run. Clones are the same claim.
#[derive(Clone)]
pub(super) struct Claim {
    store: Arc<dyn Store>,
    run: RunId,
    pub(super) epoch: u64,
    lease: Lease,
    /// The term of the lease in which the run was claimed, or was last seen to be still claimed.
    term: Arc<watch::Sender<u64>>,
}

impl Claim {
    /// A claim that was made after the term was read.
    pub(super) fn new(store: &Arc<dyn Store>, run: &RunId, epoch: u64, term: u64) -> Self {
        let (store, lease) = (store.clone(), store.lease());
        Self { store, run: run.clone(), epoch, lease, term: Arc::new(watch::Sender::new(term)) }
    }

    pub(super) fn term(&self) -> u64 {
        *self.term.borrow()
    }

    /// Ends as soon as the claim can be relied on: at once, as a rule.
    pub(super) async fn confirmed(&self) {
        if self.lease.holds(self.term()) {
            return;
        }
        let mut term = self.term.subscribe();
        loop {
            let present = *term.borrow_and_update();
            if self.lease.holds(present) {
                return;
            }
            // The sender lives as long as `self`.
            let _ = term.changed().await;
        }
    }

    /// Ends, with the reason, when the claim can no longer be relied on.
    pub(super) async fn lost(&self) -> DriveError {
        loop {
            let term = self.term();
            self.lease.ended(term).await;
            if !self.lease.has_lapsed(term) {
                return DriveError::LeaseLost(self.run.clone());
            }
            match timeout(PATIENCE, self.confirm_again()).await {
                Ok(Ok(term)) => drop(self.term.send_replace(term)),
                Ok(Err(error)) => return error,
                Err(_) => return DriveError::LeaseLost(self.run.clone()),
            }
        }
    }

    /// Gives a term of the lease in which the run is still claimed. The lease comes first: while it holds, no other process can claim the run.
    async fn confirm_again(&self) -> Result<u64, DriveError> {
        let term = self.lease.granted().await;
        let present = self.store.driver_of(&self.run).await?;
        if present.is_some_and(|present| present.driver == *self.store.driver()) {
            return Ok(term);
        }
        Err(DriveError::TakenOver(self.run.clone()))
    }

    /// When whatever still runs under this claim must be killed; absent where the claim does not expire.
    pub(super) fn kill_at(&self) -> Option<Instant> {
        self.lease.time_to_kill(self.term()).map(|left| Instant::now() + left)
    }
}
