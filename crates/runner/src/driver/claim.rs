//! A driver's claim on its run, and whether it is still valid.
//!
//! If the process cannot renew its lease in time, the driver stops while there is still time to stop its effects. A process
//! that was suspended past the end of its lease is too late for that: it starts nothing until the store confirms that no
//! other process has claimed the run.

use super::DriveError;
use crate::spans;
use lockgate_engine::id::RunId;
use lockgate_store::{Lease, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

/// How long a process whose lease lapsed waits for the store to say who drives the run.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long releasing a claim may take. A claim that is not released ends with the process or with its lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
struct Held {
    epoch: u64,
    /// The lease term in which the run was claimed or last confirmed.
    term: u64,
}

/// A claim on a run; empty until the first commit or `claim_now` makes one. Clones share the claim. Dropping the last clone
/// releases it, so that a driver ended by a panic or an abort does not block its run.
#[derive(Clone)]
pub(super) struct Claim(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    run: RunId,
    lease: Lease,
    held: watch::Sender<Option<Held>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(Held { epoch, .. }) = self.held.send_replace(None) {
            spans::run(&self.run).in_scope(|| debug!(epoch, "abandoned"));
            self.store.abandon(&self.run, epoch);
        }
    }
}

impl Claim {
    /// A claim made after `term` was read.
    pub(super) fn held(store: &Arc<dyn Store>, run: &RunId, epoch: u64, term: u64) -> Self {
        let claim = Self::free(store, run);
        claim.take(epoch, term);
        claim
    }

    pub(super) fn free(store: &Arc<dyn Store>, run: &RunId) -> Self {
        let (store, lease) = (store.clone(), store.lease());
        Self(Arc::new(Inner { store, run: run.clone(), lease, held: watch::Sender::default() }))
    }

    pub(super) fn run(&self) -> &RunId {
        &self.0.run
    }

    /// Records a claim made after `term` was read.
    pub(super) fn take(&self, epoch: u64, term: u64) {
        debug!(epoch, term, "claimed");
        self.0.held.send_replace(Some(Held { epoch, term }));
    }

    /// The epoch that commits carry; `None` before the run is claimed.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.0.held.borrow().map(|held| held.epoch)
    }

    /// Releases the claim. If that fails, it ends with the process or with its lease.
    pub(super) async fn release(&self) {
        if let Some(Held { epoch, .. }) = self.0.held.send_replace(None) {
            release(&*self.0.store, &self.0.run, epoch).await;
        }
    }

    /// Resolves once the claim is known to be valid: usually immediately.
    pub(super) async fn confirmed(&self) {
        if self.0.held.borrow().is_some_and(|held| self.0.lease.holds(held.term)) {
            return;
        }
        let mut held = self.0.held.subscribe();
        if held.wait_for(|held| held.is_some_and(|held| self.0.lease.holds(held.term))).await.is_err() {
            // The sender lives as long as `self`.
            std::future::pending().await
        }
    }

    /// Resolves, with the reason, when the claim can no longer be relied on.
    pub(super) async fn lost(&self) -> DriveError {
        let mut claimed = self.0.held.subscribe();
        loop {
            let held = claimed.wait_for(Option::is_some).await.map(|held| *held);
            let Ok(Some(Held { epoch, term })) = held else { return std::future::pending().await };
            self.0.lease.ended(term).await;
            if !self.0.lease.has_lapsed(term) {
                warn!(epoch, term, "the lease could not be renewed in time");
                return DriveError::LeaseLost(self.0.run.clone());
            }
            warn!(epoch, term, "the lease lapsed while this process was suspended; confirming the claim");
            match timeout(PATIENCE, self.confirm_again()).await {
                Ok(Ok(term)) => self.take(epoch, term),
                Ok(Err(error)) => return error,
                Err(_) => return DriveError::LeaseLost(self.0.run.clone()),
            }
        }
    }

    /// Returns a lease term in which the run is still claimed. Wait for the lease first: while it holds, no other process can
    /// claim the run.
    async fn confirm_again(&self) -> Result<u64, DriveError> {
        let term = self.0.lease.granted().await;
        let present = self.0.store.driver_of(&self.0.run).await?;
        if present.is_some_and(|present| present.driver == *self.0.store.driver()) {
            return Ok(term);
        }
        Err(DriveError::TakenOver(self.0.run.clone()))
    }

    /// When everything that runs under this claim must be killed; `None` if the claim does not expire.
    pub(super) fn kill_at(&self) -> Option<Instant> {
        let held = (*self.0.held.borrow())?;
        self.0.lease.time_to_kill(held.term).map(|left| Instant::now() + left)
    }
}

async fn release(store: &dyn Store, run: &RunId, epoch: u64) {
    let released = timeout(RELEASE_TIMEOUT, store.release(run, epoch)).await;
    // The claim ends with the process at the latest, so the caller can ignore a failure here.
    spans::run(run).in_scope(|| match released {
        Ok(Ok(())) => debug!(epoch, "claim released"),
        Ok(Err(error)) => warn!(epoch, %error, "could not release the claim"),
        Err(_) => warn!(epoch, "timed out while releasing the claim"),
    });
}
