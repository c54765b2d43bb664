//! Commits a batch of requests in one transaction on the writing connection.

use super::append::{self, Appended, Broken, Remembered};
use super::changes::Changes;
use super::claims::{self, Claimed, Granted};
use super::drivers::Drivers;
use super::errors::{explain, is_busy};
use super::file_identity::FileIdentity;
use super::head::Head;
use super::open::Location;
use super::outbox;
use super::remove::{self, Removed};
use super::scan_guard::ScanGuard;
use super::wal::WriteAheadLog;
use super::writer::Request;
use crate::error::StoreError;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ffi};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Committer {
    location: Location,
    drivers: Arc<Drivers>,
    changes: Arc<Changes>,
    /// Opened on first use, and again after a failed rollback.
    connection: Option<Connection>,
    /// Whether the connection syncs with each commit, which is the initial setting.
    durable: bool,
    scan_guard: ScanGuard,
    remembered: Remembered,
    log: WriteAheadLog,
    head: Head,
    file_identity: Arc<FileIdentity>,
}

impl Committer {
    pub(super) fn new(
        location: Location,
        drivers: Arc<Drivers>,
        changes: Arc<Changes>,
        file_identity: Arc<FileIdentity>,
    ) -> Self {
        let (log, head) = (WriteAheadLog::new(&location.folder), Head::new(&location));
        let (scan_guard, remembered) = (ScanGuard::default(), Remembered::default());
        Self { location, drivers, changes, connection: None, durable: true, scan_guard, remembered, log, head, file_identity }
    }

