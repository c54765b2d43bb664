//! Full scans for verification.

use super::connection::Connection;
use super::lists::{RUN_COLUMNS, key_of_parts, parts_of_key, revision, run_row};
use super::reader::{Cells, RowError, digest, hold_state, sealed};
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::store::{MaterializedState, Orphan, StoredCommit, StoredRun, StoredValue};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, HoldId, RunId, TimerId};
use lockgate_engine::run::index::{HoldRow, TimerRow};
use lockgate_engine::time::Timestamp;
use tokio_postgres::types::ToSql;

/// Aggregates the rows of a run into one array per column.
const RUN_ROWS: &str = "LEFT JOIN lockgate.materialized_states f ON f.run_key = r.key \
    CROSS JOIN LATERAL (SELECT coalesce(array_agg(hold ORDER BY number), '{}') AS hold, array_agg(kind ORDER BY number) AS kind, \
      array_agg(state ORDER BY number) AS state, array_agg(revision ORDER BY number) AS revision, \
      array_agg(since ORDER BY number) AS since, array_agg(shown ORDER BY number) AS shown \
      FROM lockgate.holds WHERE run_key = r.key) h \
    CROSS JOIN LATERAL (SELECT coalesce(array_agg(timer ORDER BY timer), '{}') AS timer, array_agg(due ORDER BY timer) AS due, \
      array_agg(kind ORDER BY timer) AS kind, array_agg(target ORDER BY timer) AS target \
      FROM lockgate.timers WHERE run_key = r.key) t \
    CROSS JOIN LATERAL (SELECT coalesce(array_agg(digest ORDER BY digest), '{}') AS digest \
      FROM lockgate.value_refs WHERE run_key = r.key) v";

pub(super) async fn stored_run(connection: &Connection, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
    Ok(stored_runs(connection, "r.run = $1", &[&run.as_str()]).await?.pop())
}

pub(super) async fn runs(connection: &Connection, after: Option<i64>, limit: usize) -> Result<Vec<StoredRun>, StoreError> {
    let after = after.unwrap_or(i64::MIN);
    stored_runs(connection, "r.key > $1 ORDER BY r.key LIMIT $2", &[&after, &row_limit(limit)]).await
}

