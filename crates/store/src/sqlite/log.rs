//! The write-ahead log: when it is time to empty it, and room made ahead of it.
//!
//! A commit that makes the log's file longer waits for the file system to write down the new length beside the commit itself. So whoever has the
//! lock to write lengthens the file by many pages at once. What stands behind the last commit is no part of the log for SQLite, which leaves old
//! pages there itself each time a log begins anew.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// To how many pages the log grows before what is in it is brought to its place; after large transactions, to how
/// many times the last one. Pages that each of them changes are then brought there once, and not once for each.
const LONG: i32 = 1000;
const LONG_IN_TRANSACTIONS: i32 = 4;

/// What a log begins with, and what each of its pages takes.
const HEADER: u64 = 32;
const PAGE: u64 = 4096 + 24;

/// A shorter log may never grow: most processes make a few commits and end.
const SHORT: u64 = 16;
/// How many pages are made room for at once, at most.
const ROOM: u64 = 128;

/// The log of a connection that writes.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Told by SQLite after each commit.
    pages: Arc<AtomicI32>,
    before: i32,
    /// How many pages the last transaction added.
    added: i32,
    empty_at: i32,
    file: Option<File>,
    /// How long the file is at least.
    length: u64,
}

impl Log {
    pub(super) fn new(database: &Path) -> Self {
        Self { path: path(database), pages: Arc::default(), before: 0, added: 0, empty_at: LONG, file: None, length: 0 }
    }

    /// Where to tell how many pages it has after a commit.
    pub(super) fn pages(&self) -> Arc<AtomicI32> {
        self.pages.clone()
    }

    /// The connection is another one: what was known of the file may be true no more.
    pub(super) fn reopened(&mut self) {
        (self.file, self.length) = (None, 0);
    }

    /// Makes room ahead of the log where the next commit would lengthen it. Only for who has the lock to write: nobody else lengthens it meanwhile.
    /// A full disk is no failure here: whether there is room for the commit itself turns out with it.
    pub(super) fn make_room(&mut self) {
        let pages = u64::try_from(self.before).unwrap_or(0);
        let next = HEADER + (pages + 1) * PAGE;
        if pages >= SHORT && next > self.length {
            let room = pages.min(ROOM) * PAGE;
            // Where it failed, it is tried again when the log has grown by as much.
            self.length = self.lengthen(next, room).unwrap_or(next + room);
        }
    }

    /// Lengthens the file if it ends before the next page does; gives how long it is then.
    fn lengthen(&mut self, next: u64, room: u64) -> io::Result<u64> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        let length = file.metadata()?.len();
        if length >= next {
            return Ok(length);
        }
        let zeros = vec![0; usize::try_from(room).unwrap_or(0)];
        file.write_all_at(&zeros, length)?;
        Ok(length + room)
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
        let long = LONG.max(self.added.saturating_mul(LONG_IN_TRANSACTIONS));
        if self.before < long {
            self.empty_at = long;
        }
        self.before >= self.empty_at
    }

    /// It was emptied. If somebody still reads from it, it cannot begin anew yet, and grows on.
    pub(super) fn emptied(&mut self) {
        self.empty_at = self.before.saturating_add(LONG);
    }
}

/// Where the log of a database is.
pub(super) fn path(database: &Path) -> PathBuf {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}
