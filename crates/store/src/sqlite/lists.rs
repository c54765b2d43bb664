//! Lists of runs, holds and timers.

use super::drivers::Drivers;
use super::reader::{Reader, hold_state, rows_of, run_key};
use super::scan_guard::AscendingKeys;
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::store::{Cursor, HoldFilter, ListedHold, ListedRun, Page, RunFilter};
use lockgate_engine::id::{DriverId, HoldId, RunId, TimerId};
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::run::index::{HoldRow, RunRow, TimerRow};
use lockgate_engine::time::Timestamp;
use rusqlite::{Connection, Params, Row, ToSql, params};
use std::cmp::Reverse;

const RUN_COLUMNS: &str = "key, run, kind, workflow, feature, status, phase, created_at, changed_at, parent, driver";
const HOLD_COLUMNS: &str = "h.key, h.hold, r.run, h.kind, h.state, h.revision, h.since, h.shown, r.workflow, r.feature";
const HOLDS: &str = "holds h JOIN runs r ON r.key = h.key >> 32";

pub(super) fn runs(reader: &Reader, drivers: &Drivers, filter: &RunFilter, page: Page) -> Result<Vec<ListedRun>, StoreError> {
    let RunFilter { statuses, workflow, feature, changed_before } = filter;
    let before = page.after.map_or(i64::MAX, |cursor| cursor.key);
    let mut which = "key < ?".to_owned();
    let mut parameters: Vec<Box<dyn ToSql>> = vec![Box::new(before)];
    if !statuses.is_empty() {
        which += &format!(" AND status IN ({})", vec!["?"; statuses.len()].join(", "));
        parameters.extend(statuses.iter().map(|status| Box::new(status.as_str()) as Box<dyn ToSql>));
    }
    if let Some(workflow) = workflow {
        which += " AND workflow = ?";
        parameters.push(Box::new(workflow));
    }
    if let Some(feature) = feature {
        which += " AND feature = ?";
        parameters.push(Box::new(feature));
    }
    if let Some(changed_before) = changed_before {
        which += " AND changed_at < ?";
        parameters.push(Box::new(changed_before.as_millis()));
    }
    which += " ORDER BY key DESC LIMIT ?";
    parameters.push(Box::new(row_limit(page.limit)));
    let parameters: Vec<&dyn ToSql> = parameters.iter().map(AsRef::as_ref).collect();
    list_runs(reader, drivers, Some(before), &which, &parameters)
}

pub(super) fn find_runs(reader: &Reader, drivers: &Drivers, prefix: &str) -> Result<Vec<ListedRun>, StoreError> {
    list_runs(reader, drivers, None, "run >= ?1 AND run < ?2 ORDER BY key DESC", params![prefix, past(prefix)])
}

fn list_runs(
    reader: &Reader,
    drivers: &Drivers,
    before: Option<i64>,
    which: &str,
    parameters: &[&dyn ToSql],
) -> Result<Vec<ListedRun>, StoreError> {
    let rows = reader.read(|view| {
        let mut falling = AscendingKeys::past(before.map(Reverse));
        view.prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM runs WHERE {which}"))?
            .query_map(parameters, |row| {
                let key: i64 = row.get(0)?;
                falling.take(Reverse(key))?;
                Ok((key, run_row(row)?, row.get::<_, Option<String>>(10)?.map(DriverId)))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
    })?;
    let alive = if rows.is_empty() { Default::default() } else { drivers.all_alive()? };
    let listed = rows.into_iter().map(|(key, row, driver)| {
        let driven = driver.is_some_and(|driver| alive.contains_key(&driver));
        ListedRun { row, driven, cursor: Cursor { since: 0, key } }
    });
    Ok(listed.collect())
}

/// Background runs that can continue and have no live driver, not even this process.
pub(super) fn undriven(reader: &Reader, drivers: &Drivers, limit: usize) -> Result<Vec<RunId>, StoreError> {
    let alive = drivers.all_alive()?;
    let is_free = |driver: &Option<DriverId>| driver.as_ref().is_none_or(|id| id == drivers.own() || !alive.contains_key(id));
    reader.read(|view| {
        // Drive timers are due before all others.
        let mut statement = view.prepare_cached(
            "SELECT r.run, r.driver FROM timers t JOIN runs r ON r.key = t.run_key WHERE t.due <= 0 AND t.kind = ?1 \
             ORDER BY t.due, t.run_key",
        )?;
        let mut rows = statement.query([DRIVE_TIMER])?;
        let mut free = Vec::new();
        while free.len() < limit
            && let Some(row) = rows.next()?
        {
            let run = RunId(row.get(0)?);
            if is_free(&row.get::<_, Option<String>>(1)?.map(DriverId)) && !drivers.held().has(&run) {
                free.push(run);
            }
        }
        Ok(free)
    })
}

/// Reads a run's row from the columns after its key.
pub(super) fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        run: RunId(row.get(1)?),
        kind: row.get::<_, String>(2)?.into(),
        workflow: row.get(3)?,
        feature: row.get(4)?,
        status: row.get::<_, String>(5)?.into(),
        phase: row.get(6)?,
        created_at: Timestamp::from_millis(row.get(7)?),
        changed_at: Timestamp::from_millis(row.get(8)?),
        parent: row.get::<_, Option<String>>(9)?.map(RunId),
    })
}

