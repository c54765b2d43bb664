//! The time from the start of a process to its first new commit, measured from outside through the database.

use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long to wait before it counts as a failure.
const PATIENCE: Duration = Duration::from_secs(300);
/// The time between two checks: small compared with the measured time, but long enough to leave the cores to the process.
const GLANCE: Duration = Duration::from_micros(50);

/// A process that is killed when dropped.
pub(crate) struct KillOnDrop(pub(crate) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone after this.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The key of the newest commit.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT max(key) FROM commits")?;
    statement.query_row([], |row| row.get::<_, Option<i64>>(0)).map(Option::unwrap_or_default)
}

/// Starts the command, and returns the time until the database has a commit after `last`. The process is killed afterwards.
///
/// The database must have no `-shm` file: the first process that opens it recovers it, and that must be the measured one.
pub(crate) fn time(mut command: Command, database: &Path, last: i64) -> Result<Duration, String> {
    let index = next_to(database, "-shm");
    let started = Instant::now();
    let mut process = KillOnDrop(command.spawn().map_err(|error| format!("cannot start: {error}"))?);
    await_that(&mut process, started, || index.exists())?;
    let mut connection = None;
    await_that(&mut process, started, || {
        // The other process may hold a lock while it recovers; then the next check succeeds.
        if connection.is_none() {
            connection = open_read_only(database).ok();
        }
        connection.as_ref().and_then(|connection| newest(connection).ok()).is_some_and(|key| key > last)
    })?;
    Ok(started.elapsed())
}

/// Starts a command that keeps writing, and kills it when the low half of the newest commit's key reaches `count`.
pub(crate) fn kill_at(mut command: Command, database: &Path, count: i64) -> Result<(), String> {
    let started = Instant::now();
    let mut process = KillOnDrop(command.spawn().map_err(|error| format!("cannot start: {error}"))?);
    await_that(&mut process, started, || next_to(database, "-shm").exists())?;
    let mut connection = None;
    await_that(&mut process, started, || {
        if connection.is_none() {
            connection = open_read_only(database).ok();
        }
        let seen = connection.as_ref().and_then(|connection| newest(connection).ok()).unwrap_or_default();
        // Rarely enough that readers do not keep the log from being truncated.
        std::thread::sleep(Duration::from_millis(2));
        seen & 0xffff_ffff >= count
    })?;
    // This connection closes while the other is open: the last one to close would clean up what a killed process leaves.
    drop(connection);
    Ok(())
}

fn await_that(process: &mut KillOnDrop, started: Instant, mut condition: impl FnMut() -> bool) -> Result<(), String> {
    while !condition() {
        if let Ok(Some(status)) = process.0.try_wait() {
            // It may have committed right before it ended.
            return if condition() { Ok(()) } else { Err(format!("ended too early: {status}")) };
        }
        if started.elapsed() > PATIENCE {
            return Err(format!("no new commit within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

fn open_read_only(database: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// A file that SQLite keeps next to a database.
pub(crate) fn next_to(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Copies a directory as a crash would have left it: all bytes on disk, no `-shm`.
pub(crate) fn copy_as_left(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_as_left(&entry.path(), &target)?;
        } else if entry.file_type()?.is_file() && !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), &target)?;
            // Otherwise the first sync of the measured process would pay for this copy.
            std::fs::File::open(&target)?.sync_all()?;
        }
    }
    std::fs::File::open(to)?.sync_all()
}
