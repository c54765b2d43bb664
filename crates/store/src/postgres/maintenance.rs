//! Maintenance without blocking other processes: backups, and removing unreferenced values.

use super::address::Address;
use super::connection::Connection;
use super::errors::explain;
use super::{reader, scan};
use crate::backup::{ReadSnapshot, copy_runs};
use crate::error::StoreError;
use crate::store::{Future, StoredRun, Unreferenced};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::hash_chain::SealedCommit;
use std::path::Path;

/// From the next statement on, the session reads from one consistent snapshot.
const REPEATABLE_READ: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Identifies the snapshot of a session.
const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

const UNREFERENCED: &str =
    "FROM lockgate.stored_values s WHERE NOT EXISTS (SELECT 1 FROM lockgate.value_refs v WHERE v.digest = s.digest)";

/// All reads on this connection see the same snapshot.
struct SnapshotReader(Connection);

impl ReadSnapshot for SnapshotReader {
    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        Box::pin(scan::runs(&self.0, after, limit))
    }

    fn commits<'a>(&'a self, run: &'a RunId, after: u64, limit: usize) -> Future<'a, Result<Vec<SealedCommit>, StoreError>> {
        Box::pin(reader::commits(&self.0, run, after, limit))
    }

    fn values<'a>(&'a self, digests: &'a [Digest]) -> Future<'a, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        Box::pin(reader::values(&self.0, digests))
    }
}

pub(super) async fn back_up(address: &Address, file: &Path) -> Result<(), StoreError> {
    let still = SnapshotReader(Connection::new(address.clone(), ""));
    let begun = still.0.session().await?.client.batch_execute(REPEATABLE_READ).await;
    begun.map_err(|error| explain(&error, address))?;
    let before = snapshot(&still.0).await?;
    copy_runs(&still, file).await?;
    // A lost connection is reopened silently and would see a later snapshot.
    if snapshot(&still.0).await? != before {
        crate::cleanup::remove_file(file);
        return Err(StoreError::Io("the connection was lost during the backup; try again".to_owned()));
    }
    Ok(())
}

async fn snapshot(connection: &Connection) -> Result<Option<String>, StoreError> {
    Ok(connection.list(SNAPSHOT, &[], |row| row.get(0)).await?.pop())
}

pub(super) async fn unreferenced(connection: &Connection) -> Result<Unreferenced, StoreError> {
    let text = format!("SELECT count(*), coalesce(sum(length(s.bytes)), 0)::int8 {UNREFERENCED}");
    let found = connection.list(&text, &[], |row| Ok(Unreferenced { count: row.count(0)?, bytes: row.count(1)? })).await?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// An append does not store a value that already exists. While values are removed, no append may be between that check and
/// its reference.
pub(super) async fn remove_unreferenced(address: &Address) -> Result<Unreferenced, StoreError> {
    let connection = Connection::new(address.clone(), "");
    let session = connection.session().await?;
    let locked = session.client.batch_execute("BEGIN; LOCK TABLE lockgate.stored_values IN EXCLUSIVE MODE").await;
    locked.map_err(|error| explain(&error, address))?;
    let found = unreferenced(&connection).await?;
    let removed = session.client.batch_execute(&format!("DELETE {UNREFERENCED}; COMMIT")).await;
    removed.map_err(|error| explain(&error, address))?;
    Ok(found)
}
