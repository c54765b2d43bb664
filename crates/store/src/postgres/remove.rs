//! Removing a run: one transaction, which is sent whole.

use super::columns::signed;
use super::connection::Session;
use crate::store::{RemovedRows, RunRemoval, Unreferenced};
use lockgate_engine::id::DriverId;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::OpenEnum;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

/// What became of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    Rows(RemovedRows),
    Fenced,
    Status(OpenEnum<Status>),
    NoRun,
}

/// A lone append does not lock its run, and one that finds its value stored does not store it again: while a run is removed, nobody may be
/// between such a look and what follows it. So appends of all runs wait for the few milliseconds that this takes.
const LOCK: &str = "BEGIN; LOCK TABLE lockgate.commits, lockgate.stored_values IN EXCLUSIVE MODE";

/// Every part sees the database as it is after the tables are locked; what follows the first part is done only where that found the run.
const REMOVE: &str = "WITH gone AS (
  DELETE FROM lockgate.runs WHERE run = $1::text AND driver = $2::text AND epoch = $3::int8 AND status = ANY($4::text[]) RETURNING key
), refs AS (
  DELETE FROM lockgate.value_refs v USING gone WHERE v.run_key = gone.key RETURNING v.run_key, v.digest
), unused AS (
  DELETE FROM lockgate.stored_values s USING refs WHERE s.digest = refs.digest
    AND NOT EXISTS (SELECT 1 FROM lockgate.value_refs o WHERE o.digest = s.digest AND o.run_key <> refs.run_key)
  RETURNING octet_length(s.bytes) AS bytes
), commits AS (
  DELETE FROM lockgate.commits c USING gone WHERE c.run_key = gone.key RETURNING 1
), states AS (
  DELETE FROM lockgate.materialized_states f USING gone WHERE f.run_key = gone.key RETURNING 1
), holds AS (
  DELETE FROM lockgate.holds h USING gone WHERE h.run_key = gone.key RETURNING 1
), timers AS (
  DELETE FROM lockgate.timers t USING gone WHERE t.run_key = gone.key RETURNING 1
), outbox AS (
  DELETE FROM lockgate.outbox o USING gone WHERE o.run_key = gone.key RETURNING 1
)
SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM gone) + (SELECT count(*) FROM refs) + (SELECT count(*) FROM commits)
  + (SELECT count(*) FROM states) + (SELECT count(*) FROM holds) + (SELECT count(*) FROM timers) + (SELECT count(*) FROM outbox),
  (SELECT count(*) FROM unused), (SELECT coalesce(sum(bytes), 0)::int8 FROM unused)";

/// Why a run was not removed.
const WHY_NOT: &str = "SELECT driver = $2::text AND epoch = $3::int8, status FROM lockgate.runs WHERE run = $1::text";

pub(super) async fn remove(session: &Session, own: &DriverId, removal: &RunRemoval) -> Result<Removed, Error> {
    let statement = session.prepare(REMOVE).await?;
    let (run, own, epoch) = (removal.run.as_str(), own.as_str(), signed(removal.epoch));
    let statuses: Vec<&str> = removal.statuses.iter().map(|status| status.as_str()).collect();
    let parameters: [&(dyn ToSql + Sync); 4] = [&run, &own, &epoch, &statuses];
    let (locked, removed, ended) = futures::join!(
        session.client.batch_execute(LOCK),
        session.client.query_one(&statement, &parameters),
        session.client.batch_execute("COMMIT"),
    );
    locked?;
    let removed = removed?;
    ended?;
    if let Some(rows) = removed_rows(&removed)? {
        return Ok(Removed::Rows(rows));
    }
    let why_not = session.query(WHY_NOT, &[&run, &own, &epoch]).await?;
    let Some(found) = why_not.first() else { return Ok(Removed::NoRun) };
    Ok(match found.try_get::<_, Option<bool>>(0)? {
        Some(true) => Removed::Status(found.try_get::<_, String>(1)?.into()),
        Some(false) | None => Removed::Fenced,
    })
}

fn removed_rows(row: &Row) -> Result<Option<RemovedRows>, Error> {
    let count = |column: usize| row.try_get::<_, i64>(column).map(i64::cast_unsigned);
    let rows = RemovedRows { rows: count(1)?, values: Unreferenced { count: count(2)?, bytes: count(3)? } };
    Ok((count(0)? == 1).then_some(rows))
}
