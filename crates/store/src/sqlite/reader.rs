//! Reads histories and values, on a separate connection that never waits for the writer.

use super::append::commit_key;
use super::errors::{corrupt, explain};
use super::open::Location;
use super::read_only::Source;
use super::scan_guard::{AscendingKeys, ScanGuard};
use crate::column_codes::{self, row_limit};
use crate::error::StoreError;
use crate::store::{Loaded, MaterializedState};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::hash_chain::SealedCommit;
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a read without locks is retried after the files changed meanwhile.
const MAX_ATTEMPTS: u32 = 10;

#[derive(Debug)]
pub(super) struct Reader {
    source: Mutex<Source>,
    scan_guard: ScanGuard,
    location: Location,
}

impl Reader {
    /// Opens the database; if `read_only`, also when it cannot be written.
    pub(super) fn open(location: Location, read_only: bool) -> Result<Self, StoreError> {
        let scan_guard = ScanGuard::default();
        let source =
            if read_only { location.open_read_only(&scan_guard)? } else { Source::with_locks(location.open(&scan_guard)?) };
        Ok(Self { source: Mutex::new(source), scan_guard, location })
    }

    /// The connection, reopened if it takes no locks and the files have changed.
    fn source(&self) -> Result<MutexGuard<'_, Source>, StoreError> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if !source.is_up_to_date(&self.location) {
            *source = self.location.open_read_only(&self.scan_guard)?;
        }
        Ok(source)
    }

    /// Runs a query on a consistent view of the database, bounded by the scan guard.
    pub(super) fn read<T>(&self, query: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let source = self.source()?;
            self.scan_guard.begin();
            let result = source.unchecked_transaction().and_then(|view| query(&view));
            if source.is_up_to_date(&self.location) {
                return result.map_err(|error| explain(error, Some(&source), &self.location.database));
            }
        }
        Err(StoreError::Locked(self.location.database.clone()))
    }

    pub(super) fn load(&self, run: &RunId) -> Result<Option<Loaded>, StoreError> {
        let found = self.read(|view| {
            let Some(run_key) = run_key(view, run)? else { return Ok(None) };
            let materialized = materialized(view, run_key)?;
            let state_version = materialized.as_ref().map_or(0, |materialized| materialized.version);
            let before: Option<[u8; 32]> = match state_version {
                0 => Some(Digest::ZERO.0),
                1.. => view
                    .prepare_cached("SELECT hash FROM commits WHERE key = ?1")?
                    .query_row([commit_key(run_key, state_version)], |row| row.get(0))
                    .optional()?,
            };
            Ok(Some((materialized, before, commits(view, run_key, state_version, usize::MAX)?)))
        })?;
        let Some((materialized, before, commits)) = found else { return Ok(None) };
        let Some(before) = before else {
            return Err(corrupt(
                &self.location.database,
                &format!("the last commit in the materialized state of run {run} is missing"),
            ));
        };
        Ok(Some(Loaded { materialized, before: Digest(before), commits }))
    }

    pub(super) fn commits(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<SealedCommit>, StoreError> {
        self.read(|view| match run_key(view, run)? {
            Some(run_key) => commits(view, run_key, after, limit),
            None => Ok(Vec::new()),
        })
    }

    pub(super) fn values(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let values = self.read(|view| {
            let mut statement = view.prepare_cached("SELECT bytes FROM stored_values WHERE digest = ?1")?;
            digests
                .iter()
                .map(|digest| statement.query_row([digest.0], |row| row.get::<_, Vec<u8>>(0)).optional())
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        for (digest, bytes) in digests.iter().zip(&values) {
            if bytes.as_ref().is_some_and(|bytes| Digest::of(bytes) != *digest) {
                return Err(corrupt(&self.location.database, &format!("the stored value {digest} does not match its digest")));
            }
        }
        Ok(values)
    }

    pub(super) fn last_driver(&self, run: &RunId) -> Result<Option<DriverId>, StoreError> {
        self.read(|view| {
            let mut statement = view.prepare_cached("SELECT driver FROM runs WHERE run = ?1")?;
            let driver: Option<Option<String>> = statement.query_row([run.as_str()], |row| row.get(0)).optional()?;
            Ok(driver.flatten().map(DriverId))
        })
    }

    /// Whether the files are read without locks, because nothing can be written.
    pub(super) fn is_without_locks(&self) -> bool {
        self.source().is_ok_and(|source| source.stamp().is_some())
    }

    /// A number that changes after any other connection, in this process or another, has committed.
    pub(super) fn data_version(&self) -> Result<u64, StoreError> {
        let source = self.source()?;
        if let Some(stamp) = source.stamp() {
            let mut hasher = DefaultHasher::new();
            stamp.hash(&mut hasher);
            return Ok(hasher.finish());
        }
        let version = source.prepare_cached("PRAGMA data_version").and_then(|mut query| query.query_row([], |row| row.get(0)));
        version.map_err(|error| explain(error, Some(&source), &self.location.database))
    }
}

/// The key of a run's rows.
pub(super) fn run_key(view: &Connection, run: &RunId) -> rusqlite::Result<Option<i64>> {
    view.prepare_cached("SELECT key FROM runs WHERE run = ?1")?.query_row([run.as_str()], |row| row.get(0)).optional()
}

/// The range of keys of a run's rows, with an exclusive end.
pub(super) fn rows_of(run_key: i64) -> [i64; 2] {
    // A key that overflows here does not belong to a run.
    [run_key << 32, run_key.wrapping_add(1) << 32]
}

pub(super) fn materialized(view: &Connection, run_key: i64) -> rusqlite::Result<Option<MaterializedState>> {
    let mut statement = view.prepare_cached("SELECT version, state FROM materialized_states WHERE key = ?1")?;
    statement
        .query_row([run_key], |row| Ok(MaterializedState { version: u64::from(row.get::<_, u32>(0)?), state: row.get(1)? }))
        .optional()
}

fn commits(view: &Connection, run_key: i64, after: u64, limit: usize) -> rusqlite::Result<Vec<SealedCommit>> {
    // Versions beyond this do not exist.
    let after = after.min(u64::from(u32::MAX));
    let from = commit_key(run_key, after);
    let mut rising = AscendingKeys::past(Some(from));
    view.prepare_cached("SELECT key, hash, payload FROM commits WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3")?
        .query_map(params![from, commit_key(run_key, u64::from(u32::MAX)), row_limit(limit)], |row| {
            rising.take(row.get::<_, i64>(0)?)?;
            sealed(row)
        })?
        .collect()
}

/// Reads a commit from the columns key, hash and payload.
pub(super) fn sealed(row: &Row<'_>) -> rusqlite::Result<SealedCommit> {
    let key: i64 = row.get(0)?;
    // The version is the lower half of the key.
    Ok(SealedCommit { version: key.cast_unsigned() & u64::from(u32::MAX), hash: Digest(row.get(1)?), payload: row.get(2)? })
}

pub(super) fn hold_state(row: &Row<'_>, column: usize) -> rusqlite::Result<HoldState> {
    let number = row.get(column)?;
    let unknown = || rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, Box::new(FromSqlError::OutOfRange(number)));
    column_codes::hold_state(number).ok_or_else(unknown)
}