pub(super) fn holds(reader: &Reader, filter: &HoldFilter, page: Page) -> Result<Vec<ListedHold>, StoreError> {
    let limit = row_limit(page.limit);
    reader.read(|view| match filter {
        HoldFilter::Open => {
            let Cursor { since, key } = page.after.unwrap_or(Cursor { since: i64::MIN, key: i64::MIN });
            let which = "h.state = 0 AND (h.since, h.key) > (?1, ?2) ORDER BY h.since, h.key LIMIT ?3";
            let mut rising = AscendingKeys::past(page.after);
            list_holds(view, |cursor| rising.take(cursor), which, params![since, key, limit])
        }
        HoldFilter::OfRun(run) => {
            let Some(run_key) = run_key(view, run)? else { return Ok(Vec::new()) };
            let [from, before] = rows_of(run_key);
            let after = page.after.map_or(from.saturating_sub(1), |cursor| cursor.key);
            let which = "h.key > ?1 AND h.key < ?2 ORDER BY h.key LIMIT ?3";
            let mut rising = AscendingKeys::past(Some(after));
            list_holds(view, |cursor| rising.take(cursor.key), which, params![after, before, limit])
        }
    })
}

pub(super) fn find_holds(reader: &Reader, prefix: &str) -> Result<Vec<ListedHold>, StoreError> {
    let which = "h.hold >= ?1 AND h.hold < ?2 ORDER BY h.hold, h.key";
    reader.read(|view| list_holds(view, |_| Ok(()), which, params![prefix, past(prefix)]))
}

fn list_holds(
    view: &Connection,
    mut take: impl FnMut(Cursor) -> rusqlite::Result<()>,
    which: &str,
    parameters: impl Params,
) -> rusqlite::Result<Vec<ListedHold>> {
    view.prepare_cached(&format!("SELECT {HOLD_COLUMNS} FROM {HOLDS} WHERE {which}"))?
        .query_map(parameters, |row| {
            let cursor = Cursor { since: row.get(6)?, key: row.get(0)? };
            take(cursor)?;
            Ok(ListedHold {
                row: HoldRow {
                    hold: HoldId(row.get(1)?),
                    run: RunId(row.get(2)?),
                    kind: row.get::<_, String>(3)?.into(),
                    state: hold_state(row, 4)?,
                    revision: row.get(5)?,
                    since: Timestamp::from_millis(cursor.since),
                    shown: row.get(7)?,
                },
                workflow: row.get(8)?,
                feature: row.get(9)?,
                cursor,
            })
        })?
        .collect()
}

pub(super) fn timers(reader: &Reader, due_before: Timestamp, limit: usize) -> Result<Vec<TimerRow>, StoreError> {
    let which = "t.due <= ?1 ORDER BY t.due, t.run_key, t.timer LIMIT ?2";
    reader.read(|view| list_timers(view, which, params![due_before.as_millis(), row_limit(limit)]))
}

pub(super) fn list_timers(view: &Connection, which: &str, parameters: impl Params) -> rusqlite::Result<Vec<TimerRow>> {
    view.prepare_cached(&format!(
        "SELECT t.timer, r.run, t.due, t.kind, t.target FROM timers t JOIN runs r ON r.key = t.run_key WHERE {which}"
    ))?
    .query_map(parameters, |row| {
        Ok(TimerRow {
            timer: TimerId(row.get(0)?),
            run: RunId(row.get(1)?),
            due: Timestamp::from_millis(row.get(2)?),
            kind: row.get::<_, String>(3)?.into(),
            target: row.get(4)?,
        })
    })?
    .collect()
}

/// An upper bound for all strings with this prefix.
fn past(prefix: &str) -> String {
    format!("{prefix}\u{10ffff}")
}
