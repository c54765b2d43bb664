//! Lists of runs, holds and timers.

use super::connection::Connection;
use super::drivers::PROCESS;
use super::process::has_ended;
use super::reader::{Cells, RowError, hold_state};
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::store::{Cursor, HoldFilter, ListedHold, ListedRun, Page, RunFilter};
use lockgate_engine::id::{HoldId, RunId, TimerId};
use lockgate_engine::run::index::{HoldRow, RunRow, TimerRow};
use lockgate_engine::time::Timestamp;
use std::collections::HashMap;
use tokio_postgres::types::ToSql;

/// The columns of a run, as [`run_row`] reads them.
pub(super) const RUN_COLUMNS: &str =
    "r.key, r.run, r.kind, r.workflow, r.feature, r.status, r.phase, r.created_at, r.changed_at, r.parent";

pub(super) async fn runs(connection: &Connection, filter: &RunFilter, page: Page) -> Result<Vec<ListedRun>, StoreError> {
    let RunFilter { statuses, workflow, feature, changed_before } = filter;
    let before = page.after.map_or(i64::MAX, |cursor| cursor.key);
    let limit = row_limit(page.limit);
    let statuses: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
    let changed_before = changed_before.map(Timestamp::as_millis);
    let mut which = "r.key < $1".to_owned();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&before];
    if !statuses.is_empty() {
        parameters.push(&statuses);
        which += &format!(" AND r.status = ANY(${})", parameters.len());
    }
    if let Some(workflow) = workflow {
        parameters.push(workflow);
        which += &format!(" AND r.workflow = ${}", parameters.len());
    }
    if let Some(feature) = feature {
        parameters.push(feature);
        which += &format!(" AND r.feature = ${}", parameters.len());
    }
    if let Some(changed_before) = &changed_before {
        parameters.push(changed_before);
        which += &format!(" AND r.changed_at < ${}", parameters.len());
    }
    parameters.push(&limit);
    which += &format!(" ORDER BY r.key DESC LIMIT ${}", parameters.len());
    list_runs(connection, &which, &parameters).await
}

pub(super) async fn find_runs(connection: &Connection, prefix: &str) -> Result<Vec<ListedRun>, StoreError> {
    list_runs(connection, "r.run >= $1 AND r.run < $2 ORDER BY r.key DESC", &[&prefix, &past(prefix)]).await
}

async fn list_runs(
    connection: &Connection,
    which: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<ListedRun>, StoreError> {
    let text = format!(
        "SELECT {RUN_COLUMNS}, d.driver, {PROCESS} FROM lockgate.runs r \
         LEFT JOIN lockgate.drivers d ON d.driver = r.driver AND d.expires_at > clock_timestamp() WHERE {which}"
    );
    // A driver may have many runs, but is checked only once.
    let mut ended: HashMap<String, bool> = HashMap::new();
    let listed = move |row: Cells<'_>| {
        let driven = match (row.get::<Option<String>>(10)?, row.get::<Option<&str>>(11)?) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(driver), Some(process)) => !*ended.entry(driver).or_insert_with(|| has_ended(process)),
        };
        Ok(ListedRun { row: run_row(row)?, driven, cursor: Cursor { since: 0, key: row.get(0)? } })
    };
    connection.list(&text, parameters, listed).await
}

/// Reads a run's row from the columns after its key.
pub(super) fn run_row(row: Cells<'_>) -> Result<RunRow, RowError> {
    Ok(RunRow {
        run: RunId(row.get(1)?),
        kind: row.get::<String>(2)?.into(),
        workflow: row.get(3)?,
        feature: row.get(4)?,
        status: row.get::<String>(5)?.into(),
        phase: row.get(6)?,
        created_at: Timestamp::from_millis(row.get(7)?),
        changed_at: Timestamp::from_millis(row.get(8)?),
        parent: row.get::<Option<String>>(9)?.map(RunId),
    })
}

pub(super) async fn holds(connection: &Connection, filter: &HoldFilter, page: Page) -> Result<Vec<ListedHold>, StoreError> {
    let limit = row_limit(page.limit);
    match filter {
        HoldFilter::Open => {
            let Cursor { since, key } = page.after.unwrap_or(Cursor { since: i64::MIN, key: i64::MIN });
            let (run_key, number) = parts_of_key(key);
            let which =
                "h.state = 0 AND (h.since, h.run_key, h.number) > ($1, $2, $3) ORDER BY h.since, h.run_key, h.number LIMIT $4";
            list_holds(connection, which, &[&since, &run_key, &number, &limit]).await
        }
        HoldFilter::OfRun(run) => {
            let after = page.after.map_or(-1, |cursor| parts_of_key(cursor.key).1);
            list_holds(connection, "r.run = $1 AND h.number > $2 ORDER BY h.number LIMIT $3", &[&run.as_str(), &after, &limit])
                .await
        }
    }
}

pub(super) async fn find_holds(connection: &Connection, prefix: &str) -> Result<Vec<ListedHold>, StoreError> {
    list_holds(connection, "h.hold >= $1 AND h.hold < $2 ORDER BY h.hold, h.run_key", &[&prefix, &past(prefix)]).await
}

async fn list_holds(
    connection: &Connection,
    which: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<ListedHold>, StoreError> {
    let text = format!(
        "SELECT h.run_key, h.number, h.hold, r.run, h.kind, h.state, h.revision, h.since, h.shown, r.workflow, r.feature \
         FROM lockgate.holds h JOIN lockgate.runs r ON r.key = h.run_key WHERE {which}"
    );
    let listed = |row: Cells<'_>| {
        let since: i64 = row.get(7)?;
        Ok(ListedHold {
            row: HoldRow {
                hold: HoldId(row.get(2)?),
                run: RunId(row.get(3)?),
                kind: row.get::<String>(4)?.into(),
                state: hold_state(row.get(5)?)?,
                revision: revision(row.get(6)?)?,
                since: Timestamp::from_millis(since),
                shown: row.get(8)?,
            },
            workflow: row.get(9)?,
            feature: row.get(10)?,
            cursor: Cursor { since, key: key_of_parts(row.get(0)?, row.get(1)?) },
        })
    };
    connection.list(&text, parameters, listed).await
}

pub(super) async fn timers(connection: &Connection, due_before: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
    let text = "SELECT t.timer, r.run, t.due, t.kind, t.target FROM lockgate.timers t JOIN lockgate.runs r ON r.key = t.run_key \
        WHERE t.due <= $1 ORDER BY t.due, t.run_key, t.timer LIMIT $2";
    let timer = |row: Cells<'_>| {
        Ok(TimerRow {
            timer: TimerId(row.get(0)?),
            run: RunId(row.get(1)?),
            due: Timestamp::from_millis(row.get(2)?),
            kind: row.get::<String>(3)?.into(),
            target: row.get(4)?,
        })
    };
    connection.list(text, &[&due_before.as_millis(), &row_limit(limit)], timer).await
}

pub(super) fn revision(number: i64) -> Result<u32, RowError> {
    u32::try_from(number).map_err(|_| RowError::NotARevision(number))
}

/// A run's key and a number within the run, combined.
pub(super) fn key_of_parts(run_key: i64, number: i64) -> i64 {
    run_key << 32 | number
}

/// The inverse of [`key_of_parts`].
pub(super) fn parts_of_key(key: i64) -> (i64, i64) {
    (key >> 32, key & i64::from(u32::MAX))
}

/// An upper bound for all strings with this prefix.
fn past(prefix: &str) -> String {
    format!("{prefix}\u{10ffff}")
}
