//! Reads histories and values. Each read is one statement and therefore sees one consistent snapshot.

use super::columns::signed;
use super::connection::Connection;
use super::errors::corrupt;
use crate::column_codes::{self, row_limit};
use crate::error::StoreError;
use crate::store::{Loaded, MaterializedState};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::RunId;
use lockgate_engine::run::hash_chain::SealedCommit;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

impl Connection {
    /// Reads rows and checks that each is as this store writes them.
    pub(super) async fn list<T>(
        &self,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
        mut read: impl FnMut(Cells<'_>) -> Result<T, RowError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.read(text, parameters).await?;
        let read = rows.iter().map(|row| read(Cells(row))).collect::<Result<Vec<T>, RowError>>();
        read.map_err(|error| corrupt(&self.address, &error.to_string()))
    }
}

/// Why a row is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    /// A column is missing or has the wrong type.
    #[error(transparent)]
    Column(#[from] tokio_postgres::Error),
    #[error("{0} where a count should be")]
    NotACount(i64),
    #[error("{0} where a revision should be")]
    NotARevision(i64),
    #[error("{0} bytes where a digest should be")]
    NotADigest(usize),
    #[error("{0} where a hold state should be")]
    NoHoldState(i64),
    /// The history ends before the materialized state.
    #[error("the last commit in the materialized state of run {0} is missing")]
    CommitMissing(RunId),
}

/// The columns of a row, with checked conversions.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a>(&'a Row);

impl<'a> Cells<'a> {
    pub(super) fn get<T: FromSql<'a>>(self, column: usize) -> Result<T, RowError> {
        Ok(self.0.try_get(column)?)
    }

    pub(super) fn count(self, column: usize) -> Result<u64, RowError> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| RowError::NotACount(number))
    }

    pub(super) fn digest(self, column: usize) -> Result<Digest, RowError> {
        digest(self.get(column)?)
    }
}

pub(super) fn digest(bytes: &[u8]) -> Result<Digest, RowError> {
    bytes.try_into().map(Digest).map_err(|_| RowError::NotADigest(bytes.len()))
}

pub(super) async fn load(connection: &Connection, run: &RunId) -> Result<Option<Loaded>, StoreError> {
    let text = "WITH materialized AS ( \
           SELECT r.key, f.version, f.state FROM lockgate.runs r LEFT JOIN lockgate.materialized_states f ON f.run_key = r.key WHERE r.run = $1 \
         ) SELECT 0::int8, f.version, b.hash, f.state FROM materialized f \
           LEFT JOIN lockgate.commits b ON b.run_key = f.key AND b.version = f.version \
         UNION ALL SELECT 1, c.version, c.hash, c.payload FROM materialized f \
           JOIN lockgate.commits c ON c.run_key = f.key AND c.version > coalesce(f.version, 0) ORDER BY 1, 2";
    let rows = connection.read(text, &[&run.as_str()]).await?;
    let Some((first, rest)) = rows.split_first() else { return Ok(None) };
    let read = || -> Result<Loaded, RowError> {
        let first = Cells(first);
        let commits = rest.iter().map(|row| sealed(Cells(row), 1)).collect::<Result<_, _>>()?;
        if first.get::<Option<i64>>(1)?.is_none() {
            return Ok(Loaded { materialized: None, before: Digest::ZERO, commits });
        }
        if first.get::<Option<&[u8]>>(2)?.is_none() {
            return Err(RowError::CommitMissing(run.clone()));
        }
        Ok(Loaded {
            materialized: Some(MaterializedState { version: first.count(1)?, state: first.get(3)? }),
            before: first.digest(2)?,
            commits,
        })
    };
    read().map(Some).map_err(|error| corrupt(&connection.address, &error.to_string()))
}

pub(super) async fn commits(
    connection: &Connection,
    run: &RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<SealedCommit>, StoreError> {
    let text = "SELECT c.version, c.hash, c.payload FROM lockgate.runs r JOIN lockgate.commits c ON c.run_key = r.key \
        WHERE r.run = $1 AND c.version > $2 ORDER BY c.version LIMIT $3";
    connection.list(text, &[&run.as_str(), &signed(after), &row_limit(limit)], |row| sealed(row, 0)).await
}

/// Reads a commit from the columns version, hash and payload.
pub(super) fn sealed(row: Cells<'_>, first: usize) -> Result<SealedCommit, RowError> {
    Ok(SealedCommit { version: row.count(first)?, hash: row.digest(first + 1)?, payload: row.get(first + 2)? })
}

pub(super) async fn values(connection: &Connection, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
    let wanted: Vec<&[u8]> = digests.iter().map(|digest| &digest.0[..]).collect();
    let text = "SELECT digest, bytes FROM lockgate.stored_values WHERE digest = ANY($1::bytea[])";
    let found = connection.list(text, &[&wanted], |row| Ok((row.digest(0)?, row.get::<Vec<u8>>(1)?))).await?;
    for (digest, bytes) in &found {
        if Digest::of(bytes) != *digest {
            return Err(corrupt(&connection.address, &format!("the stored value {digest} does not match its digest")));
        }
    }
    let value = |wanted| found.iter().find(|(digest, _)| digest == wanted).map(|(_, bytes)| bytes.clone());
    Ok(digests.iter().map(value).collect())
}

pub(super) fn hold_state(number: i64) -> Result<HoldState, RowError> {
    column_codes::hold_state(number).ok_or(RowError::NoHoldState(number))
}
