//! A store with leases that expire by its own clock, as seen by a host over a slow and sometimes interrupted network.

use super::plan::{Leases, PlannedHost};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{OutboxRow, TimerRow};
use lockgate_engine::time::Timestamp;
use lockgate_store::{
    Append, AppendError, ClaimError, Delivery, DriverInfo, Future, HoldFilter, Lease, ListedHold, ListedRun, Loaded, MemoryStore,
    Orphan, OutboxEntry, OutboxFilter, Page, RemoveError, RemovedRows, RunFilter, RunRemoval, Store, StoreError, StoredCommit,
    StoredRun, StoredValue, Unreferenced,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The same length and renewal interval as for PostgreSQL.
const LEASE: Duration = Duration::from_secs(15);
const BEAT: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Server {
    pub(super) start: Instant,
    pub(super) disk: MemoryStore,
    leases: Mutex<BTreeMap<DriverId, Instant>>,
    /// The last owner of each run, with the epoch of its claim.
    owners: Mutex<BTreeMap<RunId, (DriverId, u64)>>,
}

impl Server {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), disk: MemoryStore::new(), leases: Mutex::default(), owners: Mutex::default() })
    }

    /// When the lease of this driver expires.
    pub(super) fn expires(&self, driver: &DriverId) -> Option<Instant> {
        self.leases.lock().unwrap().get(driver).copied()
    }

    pub(super) fn owner(&self, run: &RunId) -> Option<DriverId> {
        self.owners.lock().unwrap().get(run).map(|(driver, _)| driver.clone())
    }

    fn live_owner(&self, run: &RunId) -> Option<DriverInfo> {
        let driver = self.owner(run)?;
        self.expires(&driver).filter(|expires| *expires > Instant::now())?;
        Some(DriverInfo { driver, pid: 1, host: "host".into(), since: Timestamp::from_millis(0), until: None })
    }

    async fn claim(&self, run: &RunId, driver: &DriverId) -> Result<u64, ClaimError> {
        if let Some(other) = self.live_owner(run).filter(|other| other.driver != *driver) {
            return Err(ClaimError::DrivenBy(other));
        }
        self.free(run).await?;
        let epoch = self.disk.claim(run).await?;
        self.owners.lock().unwrap().insert(run.clone(), (driver.clone(), epoch));
        Ok(epoch)
    }

    /// All hosts are one process to the disk, so a claim taken from one of them is released there first.
    async fn free(&self, run: &RunId) -> Result<(), StoreError> {
        let last = self.owners.lock().unwrap().remove(run);
        match last {
            Some((_, epoch)) => self.disk.release(run, epoch).await,
            None => Ok(()),
        }
    }
}

impl Server {
    /// Epochs are unique, so this releases the claim of exactly one process.
    async fn release(&self, run: &RunId, epoch: u64) -> Result<(), StoreError> {
        self.disk.release(run, epoch).await?;
        if self.disk.driver_of(run).await?.is_none() {
            self.owners.lock().unwrap().remove(run);
        }
        Ok(())
    }
}

/// One process's handle on the store.
pub(super) struct LeaseStore {
    server: Arc<Server>,
    driver: DriverId,
    lease: Lease,
    leases: Leases,
    host: PlannedHost,
}

impl LeaseStore {
    pub(super) fn new(server: &Arc<Server>, driver: String, host: &PlannedHost, leases: Leases) -> Self {
        let (start, drift) = (server.start, host.drift);
        let own_clock = move || {
            // Its clock may start anywhere.
            let rate = f64::from(1000 + drift) / 1000.0;
            Duration::from_secs(1_000) + start.elapsed().mul_f64(rate)
        };
        let lease = Lease::new(LEASE, own_clock);
        Self { server: server.clone(), driver: DriverId(driver), lease, leases, host: host.clone() }
    }

    pub(super) async fn granted(&self) {
        self.lease.granted().await;
    }

    /// Renews the lease for as long as the process lives.
    pub(super) async fn keep_alive(&self) {
        loop {
            let beaten = timeout(PATIENCE, self.beat()).await;
            sleep(if matches!(beaten, Ok(Ok(()))) { BEAT } else { AGAIN }).await;
        }
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let sent = self.lease.now();
        self.cross().await?;
        self.server.leases.lock().unwrap().insert(self.driver.clone(), Instant::now() + LEASE);
        self.cross().await?;
        self.lease.renewed(sent);
        Ok(())
    }

    async fn cross(&self) -> Result<(), StoreError> {
        sleep(self.host.latency / 2).await;
        loop {
            let now = self.server.start.elapsed();
            match self.host.cuts.iter().find(|cut| cut.span.has(now)) {
                None => return Ok(()),
                Some(cut) if cut.fails => return Err(StoreError::Io("the connection is cut".into())),
                Some(cut) => sleep_until(self.server.start + cut.span.to).await,
            }
        }
    }

    fn ask<'a, T: Send + 'a, E: From<StoreError> + Send + 'a>(
        &'a self,
        asked: impl std::future::Future<Output = Result<T, E>> + Send + 'a,
    ) -> Future<'a, Result<T, E>> {
        Box::pin(async move {
            self.cross().await?;
            let answer = asked.await;
            self.cross().await?;
            answer
        })
    }
}

