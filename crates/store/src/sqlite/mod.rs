//! The store in a directory: the database `lockgate.db`, and `drivers/` with one lock file per driver process.
//!
//! | module | what it does |
//! | --- | --- |
//! | `open` | creates and opens the database file |
//! | `read_only` | reads the database when nothing can be written |
//! | `schema` | the tables and their migrations |
//! | `writer`, `committer` | collect waiting requests and commit them in one transaction |
//! | `wal` | when to checkpoint the write-ahead log, and preallocating space for it |
//! | `head` | which commits were acknowledged last, recorded outside the database |
//! | `changes`, `file_events` | notify waiters of changes by other processes, with one thread per process |
//! | `file_identity` | whether the database file is still the one that was opened |
//! | `append`, `remove`, `outbox` | appends, removals of runs and outbox changes inside a transaction |
//! | `scan_guard` | bounds every read, even of a damaged database |
//! | `reader`, `lists`, `scan` | read histories, lists and everything |
//! | `maintenance` | backups; removing unreferenced values |
//! | `claims` | which process drives a run |
//! | `drivers` | which processes drive runs, and which of them are alive |
//! | `errors` | translates errors of SQLite and the operating system |

mod append;
mod changes;
mod claims;
mod committer;
mod drivers;
mod errors;
mod file_identity;
mod head;
mod lists;
mod maintenance;
mod open;
mod outbox;
mod read_only;
mod reader;
mod remove;
mod scan;
mod scan_guard;
mod schema;
mod wal;
mod writer;

pub use open::Settings;

use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::store::{
    Append, Delivery, DriverInfo, Future, HoldFilter, ListedHold, ListedRun, Loaded, Missing, Orphan, OutboxEntry, OutboxFilter,
    Page, RemovedRows, RunFilter, RunRemoval, Store, StoredCommit, StoredRun, StoredValue, Unreferenced, refuse_misuse,
};
use changes::{Changes, Watcher};
use claims::Wanted;
use committer::Committer;
use drivers::Drivers;
use file_identity::FileIdentity;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{OutboxRow, TimerRow};
use lockgate_engine::time::Timestamp;
use open::Location;
use reader::Reader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use writer::Writer;

/// One process's handle on a store in a directory.
#[derive(Debug)]
pub struct SqliteStore {
    // Drop order: the writer and the watcher must end before the lock file is removed.
    writer: Writer,
    watcher: Watcher,
    changes: Arc<Changes>,
    reader: Arc<Reader>,
    location: Location,
    drivers: Arc<Drivers>,
    file_identity: Arc<FileIdentity>,
    missing: Vec<Missing>,
}

impl SqliteStore {
    /// Opens the store in this directory, creating both if they are missing.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_with(folder, Settings::default())
    }

    /// Opens the store in this directory; fails if there is none.
    pub fn open_existing(folder: &Path) -> Result<Self, StoreError> {
        Self::at(Location::new(folder, Settings::default()), false)
    }

    /// Opens the store in this directory for reading, even if nothing can be written; fails if there is none. An attempt to
    /// write still works if the files permit it.
    pub fn open_read_only(folder: &Path) -> Result<Self, StoreError> {
        Self::at(Location::new(folder, Settings::default()), true)
    }

    /// Like [`SqliteStore::open`], with custom settings.
    pub fn open_with(folder: &Path, settings: Settings) -> Result<Self, StoreError> {
        let location = Location::new(folder, settings);
        location.create()?;
        Self::at(location, false)
    }

    /// Commits found to be missing when the store was opened. Always empty unless it was opened for reading.
    pub fn missing_at_the_end(&self) -> &[Missing] {
        &self.missing
    }

    /// Accepts the store in this directory as it is, on a person's decision to live with lost commits.
    pub fn accept_missing(folder: &Path) -> Result<(), StoreError> {
        head::forget(&Location::new(folder, Settings::default()))
    }

    /// The processes that drive runs of the store in this directory, independent of the state of the database.
    pub fn living_drivers(folder: &Path) -> Result<Vec<DriverInfo>, StoreError> {
        Ok(Drivers::new(folder).all_alive()?.into_values().collect())
    }

    fn at(location: Location, read_only: bool) -> Result<Self, StoreError> {
        let reader = Arc::new(Reader::open(location.clone(), read_only)?);
        let missing = head::missing_at_the_end(&location, &reader)?;
        if !missing.is_empty() && !read_only {
            return Err(StoreError::CommitsMissing { path: location.database, missing });
        }
        tracing::debug!(path = %location.database.display(), read_only, "database opened");
        let file_identity = Arc::new(FileIdentity::of(location.database.clone()));
        let drivers = Arc::new(Drivers::new(&location.folder));
        let changes = Arc::new(Changes::new(location.clone(), reader.clone(), drivers.clone(), file_identity.clone()));
        let committer = Committer::new(location.clone(), drivers.clone(), changes.clone(), file_identity.clone());
        let writer = Writer::new(committer, drivers.held().clone());
        Ok(Self { writer, watcher: Watcher::new(changes.clone()), changes, reader, location, drivers, file_identity, missing })
    }
}

