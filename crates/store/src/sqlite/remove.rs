//! Removes a run inside a transaction of the writer.

use super::append::{Broken, commit_key};
use super::drivers::Drivers;
use super::reader::rows_of;
use crate::store::{RemovedRows, RunRemoval, Unreferenced};
use lockgate_engine::run::Status;
use lockgate_engine::run::index::OpenEnum;
use rusqlite::{Connection, OptionalExtension, params};

/// What became of a removal. Where the run is not removed, nothing has changed, so others can share the transaction.
#[derive(Debug)]
pub(super) enum Removed {
    Rows(RemovedRows),
    Fenced,
    Status(OpenEnum<Status>),
    NoRun,
}

/// Values that this run refers to, and no other run does.
const OWN_VALUES: &str = "FROM stored_values WHERE digest IN (SELECT digest FROM value_refs WHERE run_key = ?1) \
    AND digest NOT IN (SELECT digest FROM value_refs WHERE run_key <> ?1)";

/// A run's row, as far as it decides whether the run is removed.
struct Found {
    key: i64,
    driver: Option<String>,
    epoch: u64,
    status: OpenEnum<Status>,
}

pub(super) fn remove(connection: &Connection, drivers: &Drivers, removal: &RunRemoval) -> Result<Removed, Broken> {
    let Some(Found { key, driver, epoch, status }) = find(connection, removal)? else { return Ok(Removed::NoRun) };
    if driver.as_deref() != Some(drivers.own().as_str()) || epoch != removal.epoch {
        return Ok(Removed::Fenced);
    }
    if !removal.statuses.iter().any(|allowed| status.is(*allowed)) {
        return Ok(Removed::Status(status));
    }
    let values = remove_own_values(connection, key)?;
    let mut rows = 0;
    for table in ["value_refs", "timers", "outbox"] {
        rows += connection.prepare_cached(&format!("DELETE FROM {table} WHERE run_key = ?1"))?.execute([key])?;
    }
    rows += connection.prepare_cached("DELETE FROM holds WHERE key >= ?1 AND key < ?2")?.execute(rows_of(key))?;
    let (first, last) = (commit_key(key, 0), commit_key(key, u64::from(u32::MAX)));
    rows += connection.prepare_cached("DELETE FROM commits WHERE key BETWEEN ?1 AND ?2")?.execute(params![first, last])?;
    for table in ["materialized_states", "runs"] {
        rows += connection.prepare_cached(&format!("DELETE FROM {table} WHERE key = ?1"))?.execute([key])?;
    }
    let mut remember = connection.prepare_cached("INSERT INTO removed_runs(key, run) VALUES(?1, ?2)")?;
    remember.execute(params![key, removal.run.as_str()])?;
    Ok(Removed::Rows(RemovedRows { rows: rows as u64, values }))
}

fn find(connection: &Connection, removal: &RunRemoval) -> rusqlite::Result<Option<Found>> {
    connection
        .prepare_cached("SELECT key, driver, epoch, status FROM runs WHERE run = ?1")?
        .query_row([removal.run.as_str()], |row| {
            let status = row.get::<_, String>(3)?.into();
            Ok(Found { key: row.get(0)?, driver: row.get(1)?, epoch: row.get(2)?, status })
        })
        .optional()
}

/// Before the references, which say which values they are.
fn remove_own_values(connection: &Connection, run_key: i64) -> rusqlite::Result<Unreferenced> {
    let text = format!("SELECT count(*), coalesce(sum(length(bytes)), 0) {OWN_VALUES}");
    let found = connection.prepare_cached(&text)?.query_row([run_key], |row| {
        let (count, bytes) = (row.get(0)?, row.get(1)?);
        Ok(Unreferenced { count, bytes })
    })?;
    connection.prepare_cached(&format!("DELETE {OWN_VALUES}"))?.execute([run_key])?;
    Ok(found)
}
