//! The store in a PostgreSQL database, for many machines: all tables in one schema, one lease per driver process.
//!
//! A store has its own thread for its connections: heartbeats continue whatever the caller's threads do, and a driver's lease
//! ends with its store. Only commits can take a shorter path (`writers`). Statements are pipelined: no transaction waits for
//! this process, and no lock outlives a round trip.
//!
//! | module | what it does |
//! | --- | --- |
//! | `address`, `tls`, `connection` | the database address, and encrypted connections that are reopened after a loss |
//! | `schema` | the tables and their migrations |
//! | `writer` | collects waiting requests and commits them in one transaction |
//! | `writers` | a writer on the caller's runtime, and one on the store's thread |
//! | `append`, `columns` | the statement that appends a batch |
//! | `single_append` | the statements for one append with nothing but its commit |
//! | `remove` | the statements that remove a run |
//! | `reader`, `lists`, `scan` | read histories, lists and everything |
//! | `outbox` | notices to be delivered |
//! | `maintenance` | backups; removing unreferenced values |
//! | `claims` | which driver drives a run |
//! | `drivers`, `process` | which processes drive runs, and which of them are alive |
//! | `changes` | notifies waiters of changes by other processes |
//! | `errors` | translates errors of PostgreSQL and the network |

mod address;
mod append;
mod changes;
mod claims;
mod columns;
mod connection;
mod drivers;
mod errors;
mod lists;
mod maintenance;
mod outbox;
mod process;
mod reader;
mod remove;
mod scan;
mod schema;
mod single_append;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod test_server;
mod thread;
mod tls;
mod writer;
mod writers;

use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::lease::Lease;
use crate::store::{
    Append, Delivery, DriverInfo, Future, HoldFilter, ListedHold, ListedRun, Loaded, Orphan, OutboxEntry, OutboxFilter, Page,
    RemovedRows, RunFilter, RunRemoval, Store, StoredCommit, StoredRun, StoredValue, Unreferenced, refuse_misuse,
};
use address::Address;
use changes::Changes;
use connection::Connection;
use drivers::Drivers;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{OutboxRow, TimerRow};
use lockgate_engine::time::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;
use thread::Thread;
use writer::Writer;
use writers::{CallerRuntime, Writers};

/// One process's handle on a store in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    thread: Thread,
    parts: Arc<StoreParts>,
}

#[derive(Debug)]
struct StoreParts {
    /// Reads, sends heartbeats and listens for notifications.
    connection: Arc<Connection>,
    writers: Writers,
    drivers: Arc<Drivers>,
    changes: Arc<Changes>,
}

impl StoreParts {
    /// Connects, creates missing tables, and starts the background tasks of the store.
    async fn open(address: Address, opener: Option<CallerRuntime>) -> Result<Arc<Self>, StoreError> {
        let drivers = Arc::new(Drivers::new());
        let changes = Arc::new(Changes::new(drivers.own().clone()));
        let connection = Arc::new(Connection::new(address.clone(), "").hearing(changes.clone()));
        let session = connection.session().await?;
        schema::prepare(&session, &address).await?;
        let snapshot = connection.list(changes::SNAPSHOT, &[], |row| row.get(0)).await?.pop().unwrap_or_default();
        let writer = || Writer::new(Connection::new(address.clone(), writer::SETTINGS), drivers.clone(), changes.clone());
        let writers = Writers::begin(writer, opener);
        tokio::spawn(changes.clone().notify(connection.clone()));
        tokio::spawn(changes.clone().check(connection.clone(), snapshot));
        Ok(Arc::new(Self { connection, writers, drivers, changes }))
    }

    /// Flushes notifications and ends the lease.
    async fn close(&self) {
        self.changes.notify_others(&self.connection).await;
        self.drivers.end(&self.connection).await;
        self.connection.close().await;
        self.writers.close().await;
    }
}

impl PostgresStore {
    /// Connects to the database at this address (`postgresql://USER:PASSWORD@HOST:PORT/DATABASE`), creating missing tables.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let address = Address::new(url)?;
        let (thread, parts) =
            Thread::start(StoreParts::open(address, CallerRuntime::present()), |parts| async move { parts.close().await })?;
        Ok(Self { thread, parts })
    }

    /// Runs a task on the store's thread.
    fn ask<T, W>(&self, work: impl FnOnce(Arc<StoreParts>) -> W + Send + 'static) -> Future<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        W: std::future::Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Box::pin(async move { self.thread.perform(work(self.parts.clone())).await })
    }

    async fn register(&self) -> Result<(), StoreError> {
        let parts = self.parts.clone();
        self.thread.perform(async move { parts.drivers.register(&parts.connection).await }).await
    }
}