async fn stored_runs(
    connection: &Connection,
    which: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<StoredRun>, StoreError> {
    let text = format!(
        "SELECT {RUN_COLUMNS}, r.driver, r.epoch, f.version, f.state, h.hold, h.kind, h.state, h.revision, h.since, h.shown, \
         t.timer, t.due, t.kind, t.target, v.digest FROM lockgate.runs r {RUN_ROWS} WHERE {which}"
    );
    connection.list(&text, parameters, stored).await
}

fn stored(row: Cells<'_>) -> Result<StoredRun, RowError> {
    let own = run_row(row)?;
    let materialized = match row.get::<Option<i64>>(12)? {
        Some(_) => Some(MaterializedState { version: row.count(12)?, state: row.get(13)? }),
        None => None,
    };
    let digests: Vec<&[u8]> = row.get(24)?;
    Ok(StoredRun {
        place: row.get(0)?,
        driver: row.get::<Option<String>>(10)?.map(DriverId),
        epoch: row.count(11)?,
        materialized,
        holds: holds(row, &own.run)?,
        timers: timers(row, &own.run)?,
        referenced_values: digests.into_iter().map(digest).collect::<Result<_, _>>()?,
        row: own,
    })
}

fn holds(row: Cells<'_>, run: &RunId) -> Result<Vec<HoldRow>, RowError> {
    let ids: Vec<String> = row.get(14)?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (kinds, shown): (Vec<String>, Vec<String>) = (row.get(15)?, row.get(19)?);
    let (states, revisions, since): (Vec<i64>, Vec<i64>, Vec<i64>) = (row.get(16)?, row.get(17)?, row.get(18)?);
    let numbers = states.into_iter().zip(revisions).zip(since);
    ids.into_iter()
        .zip(kinds)
        .zip(shown)
        .zip(numbers)
        .map(|(((id, kind), shown), ((state, number), since))| {
            Ok(HoldRow {
                hold: HoldId(id),
                run: run.clone(),
                kind: kind.into(),
                state: hold_state(state)?,
                revision: revision(number)?,
                since: Timestamp::from_millis(since),
                shown,
            })
        })
        .collect()
}

fn timers(row: Cells<'_>, run: &RunId) -> Result<Vec<TimerRow>, RowError> {
    let ids: Vec<String> = row.get(20)?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (due, kinds, targets): (Vec<i64>, Vec<String>, Vec<String>) = (row.get(21)?, row.get(22)?, row.get(23)?);
    let rows = ids.into_iter().zip(due).zip(kinds).zip(targets);
    Ok(rows
        .map(|(((id, due), kind), target)| TimerRow {
            timer: TimerId(id),
            run: run.clone(),
            due: Timestamp::from_millis(due),
            kind: kind.into(),
            target,
        })
        .collect())
}

pub(super) async fn commits(connection: &Connection, after: Option<i64>, limit: usize) -> Result<Vec<StoredCommit>, StoreError> {
    let (run_key, version) = after.map_or((i64::MIN, i64::MIN), parts_of_key);
    let text = "SELECT c.run_key, c.version, c.hash, c.payload, r.run FROM lockgate.commits c \
        LEFT JOIN lockgate.runs r ON r.key = c.run_key \
        WHERE (c.run_key, c.version) > ($1, $2) ORDER BY c.run_key, c.version LIMIT $3";
    let stored = |row: Cells<'_>| {
        Ok(StoredCommit {
            place: key_of_parts(row.get(0)?, row.get(1)?),
            run: row.get::<Option<String>>(4)?.map(RunId),
            commit: sealed(row, 1)?,
        })
    };
    connection.list(text, &[&run_key, &version, &row_limit(limit)], stored).await
}

pub(super) async fn values(connection: &Connection, after: Option<Digest>, limit: usize) -> Result<Vec<StoredValue>, StoreError> {
    // Every digest sorts after the empty value.
    let after: &[u8] = after.as_ref().map_or(&[], |digest| &digest.0);
    let text = "SELECT digest, bytes FROM lockgate.stored_values WHERE digest > $1 ORDER BY digest LIMIT $2";
    connection
        .list(text, &[&after, &row_limit(limit)], |row| Ok(StoredValue { digest: row.digest(0)?, bytes: row.get(1)? }))
        .await
}

pub(super) async fn orphans(connection: &Connection) -> Result<Vec<Orphan>, StoreError> {
    let mut text = String::from(
        "SELECT 0::int8, NULL::text, s.digest, NULL::int8 FROM lockgate.stored_values s \
           WHERE NOT EXISTS (SELECT 1 FROM lockgate.value_refs v WHERE v.digest = s.digest) \
         UNION ALL SELECT 1, r.run, v.digest, NULL FROM lockgate.value_refs v JOIN lockgate.runs r ON r.key = v.run_key \
           WHERE NOT EXISTS (SELECT 1 FROM lockgate.stored_values s WHERE s.digest = v.digest)",
    );
    for table in ["materialized_states", "holds", "outbox", "timers", "value_refs"] {
        text += &format!(
            " UNION ALL SELECT DISTINCT 2, '{table}', NULL::bytea, x.run_key FROM lockgate.{table} x \
              WHERE NOT EXISTS (SELECT 1 FROM lockgate.runs r WHERE r.key = x.run_key)"
        );
    }
    let orphan = |row: Cells<'_>| match row.get::<i64>(0)? {
        0 => Ok(Orphan::ValueWithoutReference(row.digest(2)?)),
        1 => Ok(Orphan::ReferenceWithoutValue { run: RunId(row.get(1)?), digest: row.digest(2)? }),
        _ => Ok(Orphan::RowsWithoutRun { table: row.get(1)?, place: row.get(3)? }),
    };
    let mut orphans = connection.list(&text, &[], orphan).await?;
    orphans.sort();
    Ok(orphans)
}
