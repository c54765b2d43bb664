//! Bounds every read. The pages of an intact database form a tree with ascending keys. In a damaged one, pages can point back
//! to earlier ones, so that the same rows are returned again and again and a scan never ends.

use super::open::with_ending;
use rusqlite::{Connection, Error, ffi};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// After how many virtual machine steps SQLite calls the progress handler.
const STEPS_AT_ONCE: i32 = 100_000;
/// How often the handler may run before the size of the database matters.
const ALWAYS: u64 = 100;
/// How many steps each byte of the database allows. The full integrity check needs the most: less than half a step.
const STEPS_OF_A_BYTE: u64 = 4;

/// Counts the steps of the current read. No read takes more steps than its database size allows.
#[derive(Debug, Default)]
pub(super) struct ScanGuard {
    asked: Arc<AtomicU64>,
}

impl ScanGuard {
    /// Installs the limit on this connection.
    pub(super) fn set(&self, connection: &mut Connection, database: &Path) -> rusqlite::Result<()> {
        let (count, database) = (self.asked.clone(), database.to_owned());
        let ends = move || {
            let asked = count.fetch_add(1, Ordering::Relaxed);
            let steps = asked.saturating_mul(u64::from(STEPS_AT_ONCE.unsigned_abs()));
            asked >= ALWAYS && steps > size(&database).saturating_mul(STEPS_OF_A_BYTE)
        };
        connection.progress_handler(STEPS_AT_ONCE, Some(ends))
    }

    pub(super) fn begin(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }
}

/// The size of a database with its log. (Queried by name: closing a descriptor of the file would release this process's locks
/// on it.)
fn size(database: &Path) -> u64 {
    let size = |file: &Path| fs::metadata(file).map(|file| file.len());
    // A renamed file can still be read, so its size is not limited.
    size(database).map_or(u64::MAX, |bytes| bytes.saturating_add(size(&with_ending(database, "-wal")).unwrap_or(0)))
}

/// Checks that rows arrive in ascending order of their keys.
#[derive(Debug)]
pub(super) struct AscendingKeys<K> {
    last: Option<K>,
}

impl<K: PartialOrd> AscendingKeys<K> {
    pub(super) fn past(last: Option<K>) -> Self {
        Self { last }
    }

    /// Fails unless the key is greater than the last one.
    pub(super) fn take(&mut self, key: K) -> rusqlite::Result<()> {
        if self.last.as_ref().is_some_and(|last| key <= *last) {
            let message = "rows are repeated or out of order".to_owned();
            return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(message)));
        }
        self.last = Some(key);
        Ok(())
    }
}