impl Store for SqliteStore {
    fn append(&self, append: Append) -> Future<'_, Result<Option<u64>, AppendError>> {
        Box::pin(async move {
            refuse_misuse(&append, self.drivers.own())?;
            if append.claim.is_some() {
                self.drivers.register()?;
            }
            self.writer.append(append).await
        })
    }

    fn prepare_append(&self) {
        self.writer.prepare();
    }

    fn load(&self, run: &RunId) -> Future<'_, Result<Option<Loaded>, StoreError>> {
        let run = run.clone();
        Box::pin(async move { self.reader.load(&run) })
    }

    fn commits(&self, run: &RunId, after: u64, limit: usize) -> Future<'_, Result<Vec<SealedCommit>, StoreError>> {
        let run = run.clone();
        Box::pin(async move { self.reader.commits(&run, after, limit) })
    }

    fn values(&self, digests: &[Digest]) -> Future<'_, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        let digests = digests.to_vec();
        Box::pin(async move { self.reader.values(&digests) })
    }

    fn claim(&self, run: &RunId) -> Future<'_, Result<u64, ClaimError>> {
        let run = run.clone();
        Box::pin(async move {
            self.drivers.register()?;
            let claimed = self.writer.claim(Wanted::Run(run.clone())).await?;
            claimed.into_iter().next().map(|(_, epoch)| epoch).ok_or_else(|| StoreError::NoRun(run).into())
        })
    }

    fn release(&self, run: &RunId, epoch: u64) -> Future<'_, Result<(), StoreError>> {
        let run = run.clone();
        Box::pin(async move { self.writer.release(run, epoch).await })
    }

    fn abandon(&self, run: &RunId, epoch: u64) {
        self.writer.abandon(run.clone(), epoch);
    }

    fn undriven(&self, limit: usize) -> Future<'_, Result<Vec<RunId>, StoreError>> {
        Box::pin(async move { lists::undriven(&self.reader, &self.drivers, limit) })
    }

    fn claim_any<'a>(&'a self, runs: &'a [RunId], limit: usize) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>> {
        Box::pin(async move {
            self.drivers.register()?;
            match self.writer.claim(Wanted::Any(runs.to_vec(), limit)).await {
                Ok(claimed) => Ok(claimed),
                Err(ClaimError::DrivenBy(_)) => Ok(Vec::new()),
                Err(ClaimError::Store(error)) => Err(error),
            }
        })
    }

    fn driver(&self) -> &DriverId {
        self.drivers.own()
    }

    fn driver_of(&self, run: &RunId) -> Future<'_, Result<Option<DriverInfo>, StoreError>> {
        let run = run.clone();
        Box::pin(async move {
            match self.reader.last_driver(&run)? {
                Some(driver) => self.drivers.alive(&driver),
                None => Ok(None),
            }
        })
    }

    fn list_runs(&self, filter: RunFilter, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        Box::pin(async move { lists::runs(&self.reader, &self.drivers, &filter, page) })
    }

    fn find_runs(&self, prefix: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        let prefix = prefix.to_owned();
        Box::pin(async move { lists::find_runs(&self.reader, &self.drivers, &prefix) })
    }

    fn holds(&self, filter: HoldFilter, page: Page) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        Box::pin(async move { lists::holds(&self.reader, &filter, page) })
    }

    fn find_holds(&self, prefix: &str) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        let prefix = prefix.to_owned();
        Box::pin(async move { lists::find_holds(&self.reader, &prefix) })
    }

    fn timers(&self, due_before: Timestamp, limit: usize) -> Future<'_, Result<Vec<TimerRow>, StoreError>> {
        Box::pin(async move { lists::timers(&self.reader, due_before, limit) })
    }

    fn outbox(&self, filter: OutboxFilter, limit: usize) -> Future<'_, Result<Vec<OutboxEntry>, StoreError>> {
        Box::pin(async move { outbox::list(&self.reader, &self.drivers, filter, limit) })
    }

    fn claim_notice<'a>(&'a self, listed: &'a OutboxEntry) -> Future<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.drivers.register()?;
            self.writer.change_outbox(outbox::Change::Claim(listed.clone())).await
        })
    }

    fn settle_notice<'a>(&'a self, row: &'a OutboxRow, delivery: Delivery) -> Future<'a, Result<(), StoreError>> {
        Box::pin(async move { self.writer.change_outbox(outbox::Change::Settle(row.clone(), delivery)).await.map(drop) })
    }

    fn changes(&self) -> u64 {
        self.changes.marker()
    }

    fn changes_of(&self, run: &RunId) -> u64 {
        self.changes.feed().marker_of(run)
    }

    fn changed(&self, since: u64) -> Future<'_, Result<u64, StoreError>> {
        Box::pin(async move { self.changes.feed().changed(since, || self.watcher.awake()).await })
    }

    fn run_changed<'a>(&'a self, run: &'a RunId, since: u64, known: Option<u64>) -> Future<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.changes.feed().run_changed(run, since, known, || self.watcher.awake()).await })
    }

    fn changes_warning(&self) -> Option<String> {
        self.changes.warning()
    }

    fn stored_run(&self, run: &RunId) -> Future<'_, Result<Option<StoredRun>, StoreError>> {
        let run = run.clone();
        Box::pin(async move { scan::stored_run(&self.reader, &run) })
    }

    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        Box::pin(async move { scan::runs(&self.reader, after, limit) })
    }

    fn scan_commits(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredCommit>, StoreError>> {
        Box::pin(async move { scan::commits(&self.reader, after, limit) })
    }

    fn scan_values(&self, after: Option<Digest>, limit: usize) -> Future<'_, Result<Vec<StoredValue>, StoreError>> {
        Box::pin(async move { scan::values(&self.reader, after, limit) })
    }

    fn orphans(&self) -> Future<'_, Result<Vec<Orphan>, StoreError>> {
        Box::pin(async move { scan::orphans(&self.reader) })
    }

    fn damage(&self) -> Future<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move { scan::damage(&self.reader) })
    }

    fn missing_commits(&self) -> Future<'_, Result<Vec<Missing>, StoreError>> {
        Box::pin(async move { head::missing(&self.location, &self.reader) })
    }

    fn still_there(&self) -> Result<(), StoreError> {
        self.file_identity.check()
    }

    fn unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        Box::pin(async move { maintenance::unreferenced(&self.reader) })
    }

    fn remove_unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        Box::pin(async move {
            let removed = maintenance::remove_unreferenced(&self.location)?;
            self.changes.all_changed();
            Ok(removed)
        })
    }

    fn remove_run(&self, removal: RunRemoval) -> Future<'_, Result<RemovedRows, RemoveError>> {
        Box::pin(async move { self.writer.remove(removal).await })
    }

    fn back_up(&self, file: PathBuf) -> Future<'_, Result<(), StoreError>> {
        Box::pin(async move { maintenance::back_up(&self.location, &file) })
    }
}