    /// Makes a batch durable and stores each request's outcome in it. On an error nothing is recorded, unless the error says
    /// so. Returns false if another process has the lock and `patient` is not set.
    pub(super) fn commit(&mut self, batch: &mut [Request], patient: bool) -> Result<bool, StoreError> {
        self.file_identity.check_sometimes()?;
        self.ensure_open()?;
        let connection = self.connection.take().expect("it was opened just now");
        let durable = batch.iter().any(Request::must_be_durable);
        let result = match self.set_durable(&connection, durable) {
            Ok(()) => self.transact(&connection, batch, patient),
            Err(error) => Err(error),
        };
        self.log.grown();
        if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
            self.connection = Some(connection);
        }
        match result {
            Ok(true) => self.acknowledge(batch),
            Ok(false) => {}
            Err(_) => self.remembered.forget(),
        }
        result
    }

    pub(super) fn ensure_open(&mut self) -> Result<(), StoreError> {
        if self.connection.is_none() {
            self.connection = Some(self.connect()?);
            self.log.reopened();
            self.durable = true;
        }
        Ok(())
    }

    /// Writes the head file after a durable commit, and wakes waiters.
    fn acknowledge(&mut self, batch: &[Request]) {
        let (mut appended, mut claims) = (Vec::new(), Vec::new());
        for request in batch {
            match request {
                Request::Append(append, Appended::Taken(_), _) => {
                    appended.extend(self.remembered.number_of(&append.run).map(|run_key| (&**append, run_key)));
                }
                Request::Claim(_, Claimed::Runs(granted), _) => claims.extend(granted.iter().map(Granted::run)),
                Request::Release(run, _, true, _) => claims.push(run),
                Request::Remove(removal, Removed::Rows(_), _) => claims.push(&removal.run),
                Request::Append(_, Appended::Conflict | Appended::Fenced | Appended::DrivenBy(_) | Appended::NoRun, _)
                | Request::Claim(_, Claimed::DrivenBy(_) | Claimed::NoRun, _)
                | Request::Release(_, _, false, _)
                | Request::Remove(_, Removed::Fenced | Removed::Status(_) | Removed::NoRun, _)
                | Request::Outbox(..) => {}
            }
        }
        if !appended.is_empty() || !claims.is_empty() {
            self.changes.committed(&mut self.head, &appended, &claims);
        }
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let failed = |error| explain(error, None, &self.location.database);
        let mut connection = self.location.connect(&self.scan_guard)?;
        // `begin` waits for locks, and `checkpoint_wal` checkpoints the log.
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0; PRAGMA wal_autocheckpoint = 0;")
            .map_err(failed)?;
        if let Some(pages) = self.location.settings.max_pages {
            connection.execute_batch(&format!("PRAGMA max_page_count = {pages};")).map_err(failed)?;
        }
        let log_pages = self.log.pages();
        let count = move |_: &mut Wal, pages| {
            log_pages.store(pages, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(count)).map_err(failed)?;
        Ok(connection)
    }

    /// Sets whether the next transaction waits for the disk. One that does also makes all earlier ones durable.
    fn set_durable(&mut self, connection: &Connection, durable: bool) -> Result<(), StoreError> {
        if self.durable != durable {
            let level = if durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            connection.execute_batch(level).map_err(|error| explain(error, Some(connection), &self.location.database))?;
            self.durable = durable;
        }
        Ok(())
    }

    fn transact(&mut self, connection: &Connection, batch: &mut [Request], patient: bool) -> Result<bool, StoreError> {
        let database = self.location.database.clone();
        let failed = |error| explain(error, Some(connection), &database);
        if !self.begin(connection, patient)? {
            return Ok(false);
        }
        self.log.make_room(connection);
        self.remembered.begin();
        for request in batch.iter_mut() {
            self.scan_guard.begin();
            self.perform(connection, request).map_err(|broken| match broken {
                Broken::Sqlite(error) => failed(error),
                Broken::Store(error) => error,
            })?;
        }
        run(connection, "COMMIT").map_err(|error| {
            // If writing to the log failed, the frame that commits the transaction is missing. After any other failure the
            // outcome is unknown.
            let refused =
                error.sqlite_error().is_some_and(|code| matches!(code.extended_code, ffi::SQLITE_FULL | ffi::SQLITE_IOERR_WRITE));
            match failed(error) {
                StoreError::Full(path) if refused => StoreError::Full(path),
                other => StoreError::OutcomeUnknown(other.to_string()),
            }
        })?;
        Ok(true)
    }

    /// Takes the write lock; other processes hold it only for the duration of a transaction.
    fn begin(&self, connection: &Connection, patient: bool) -> Result<bool, StoreError> {
        let mut deadline = None;
        loop {
            match run(connection, "BEGIN IMMEDIATE") {
                Ok(()) => return Ok(true),
                Err(error) if is_busy(&error) && !patient => return Ok(false),
                Err(error) if is_busy(&error) => {
                    let now = Instant::now();
                    if now >= *deadline.get_or_insert(now + self.location.settings.lock_wait) {
                        return Err(explain(error, Some(connection), &self.location.database));
                    }
                    std::thread::sleep(Duration::from_micros(rand::random_range(50..1000)));
                }
                Err(error) => return Err(explain(error, Some(connection), &self.location.database)),
            }
        }
    }

    fn perform(&mut self, connection: &Connection, request: &mut Request) -> Result<(), Broken> {
        match request {
            Request::Append(append, appended, _) => {
                *appended = append::append(connection, &mut self.remembered, &self.drivers, append)?;
            }
            Request::Claim(wanted, claimed, _) => *claimed = claims::claim(connection, &self.drivers, wanted)?,
            Request::Release(run, epoch, released, _) => {
                *released = claims::release(connection, &self.drivers, run, *epoch)?;
            }
            Request::Remove(removal, removed, _) => {
                *removed = remove::remove(connection, &self.drivers, removal)?;
                // A value that this transaction stored before may be gone with the run.
                self.remembered.begin();
            }
            Request::Outbox(change, changed, _) => *changed = outbox::change(connection, &self.drivers, change)?,
        }
        Ok(())
    }

    /// Whether the write-ahead log is long enough to be checkpointed.
    pub(super) fn wal_is_long(&mut self) -> bool {
        self.log.is_long()
    }

    /// Checkpoints the write-ahead log. A failure loses nothing; it is retried later.
    pub(super) fn checkpoint_wal(&mut self) {
        if let Some(connection) = &self.connection {
            match connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
                Ok(()) => tracing::trace!("write-ahead log checkpointed"),
                Err(error) => tracing::debug!(%error, "cannot checkpoint the write-ahead log now"),
            }
        }
        self.log.emptied();
    }
}

fn run(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([]).map(|_| ())
}
