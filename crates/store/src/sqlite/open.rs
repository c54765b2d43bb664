//! Making and opening the database file.

use super::errors::{corrupt, explain, explain_system, is_busy};
use super::read_only::{self, Source};
use super::scan_guard::ScanGuard;
use super::schema::{APPLICATION_ID, FORMAT, STEPS, migrate};
use crate::error::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::cmp::Ordering;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much of the database a connection keeps in memory. The system keeps as much of it as there is room for, and reading from there is quick, while a
/// process that drives runs may have nothing to do for weeks.
const CACHE_KILOBYTES: i32 = 1000;

/// How a store in a folder behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long to wait for other processes that write.
    pub lock_wait: Duration,
    /// How many pages of 4096 bytes the database may grow to; no limit when absent.
    pub max_pages: Option<u32>,
    /// Whether files are watched for commits of other processes; otherwise the database is polled for them.
    pub watch_files: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lock_wait: Duration::from_secs(5), max_pages: None, watch_files: true }
    }
}

/// Where a store is, and how it behaves.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) folder: PathBuf,
    pub(super) database: PathBuf,
    pub(super) settings: Settings,
}

impl Location {
    pub(super) fn new(folder: &Path, settings: Settings) -> Self {
        Self { folder: folder.to_owned(), database: folder.join("lockgate.db"), settings }
    }

    /// Makes folder and database where they are missing. A new database is made aside, without the journal that nobody needs yet, and put in
    /// its place complete and durable, so that nobody ever meets half of one.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        if self.database.try_exists().map_err(|error| explain_system(&error, &self.database))? {
            return Ok(());
        }
        let parent = self.folder.parent().filter(|parent| !self.folder.exists() && parent.exists()).map(Path::to_owned);
        fs::create_dir_all(&self.folder).map_err(|error| explain_system(&error, &self.folder))?;
        let fresh = self.folder.join(format!("lockgate.db.new-{:016x}", rand::random::<u64>()));
        let made = self.create_as(&fresh);
        // Removed whether it was put in its place (which is a second name of it) or not.
        crate::cleanup::remove_file(&fresh);
        made?;
        for folder in [Some(self.folder.clone()), parent].into_iter().flatten().filter(|folder| !folder.as_os_str().is_empty()) {
            let synced = File::open(&folder).and_then(|opened| opened.sync_all());
            synced.map_err(|error| explain_system(&error, &folder))?;
        }
        Ok(())
    }

    fn create_as(&self, fresh: &Path) -> Result<(), StoreError> {
        let failed = |error| explain(error, None, &self.database);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(fresh, flags).map_err(|error| match explain(error, None, fresh) {
            StoreError::NotFound(_) => StoreError::ReadOnly(self.folder.clone()),
            other => other,
        })?;
        connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;").map_err(failed)?;
        migrate(&mut connection, STEPS).map_err(failed)?;
        connection.execute_batch("PRAGMA journal_mode = WAL;").map_err(failed)?;
        connection.close().map_err(|(_, error)| failed(error))?;
        let synced = File::open(fresh).and_then(|opened| opened.sync_all());
        synced.map_err(|error| explain_system(&error, &self.database))?;
        match fs::hard_link(fresh, &self.database) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // A file system without hard links; two processes that begin at once are then less well guarded against each other.
            Err(_) => fs::rename(fresh, &self.database).map_err(|error| explain_system(&error, &self.database)),
        }
    }

    /// Opens the database, checks that it is one of ours, and takes it to the present format.
    pub(super) fn open(&self, scan_guard: &ScanGuard) -> Result<Connection, StoreError> {
        let mut connection = self.connect(scan_guard)?;
        let deadline = Instant::now() + self.settings.lock_wait;
        loop {
            let found = match self.check(&mut connection) {
                Ok(found) => found,
                // Some locks are refused without waiting, where waiting could end in a deadlock.
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(rand::random_range(1..10)));
                    continue;
                }
                Err(error) => return Err(explain(error, Some(&connection), &self.database)),
            };
            return match found {
                Found::Ours | Found::Older => Ok(connection),
                Found::Newer(found) => Err(StoreError::Newer { path: self.database.clone(), found, supported: FORMAT }),
                Found::Foreign => Err(corrupt(&self.database, "it belongs to another program")),
            };
        }
    }

    /// Opens the database as [`Location::open`] does; where nothing can be written, so that it can be read at least.
    pub(super) fn open_read_only(&self, scan_guard: &ScanGuard) -> Result<Source, StoreError> {
        match self.open(scan_guard) {
            Ok(connection) => Ok(Source::with_locks(connection)),
            Err(error @ (StoreError::Full(_) | StoreError::ReadOnly(_) | StoreError::Io(_))) => {
                read_only::open(self, scan_guard).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that the database is one of ours, and takes it to the present format.
    fn check(&self, connection: &mut Connection) -> rusqlite::Result<Found> {
        let found = look(connection)?;
        if matches!(found, Found::Ours | Found::Older) {
            let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            if journal != "wal" {
                connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            }
        }
        if matches!(found, Found::Older) {
            migrate(connection, STEPS)?;
        }
        Ok(found)
    }

    /// Whether a database that cannot be written is one of ours, of the present format.
    pub(super) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
        Ok(matches!(look(connection)?, Found::Ours))
    }

    /// Opens the database, which was checked before.
    pub(super) fn connect(&self, scan_guard: &ScanGuard) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| explain(error, None, &self.database);
        let mut connection = Connection::open_with_flags(&self.database, flags).map_err(failed)?;
        self.prepare(&mut connection, scan_guard).map_err(failed)?;
        // SQLite opens what it may not write without a word. (Trying with a descriptor of our own is no way: closing it would end the
        // locks that other connections of this process hold on the file.)
        if connection.is_readonly("main").map_err(failed)? {
            return Err(StoreError::ReadOnly(self.database.clone()));
        }
        Ok(connection)
    }

    /// Sets on a connection what all of them have.
    pub(super) fn prepare(&self, connection: &mut Connection, scan_guard: &ScanGuard) -> rusqlite::Result<()> {
        connection.busy_timeout(self.settings.lock_wait)?;
        scan_guard.set(connection, &self.database)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "cache_size", -CACHE_KILOBYTES)?;
        // Else a statement whose limit is a parameter would be prepared anew each time.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(())
    }
}

/// What a database says that it is.
fn look(connection: &Connection) -> rusqlite::Result<Found> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION_ID {
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if (application, format, tables) != (0, 0, 0) {
            return Ok(Found::Foreign);
        }
    }
    Ok(match format.cmp(&FORMAT) {
        Ordering::Less => Found::Older,
        Ordering::Equal => Found::Ours,
        Ordering::Greater => Found::Newer(format),
    })
}

/// A file that SQLite keeps beside a database.
pub(super) fn with_ending(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What a database turned out to be.
enum Found {
    Ours,
    /// Of an earlier format, or empty.
    Older,
    Newer(i64),
    Foreign,
}
