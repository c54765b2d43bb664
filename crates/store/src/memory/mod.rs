//! An in-memory store: the same behaviour as the other backends, fast and deterministic, with injectable faults.
//!
//! A [`MemoryStore`] is one process's handle on shared data. Its clones are the same process;
//! [`MemoryStore::another_process`] is another process with its own driver, which counts as dead once all its clones are
//! dropped.

mod data;

use crate::backup::{ReadSnapshot, copy_runs};
use crate::change_feed::ChangeFeed;
use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::held_claims::HeldClaims;
use crate::store::{
    Append, Delivery, DriverInfo, Future, HoldFilter, ListedHold, ListedRun, Loaded, Orphan, OutboxEntry, OutboxFilter, Page,
    RemovedRows, RunFilter, RunRemoval, Store, StoredCommit, StoredRun, StoredValue, Unreferenced,
};
use data::Data;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{OutboxRow, TimerRow};
use lockgate_engine::time::Timestamp;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// How the next append of a process fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not take effect, and the caller gets an unknown outcome.
    BeforeCommit,
    /// It takes effect, and the caller gets an unknown outcome.
    AfterCommit,
    /// It does not take effect, and the caller gets this error.
    Error(StoreError),
}

/// One process's handle on an in-memory store.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    process: Arc<Process>,
}

#[derive(Debug)]
struct Process {
    driver: DriverId,
    held: Arc<HeldClaims>,
    shared: Arc<Shared>,
    fault: Mutex<Option<Fault>>,
    cut_off: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    data: Mutex<Data>,
    feed: ChangeFeed,
}

impl Shared {
    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.data().live.remove(&self.driver);
        self.shared.feed.all_changed();
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::process_of(Arc::new(Shared { data: Mutex::default(), feed: ChangeFeed::default() }))
    }

    pub fn another_process(&self) -> Self {
        Self::process_of(self.process.shared.clone())
    }

    pub fn set_fault(&self, fault: Fault) {
        *self.fault() = Some(fault);
    }

    /// Makes lists, claims and waiting for changes fail in this process, as if a server were unreachable; false lets them
    /// succeed again.
    pub fn set_cut_off(&self, cut_off: bool) {
        self.process.cut_off.store(cut_off, Ordering::SeqCst);
        self.process.shared.feed.all_changed();
    }

    fn reachable(&self) -> Result<(), StoreError> {
        match self.process.cut_off.load(Ordering::SeqCst) {
            true => Err(StoreError::Io("the store cannot be reached".to_owned())),
            false => Ok(()),
        }
    }

    fn process_of(shared: Arc<Shared>) -> Self {
        let driver = {
            let mut data = shared.data();
            data.drivers_made += 1;
            let driver = DriverId(format!("driver-{}", data.drivers_made));
            let info = DriverInfo {
                driver: driver.clone(),
                pid: data.drivers_made,
                host: "memory".to_owned(),
                since: Timestamp::from_millis(0),
                until: None,
            };
            data.live.insert(driver.clone(), info);
            driver
        };
        Self {
            process: Arc::new(Process {
                driver,
                held: Arc::default(),
                shared,
                fault: Mutex::default(),
                cut_off: AtomicBool::new(false),
            }),
        }
    }

    fn fault(&self) -> MutexGuard<'_, Option<Fault>> {
        self.process.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        self.process.shared.data()
    }

    fn append_now(&self, append: Append) -> Result<Option<u64>, AppendError> {
        let unknown = || AppendError::Store(StoreError::OutcomeUnknown("a fault was injected".to_owned()));
        let after = match self.fault().take() {
            Some(Fault::BeforeCommit) => return Err(unknown()),
            Some(Fault::Error(error)) => return Err(AppendError::Store(error)),
            Some(Fault::AfterCommit) => Some(unknown()),
            None => None,
        };
        let (run, version) = (append.run.clone(), append.commit.version);
        let epoch = self.data().append(append, &self.process.driver, &self.process.held)?;
        self.process.shared.feed.runs_changed([(&run, Some(version))].into_iter());
        match (after, epoch) {
            (None, epoch) => Ok(epoch),
            (Some(unknown), epoch) => {
                // The caller never learns of the claim, so it does not hold it.
                epoch.inspect(|epoch| self.process.held.release(&run, *epoch));
                Err(unknown)
            }
        }
    }

    fn claim_now(&self, run: &RunId) -> Result<u64, ClaimError> {
        let epoch = self.data().claim(run, &self.process.driver, &self.process.held)?;
        self.process.shared.feed.runs_changed([(run, None)].into_iter());
        Ok(epoch)
    }

    fn release_now(&self, run: &RunId, epoch: u64) {
        self.process.held.release(run, epoch);
        if self.data().release(run, &self.process.driver, epoch) {
            self.process.shared.feed.runs_changed([(run, None)].into_iter());
        }
    }

    fn ready<T: Send + 'static>(value: T) -> Future<'static, T> {
        Box::pin(std::future::ready(value))
    }
}

