//! How long a process may rely on its claims, by its own clock.
//!
//! A store that expires claims by its own clock grants a lease and renews it. The process counts from just before it sent a
//! renewal, so its lease always ends earlier by its own clock than by the store's. A lease that is renewed too late has
//! lapsed, and another process may have claimed a run in between. Each lapse starts a new term, and a claim is valid only in
//! the term in which it was made.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long before its end a driver stops relying on a lease: everything started under it must have ended by then.
const MARGIN: Duration = Duration::from_secs(5);

/// How long before its end everything that still runs is killed.
const KILL_MARGIN: Duration = Duration::from_secs(2);

/// The clock is read at least this often: timers stop during suspend, but the lease's clock does not.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The lease of a process's driver. Clones share the lease.
#[derive(Clone, Default)]
pub struct Lease(Option<Arc<Renewed>>);

struct Renewed {
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    length: Duration,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    term: u64,
    /// By the clock of the lease; `None` before it was first granted.
    until: Option<Duration>,
}

impl Lease {
    /// For a store whose claims last as long as the process.
    pub fn unlimited() -> Self {
        Self(None)
    }

    /// A lease of this length that is not granted yet. The clock may start anywhere but must never stop or go back.
    pub fn new(length: Duration, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Renewed { clock: Box::new(clock), length, state: watch::Sender::default() })))
    }

    /// The current time of its clock; read it before sending a renewal.
    pub fn now(&self) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |renewed| (renewed.clock)())
    }

    /// Records that the store confirmed a renewal sent at this time. A confirmation that arrives after the lease ended starts
    /// a new term, because the store may have received the renewal too late.
    pub fn renewed(&self, sent: Duration) {
        let Some(renewed) = &self.0 else { return };
        let now = (renewed.clock)();
        renewed.state.send_modify(|state| {
            if state.until.is_some_and(|until| now >= until) {
                state.term += 1;
            }
            state.until = state.until.max(Some(sent + renewed.length));
        });
    }

    /// The current term; read it before claiming a run.
    pub fn term(&self) -> u64 {
        self.0.as_ref().map_or(0, |renewed| renewed.state.borrow().term)
    }

    /// Whether a claim from this term is valid for long enough to start something.
    pub fn holds(&self, term: u64) -> bool {
        self.left(term).is_none_or(|left| left > MARGIN)
    }

    /// Whether another process may have taken over a claim from this term.
    pub fn has_lapsed(&self, term: u64) -> bool {
        self.left(term).is_some_and(|left| left.is_zero())
    }

    /// How long running effects may take to end before they must be killed; `None` if there is no limit.
    pub fn time_to_kill(&self, term: u64) -> Option<Duration> {
        self.left(term).map(|left| left.saturating_sub(KILL_MARGIN))
    }

    fn left(&self, term: u64) -> Option<Duration> {
        let renewed = self.0.as_ref()?;
        let state = *renewed.state.borrow();
        let until = state.until.filter(|_| state.term == term).unwrap_or_default();
        Some(until.saturating_sub((renewed.clock)()))
    }

    /// Resolves when claims from this term can no longer be relied on.
    pub async fn ended(&self, term: u64) {
        while let Some(left) = self.left(term) {
            let usable = left.saturating_sub(MARGIN);
            if usable.is_zero() {
                return;
            }
            tokio::time::sleep(usable.min(LONGEST_SLEEP)).await;
        }
        std::future::pending().await
    }

    /// Resolves to a term in which the lease is valid.
    pub async fn granted(&self) -> u64 {
        let Some(renewed) = &self.0 else { return 0 };
        let mut state = renewed.state.subscribe();
        loop {
            let term = state.borrow_and_update().term;
            if self.holds(term) {
                return term;
            }
            if state.changed().await.is_err() {
                // The sender lives as long as `self`.
                std::future::pending().await
            }
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.debug_struct("Lease").field("term", &self.term()).field("left", &self.left(self.term())).finish()
    }
}

/// The clock of this machine that keeps running during suspend.
pub(crate) fn machine_clock() -> Duration {
    let now = rustix::time::clock_gettime(crate::sys::CLOCK);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn lease() -> (Lease, Arc<AtomicU64>) {
        let seconds = Arc::new(AtomicU64::new(100));
        let read = seconds.clone();
        (Lease::new(Duration::from_secs(15), move || Duration::from_secs(read.load(Ordering::Relaxed))), seconds)
    }

    #[test]
    fn a_lease_counts_from_before_the_renewal_was_sent() {
        let (lease, seconds) = lease();
        assert!(!lease.holds(0) && lease.has_lapsed(0), "it is not granted yet");
        let sent = lease.now();
        seconds.store(109, Ordering::Relaxed);
        lease.renewed(sent);
        assert!(lease.holds(0), "1 s is left before the margin");
        assert_eq!(lease.time_to_kill(0), Some(Duration::from_secs(4)));
        seconds.store(110, Ordering::Relaxed);
        assert!(!lease.holds(0) && !lease.has_lapsed(0), "the margin has started");
        seconds.store(115, Ordering::Relaxed);
        assert!(lease.has_lapsed(0));
    }

    #[test]
    fn a_renewal_that_is_confirmed_too_late_starts_a_new_term() {
        let (lease, seconds) = lease();
        lease.renewed(lease.now());
        let sent = lease.now() + Duration::from_secs(14);
        seconds.store(115, Ordering::Relaxed);
        lease.renewed(sent);
        assert!(!lease.holds(0) && lease.has_lapsed(0), "another process may have claimed the run in between");
        assert_eq!(lease.term(), 1);
        assert!(lease.holds(1));
    }

    #[test]
    fn a_claim_without_a_lease_always_holds() {
        let lease = Lease::unlimited();
        lease.renewed(lease.now());
        assert!(lease.holds(lease.term()) && !lease.has_lapsed(0) && lease.time_to_kill(0).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_are_notified_when_the_lease_ends_and_when_it_is_granted_again() {
        let start = tokio::time::Instant::now();
        let lease = Lease::new(Duration::from_secs(15), move || Duration::from_secs(1) + start.elapsed());
        lease.renewed(lease.now());
        lease.ended(0).await;
        assert!(!lease.holds(0) && !lease.has_lapsed(0));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let again = lease.clone();
        let granted = tokio::spawn(async move { again.granted().await });
        tokio::task::yield_now().await;
        lease.renewed(lease.now());
        assert_eq!(granted.await.unwrap(), 1);
    }
}
