//! The change feed of a process: one source of changes per store, any number of waiters.
//!
//! The backend reports the changes it learns about (its own commits, notifications from other processes, a poll every
//! second), and the feed wakes the waiters. A waiter for one run sleeps through the commits of all others. If the backend
//! knows the version that a run has reached, a waiter that already knows that version keeps sleeping: a driver is not woken
//! by its own commits.

use crate::error::StoreError;
use lockgate_engine::id::RunId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// How many runs without a waiter are remembered.
const REMEMBERED: usize = 1024;

/// The newest marker, and why changes cannot be observed at present.
#[derive(Clone, Debug, Default)]
struct Seen {
    marker: u64,
    failed: Option<StoreError>,
}

#[derive(Debug, Default)]
struct Watched {
    /// The last change with a known version.
    marker: u64,
    /// A lower bound for the version after that change.
    version: Option<u64>,
    /// The last time the run may have changed to an unknown version.
    unsure: u64,
    waiting: usize,
    wake: Arc<Notify>,
}

impl Watched {
    fn change(&mut self, marker: u64, version: Option<u64>) {
        match version {
            // Reports can overtake each other, but a history only grows.
            Some(_) => (self.marker, self.version) = (marker, self.version.max(version)),
            None => self.unsure = marker,
        }
        self.wake.notify_waiters();
    }

    /// Whether there may be a change that a waiter with this marker and version does not know.
    fn is_news(&self, since: u64, known: Option<u64>) -> bool {
        self.unsure > since || (self.marker > since && self.version.zip(known).is_none_or(|(version, known)| version > known))
    }
}

#[derive(Debug, Default)]
pub(crate) struct ChangeFeed {
    seen: watch::Sender<Seen>,
    runs: Mutex<HashMap<RunId, Watched>>,
    waiting: AtomicUsize,
}

/// Registers a waiter for as long as it lives.
struct Waiter<'a> {
    feed: &'a ChangeFeed,
    run: Option<&'a RunId>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.feed.waiting.fetch_sub(1, Ordering::SeqCst);
        if let Some(run) = self.run
            && let Some(watched) = self.feed.runs().get_mut(run)
        {
            watched.waiting -= 1;
        }
    }
}

impl ChangeFeed {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Watched>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A marker for the state as observed so far.
    pub(crate) fn marker(&self) -> u64 {
        self.seen.borrow().marker
    }

