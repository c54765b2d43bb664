//! The tables and their migrations.
//!
//! All tables are in the schema `lockgate`. Ids are compared byte by byte (`COLLATE "C"`), independent of the database's
//! locale. A row that belongs to a run is keyed by the run's key; for commits the version is part of the key, so that a
//! conflict serves as the version comparison.

use super::address::Address;
use super::connection::Session;
use super::errors::{explain, is_worth_retrying};
use crate::error::StoreError;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// The format that this release writes.
pub(super) const FORMAT: i64 = STEPS.len() as i64;

/// Migration n leads from format n to n + 1; the first creates the tables from scratch. Released migrations never change.
const STEPS: &[&str] = &[FORMAT_1, FORMAT_2];

/// How often creating the tables is retried while other processes create them, too.
const MAX_ATTEMPTS: u32 = 100;

const FORMAT_1: &str = r#"
CREATE TABLE lockgate.runs(
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text COLLATE "C" NOT NULL UNIQUE, kind text NOT NULL, workflow text NOT NULL,
  feature text COLLATE "C", status text NOT NULL, phase text, created_at bigint NOT NULL, changed_at bigint NOT NULL, parent text,
  driver text COLLATE "C", epoch bigint NOT NULL) WITH (fillfactor = 70);
CREATE INDEX runs_by_feature ON lockgate.runs(feature, key) WHERE feature IS NOT NULL;
CREATE TABLE lockgate.commits(
  run_key bigint NOT NULL, version bigint NOT NULL, hash bytea NOT NULL, payload bytea NOT NULL, PRIMARY KEY(run_key, version));
CREATE TABLE lockgate.materialized_states(run_key bigint PRIMARY KEY, version bigint NOT NULL, state bytea NOT NULL);
CREATE TABLE lockgate.stored_values(digest bytea PRIMARY KEY, bytes bytea NOT NULL);
CREATE TABLE lockgate.value_refs(run_key bigint NOT NULL, digest bytea NOT NULL, PRIMARY KEY(run_key, digest));
CREATE INDEX value_refs_by_digest ON lockgate.value_refs(digest);
CREATE TABLE lockgate.holds(
  run_key bigint NOT NULL, number bigint NOT NULL, hold text COLLATE "C" NOT NULL, kind text NOT NULL, state bigint NOT NULL,
  revision bigint NOT NULL, since bigint NOT NULL, shown text NOT NULL, PRIMARY KEY(run_key, number));
CREATE UNIQUE INDEX holds_by_id ON lockgate.holds(hold, run_key);
CREATE INDEX holds_open ON lockgate.holds(since, run_key, number) WHERE state = 0;
CREATE TABLE lockgate.timers(
  run_key bigint NOT NULL, timer text COLLATE "C" NOT NULL, due bigint NOT NULL, kind text NOT NULL, target text NOT NULL,
  PRIMARY KEY(run_key, timer));
CREATE INDEX timers_by_due ON lockgate.timers(due, run_key, timer);
CREATE TABLE lockgate.drivers(
  driver text COLLATE "C" PRIMARY KEY, pid bigint NOT NULL, host text NOT NULL, process text, address inet, since timestamptz NOT NULL,
  expires_at timestamptz NOT NULL) WITH (fillfactor = 70);
"#;

const FORMAT_2: &str = r#"
CREATE TABLE lockgate.outbox(
  run_key bigint NOT NULL, seq bigint NOT NULL, channel text COLLATE "C" NOT NULL, at bigint NOT NULL, payload text NOT NULL,
  attempts bigint NOT NULL, due bigint, error text, driver text COLLATE "C", PRIMARY KEY(run_key, seq, channel));
CREATE INDEX outbox_by_due ON lockgate.outbox(due) WHERE due IS NOT NULL;
"#;

/// Ensures that the tables exist in the current format.
pub(super) async fn prepare(session: &Session, address: &Address) -> Result<(), StoreError> {
    if format(session).await.map_err(|error| explain(&error, address))? == Some(FORMAT) {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        match migrate(session).await {
            Ok(FORMAT) => return Ok(()),
            Ok(found) => {
                let path = PathBuf::from(address.name.clone());
                return Err(StoreError::Newer { path, found, supported: FORMAT });
            }
            Err(error) => {
                if let Err(error) = session.client.batch_execute("ROLLBACK").await {
                    tracing::debug!(%error, "cannot roll back the failed transaction; the next attempt reports why");
                }
                tries += 1;
                if tries == MAX_ATTEMPTS || !(is_worth_retrying(&error) || others_make_them(error.code())) {
                    return Err(explain(&error, address));
                }
                tokio::time::sleep(Duration::from_millis(rand::random_range(5..50))).await;
            }
        }
    }
}

/// The format of the tables; `None` if there are none.
async fn format(session: &Session) -> Result<Option<i64>, tokio_postgres::Error> {
    match session.client.query_opt("SELECT version FROM lockgate.format", &[]).await {
        Ok(row) => row.map(|row| row.try_get(0)).transpose(),
        Err(error) if matches!(error.code(), Some(&SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Migrates the tables to the current format in one transaction, and returns the format they have now.
async fn migrate(session: &Session) -> Result<i64, tokio_postgres::Error> {
    let client = &session.client;
    client
        .batch_execute(
            "BEGIN; CREATE SCHEMA IF NOT EXISTS lockgate; \
             CREATE TABLE IF NOT EXISTS lockgate.format(one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL); \
             INSERT INTO lockgate.format(version) VALUES(0) ON CONFLICT DO NOTHING",
        )
        .await?;
    // The process that locks this row migrates the tables; the others wait here and find them migrated.
    let found: i64 = client.query_one("SELECT version FROM lockgate.format FOR UPDATE", &[]).await?.try_get(0)?;
    if found > FORMAT {
        client.batch_execute("ROLLBACK").await?;
        return Ok(found);
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        client.batch_execute(step).await?;
    }
    client.execute("UPDATE lockgate.format SET version = $1", &[&FORMAT]).await?;
    client.batch_execute("COMMIT").await?;
    Ok(FORMAT)
}

/// `IF NOT EXISTS` does not see what another transaction is creating; it fails on a duplicate catalog row instead.
fn others_make_them(code: Option<&SqlState>) -> bool {
    matches!(
        code,
        Some(
            &SqlState::UNIQUE_VIOLATION | &SqlState::DUPLICATE_SCHEMA | &SqlState::DUPLICATE_TABLE | &SqlState::DUPLICATE_OBJECT
        )
    )
}
