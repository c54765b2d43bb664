//! An end to all reading. The pages of a good database are a tree in which the keys rise; in a damaged one, pages can lead to others that were
//! read already, so that the same rows come again and again, and whoever waits for the last one waits for ever.

use super::open::with_ending;
use rusqlite::{Connection, Error, ffi};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// After how many steps of its machine SQLite asks whether to go on.
const STEPS_AT_ONCE: i32 = 100_000;
/// How often it may ask while the size of the database does not matter.
const ALWAYS: u64 = 100;
/// How many steps a byte of a database can be worth. The most are taken by the check of all rows and indexes, and it takes less than half of one.
const STEPS_OF_A_BYTE: u64 = 4;

/// How much has been read since something began. Nothing reads more than its database can hold.
#[derive(Debug, Default)]
pub(super) struct ScanGuard {
    asked: Arc<AtomicU64>,
}

impl ScanGuard {
    /// Sets an end to what is read on this connection.
    pub(super) fn set(&self, connection: &mut Connection, database: &Path) -> rusqlite::Result<()> {
        let (count, database) = (self.asked.clone(), database.to_owned());
        let ends = move || {
            let asked = count.fetch_add(1, Ordering::Relaxed);
            let steps = asked.saturating_mul(u64::from(STEPS_AT_ONCE.unsigned_abs()));
            asked >= ALWAYS && steps > size(&database).saturating_mul(STEPS_OF_A_BYTE)
        };
        connection.progress_handler(STEPS_AT_ONCE, Some(ends))
    }

    /// Begins to count anew.
    pub(super) fn begin(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }
}

/// The size of a database with its log. (Looked at by name: to close a descriptor of the file would end the locks of this process on it.)
fn size(database: &Path) -> u64 {
    let size = |file: &Path| fs::metadata(file).map(|file| file.len());
    // What has another name by now can still be read, and is as large as it was.
    size(database).map_or(u64::MAX, |bytes| bytes.saturating_add(size(&with_ending(database, "-wal")).unwrap_or(0)))
}

/// Lets rows by whose keys come in order, each past the one before.
#[derive(Debug)]
pub(super) struct AscendingKeys<K> {
    last: Option<K>,
}

impl<K: PartialOrd> AscendingKeys<K> {
    /// Keys have to be past this one.
    pub(super) fn past(last: Option<K>) -> Self {
        Self { last }
    }

    /// Refuses a key that is not past the last one.
    pub(super) fn take(&mut self, key: K) -> rusqlite::Result<()> {
        if self.last.as_ref().is_some_and(|last| key <= *last) {
            let message = "rows come again, or in another order than that of their keys".to_owned();
            return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(message)));
        }
        self.last = Some(key);
        Ok(())
    }
}
