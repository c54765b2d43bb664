//! The claim under which a driver works, and whether it can be relied on now.
//!
//! A lease that the process could not renew in time ends the driver while there is still time to end what it runs. A process that
//! slept through the end of its lease comes too late for that: it starts nothing before the store says that no other process has claimed the run.

use super::DriveError;
use crate::spans;
use lockgate_engine::id::RunId;
use lockgate_store::{Lease, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

/// How long a process that slept through the end of its lease waits for the store to say who drives the run.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a claim may take to be released. One that cannot be ends with the process, or with its lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// A claim that was made.
#[derive(Clone, Copy, Debug)]
struct Held {
    epoch: u64,
    /// The term of the lease in which the run was claimed, or was last seen to be still claimed.
    term: u64,
}

/// A claim on a run, or none yet: then the next commit makes it. Clones are the same claim. It is released at the latest when the last of them is
/// dropped: a driver that a panic or an abort ends must not keep its run from others.
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
    /// A claim that was made after the term was read.
    pub(super) fn held(store: &Arc<dyn Store>, run: &RunId, epoch: u64, term: u64) -> Self {
        let claim = Self::free(store, run);
        claim.take(epoch, term);
        claim
    }

    /// The run is not claimed yet.
    pub(super) fn free(store: &Arc<dyn Store>, run: &RunId) -> Self {
        let (store, lease) = (store.clone(), store.lease());
        Self(Arc::new(Inner { store, run: run.clone(), lease, held: watch::Sender::default() }))
    }

    /// Which run.
    pub(super) fn run(&self) -> &RunId {
        &self.0.run
    }

    /// The run was claimed, after the term was read.
    pub(super) fn take(&self, epoch: u64, term: u64) {
        debug!(epoch, term, "claimed");
        self.0.held.send_replace(Some(Held { epoch, term }));
    }

    /// The epoch that commits carry; none where the run is not claimed yet.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.0.held.borrow().map(|held| held.epoch)
    }

    /// Gives the claim up. One that cannot be released now ends with the process, or with its lease.
    pub(super) async fn release(&self) {
        if let Some(Held { epoch, .. }) = self.0.held.send_replace(None) {
            release(&*self.0.store, &self.0.run, epoch).await;
        }
    }

    /// Ends as soon as the claim can be relied on: immediately, as a rule.
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

    /// Ends, with the reason, when the claim can no longer be relied on.
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
            warn!(epoch, term, "this process slept through the end of its lease; confirming the claim");
            match timeout(PATIENCE, self.confirm_again()).await {
                Ok(Ok(term)) => self.take(epoch, term),
                Ok(Err(error)) => return error,
                Err(_) => return DriveError::LeaseLost(self.0.run.clone()),
            }
        }
    }

    /// Gives a term of the lease in which the run is still claimed. The lease comes first: while it holds, no other process can claim the run.
    async fn confirm_again(&self) -> Result<u64, DriveError> {
        let term = self.0.lease.granted().await;
        let present = self.0.store.driver_of(&self.0.run).await?;
        if present.is_some_and(|present| present.driver == *self.0.store.driver()) {
            return Ok(term);
        }
        Err(DriveError::TakenOver(self.0.run.clone()))
    }

    /// When whatever still runs under this claim must be killed; absent where the claim does not expire.
    pub(super) fn kill_at(&self) -> Option<Instant> {
        let held = (*self.0.held.borrow())?;
        self.0.lease.time_to_kill(held.term).map(|left| Instant::now() + left)
    }
}

/// Gives a claim up, if the store can be reached.
async fn release(store: &dyn Store, run: &RunId, epoch: u64) {
    let released = timeout(RELEASE_TIMEOUT, store.release(run, epoch)).await;
    // The claim ends with the process at the latest, so failing to release it is not an error of the caller.
    spans::run(run).in_scope(|| match released {
        Ok(Ok(())) => debug!(epoch, "released"),
        Ok(Err(error)) => warn!(epoch, %error, "could not be released"),
        Err(_) => warn!(epoch, "could not be released in time"),
    });
}
