//! The write-ahead log: when to checkpoint it, and preallocating space for it.
//!
//! A commit that extends the log file also has to wait until the file system has recorded the new length. The process with
//! the write lock therefore extends the file by many pages at a time. SQLite ignores everything after the last commit, and
//! leaves old pages there itself whenever it restarts the log.

use rusqlite::{Connection, ffi};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// The log is checkpointed when it reaches this many pages or, after large transactions, this many times the size of the last
/// one. A page that several of them change is then copied to the database only once.
const CHECKPOINT_PAGES: i32 = 1000;
const LONG_IN_TRANSACTIONS: i32 = 4;

/// The sizes of the log header and of a page frame.
const HEADER: u64 = 32;
const PAGE: u64 = 4096 + 24;

/// Shorter logs are not preallocated: most processes make a few commits and end.
const SHORT: u64 = 16;
/// The maximum number of pages to preallocate.
const ROOM: u64 = 128;
/// Below this much free disk space, nothing is preallocated.
const SCARCE: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct WriteAheadLog {
    folder: PathBuf,
    /// Updated by SQLite after each commit.
    pages: Arc<AtomicI32>,
    before: i32,
    added: i32,
    empty_at: i32,
    /// A lower bound for the file length.
    length: u64,
}

impl WriteAheadLog {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), pages: Arc::default(), before: 0, added: 0, empty_at: CHECKPOINT_PAGES, length: 0 }
    }

    /// The counter to update with the log's page count after a commit.
    pub(super) fn pages(&self) -> Arc<AtomicI32> {
        self.pages.clone()
    }

    /// Forgets the file length, because the connection was reopened.
    pub(super) fn reopened(&mut self) {
        self.length = 0;
    }

    /// Preallocates space if the next commit would extend the log. The caller must hold the write lock, so that no other
    /// process extends it meanwhile. A full disk is not an error here: the commit itself reports it.
    pub(super) fn make_room(&mut self, connection: &Connection) {
        let pages = u64::try_from(self.before).unwrap_or(0);
        let next = HEADER + (pages + 1) * PAGE;
        if pages >= SHORT && next > self.length {
            let room = pages.min(ROOM);
            let lengthened = if self.is_scarce() { None } else { lengthen(connection, next, room) };
            // After a failure, try again once the log has grown by that much.
            self.length = lengthened.unwrap_or(next + room * PAGE);
        }
    }

    fn is_scarce(&self) -> bool {
        rustix::fs::statvfs(&self.folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < SCARCE)
    }

    /// Updates the counters after a transaction.
    pub(super) fn grown(&mut self) {
        let after = self.pages.load(Ordering::Relaxed);
        // A restarted log counts from zero.
        self.added = if after < self.before { after } else { after - self.before };
        if after < self.before {
            self.length = 0;
        }
        self.before = after;
    }

    /// Whether the log should be checkpointed.
    pub(super) fn is_long(&mut self) -> bool {
        let long = CHECKPOINT_PAGES.max(self.added.saturating_mul(LONG_IN_TRANSACTIONS));
        if self.before < long {
            self.empty_at = long;
        }
        self.before >= self.empty_at
    }

    /// Records a checkpoint. If another connection still reads from the log, it cannot restart yet and keeps growing.
    pub(super) fn emptied(&mut self) {
        self.empty_at = self.before.saturating_add(CHECKPOINT_PAGES);
    }
}

/// Extends the log file if it ends before the next page; returns its new length. It uses the file that SQLite has open,
/// because the log's path may belong to another database by now.
fn lengthen(connection: &Connection, next: u64, pages: u64) -> Option<u64> {
    let mut file: *mut ffi::sqlite3_file = null_mut();
    // SAFETY: the connection stays open while it is borrowed, and this operation writes one pointer to the last argument.
    let found = unsafe {
        let location = (&raw mut file).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_JOURNAL_POINTER, location)
    };
    if found != ffi::SQLITE_OK {
        return None;
    }
    // SAFETY: the pointer is null or a file of the connection, which stays valid during the transaction in which this is
    // called; its methods are null while it is not open.
    let methods = unsafe { file.as_ref()?.pMethods.as_ref()? };
    let mut length = 0;
    // SAFETY: the methods belong to this file, and no other thread uses the connection meanwhile.
    if unsafe { methods.xFileSize?(file, &raw mut length) } != ffi::SQLITE_OK {
        return None;
    }
    if u64::try_from(length).ok()? < next {
        let zeros = [0_u8; PAGE as usize];
        // Page by page, because SQLite writes at most 128 KB at a time.
        for _ in 0..pages {
            // SAFETY: as above; the buffer has as many bytes as the length says.
            if unsafe { methods.xWrite?(file, zeros.as_ptr().cast(), PAGE as i32, length) } != ffi::SQLITE_OK {
                return None;
            }
            length += PAGE as i64;
        }
    }
    u64::try_from(length).ok()
}