    /// Whether anyone waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn start_waiting<'a>(&'a self, run: Option<&'a RunId>) -> Waiter<'a> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiter { feed: self, run }
    }

    /// Resolves to the new marker when something changed after `since`. Before it waits, it calls `watch` so that the backend
    /// observes changes.
    pub(crate) async fn changed(&self, since: u64, watch: impl Fn() -> Result<(), StoreError> + Send) -> Result<u64, StoreError> {
        let mut seen = self.seen.subscribe();
        let _waiter = self.start_waiting(None);
        loop {
            {
                let now = seen.borrow_and_update();
                if now.marker != since {
                    return Ok(now.marker);
                }
                if let Some(error) = &now.failed {
                    return Err(error.clone());
                }
            }
            watch()?;
            if seen.changed().await.is_err() {
                return Err(StoreError::Io("the store was closed".to_owned()));
            }
        }
    }

    /// Like [`ChangeFeed::changed`], for one run. A change to a version that is already `known` does not count.
    pub(crate) async fn run_changed(
        &self,
        run: &RunId,
        since: u64,
        known: Option<u64>,
        watch: impl Fn() -> Result<(), StoreError> + Send,
    ) -> Result<u64, StoreError> {
        let wake = self.with(run, |watched| {
            watched.waiting += 1;
            watched.wake.clone()
        });
        let _waiter = self.start_waiting(Some(run));
        loop {
            let woken = wake.notified();
            tokio::pin!(woken);
            // From here on no wake-up is missed; check for changes that came before.
            woken.as_mut().enable();
            let news = self.runs().get(run).is_none_or(|watched| watched.is_news(since, known));
            {
                let now = self.seen.borrow();
                if news {
                    return Ok(now.marker);
                }
                if let Some(error) = &now.failed {
                    return Err(error.clone());
                }
            }
            watch()?;
            woken.await;
        }
    }

    /// A marker for the current state. From now on, changes of this run are tracked separately from those of others.
    pub(crate) fn marker_of(&self, run: &RunId) -> u64 {
        self.with(run, |_| self.marker())
    }

    fn with<T>(&self, run: &RunId, act: impl FnOnce(&mut Watched) -> T) -> T {
        let mut runs = self.runs();
        if let Some(watched) = runs.get_mut(run) {
            return act(watched);
        }
        if runs.len() >= REMEMBERED {
            runs.retain(|_, watched| watched.waiting > 0);
        }
        // A run that is not remembered may have changed at any earlier marker.
        let unsure = self.marker();
        act(runs.entry(run.clone()).or_insert_with(|| Watched { unsure, ..Watched::default() }))
    }

    /// Reports commits and claims of these runs, each with its current version if known. Other runs did not change.
    pub(crate) fn runs_changed<'a>(&self, changed: impl Iterator<Item = (&'a RunId, Option<u64>)>) {
        let mut runs = self.runs();
        let marker = self.bump();
        for (run, version) in changed {
            if let Some(watched) = runs.get_mut(run) {
                watched.change(marker, version);
            }
        }
    }

    pub(crate) fn all_changed(&self) {
        let mut runs = self.runs();
        let marker = self.bump();
        runs.values_mut().for_each(|watched| watched.change(marker, None));
    }

    /// The runs that have a waiter, to be compared with the store and passed to [`ChangeFeed::compared`].
    pub(crate) fn waited_for(&self) -> Vec<RunId> {
        self.runs().iter().filter(|(_, watched)| watched.waiting > 0).map(|(run, _)| run.clone()).collect()
    }

    /// Reports a change after comparing these runs with the store: each has this version now, if known. Any other run may
    /// have changed.
    pub(crate) fn compared(&self, versions: &HashMap<RunId, Option<u64>>) {
        let mut runs = self.runs();
        let marker = self.bump();
        for (run, watched) in runs.iter_mut() {
            match versions.get(run) {
                Some(Some(version)) if watched.version == Some(*version) => {}
                Some(version) => watched.change(marker, *version),
                None => watched.change(marker, None),
            }
        }
    }

    /// Reports to all waiters that changes cannot be observed, or that they can be again.
    pub(crate) fn set_failure(&self, failed: Option<StoreError>) {
        let is_new = self.seen.send_if_modified(|seen| {
            let is_new = seen.failed != failed;
            seen.failed = failed;
            is_new
        });
        if is_new {
            self.runs().values().for_each(|watched| watched.wake.notify_waiters());
        }
    }

    fn bump(&self) -> u64 {
        let mut marker = 0;
        self.seen.send_modify(|seen| {
            seen.marker += 1;
            marker = seen.marker;
        });
        marker
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn ready() -> Result<(), StoreError> {
        Ok(())
    }

    #[test]
    fn a_waiter_ignores_other_runs_and_known_versions() {
        let (feed, run, other) = (ChangeFeed::default(), RunId::new("aaaa"), RunId::new("bbbb"));
        let since = feed.marker();
        let mut waiting = Box::pin(feed.run_changed(&run, since, Some(4), ready));
        assert!((&mut waiting).now_or_never().is_none());
        feed.runs_changed([(&other, Some(9)), (&run, Some(4))].into_iter());
        assert!((&mut waiting).now_or_never().is_none());
        feed.runs_changed([(&run, Some(5))].into_iter());
        assert_eq!(waiting.now_or_never(), Some(Ok(feed.marker())));
    }

    #[test]
    fn an_unattributed_change_wakes_every_waiter() {
        let (feed, run) = (ChangeFeed::default(), RunId::new("aaaa"));
        let mut waiting = Box::pin(feed.run_changed(&run, feed.marker(), Some(4), ready));
        assert!((&mut waiting).now_or_never().is_none());
        feed.all_changed();
        assert!(waiting.now_or_never().is_some());
        assert!(feed.run_changed(&run, feed.marker(), Some(4), ready).now_or_never().is_none());
    }

    #[test]
    fn a_run_first_waited_for_during_a_comparison_counts_as_changed() {
        let (feed, run, late) = (ChangeFeed::default(), RunId::new("aaaa"), RunId::new("bbbb"));
        let since = feed.marker();
        let mut waiting = Box::pin(feed.run_changed(&run, since, Some(4), ready));
        assert!((&mut waiting).now_or_never().is_none());
        feed.runs_changed([(&run, Some(4))].into_iter());
        let compared = feed.waited_for().into_iter().map(|run| (run, Some(4))).collect();
        let mut too_late = Box::pin(feed.run_changed(&late, feed.marker(), Some(4), ready));
        assert!((&mut too_late).now_or_never().is_none());
        feed.compared(&compared);
        assert!(waiting.now_or_never().is_none());
        assert!(too_late.now_or_never().is_some());
    }

    #[test]
    fn waiting_fails_until_the_feed_recovers() {
        let (feed, run) = (ChangeFeed::default(), RunId::new("aaaa"));
        let mut waiting = Box::pin(feed.run_changed(&run, feed.marker(), None, ready));
        assert!((&mut waiting).now_or_never().is_none());
        let gone = StoreError::Io("gone".to_owned());
        feed.set_failure(Some(gone.clone()));
        assert_eq!(waiting.now_or_never(), Some(Err(gone)));
        feed.set_failure(None);
        assert!(feed.changed(feed.marker(), ready).now_or_never().is_none());
    }
}
