//! Full scans for verification.

use super::lists::{list_timers, run_row};
use super::reader::{Reader, hold_state, materialized, rows_of, run_key, sealed};
use super::scan_guard::AscendingKeys;
use super::schema;
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::store::{Orphan, StoredCommit, StoredRun, StoredValue};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, HoldId, RunId};
use lockgate_engine::run::index::{HoldRow, RunRow};
use lockgate_engine::time::Timestamp;
use rusqlite::{Connection, Params, params};

const STORED_RUN: &str =
    "SELECT key, run, kind, workflow, feature, status, phase, created_at, changed_at, parent, driver, epoch FROM runs WHERE";

pub(super) fn stored_run(reader: &Reader, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
    reader.read(|view| match run_key(view, run)? {
        Some(run_key) => Ok(stored_runs(view, None, "key = ?1", params![run_key])?.pop()),
        None => Ok(None),
    })
}

pub(super) fn runs(reader: &Reader, after: Option<i64>, limit: usize) -> Result<Vec<StoredRun>, StoreError> {
    let Some(from) = next(after) else { return Ok(Vec::new()) };
    reader.read(|view| stored_runs(view, after, "key >= ?1 ORDER BY key LIMIT ?2", params![from, row_limit(limit)]))
}

fn stored_runs(view: &Connection, after: Option<i64>, which: &str, parameters: impl Params) -> rusqlite::Result<Vec<StoredRun>> {
    let mut rising = AscendingKeys::past(after);
    let mut statement = view.prepare_cached(&format!("{STORED_RUN} {which}"))?;
    let rows = statement.query_map(parameters, |row| {
        let place = row.get(0)?;
        rising.take(place)?;
        let row = StoredRun {
            place,
            row: run_row(row)?,
            driver: row.get::<_, Option<String>>(10)?.map(DriverId),
            epoch: row.get(11)?,
            materialized: materialized(view, place)?,
            holds: Vec::new(),
            timers: list_timers(view, "t.run_key = ?1 ORDER BY t.timer", [place])?,
            referenced_values: referenced_values(view, place)?,
        };
        Ok(StoredRun { holds: holds(view, place, &row.row)?, ..row })
    })?;
    rows.collect()
}

fn referenced_values(view: &Connection, run_key: i64) -> rusqlite::Result<Vec<Digest>> {
    let mut statement = view.prepare_cached("SELECT digest FROM value_refs WHERE run_key = ?1 ORDER BY digest")?;
    statement.query_map([run_key], |row| row.get(0).map(Digest))?.collect()
}

fn holds(view: &Connection, run_key: i64, run: &RunRow) -> rusqlite::Result<Vec<HoldRow>> {
    view.prepare_cached("SELECT hold, kind, state, revision, since, shown FROM holds WHERE key >= ?1 AND key < ?2 ORDER BY key")?
        .query_map(rows_of(run_key), |row| {
            Ok(HoldRow {
                hold: HoldId(row.get(0)?),
                run: run.run.clone(),
                kind: row.get::<_, String>(1)?.into(),
                state: hold_state(row, 2)?,
                revision: row.get(3)?,
                since: Timestamp::from_millis(row.get(4)?),
                shown: row.get(5)?,
            })
        })?
        .collect()
}

/// The smallest key after this one, if there is one.
fn next(after: Option<i64>) -> Option<i64> {
    after.map_or(Some(i64::MIN), |after| after.checked_add(1))
}

pub(super) fn commits(reader: &Reader, after: Option<i64>, limit: usize) -> Result<Vec<StoredCommit>, StoreError> {
    let Some(from) = next(after) else { return Ok(Vec::new()) };
    reader.read(|view| {
        let mut rising = AscendingKeys::past(after);
        view.prepare_cached(
            "SELECT c.key, c.hash, c.payload, r.run FROM commits c LEFT JOIN runs r ON r.key = c.key >> 32 \
             WHERE c.key >= ?1 ORDER BY c.key LIMIT ?2",
        )?
        .query_map(params![from, row_limit(limit)], |row| {
            let place = row.get(0)?;
            rising.take(place)?;
            Ok(StoredCommit { place, run: row.get::<_, Option<String>>(3)?.map(RunId), commit: sealed(row)? })
        })?
        .collect()
    })
}

pub(super) fn values(reader: &Reader, after: Option<Digest>, limit: usize) -> Result<Vec<StoredValue>, StoreError> {
    // Every digest sorts after the empty blob.
    let from: &[u8] = after.as_ref().map_or(&[], |digest| &digest.0);
    reader.read(|view| {
        let mut rising = AscendingKeys::past(after);
        view.prepare_cached("SELECT digest, bytes FROM stored_values WHERE digest > ?1 ORDER BY digest LIMIT ?2")?
            .query_map(params![from, row_limit(limit)], |row| {
                let digest = Digest(row.get(0)?);
                rising.take(digest)?;
                Ok(StoredValue { digest, bytes: row.get(1)? })
            })?
            .collect()
    })
}

pub(super) fn orphans(reader: &Reader) -> Result<Vec<Orphan>, StoreError> {
    reader.read(|view| {
        let mut orphans = Vec::new();
        let mut unreferenced = view.prepare("SELECT digest FROM stored_values EXCEPT SELECT digest FROM value_refs")?;
        for digest in unreferenced.query_map([], |row| row.get(0))? {
            orphans.push(Orphan::ValueWithoutReference(Digest(digest?)));
        }
        let mut missing = view.prepare(
            "SELECT r.run, v.digest FROM value_refs v JOIN runs r ON r.key = v.run_key \
             WHERE NOT EXISTS (SELECT 1 FROM stored_values s WHERE s.digest = v.digest)",
        )?;
        for row in missing.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))? {
            let (run, digest) = row?;
            orphans.push(Orphan::ReferenceWithoutValue { run: RunId(run), digest: Digest(digest) });
        }
        for (table, run_key) in [
            ("materialized_states", "key"),
            ("holds", "key >> 32"),
            ("outbox", "run_key"),
            ("timers", "run_key"),
            ("value_refs", "run_key"),
        ] {
            let query = format!("SELECT DISTINCT {run_key} FROM {table} WHERE {run_key} NOT IN (SELECT key FROM runs)");
            for place in view.prepare(&query)?.query_map([], |row| row.get(0))? {
                orphans.push(Orphan::RowsWithoutRun { table: table.to_owned(), place: place? });
            }
        }
        orphans.sort();
        Ok(orphans)
    })
}

pub(super) fn damage(reader: &Reader) -> Result<Vec<String>, StoreError> {
    reader.read(|view| {
        let mut check = view.prepare("PRAGMA integrity_check")?;
        let mut lines = Vec::new();
        for line in check.query_map([], |row| row.get::<_, String>(0))? {
            match line {
                Ok(text) if text == "ok" => {}
                // SQLite reports all page errors in one text, under a heading.
                Ok(text) => lines.extend(text.lines().filter(|line| !line.starts_with("***")).map(str::to_owned)),
                // The page check comes first; its errors may be why the rows cannot be checked.
                Err(_) if !lines.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        lines.extend(schema::changed(view)?.into_iter().map(|name| format!("{name} is not defined as Lockgate defines it")));
        Ok(lines)
    })
}
