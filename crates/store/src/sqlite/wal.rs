//! The write-ahead log: when it is time to empty it, and room made ahead of it.
//!
//! A commit that makes the log's file longer waits for the file system to write down the new length beside the commit itself. So whoever has the
//! lock to write lengthens the file by many pages at once. What stands behind the last commit is no part of the log for SQLite, which leaves old
//! pages there itself each time a log begins anew.

use rusqlite::{Connection, ffi};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// To how many pages the log grows before what is in it is brought to its place; after large transactions, to how
/// many times the last one. Pages that each of them changes are then brought there once, and not once for each.
const CHECKPOINT_PAGES: i32 = 1000;
const LONG_IN_TRANSACTIONS: i32 = 4;

/// What a log begins with, and what each of its pages takes.
const HEADER: u64 = 32;
const PAGE: u64 = 4096 + 24;

/// A shorter log may never grow: most processes make a few commits and end.
const SHORT: u64 = 16;
/// How many pages are made room for at once, at most.
const ROOM: u64 = 128;
/// Where less than this is left on the disk, it is left to those who need it now.
const SCARCE: u64 = 64 << 20;

/// The log of a connection that writes.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    folder: PathBuf,
    /// Told by SQLite after each commit.
    pages: Arc<AtomicI32>,
    before: i32,
    /// How many pages the last transaction added.
    added: i32,
    empty_at: i32,
    /// How long the file is at least.
    length: u64,
}

impl WriteAheadLog {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), pages: Arc::default(), before: 0, added: 0, empty_at: CHECKPOINT_PAGES, length: 0 }
    }

    /// Where to tell how many pages it has after a commit.
    pub(super) fn pages(&self) -> Arc<AtomicI32> {
        self.pages.clone()
    }

    /// The connection is another one: what was known of the file may be true no more.
    pub(super) fn reopened(&mut self) {
        self.length = 0;
    }

    /// Makes room ahead of the log where the next commit would lengthen it. Only for who has the lock to write: nobody else lengthens it meanwhile.
    /// A full disk is no failure here: whether there is room for the commit itself turns out with it.
    pub(super) fn make_room(&mut self, connection: &Connection) {
        let pages = u64::try_from(self.before).unwrap_or(0);
        let next = HEADER + (pages + 1) * PAGE;
        if pages >= SHORT && next > self.length {
            let room = pages.min(ROOM);
            let lengthened = if self.is_scarce() { None } else { lengthen(connection, next, room) };
            // Where it failed, it is tried again when the log has grown by as much.
            self.length = lengthened.unwrap_or(next + room * PAGE);
        }
    }

    fn is_scarce(&self) -> bool {
        rustix::fs::statvfs(&self.folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < SCARCE)
    }

    /// A transaction has ended.
    pub(super) fn grown(&mut self) {
        let after = self.pages.load(Ordering::Relaxed);
        // A log that begins anew counts from nothing.
        self.added = if after < self.before { after } else { after - self.before };
        if after < self.before {
            self.length = 0;
        }
        self.before = after;
    }

    /// Whether there is so much in it that it is time to empty it.
    pub(super) fn is_long(&mut self) -> bool {
        let long = CHECKPOINT_PAGES.max(self.added.saturating_mul(LONG_IN_TRANSACTIONS));
        if self.before < long {
            self.empty_at = long;
        }
        self.before >= self.empty_at
    }

    /// It was emptied. If somebody still reads from it, it cannot begin anew yet, and grows on.
    pub(super) fn emptied(&mut self) {
        self.empty_at = self.before.saturating_add(CHECKPOINT_PAGES);
    }
}

/// Lengthens the log's file if it ends before the next page does; gives how long it is then. It asks SQLite for the very file that the connection has open:
/// at the log's name there may be that of another database by now.
fn lengthen(connection: &Connection, next: u64, pages: u64) -> Option<u64> {
    let mut file: *mut ffi::sqlite3_file = null_mut();
    // SAFETY: the connection is open for as long as it is borrowed, and this operation writes one pointer to where the last argument points.
    let found = unsafe {
        let location = (&raw mut file).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_JOURNAL_POINTER, location)
    };
    if found != ffi::SQLITE_OK {
        return None;
    }
    // SAFETY: what SQLite gave is null or a file of the connection, which stays where it is while the transaction goes on that this is called in;
    // its methods are null while it is not open.
    let methods = unsafe { file.as_ref()?.pMethods.as_ref()? };
    let mut length = 0;
    // SAFETY: the methods belong to this file, and no other thread uses the connection meanwhile.
    if unsafe { methods.xFileSize?(file, &raw mut length) } != ffi::SQLITE_OK {
        return None;
    }
    if u64::try_from(length).ok()? < next {
        let zeros = [0_u8; PAGE as usize];
        // Page by page: it takes no more than 128 KB at once.
        for _ in 0..pages {
            // SAFETY: as above; there are as many bytes to be read as it is told.
            if unsafe { methods.xWrite?(file, zeros.as_ptr().cast(), PAGE as i32, length) } != ffi::SQLITE_OK {
                return None;
            }
            length += PAGE as i64;
        }
    }
    u64::try_from(length).ok()
}
