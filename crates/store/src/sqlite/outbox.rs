//! The outbox: notices to be delivered, who delivers them, and the outcome.

use super::drivers::Drivers;
use super::reader::Reader;
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::store::{Delivery, OutboxEntry, OutboxFilter};
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::index::OutboxRow;
use lockgate_engine::run::outbox::NoticeId;
use lockgate_engine::time::Timestamp;
use rusqlite::{Connection, Row, params};

/// A change to a notice inside a transaction.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Claims it, if it is unchanged since it was listed.
    Claim(OutboxEntry),
    /// Ends its claim with this outcome.
    Settle(OutboxRow, Delivery),
}

/// The condition that selects a notice; its parameters are the first three.
const WHICH: &str = "run_key = (SELECT key FROM runs WHERE run = ?1) AND seq = ?2 AND channel = ?3";

pub(super) fn insert(connection: &Connection, run_key: i64, rows: &[OutboxRow]) -> rusqlite::Result<()> {
    for OutboxRow { notice, channel, at, payload } in rows {
        connection
            .prepare_cached(
                "INSERT INTO outbox(run_key, seq, channel, at, payload, attempts, due) VALUES(?1, ?2, ?3, ?4, ?5, 0, ?4)",
            )?
            .execute(params![run_key, notice.seq, channel.as_str(), at.as_millis(), payload])?;
    }
    Ok(())
}

/// Applies a change; returns whether a row was changed.
pub(super) fn change(connection: &Connection, drivers: &Drivers, change: &Change) -> rusqlite::Result<bool> {
    let own = drivers.own().as_str();
    match change {
        Change::Claim(OutboxEntry { row, due, driver, .. }) => {
            let text = format!("UPDATE outbox SET driver = ?4 WHERE {WHICH} AND driver IS ?5 AND due = ?6");
            let (seen, due) = (driver.as_ref().map(DriverId::as_str), due.map(Timestamp::as_millis));
            update(connection, &text, row, params![own, seen, due])
        }
        Change::Settle(row, Delivery::Delivered) => {
            update(connection, &format!("DELETE FROM outbox WHERE {WHICH} AND driver = ?4"), row, params![own])
        }
        Change::Settle(row, Delivery::Retry { due, error }) => failed(connection, row, own, Some(*due), error),
        Change::Settle(row, Delivery::GivenUp { error, forget_before }) => {
            let changed = failed(connection, row, own, None, error)?;
            let mut old = connection.prepare_cached("DELETE FROM outbox WHERE due IS NULL AND at < ?1")?;
            old.execute([forget_before.as_millis()])?;
            Ok(changed)
        }
    }
}

fn failed(connection: &Connection, row: &OutboxRow, own: &str, due: Option<Timestamp>, error: &str) -> rusqlite::Result<bool> {
    let text =
        format!("UPDATE outbox SET attempts = attempts + 1, due = ?5, error = ?6, driver = NULL WHERE {WHICH} AND driver = ?4");
    update(connection, &text, row, params![own, due.map(Timestamp::as_millis), error])
}

fn update(connection: &Connection, text: &str, row: &OutboxRow, others: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<bool> {
    let (run, channel) = (row.notice.run.as_str(), row.channel.as_str());
    let which: [&dyn rusqlite::ToSql; 3] = [&run, &row.notice.seq, &channel];
    let parameters: Vec<&dyn rusqlite::ToSql> = which.into_iter().chain(others.iter().copied()).collect();
    Ok(connection.prepare_cached(text)?.execute(&*parameters)? == 1)
}

pub(super) fn list(
    reader: &Reader,
    drivers: &Drivers,
    filter: OutboxFilter,
    limit: usize,
) -> Result<Vec<OutboxEntry>, StoreError> {
    let which = match filter {
        OutboxFilter::Undelivered => "o.due IS NOT NULL ORDER BY o.due, o.run_key, o.seq",
        OutboxFilter::GivenUp => "o.due IS NULL ORDER BY o.at, o.run_key, o.seq",
    };
    let text = format!(
        "SELECT r.run, o.seq, o.channel, o.at, o.payload, o.attempts, o.due, o.error, o.driver \
         FROM outbox o JOIN runs r ON r.key = o.run_key WHERE {which} LIMIT ?1"
    );
    let mut listed = reader
        .read(|view| view.prepare_cached(&text)?.query_map([row_limit(limit)], entry)?.collect::<rusqlite::Result<Vec<_>>>())?;
    if listed.iter().any(|entry| entry.driver.as_ref().is_some_and(|driver| driver != drivers.own())) {
        let alive = drivers.all_alive()?;
        for entry in &mut listed {
            entry.claimed = entry.driver.as_ref().is_some_and(|driver| driver != drivers.own() && alive.contains_key(driver));
        }
    }
    Ok(listed)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<OutboxEntry> {
    Ok(OutboxEntry {
        row: OutboxRow {
            notice: NoticeId { run: RunId(row.get(0)?), seq: row.get(1)? },
            channel: row.get::<_, String>(2)?.into(),
            at: Timestamp::from_millis(row.get(3)?),
            payload: row.get(4)?,
        },
        attempts: row.get(5)?,
        due: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
        error: row.get(7)?,
        driver: row.get::<_, Option<String>>(8)?.map(DriverId),
        claimed: false,
    })
}
