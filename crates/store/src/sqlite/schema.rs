//! The tables and their migrations.
//!
//! A row that belongs to a run has the run's key in the upper half of its own key (`run << 32 | number`). An append to a
//! history is then a single insert at the end of a run's rows: a conflict on the key serves as the version comparison, and
//! the insert dirties a single page.

use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeMap;

/// "Lock" in the file header identifies a Lockgate database.
pub(super) const APPLICATION_ID: i64 = 0x4c6f_636b;

/// The format that this release writes.
pub(super) const FORMAT: i64 = STEPS.len() as i64;

/// Migration n leads from format n to n + 1; the first creates a database from scratch. Released migrations never change.
pub(super) const STEPS: &[&str] = &[FORMAT_1, FORMAT_2, FORMAT_3];

const FORMAT_1: &str = "
PRAGMA application_id = 0x4c6f636b;
CREATE TABLE runs(
  key INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, workflow TEXT NOT NULL, feature TEXT, status TEXT NOT NULL,
  phase TEXT, created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, parent TEXT, driver TEXT, epoch INTEGER NOT NULL);
CREATE TABLE commits(key INTEGER PRIMARY KEY, hash BLOB NOT NULL, payload BLOB NOT NULL);
CREATE TABLE materialized_states(key INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL);
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

const FORMAT_2: &str = "
CREATE TABLE outbox(
  run_key INTEGER NOT NULL, seq INTEGER NOT NULL, channel TEXT NOT NULL, at INTEGER NOT NULL, payload TEXT NOT NULL,
  attempts INTEGER NOT NULL, due INTEGER, error TEXT, driver TEXT, PRIMARY KEY(run_key, seq, channel)) WITHOUT ROWID;
CREATE INDEX outbox_by_due ON outbox(due) WHERE due IS NOT NULL;
";

/// The runs that were removed on purpose: the head, which outlives them, does not report their commits as missing, and their numbers are not used again.
const FORMAT_3: &str = "
CREATE TABLE removed_runs(key INTEGER PRIMARY KEY, run TEXT NOT NULL);
";

/// Migrates a database from any older format to the newest one in `steps`, in one transaction.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read it again under the write lock: another process may have migrated the database meanwhile.
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", steps.len())?;
    transaction.commit()
}

/// Tables and indexes that are missing, unexpected or defined differently than this release defines them. SQLite interprets
/// rows according to the stored definitions, so a change there silently changes what is read.
pub(super) fn changed(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut fresh = Connection::open_in_memory()?;
    migrate(&mut fresh, STEPS)?;
    let (expected, found) = (definitions(&fresh)?, definitions(connection)?);
    let mut names: Vec<&String> =
        expected.keys().chain(found.keys()).filter(|name| expected.get(*name) != found.get(*name)).collect();
    names.sort();
    names.dedup();
    Ok(names.into_iter().cloned().collect())
}

/// The type, table and SQL of each object, by name. They are read as blobs because a damaged database may contain invalid
/// text.
type Definitions = BTreeMap<String, (Vec<u8>, Vec<u8>, Option<Vec<u8>>)>;

fn definitions(connection: &Connection) -> rusqlite::Result<Definitions> {
    let query = "SELECT CAST(name AS BLOB), CAST(type AS BLOB), CAST(tbl_name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| {
        let name: Vec<u8> = row.get(0)?;
        Ok((String::from_utf8_lossy(&name).into_owned(), (row.get(1)?, row.get(2)?, row.get(3)?)))
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn missing_migrations_are_applied_once() {
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
    fn differing_schema_definitions_are_named() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        assert_eq!(changed(&connection).unwrap(), Vec::<String>::new());
        let change =
            "CREATE TRIGGER own AFTER INSERT ON runs BEGIN DELETE FROM commits; END; DROP INDEX holds_by_id; DROP TABLE materialized_states;
            CREATE TABLE materialized_states(key INTEGER, version INTEGER NOT NULL, state BLOB NOT NULL);";
        connection.execute_batch(change).unwrap();
        assert_eq!(changed(&connection).unwrap(), ["holds_by_id", "materialized_states", "own"]);
    }

    #[test]
    fn a_failed_migration_leaves_the_database_unchanged() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        let broken = [STEPS, &["ALTER TABLE runs ADD COLUMN colour TEXT; DROP TABLE nothing;"]].concat();
        assert!(migrate(&mut connection, &broken).is_err());
        assert_eq!(version(&connection), FORMAT);
        assert!(connection.prepare("SELECT colour FROM runs").is_err());
    }
}
