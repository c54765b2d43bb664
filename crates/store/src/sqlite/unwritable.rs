//! Reading where nothing can be written: on a full disk, or in a folder that is read-only.
//!
//! A database is read together with its write-ahead log, and with an index of that log beside both, which SQLite makes and lengthens. Where it
//! cannot, there are three ways, and the first that fits is taken:
//!
//! 1. Somebody left or keeps an index: it is used as it is, or rebuilt in memory, with all locks (`readonly_shm`).
//! 2. There is a log without an index: the index is made in memory. Nobody else has the database open, so no locks are needed.
//! 3. There is no log: the database file is all there is (`immutable`).
//!
//! The last two take no locks. Whether somebody has begun to write after all shows in the files, which are looked at before and after each read.

use super::bound::Bound;
use super::open::{Place, beside};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files that were there when a connection without locks was opened.
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
    pub(super) fn of(database: &Path) -> Self {
        let stamp = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some(FileStamp { file: file.ino(), length: file.len(), changed: (file.mtime(), file.mtime_nsec()) })
        };
        Self { database: stamp(database), log: stamp(&beside(database, "-wal")) }
    }

    fn has_log(&self) -> bool {
        self.log.is_some_and(|log| log.length > 0)
    }
}

/// Opens the database by the first way that reads it. With a stamp where no locks are taken; nothing where there is no way.
pub(super) fn open(place: &Place, bound: &Bound) -> Option<(Connection, Option<Stamp>)> {
    let database = &place.database;
    let check = |connection: Connection| {
        let connection = place.prepare(connection, bound).ok()?;
        Place::is_ours(&connection).ok()?.then_some(connection)
    };
    if let Some(connection) = connect(&uri(database, "mode=ro&readonly_shm=1"), None).and_then(check) {
        return Some((connection, None));
    }
    let stamp = Stamp::of(database);
    let connection = if stamp.has_log() {
        let connection = connect(&uri(database, "mode=ro"), Some("unix-none"))?;
        // So that the index is made in memory, and the log is left as it is.
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE").ok()?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).ok()?;
        connection
    } else if beside(database, "-journal").exists() {
        // What another program left there would have to be rolled back first.
        return None;
    } else {
        connect(&uri(database, "immutable=1"), None)?
    };
    let connection = check(connection)?;
    // What was there before it was opened, so that nothing that came meanwhile is missed.
    Some((connection, Some(stamp)))
}

fn connect(uri: &Path, system: Option<&str>) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match system {
        Some(system) => Connection::open_with_flags_and_vfs(uri, flags, system).ok(),
        None => Connection::open_with_flags(uri, flags).ok(),
    }
}

/// The database with options, in the form in which SQLite takes both.
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
