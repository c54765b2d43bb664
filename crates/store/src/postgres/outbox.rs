//! The outbox: notices to be delivered, who delivers them, and the outcome.
//!
//! Each change is one idempotent statement. A claim compares the driver that had claimed the notice when it was listed;
//! whether that process was alive was checked then.

use super::columns::signed;
use super::connection::Connection;
use super::drivers::Drivers;
use super::reader::{Cells, RowError};
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::store::{Delivery, OutboxEntry, OutboxFilter};
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::index::OutboxRow;
use lockgate_engine::run::outbox::NoticeId;
use lockgate_engine::time::Timestamp;
use tokio_postgres::types::ToSql;

/// The condition that selects a notice; its parameters are the first three.
const WHICH: &str = "o.run_key = (SELECT key FROM lockgate.runs WHERE run = $1) AND o.seq = $2 AND o.channel = $3";

pub(super) async fn list(
    connection: &Connection,
    own: &DriverId,
    filter: OutboxFilter,
    limit: usize,
) -> Result<Vec<OutboxEntry>, StoreError> {
    let which = match filter {
        OutboxFilter::Undelivered => "o.due IS NOT NULL ORDER BY o.due, o.run_key, o.seq",
        OutboxFilter::GivenUp => "o.due IS NULL ORDER BY o.at, o.run_key, o.seq",
    };
    let text = format!(
        "SELECT r.run, o.seq, o.channel, o.at, o.payload, o.attempts, o.due, o.error, o.driver \
         FROM lockgate.outbox o JOIN lockgate.runs r ON r.key = o.run_key WHERE {which} LIMIT $1"
    );
    let mut listed = connection.list(&text, &[&row_limit(limit)], entry).await?;
    if listed.iter().any(|entry| entry.driver.as_ref().is_some_and(|driver| driver != own)) {
        let alive = Drivers::all_alive(connection).await?;
        for entry in &mut listed {
            entry.claimed = entry.driver.as_ref().is_some_and(|driver| driver != own && alive.contains(driver));
        }
    }
    Ok(listed)
}

fn entry(row: Cells<'_>) -> Result<OutboxEntry, RowError> {
    Ok(OutboxEntry {
        row: OutboxRow {
            notice: NoticeId { run: RunId(row.get(0)?), seq: row.count(1)? },
            channel: row.get::<String>(2)?.into(),
            at: Timestamp::from_millis(row.get(3)?),
            payload: row.get(4)?,
        },
        attempts: u32::try_from(row.count(5)?).unwrap_or(u32::MAX),
        due: row.get::<Option<i64>>(6)?.map(Timestamp::from_millis),
        error: row.get(7)?,
        driver: row.get::<Option<String>>(8)?.map(DriverId),
        claimed: false,
    })
}

/// Claims a notice if it is unchanged since it was listed.
pub(super) async fn claim(connection: &Connection, own: &DriverId, listed: &OutboxEntry) -> Result<bool, StoreError> {
    let text = format!(
        "UPDATE lockgate.outbox o SET driver = $4 WHERE {WHICH} AND o.driver IS NOT DISTINCT FROM $5 AND o.due = $6 RETURNING 1::int8"
    );
    let (seen, due) = (listed.driver.as_ref().map(DriverId::as_str), listed.due.map(Timestamp::as_millis));
    change(connection, &text, &listed.row, &[&own.as_str(), &seen, &due]).await
}

pub(super) async fn settle(
    connection: &Connection,
    own: &DriverId,
    row: &OutboxRow,
    delivery: &Delivery,
) -> Result<(), StoreError> {
    match delivery {
        Delivery::Delivered => {
            let text = format!("DELETE FROM lockgate.outbox o WHERE {WHICH} AND o.driver = $4 RETURNING 1::int8");
            change(connection, &text, row, &[&own.as_str()]).await?;
        }
        Delivery::Retry { due, error } => failed(connection, own, row, Some(*due), error).await?,
        Delivery::GivenUp { error, forget_before } => {
            failed(connection, own, row, None, error).await?;
            connection.read("DELETE FROM lockgate.outbox WHERE due IS NULL AND at < $1", &[&forget_before.as_millis()]).await?;
        }
    }
    Ok(())
}

async fn failed(
    connection: &Connection,
    own: &DriverId,
    row: &OutboxRow,
    due: Option<Timestamp>,
    error: &str,
) -> Result<(), StoreError> {
    let text = format!(
        "UPDATE lockgate.outbox o SET attempts = attempts + 1, due = $5, error = $6, driver = NULL \
         WHERE {WHICH} AND o.driver = $4 RETURNING 1::int8"
    );
    change(connection, &text, row, &[&own.as_str(), &due.map(Timestamp::as_millis), &error]).await?;
    Ok(())
}

async fn change(
    connection: &Connection,
    text: &str,
    row: &OutboxRow,
    others: &[&(dyn ToSql + Sync)],
) -> Result<bool, StoreError> {
    let (run, seq, channel) = (row.notice.run.as_str(), signed(row.notice.seq), row.channel.as_str());
    let which: [&(dyn ToSql + Sync); 3] = [&run, &seq, &channel];
    let parameters: Vec<&(dyn ToSql + Sync)> = which.into_iter().chain(others.iter().copied()).collect();
    Ok(!connection.read(text, &parameters).await?.is_empty())
}