/// A claim whose caller has not received it yet; if the caller is dropped first, the claim is released.
struct Unheard<'a> {
    store: &'a MemoryStore,
    claim: Option<(RunId, u64)>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if let Some((run, epoch)) = self.claim.take() {
            self.store.release_now(&run, epoch);
        }
    }
}

/// Yields to other tasks once.
#[derive(Default)]
struct YieldNow {
    given: bool,
}

impl std::future::Future for YieldNow {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Store for MemoryStore {
    fn append(&self, append: Append) -> Future<'_, Result<Option<u64>, AppendError>> {
        Box::pin(async move {
            // A disk takes time before and after the write; the caller may be dropped in either phase.
            YieldNow::default().await;
            let run = append.run.clone();
            let mut unheard = Unheard { store: self, claim: None };
            let appended = self.append_now(append);
            unheard.claim = appended.as_ref().ok().copied().flatten().map(|epoch| (run, epoch));
            YieldNow::default().await;
            unheard.claim = None;
            appended
        })
    }

    fn load(&self, run: &RunId) -> Future<'_, Result<Option<Loaded>, StoreError>> {
        Self::ready(self.data().load(run))
    }

    fn commits(&self, run: &RunId, after: u64, limit: usize) -> Future<'_, Result<Vec<SealedCommit>, StoreError>> {
        Self::ready(Ok(self.data().commits(run, after, limit)))
    }

    fn values(&self, digests: &[Digest]) -> Future<'_, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        let data = self.data();
        Self::ready(Ok(digests.iter().map(|digest| data.values.get(digest).cloned()).collect()))
    }

    fn claim(&self, run: &RunId) -> Future<'_, Result<u64, ClaimError>> {
        let run = run.clone();
        Box::pin(async move { self.claim_now(&run) })
    }

    fn release(&self, run: &RunId, epoch: u64) -> Future<'_, Result<(), StoreError>> {
        let run = run.clone();
        Box::pin(async move {
            self.release_now(&run, epoch);
            Ok(())
        })
    }

    fn abandon(&self, run: &RunId, epoch: u64) {
        self.release_now(run, epoch);
    }

    fn undriven(&self, limit: usize) -> Future<'_, Result<Vec<RunId>, StoreError>> {
        let listed = self.reachable().map(|()| self.data().undriven(&self.process.driver, &self.process.held, limit));
        Self::ready(listed)
    }

    fn claim_any<'a>(&'a self, runs: &'a [RunId], limit: usize) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>> {
        Box::pin(async move {
            self.reachable()?;
            let claimed = self.data().claim_any(runs, limit, &self.process.driver, &self.process.held);
            if !claimed.is_empty() {
                self.process.shared.feed.runs_changed(claimed.iter().map(|(run, _)| (run, None)));
            }
            Ok(claimed)
        })
    }

    fn driver(&self) -> &DriverId {
        &self.process.driver
    }

    fn driver_of(&self, run: &RunId) -> Future<'_, Result<Option<DriverInfo>, StoreError>> {
        Self::ready(Ok(self.data().driver_of(run)))
    }

    fn list_runs(&self, filter: RunFilter, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        Self::ready(Ok(self.data().list_runs(page, |row| filter.matches(row))))
    }

    fn find_runs(&self, prefix: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        Self::ready(Ok(self.data().list_runs(Page::ALL, |row| row.run.as_str().starts_with(prefix))))
    }

    fn holds(&self, filter: HoldFilter, page: Page) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        Self::ready(Ok(self.data().list_holds(&filter, page)))
    }

    fn find_holds(&self, prefix: &str) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        Self::ready(Ok(self.data().find_holds(prefix)))
    }

    fn timers(&self, due_before: Timestamp, limit: usize) -> Future<'_, Result<Vec<TimerRow>, StoreError>> {
        Self::ready(self.reachable().map(|()| self.data().timers(due_before, limit)))
    }

    fn outbox(&self, filter: OutboxFilter, limit: usize) -> Future<'_, Result<Vec<OutboxEntry>, StoreError>> {
        Self::ready(Ok(self.data().outbox(filter, limit, &self.process.driver)))
    }

    fn claim_notice<'a>(&'a self, listed: &'a OutboxEntry) -> Future<'a, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.data().claim_notice(listed, &self.process.driver)) })
    }

    fn settle_notice<'a>(&'a self, row: &'a OutboxRow, delivery: Delivery) -> Future<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.data().settle_notice(row, delivery, &self.process.driver);
            Ok(())
        })
    }

    fn changes(&self) -> u64 {
        self.process.shared.feed.marker()
    }

    fn changes_of(&self, run: &RunId) -> u64 {
        self.process.shared.feed.marker_of(run)
    }

    fn changed(&self, since: u64) -> Future<'_, Result<u64, StoreError>> {
        Box::pin(self.process.shared.feed.changed(since, || self.reachable()))
    }

    fn run_changed<'a>(&'a self, run: &'a RunId, since: u64, known: Option<u64>) -> Future<'a, Result<u64, StoreError>> {
        Box::pin(self.process.shared.feed.run_changed(run, since, known, || Ok(())))
    }

    fn stored_run(&self, run: &RunId) -> Future<'_, Result<Option<StoredRun>, StoreError>> {
        Self::ready(Ok(self.data().stored_run(run)))
    }

    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        Self::ready(Ok(self.data().scan_runs(after, limit)))
    }

    fn scan_commits(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredCommit>, StoreError>> {
        Self::ready(Ok(self.data().scan_commits(after, limit)))
    }

    fn scan_values(&self, after: Option<Digest>, limit: usize) -> Future<'_, Result<Vec<StoredValue>, StoreError>> {
        Self::ready(Ok(self.data().scan_values(after, limit)))
    }

    fn orphans(&self) -> Future<'_, Result<Vec<Orphan>, StoreError>> {
        Self::ready(Ok(self.data().orphans()))
    }

    fn damage(&self) -> Future<'_, Result<Vec<String>, StoreError>> {
        Self::ready(Ok(Vec::new()))
    }

    fn unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        Self::ready(Ok(self.data().unreferenced()))
    }

    fn remove_unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        Box::pin(async move {
            let removed = self.data().remove_unreferenced();
            self.process.shared.feed.all_changed();
            Ok(removed)
        })
    }

    fn remove_run(&self, removal: RunRemoval) -> Future<'_, Result<RemovedRows, RemoveError>> {
        Box::pin(async move {
            let removed = self.data().remove_run(&removal, &self.process.driver)?;
            self.process.held.release(&removal.run, removal.epoch);
            self.process.shared.feed.runs_changed([(&removal.run, None)].into_iter());
            Ok(removed)
        })
    }

    fn back_up(&self, file: PathBuf) -> Future<'_, Result<(), StoreError>> {
        let moment = self.data().clone();
        Box::pin(async move { copy_runs(&moment, &file).await })
    }
}

impl ReadSnapshot for Data {
    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        Box::pin(std::future::ready(Ok(Data::scan_runs(self, after, limit))))
    }

    fn commits<'a>(&'a self, run: &'a RunId, after: u64, limit: usize) -> Future<'a, Result<Vec<SealedCommit>, StoreError>> {
        Box::pin(std::future::ready(Ok(Data::commits(self, run, after, limit))))
    }

    fn values<'a>(&'a self, digests: &'a [Digest]) -> Future<'a, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        Box::pin(std::future::ready(Ok(digests.iter().map(|digest| self.values.get(digest).cloned()).collect())))
    }
}
