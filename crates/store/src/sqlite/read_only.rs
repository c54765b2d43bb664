//! Reading when nothing can be written: on a full disk, or in a read-only directory.
//!
//! SQLite reads a database together with its write-ahead log and an index of that log, which it normally creates and extends.
//! If it cannot, there are three options, tried in this order:
//!
//! 1. An index exists: use it as it is, or rebuild it in memory, with all locks (`readonly_shm`).
//! 2. There is a log without an index: build the index in memory. No other process has the database open, so no locks are
//!    needed.
//! 3. There is no log: read only the database file (`immutable`).
//!
//! The last two take no locks. To detect a process that starts writing after all, the files are compared before and after
//! each read. These connections are never closed before the process ends, because closing a file releases all locks that the
//! process holds on it, including those of other connections.

use super::open::{Location, with_ending};
use super::scan_guard::ScanGuard;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The state of the files when a connection without locks was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    database: Option<FileStamp>,
    log: Option<FileStamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileStamp {
    file: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(database: &Path) -> io::Result<Self> {
        let stamp = |path: &Path| match fs::metadata(path) {
            Ok(file) => Ok(Some(FileStamp { file: file.ino(), length: file.len(), changed: (file.mtime(), file.mtime_nsec()) })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        // If the database is a symlink, the log is next to its target.
        let database = fs::canonicalize(database)?;
        Ok(Self { database: stamp(&database)?, log: stamp(&with_ending(&database, "-wal"))? })
    }

    fn has_log(&self) -> bool {
        self.log.is_some_and(|log| log.length > 0)
    }
}

/// A connection for reading, with a stamp of its files if it takes no locks.
#[derive(Debug)]
pub(super) struct Source {
    /// `Some` until it is dropped.
    connection: Option<Connection>,
    stamp: Option<Stamp>,
}

impl Source {
    pub(super) fn with_locks(connection: Connection) -> Self {
        Self { connection: Some(connection), stamp: None }
    }

    /// Whether the files are unchanged since the connection was opened; always true for one with locks.
    pub(super) fn is_up_to_date(&self, location: &Location) -> bool {
        self.stamp.is_none_or(|stamp| Stamp::of(&location.database).is_ok_and(|present| present == stamp))
    }

    /// Identifies this state of the files, for a connection without locks.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }
}

impl Deref for Source {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is present until it is dropped")
    }
}

impl DerefMut for Source {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it is present until it is dropped")
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if self.stamp.is_some() {
            std::mem::forget(self.connection.take());
        }
    }
}

/// Opens the database with the first option that works; `None` if none does.
pub(super) fn open(location: &Location, scan_guard: &ScanGuard) -> Option<Source> {
    let database = &fs::canonicalize(&location.database).ok()?;
    let check = |mut source: Source| {
        location.prepare(&mut source, scan_guard).ok()?;
        Location::is_ours(&source).ok()?.then_some(source)
    };
    let with_index = connect(&uri(database, "mode=ro&readonly_shm=1"), None).map(Source::with_locks);
    if let Some(source) = with_index.and_then(check) {
        return Some(source);
    }
    // Take the stamp before opening, so that no change in between is missed.
    let stamp = Stamp::of(database).ok()?;
    let without_locks = |connection| Source { connection: Some(connection), stamp: Some(stamp) };
    let source = if stamp.has_log() {
        let source = without_locks(connect(&uri(database, "mode=ro"), Some("unix-none"))?);
        // This builds the index in memory and leaves the log as it is.
        source.execute_batch("PRAGMA locking_mode = EXCLUSIVE").ok()?;
        source.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok()?;
        source
    } else if with_ending(database, "-journal").try_exists().unwrap_or(true) {
        // A journal of another program would have to be rolled back first.
        return None;
    } else {
        without_locks(connect(&uri(database, "immutable=1"), None)?)
    };
    check(source)
}

fn connect(uri: &Path, system: Option<&str>) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match system {
        Some(system) => Connection::open_with_flags_and_vfs(uri, flags, system).ok(),
        None => Connection::open_with_flags(uri, flags).ok(),
    }
}

/// The database path with options, as an SQLite URI.
fn uri(database: &Path, options: &str) -> PathBuf {
    let mut uri = String::from("file:");
    for byte in database.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
            other => uri += &format!("%{other:02x}"),
        }
    }
    format!("{uri}?{options}").into()
}