impl Store for LeaseStore {
    fn append(&self, append: Append) -> Future<'_, Result<Option<u64>, AppendError>> {
        Box::pin(async move {
            let unknown = |error: StoreError| AppendError::Store(StoreError::OutcomeUnknown(error.to_string()));
            self.cross().await.map_err(unknown)?;
            let (run, claims) = (append.run.clone(), append.claim.is_some());
            if let Some(other) = self.server.live_owner(&run).filter(|other| claims && other.driver != self.driver) {
                self.cross().await.map_err(unknown)?;
                return Err(AppendError::DrivenBy(other));
            }
            let claim = append.claim.as_ref().map(|_| self.server.disk.driver().clone());
            if claims {
                self.server.free(&run).await?;
            }
            let appended = self.server.disk.append(Append { claim, ..append }).await;
            if let Ok(Some(epoch)) = appended {
                self.server.owners.lock().unwrap().insert(run, (self.driver.clone(), epoch));
            }
            self.cross().await.map_err(unknown)?;
            appended
        })
    }

    fn load(&self, run: &RunId) -> Future<'_, Result<Option<Loaded>, StoreError>> {
        let run = run.clone();
        self.ask(async move { self.server.disk.load(&run).await })
    }

    fn commits(&self, run: &RunId, after: u64, limit: usize) -> Future<'_, Result<Vec<SealedCommit>, StoreError>> {
        let run = run.clone();
        self.ask(async move { self.server.disk.commits(&run, after, limit).await })
    }

    fn values(&self, digests: &[Digest]) -> Future<'_, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        let digests = digests.to_vec();
        self.ask(async move { self.server.disk.values(&digests).await })
    }

    fn claim(&self, run: &RunId) -> Future<'_, Result<u64, ClaimError>> {
        let run = run.clone();
        self.ask(async move { self.server.claim(&run, &self.driver).await })
    }

    fn release(&self, run: &RunId, epoch: u64) -> Future<'_, Result<(), StoreError>> {
        let run = run.clone();
        self.ask(async move { self.server.release(&run, epoch).await })
    }

    fn undriven(&self, limit: usize) -> Future<'_, Result<Vec<RunId>, StoreError>> {
        self.server.disk.undriven(limit)
    }

    /// An abandoned claim is left to its lease, as after a crash.
    fn abandon(&self, _: &RunId, _: u64) {}

    fn claim_any<'a>(&'a self, runs: &'a [RunId], limit: usize) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>> {
        self.ask(async move {
            let mut claimed = Vec::new();
            for run in runs {
                if claimed.len() < limit
                    && let Ok(epoch) = self.server.claim(run, &self.driver).await
                {
                    claimed.push((run.clone(), epoch));
                }
            }
            Ok(claimed)
        })
    }

    fn driver(&self) -> &DriverId {
        &self.driver
    }

    fn lease(&self) -> Lease {
        match self.leases {
            Leases::Kept => self.lease.clone(),
            Leases::Ignored => Lease::unlimited(),
        }
    }

    fn driver_of(&self, run: &RunId) -> Future<'_, Result<Option<DriverInfo>, StoreError>> {
        let run = run.clone();
        self.ask(async move { Ok(self.server.live_owner(&run)) })
    }

    fn list_runs(&self, filter: RunFilter, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.server.disk.list_runs(filter, page)
    }

    fn find_runs(&self, prefix: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.server.disk.find_runs(prefix)
    }

    fn holds(&self, filter: HoldFilter, page: Page) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        self.server.disk.holds(filter, page)
    }

    fn find_holds(&self, prefix: &str) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        self.server.disk.find_holds(prefix)
    }

    fn timers(&self, due_before: Timestamp, limit: usize) -> Future<'_, Result<Vec<TimerRow>, StoreError>> {
        self.server.disk.timers(due_before, limit)
    }

    fn outbox(&self, filter: OutboxFilter, limit: usize) -> Future<'_, Result<Vec<OutboxEntry>, StoreError>> {
        self.server.disk.outbox(filter, limit)
    }

    fn claim_notice<'a>(&'a self, listed: &'a OutboxEntry) -> Future<'a, Result<bool, StoreError>> {
        self.server.disk.claim_notice(listed)
    }

    fn settle_notice<'a>(&'a self, row: &'a OutboxRow, delivery: Delivery) -> Future<'a, Result<(), StoreError>> {
        self.server.disk.settle_notice(row, delivery)
    }

    fn changes(&self) -> u64 {
        self.server.disk.changes()
    }

    fn changed(&self, since: u64) -> Future<'_, Result<u64, StoreError>> {
        self.ask(self.server.disk.changed(since))
    }

    fn changes_of(&self, run: &RunId) -> u64 {
        self.server.disk.changes_of(run)
    }

    fn run_changed<'a>(&'a self, run: &'a RunId, since: u64, known: Option<u64>) -> Future<'a, Result<u64, StoreError>> {
        self.ask(self.server.disk.run_changed(run, since, known))
    }

    fn stored_run(&self, run: &RunId) -> Future<'_, Result<Option<StoredRun>, StoreError>> {
        self.server.disk.stored_run(run)
    }

    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        self.server.disk.scan_runs(after, limit)
    }

    fn scan_commits(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredCommit>, StoreError>> {
        self.server.disk.scan_commits(after, limit)
    }

    fn scan_values(&self, after: Option<Digest>, limit: usize) -> Future<'_, Result<Vec<StoredValue>, StoreError>> {
        self.server.disk.scan_values(after, limit)
    }

    fn orphans(&self) -> Future<'_, Result<Vec<Orphan>, StoreError>> {
        self.server.disk.orphans()
    }

    fn damage(&self) -> Future<'_, Result<Vec<String>, StoreError>> {
        self.server.disk.damage()
    }

    fn unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        self.server.disk.unreferenced_values()
    }

    fn remove_unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        self.server.disk.remove_unreferenced_values()
    }

    fn remove_run(&self, removal: RunRemoval) -> Future<'_, Result<RemovedRows, RemoveError>> {
        self.server.disk.remove_run(removal)
    }

    fn back_up(&self, file: PathBuf) -> Future<'_, Result<(), StoreError>> {
        self.server.disk.back_up(file)
    }
}