impl Store for PostgresStore {
    fn append(&self, append: Append) -> Future<'_, Result<Option<u64>, AppendError>> {
        Box::pin(async move {
            refuse_misuse(&append, self.driver())?;
            if append.claim.is_some() {
                self.register().await?;
            }
            self.parts.writers.append(append).await
        })
    }

    fn load(&self, run: &RunId) -> Future<'_, Result<Option<Loaded>, StoreError>> {
        let run = run.clone();
        self.ask(move |parts| async move { reader::load(&parts.connection, &run).await })
    }

    fn commits(&self, run: &RunId, after: u64, limit: usize) -> Future<'_, Result<Vec<SealedCommit>, StoreError>> {
        let run = run.clone();
        self.ask(move |parts| async move { reader::commits(&parts.connection, &run, after, limit).await })
    }

    fn values(&self, digests: &[Digest]) -> Future<'_, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        let digests = digests.to_vec();
        self.ask(move |parts| async move { reader::values(&parts.connection, &digests).await })
    }

    fn claim(&self, run: &RunId) -> Future<'_, Result<u64, ClaimError>> {
        let run = run.clone();
        Box::pin(async move {
            self.register().await?;
            self.parts.writers.claim(run).await
        })
    }

    fn release(&self, run: &RunId, epoch: u64) -> Future<'_, Result<(), StoreError>> {
        let run = run.clone();
        Box::pin(async move { self.parts.writers.release(run, epoch).await })
    }

    fn abandon(&self, run: &RunId, epoch: u64) {
        self.parts.writers.abandon(run.clone(), epoch);
    }

    fn undriven(&self, limit: usize) -> Future<'_, Result<Vec<RunId>, StoreError>> {
        self.ask(move |parts| async move { parts.drivers.undriven(&parts.connection, limit).await })
    }

    fn claim_any<'a>(&'a self, runs: &'a [RunId], limit: usize) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>> {
        Box::pin(async move {
            self.register().await?;
            self.parts.writers.claim_any(runs.to_vec(), limit).await
        })
    }

    fn driver(&self) -> &DriverId {
        self.parts.drivers.own()
    }

    fn lease(&self) -> Lease {
        self.parts.drivers.lease().clone()
    }

    fn driver_of(&self, run: &RunId) -> Future<'_, Result<Option<DriverInfo>, StoreError>> {
        let run = run.clone();
        self.ask(move |parts| async move { Drivers::of_run(&parts.connection, &run).await })
    }

    fn list_runs(&self, filter: RunFilter, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.ask(move |parts| async move { lists::runs(&parts.connection, &filter, page).await })
    }

    fn find_runs(&self, prefix: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        let prefix = prefix.to_owned();
        self.ask(move |parts| async move { lists::find_runs(&parts.connection, &prefix).await })
    }

    fn holds(&self, filter: HoldFilter, page: Page) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        self.ask(move |parts| async move { lists::holds(&parts.connection, &filter, page).await })
    }

    fn find_holds(&self, prefix: &str) -> Future<'_, Result<Vec<ListedHold>, StoreError>> {
        let prefix = prefix.to_owned();
        self.ask(move |parts| async move { lists::find_holds(&parts.connection, &prefix).await })
    }

    fn timers(&self, due_before: Timestamp, limit: usize) -> Future<'_, Result<Vec<TimerRow>, StoreError>> {
        self.ask(move |parts| async move { lists::timers(&parts.connection, due_before, limit).await })
    }

    fn outbox(&self, filter: OutboxFilter, limit: usize) -> Future<'_, Result<Vec<OutboxEntry>, StoreError>> {
        self.ask(move |parts| async move { outbox::list(&parts.connection, parts.drivers.own(), filter, limit).await })
    }

    fn claim_notice<'a>(&'a self, listed: &'a OutboxEntry) -> Future<'a, Result<bool, StoreError>> {
        let listed = listed.clone();
        Box::pin(async move {
            self.register().await?;
            self.ask(move |parts| async move { outbox::claim(&parts.connection, parts.drivers.own(), &listed).await }).await
        })
    }

    fn settle_notice<'a>(&'a self, row: &'a OutboxRow, delivery: Delivery) -> Future<'a, Result<(), StoreError>> {
        let row = row.clone();
        self.ask(move |parts| async move { outbox::settle(&parts.connection, parts.drivers.own(), &row, &delivery).await })
    }

    fn changes(&self) -> u64 {
        self.parts.changes.marker()
    }

    fn changes_of(&self, run: &RunId) -> u64 {
        self.parts.changes.marker_of(run)
    }

    fn changed(&self, since: u64) -> Future<'_, Result<u64, StoreError>> {
        Box::pin(async move { self.parts.changes.changed(since).await })
    }

    fn run_changed<'a>(&'a self, run: &'a RunId, since: u64, known: Option<u64>) -> Future<'a, Result<u64, StoreError>> {
        Box::pin(self.parts.changes.run_changed(run, since, known))
    }

    fn stored_run(&self, run: &RunId) -> Future<'_, Result<Option<StoredRun>, StoreError>> {
        let run = run.clone();
        self.ask(move |parts| async move { scan::stored_run(&parts.connection, &run).await })
    }

    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        self.ask(move |parts| async move { scan::runs(&parts.connection, after, limit).await })
    }

    fn scan_commits(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredCommit>, StoreError>> {
        self.ask(move |parts| async move { scan::commits(&parts.connection, after, limit).await })
    }

    fn scan_values(&self, after: Option<Digest>, limit: usize) -> Future<'_, Result<Vec<StoredValue>, StoreError>> {
        self.ask(move |parts| async move { scan::values(&parts.connection, after, limit).await })
    }

    fn orphans(&self) -> Future<'_, Result<Vec<Orphan>, StoreError>> {
        self.ask(move |parts| async move { scan::orphans(&parts.connection).await })
    }

    /// Checking the files of a PostgreSQL database is up to its server.
    fn damage(&self) -> Future<'_, Result<Vec<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        self.ask(move |parts| async move { maintenance::unreferenced(&parts.connection).await })
    }

    fn remove_unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>> {
        self.ask(move |parts| async move {
            let removed = maintenance::remove_unreferenced(&parts.connection.address).await?;
            parts.changes.all_changed();
            Ok(removed)
        })
    }

    fn remove_run(&self, removal: RunRemoval) -> Future<'_, Result<RemovedRows, RemoveError>> {
        Box::pin(async move { self.parts.writers.remove(removal).await })
    }

    fn back_up(&self, file: PathBuf) -> Future<'_, Result<(), StoreError>> {
        self.ask(move |parts| async move { maintenance::back_up(&parts.connection.address, &file).await })
    }
}
