//! The tables, and the steps from one format of them to the next.
//!
//! A row that belongs to a run has the run's number in the upper half of its key (`run << 32 | number`): an append to a history is then a single
//! insert at the end of a run's rows, whose conflict on the key is the comparison of versions, and dirties a single page.

use rusqlite::{Connection, TransactionBehavior};

/// "Lock" in the header of the file says whose database it is.
pub(super) const APPLICATION_ID: i64 = 0x4c6f_636b;

/// The format that this release writes.
pub(super) const FORMAT: i64 = STEPS.len() as i64;

/// Step n leads from format n to n + 1; the first makes a database out of nothing. Steps that were released never change.
pub(super) const STEPS: &[&str] = &[FORMAT_1];

const FORMAT_1: &str = "
PRAGMA application_id = 0x4c6f636b;
CREATE TABLE runs(
  key INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, workflow TEXT NOT NULL, feature TEXT, status TEXT NOT NULL,
  phase TEXT, created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, parent TEXT, driver TEXT, epoch INTEGER NOT NULL);
CREATE TABLE commits(key INTEGER PRIMARY KEY, hash BLOB NOT NULL, payload BLOB NOT NULL);
CREATE TABLE folds(key INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL);
CREATE TABLE stored_values(digest BLOB NOT NULL PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE value_refs(run_key INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY(run_key, digest)) WITHOUT ROWID;
CREATE TABLE holds(
  key INTEGER PRIMARY KEY, hold TEXT NOT NULL, kind TEXT NOT NULL, state INTEGER NOT NULL, revision INTEGER NOT NULL,
  since INTEGER NOT NULL, shown TEXT NOT NULL);
CREATE INDEX holds_by_id ON holds(hold);
CREATE INDEX holds_open ON holds(since) WHERE state = 0;
CREATE TABLE timers(
  run_key INTEGER NOT NULL, timer TEXT NOT NULL, due INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
  PRIMARY KEY(run_key, timer)) WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers(due);
";

/// Takes a database from whatever older format it has to the newest one that `steps` lead to, all or nothing.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again now that nobody else can write: another process may have taken the steps meanwhile.
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", steps.len())?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn the_steps_that_are_missing_are_taken_once() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        assert_eq!(version(&connection), FORMAT);
        let longer = [STEPS, &["ALTER TABLE runs ADD COLUMN colour TEXT;"]].concat();
        migrate(&mut connection, &longer).unwrap();
        migrate(&mut connection, &longer).unwrap();
        assert_eq!(version(&connection), FORMAT + 1);
        connection.execute("INSERT INTO runs(run, kind, workflow, status, created_at, changed_at, epoch, colour) VALUES('r', 'workflow', 'w', 'running', 0, 0, 0, 'red')", []).unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_the_database_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        let broken = [STEPS, &["ALTER TABLE runs ADD COLUMN colour TEXT; DROP TABLE nothing;"]].concat();
        assert!(migrate(&mut connection, &broken).is_err());
        assert_eq!(version(&connection), FORMAT);
        assert!(connection.prepare("SELECT colour FROM runs").is_err());
    }
}
