//! Upkeep while others go on: a copy of all runs as of one moment, and the end of values that nobody refers to.

use super::errors::explain;
use super::link::Link;
use super::place::Place;
use super::{reader, scan};
use crate::backup::{Moment, copy_runs};
use crate::error::StoreError;
use crate::store::{Future, StoredRun, Unreferred};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::commit::Sealed;
use std::path::Path;

/// After this a session sees the database as it is at its next statement, for as long as it lasts.
const ONE_MOMENT: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Names what a session sees.
const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

const UNREFERRED: &str =
    "FROM lockgate.stored_values s WHERE NOT EXISTS (SELECT 1 FROM lockgate.value_refs v WHERE v.digest = s.digest)";

/// All reads of this link are of one moment.
struct Still(Link);

impl Moment for Still {
    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>> {
        Box::pin(scan::runs(&self.0, after, limit))
    }

    fn commits<'a>(&'a self, run: &'a RunId, after: u64, limit: usize) -> Future<'a, Result<Vec<Sealed>, StoreError>> {
        Box::pin(reader::commits(&self.0, run, after, limit))
    }

    fn values<'a>(&'a self, digests: &'a [Digest]) -> Future<'a, Result<Vec<Option<Vec<u8>>>, StoreError>> {
        Box::pin(reader::values(&self.0, digests))
    }
}

pub(super) async fn back_up(place: &Place, file: &Path) -> Result<(), StoreError> {
    let still = Still(Link::new(place.clone(), ""));
    let begun = still.0.session().await?.client.batch_execute(ONE_MOMENT).await;
    begun.map_err(|error| explain(&error, place))?;
    let before = snapshot(&still.0).await?;
    copy_runs(&still, file).await?;
    // A lost connection is made again unseen, and sees a later moment.
    if snapshot(&still.0).await? != before {
        crate::cleanup::remove_file(file);
        return Err(StoreError::Io("the connection was lost while the backup was made; do it again".to_owned()));
    }
    Ok(())
}

async fn snapshot(link: &Link) -> Result<Option<String>, StoreError> {
    Ok(link.list(SNAPSHOT, &[], |row| row.get(0)).await?.pop())
}

pub(super) async fn unreferred(link: &Link) -> Result<Unreferred, StoreError> {
    let text = format!("SELECT count(*), coalesce(sum(length(s.bytes)), 0)::int8 {UNREFERRED}");
    let found = link.list(&text, &[], |row| Ok(Unreferred { count: row.count(0)?, bytes: row.count(1)? })).await?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// An append that finds its value stored does not store it again, so while values go, nobody may be between that look and the reference.
pub(super) async fn remove_unreferred(place: &Place) -> Result<Unreferred, StoreError> {
    let link = Link::new(place.clone(), "");
    let session = link.session().await?;
    let locked = session.client.batch_execute("BEGIN; LOCK TABLE lockgate.stored_values IN EXCLUSIVE MODE").await;
    locked.map_err(|error| explain(&error, place))?;
    let found = unreferred(&link).await?;
    let removed = session.client.batch_execute(&format!("DELETE {UNREFERRED}; COMMIT")).await;
    removed.map_err(|error| explain(&error, place))?;
    Ok(found)
}
