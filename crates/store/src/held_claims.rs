//! The claims that this process holds.
//!
//! A database records which process drives a run, not which driver inside that process. The store therefore remembers the
//! claims it handed out that were not released: such a run counts as driven, inside this process as well as for others. A run
//! that the database assigns to this process but that is not held here is free: its claim was lost in a failed reply, or
//! could not be released.

use lockgate_engine::id::RunId;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The runs that this process holds a claim on or is about to claim.
#[derive(Debug, Default)]
pub(crate) struct HeldClaims {
    /// The epoch of each claim; `None` while the run is being claimed.
    runs: Mutex<HashMap<RunId, Option<u64>>>,
}

impl HeldClaims {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Option<u64>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a run that the caller is about to claim; `None` if this process already holds it.
    pub(crate) fn reserve(self: &Arc<Self>, run: &RunId) -> Option<Reservation> {
        let mut runs = self.runs();
        if runs.contains_key(run) {
            return None;
        }
        runs.insert(run.clone(), None);
        Some(Reservation { held: self.clone(), run: run.clone(), epoch: None })
    }

    /// Forgets a claim regardless of the database: its holder no longer relies on it.
    pub(crate) fn release(&self, run: &RunId, epoch: u64) {
        let mut runs = self.runs();
        if runs.get(run) == Some(&Some(epoch)) {
            runs.remove(run);
        }
    }

    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.runs().contains_key(run)
    }

    pub(crate) fn all(&self) -> Vec<RunId> {
        self.runs().keys().cloned().collect()
    }
}

/// A run that is being claimed. Dropping it frees the run, unless the claim was kept.
#[derive(Debug)]
pub(crate) struct Reservation {
    held: Arc<HeldClaims>,
    run: RunId,
    epoch: Option<u64>,
}

impl Reservation {
    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// Marks the run as claimed with this epoch; it is held until [`HeldClaims::release`].
    pub(crate) fn keep(mut self, epoch: u64) {
        self.epoch = Some(epoch);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut runs = self.held.runs();
        match self.epoch {
            Some(_) => drop(runs.insert(self.run.clone(), self.epoch)),
            None => drop(runs.remove(&self.run)),
        }
    }
}

/// A reply that a caller waits for. A reply that arrives after the caller is gone goes to `unwanted`, so that no claim is
/// left without a holder.
pub(crate) struct Awaited<T, F: FnMut(T)> {
    reply: oneshot::Receiver<T>,
    unwanted: F,
}

impl<T, F: FnMut(T)> Awaited<T, F> {
    pub(crate) fn new(reply: oneshot::Receiver<T>, unwanted: F) -> Self {
        Self { reply, unwanted }
    }
}

impl<T, F: FnMut(T) + Unpin> Future for Awaited<T, F> {
    type Output = Result<T, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.reply).poll(context)
    }
}

impl<T, F: FnMut(T)> Drop for Awaited<T, F> {
    fn drop(&mut self) {
        // From here on, the sender notices that the receiver is closed.
        self.reply.close();
        if let Ok(value) = self.reply.try_recv() {
            (self.unwanted)(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_run_is_reserved_once_and_free_again_when_it_is_not_claimed() {
        let (held, run) = (Arc::new(HeldClaims::default()), RunId::new("aaaa"));
        let first = held.reserve(&run).unwrap();
        assert!(held.reserve(&run).is_none());
        drop(first);
        held.reserve(&run).unwrap().keep(3);
        assert!(held.has(&run) && held.reserve(&run).is_none());
        held.release(&run, 2);
        assert!(held.has(&run), "another claim was released");
        held.release(&run, 3);
        assert!(held.reserve(&run).is_some());
    }

    #[test]
    fn a_reply_that_no_one_waits_for_is_not_lost() {
        let mut unwanted = Vec::new();
        for poll in [false, true] {
            let (sender, reply) = oneshot::channel();
            let mut awaited = Awaited::new(reply, |value| unwanted.push(value));
            assert!((&mut awaited).now_or_never().is_none());
            sender.send(poll).unwrap();
            if poll {
                assert_eq!((&mut awaited).now_or_never(), Some(Ok(true)));
            }
            drop(awaited);
        }
        assert_eq!(unwanted, [false]);
    }
}
