//! Creates and opens the database file.

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

/// The page cache per connection. It is small because the operating system caches the file anyway, and a process that drives
/// runs may be idle for weeks.
const CACHE_KILOBYTES: i32 = 1000;

/// Settings of a store in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long to wait for other processes that hold the write lock.
    pub lock_wait: Duration,
    /// The maximum size of the database in pages of 4096 bytes; `None` for no limit.
    pub max_pages: Option<u32>,
    /// Whether to watch files for commits of other processes, instead of polling the database.
    pub watch_files: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lock_wait: Duration::from_secs(5), max_pages: None, watch_files: true }
    }
}

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

    /// Creates the directory and the database if they are missing. A new database is created under a temporary name, without
    /// the journal it does not need yet, and renamed once it is complete and durable, so that no process ever sees half of
    /// one.
    pub(super) fn create(&self) -> Result<(), StoreError> {
        if self.database.try_exists().map_err(|error| explain_system(&error, &self.database))? {
            return Ok(());
        }
        let parent = self.folder.parent().filter(|parent| !self.folder.exists() && parent.exists()).map(Path::to_owned);
        fs::create_dir_all(&self.folder).map_err(|error| explain_system(&error, &self.folder))?;
        let fresh = self.folder.join(format!("lockgate.db.new-{:016x}", rand::random::<u64>()));
        let made = self.create_as(&fresh);
        // Removed in either case: on success it is a second hard link to the database.
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
            // The file system has no hard links, so two processes that start at the same time are less well protected from
            // each other.
            Err(_) => fs::rename(fresh, &self.database).map_err(|error| explain_system(&error, &self.database)),
        }
    }

    /// Opens the database, checks that it belongs to Lockgate, and migrates it to the current format.
    pub(super) fn open(&self, scan_guard: &ScanGuard) -> Result<Connection, StoreError> {
        let mut connection = self.connect(scan_guard)?;
        let deadline = Instant::now() + self.settings.lock_wait;
        loop {
            let found = match self.check(&mut connection) {
                Ok(found) => found,
                // SQLite refuses some locks without waiting, to avoid a deadlock.
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

    /// Like [`Location::open`], but falls back to a read-only connection if nothing can be written.
    pub(super) fn open_read_only(&self, scan_guard: &ScanGuard) -> Result<Source, StoreError> {
        match self.open(scan_guard) {
            Ok(connection) => Ok(Source::with_locks(connection)),
            Err(error @ (StoreError::Full(_) | StoreError::ReadOnly(_) | StoreError::Io(_))) => {
                read_only::open(self, scan_guard).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that the database belongs to Lockgate, and migrates it to the current format.
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

    /// Whether a read-only database belongs to Lockgate and has the current format.
    pub(super) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
        Ok(matches!(look(connection)?, Found::Ours))
    }

    /// Opens the database after it has been checked.
    pub(super) fn connect(&self, scan_guard: &ScanGuard) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| explain(error, None, &self.database);
        let mut connection = Connection::open_with_flags(&self.database, flags).map_err(failed)?;
        self.prepare(&mut connection, scan_guard).map_err(failed)?;
        // SQLite silently opens a file read-only if it may not write it. (Testing with our own descriptor is not an option:
        // closing it would release the locks that other connections of this process hold on the file.)
        if connection.is_readonly("main").map_err(failed)? {
            return Err(StoreError::ReadOnly(self.database.clone()));
        }
        Ok(connection)
    }

    /// Applies the settings that all connections share.
    pub(super) fn prepare(&self, connection: &mut Connection, scan_guard: &ScanGuard) -> rusqlite::Result<()> {
        connection.busy_timeout(self.settings.lock_wait)?;
        scan_guard.set(connection, &self.database)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "cache_size", -CACHE_KILOBYTES)?;
        // Otherwise a statement with a parameter as its limit would be prepared anew each time.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(())
    }
}

/// Reads the format of a database.
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

/// The path of a file that SQLite keeps next to a database.
pub(super) fn with_ending(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

enum Found {
    Ours,
    /// In an earlier format, or empty.
    Older,
    Newer(i64),
    Foreign,
}
