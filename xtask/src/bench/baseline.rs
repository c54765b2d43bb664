//! The programs that Lockgate is compared with. Each runs in its own process: `xtask baseline PROGRAM DATABASE [COUNT]`.

use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RAW_BYTES: usize = 300;
/// The approximate size of one step in Lockgate's history: the end of one task and the start of the next.
const STEP_BYTES: usize = 160;
/// The approximate size of the materialized state of a run with a hundred tasks.
const STATE_BYTES: usize = 8 * 1024;
/// The maximum number of commits between two writes of the materialized state.
const STATE_EVERY: i64 = 256;
/// The number of sequential durable commits of a workflow with three steps and one answer.
const COMMITS_OF_A_SHORT_RUN: i64 = 5;

/// Runs one of the programs.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let (program, database, count) = match arguments {
        [program, database] => (program.as_str(), database, 0),
        [program, database, count] => {
            (program.as_str(), database, count.parse().map_err(|_| format!("{count:?} is not a number"))?)
        }
        _ => return Err("usage: xtask baseline PROGRAM DATABASE [COUNT]".to_owned()),
    };
    let outcome = match program {
        "raw" => raw(Path::new(database), count),
        "steps" => steps(Path::new(database), count),
        "fill" => fill(Path::new(database)),
        "recover" => recover(Path::new(database)),
        "short" => short(Path::new(database)),
        "list" => list(Path::new(database), count),
        other => return Err(format!("unknown baseline program {other:?}")),
    };
    outcome.map(|()| true).map_err(|error| format!("baseline {program}: {error}"))
}

/// The command line that starts one of the programs.
pub(crate) fn program(name: &str, database: &Path, count: usize) -> Result<Command, String> {
    let own: PathBuf = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(own);
    command.args(["baseline", name]).arg(database).arg(count.to_string()).stdin(Stdio::null());
    Ok(command)
}

/// Starts a program that prints the duration of its work in nanoseconds, and returns that.
pub(crate) fn timed(name: &str, database: &Path, count: usize) -> Result<Duration, String> {
    let output = program(name, database, count)?.output().map_err(|error| format!("cannot start baseline {name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let nanoseconds =
        text.trim().parse().map_err(|_| format!("baseline {name} failed: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(Duration::from_nanos(nanoseconds))
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(database)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS commits (key INTEGER PRIMARY KEY, at INTEGER NOT NULL, hash BLOB NOT NULL, payload BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS states (run INTEGER PRIMARY KEY, key INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS runs (key INTEGER PRIMARY KEY, run TEXT UNIQUE NOT NULL, status TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS holds (hold TEXT PRIMARY KEY, run INTEGER NOT NULL, state TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS timers (timer TEXT PRIMARY KEY, run INTEGER NOT NULL, due INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS stored (digest BLOB PRIMARY KEY, bytes BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS claims (run INTEGER PRIMARY KEY, driver TEXT NOT NULL, epoch INTEGER NOT NULL);
";

/// Baseline of W3: opens the database, and prints the rows of the longest-waiting holds.
fn list(database: &Path, count: i64) -> rusqlite::Result<()> {
    let connection = Connection::open(database)?;
    let mut rows = connection.prepare(
        "SELECT h.hold, r.run, r.workflow, h.kind, h.revision, h.since, h.shown FROM holds h JOIN runs r ON r.key = h.key >> 32 \
         WHERE h.state = 0 ORDER BY h.since, h.key LIMIT ?1",
    )?;
    let mut rows = rows.query([count])?;
    let mut text = String::new();
    while let Some(row) = rows.next()? {
        for column in [0, 1, 2, 3, 6] {
            text += row.get_ref(column)?.as_str()?;
        }
        text += &format!("{}{}\n", row.get::<_, i64>(4)?, row.get::<_, i64>(5)?);
    }
    println!("{text}");
    Ok(())
}

/// Bytes that differ from row to row, so that nothing can be shared or compressed.
fn bytes(seed: i64, length: usize) -> Vec<u8> {
    let mut state = seed.unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(length).collect()
}

fn report(started: Instant) {
    println!("{}", started.elapsed().as_nanos());
}

/// Raw: one row of 300 bytes per transaction.
fn raw(database: &Path, count: i64) -> rusqlite::Result<()> {
    let connection = open(database)?;
    connection.execute_batch("CREATE TABLE rows (key INTEGER PRIMARY KEY, body BLOB NOT NULL)")?;
    let mut insert = connection.prepare("INSERT INTO rows VALUES (?1, ?2)")?;
    let body = bytes(1, RAW_BYTES);
    let started = Instant::now();
    for key in 1..=count {
        insert.execute(params![key, body])?;
    }
    report(started);
    Ok(())
}

fn append(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO commits VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![key, key, bytes(key, 32), bytes(-key, STEP_BYTES)])?;
    if key % STATE_EVERY == 0 {
        let mut replace = connection.prepare_cached("INSERT OR REPLACE INTO states VALUES (1, ?1, ?2)")?;
        replace.execute(params![key, bytes(key, STATE_BYTES)])?;
    }
    Ok(())
}

fn append_durably(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    append(connection, key)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Baseline of W1: one row per step in a transaction, and the state now and then.
fn steps(database: &Path, count: i64) -> rusqlite::Result<()> {
    let connection = open(database)?;
    connection.execute_batch(SCHEMA)?;
    let started = Instant::now();
    for key in 1..=count {
        append_durably(&connection, key)?;
    }
    report(started);
    Ok(())
}

/// Writes steps until it is killed, to create the history for [`recover`].
fn fill(database: &Path) -> rusqlite::Result<()> {
    let connection = open(database)?;
    connection.execute_batch(SCHEMA)?;
    (1..).try_for_each(|key| append_durably(&connection, key))
}

/// Baseline of W4: opens the database of a killed process, reads the state and the commits after it, writes a step, and waits to be killed.
fn recover(database: &Path) -> rusqlite::Result<()> {
    let connection = open(database)?;
    let state = connection.query_row("SELECT key, body FROM states WHERE run = 1", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let (mut last, body) = state.unwrap_or_default();
    let mut tail = connection.prepare("SELECT key, payload FROM commits WHERE key > ?1 ORDER BY key")?;
    let mut rows = tail.query([last])?;
    let mut read = body.len();
    while let Some(row) = rows.next()? {
        last = row.get(0)?;
        read += row.get::<_, Vec<u8>>(1)?.len();
    }
    drop(rows);
    std::hint::black_box(read);
    append_durably(&connection, last + 1)?;
    loop {
        std::thread::park();
    }
}

/// Baseline of W5: creates a database with its tables, and writes as many commits as a short run needs.
fn short(database: &Path) -> rusqlite::Result<()> {
    let connection = open(database)?;
    connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT;"))?;
    (1..=COMMITS_OF_A_SHORT_RUN).try_for_each(|key| append_durably(&connection, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_of_one_step_is_one_durable_row() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("baseline.db");
        let connection = open(&database).unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        (1..=300).for_each(|key| append_durably(&connection, key).unwrap());
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM commits"), 300);
        assert_eq!(count("SELECT key FROM states"), 256);
        assert_eq!(count("PRAGMA synchronous"), 2);
    }
}
