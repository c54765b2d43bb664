//! Appends and claims inside a write transaction. Each is applied completely or not at all.

use super::claims::{self, Granted};
use super::drivers::Drivers;
use super::outbox;
use crate::column_codes;
use crate::error::StoreError;
use crate::store::{Append, DriverInfo};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::index::{HoldRow, IndexRows, RunRow, TimerRow};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{HashMap, HashSet};

const REMEMBERED: usize = 4096;

/// Caches the last version of the runs that this connection appended to, which saves a lookup per append. It is valid only
/// while every transaction succeeds; after a failed one it is cleared.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    runs: HashMap<RunId, (i64, u64)>,
    /// Values stored by the current transaction: many runs of one workflow store the same ones.
    stored: HashSet<Digest>,
}

impl Remembered {
    fn keep(&mut self, run: &RunId, key: i64, version: u64) {
        match self.runs.get_mut(run) {
            Some(known) => *known = (key, version),
            None => {
                if self.runs.len() == REMEMBERED {
                    self.runs.clear();
                }
                self.runs.insert(run.clone(), (key, version));
            }
        }
    }

    /// The key of a cached run.
    pub(super) fn number_of(&self, run: &RunId) -> Option<i64> {
        self.runs.get(run).map(|(key, _)| *key)
    }

    pub(super) fn forget(&mut self) {
        self.runs.clear();
    }

    pub(super) fn begin(&mut self) {
        self.stored.clear();
    }
}

struct Found {
    key: i64,
    epoch: u64,
    /// Whether the previous commit is known to exist.
    follows: bool,
}

/// The outcome of an append. A rejected one has changed nothing, so it can share a transaction with others.
#[derive(Debug)]
pub(super) enum Appended {
    /// With the claim, if it made one.
    Taken(Option<Granted>),
    Conflict,
    Fenced,
    DrivenBy(DriverInfo),
    NoRun,
}

/// A failure inside a transaction, which must then be rolled back.
pub(super) enum Broken {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub(super) fn append(
    connection: &Connection,
    remembered: &mut Remembered,
    drivers: &Drivers,
    append: &Append,
) -> Result<Appended, Broken> {
    let mut granted = None;
    let run_key = match (find(connection, remembered, append)?, append.expected) {
        (Some(_), 0) => return Ok(Appended::Conflict),
        (None, 1..) => return Ok(Appended::NoRun),
        (Some(found), 1..) if append.epoch.is_some_and(|epoch| epoch != found.epoch) => return Ok(Appended::Fenced),
        (Some(found), 1..) => {
            let reservation = match append.claim.is_some() {
                true => match claims::reserve(connection, drivers, &append.run, found.key)? {
                    Ok(reservation) => Some(reservation),
                    Err(other) => return Ok(Appended::DrivenBy(other)),
                },
                false => None,
            };
            if !insert_next_commit(connection, &found, append)? {
                return Ok(Appended::Conflict);
            }
            if let Some(reservation) = reservation {
                granted = Some(claims::take(connection, drivers, found.key, found.epoch, reservation)?);
            }
            if let Some(row) = &append.index.run {
                update_run(connection, found.key, row)?;
            }
            found.key
        }
        (None, 0) => {
            let row = append.index.run.as_ref().expect("an append that creates a run has its row");
            let run_key = insert_run(connection, row, append.claim.as_ref())?;
            insert_first_commit(connection, run_key, append)?;
            let reservation = append.claim.as_ref().and_then(|_| drivers.held().reserve(&append.run));
            granted = reservation.map(|reservation| Granted { reservation, epoch: 1 });
            run_key
        }
    };
    remembered.keep(&append.run, run_key, append.commit.version);
    insert_values(connection, remembered, run_key, append)?;
    write_index(connection, run_key, &append.index)?;
    if let Some(state) = &append.materialized {
        connection
            .prepare_cached("INSERT INTO materialized_states(key, version, state) VALUES(?1, ?2, ?3) ON CONFLICT(key) DO UPDATE SET version = ?2, state = ?3")?
            .execute(params![run_key, append.commit.version, state])?;
    }
    Ok(Appended::Taken(granted))
}

fn find(connection: &Connection, remembered: &Remembered, append: &Append) -> rusqlite::Result<Option<Found>> {
    if let Some(&(key, version)) = remembered.runs.get(&append.run) {
        let epoch = connection
            .prepare_cached("SELECT epoch FROM runs WHERE key = ?1 AND run = ?2")?
            .query_row(params![key, append.run.as_str()], |row| row.get(0))
            .optional()?;
        if let Some(epoch) = epoch {
            return Ok(Some(Found { key, epoch, follows: version == append.expected }));
        }
    }
    connection
        .prepare_cached("SELECT key, epoch FROM runs WHERE run = ?1")?
        .query_row([append.run.as_str()], |row| Ok(Found { key: row.get(0)?, epoch: row.get(1)?, follows: false }))
        .optional()
}

/// Compares versions: the previous commit must exist, and the new version must be free. These are separate plain statements
/// because a combined one would keep a copy of each page it changes, in case it fails halfway.
fn insert_next_commit(connection: &Connection, found: &Found, append: &Append) -> rusqlite::Result<bool> {
    let key = commit_key(found.key, append.commit.version);
    if !found.follows && !connection.prepare_cached("SELECT 1 FROM commits WHERE key = ?1")?.exists([key - 1])? {
        return Ok(false);
    }
    let inserted = connection
        .prepare_cached("INSERT INTO commits(key, hash, payload) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute(params![key, append.commit.hash.0, append.commit.payload])?;
    Ok(inserted == 1)
}

fn insert_first_commit(connection: &Connection, run_key: i64, append: &Append) -> rusqlite::Result<()> {
    let key = commit_key(run_key, append.commit.version);
    let mut statement = connection.prepare_cached("INSERT INTO commits(key, hash, payload) VALUES(?1, ?2, ?3)")?;
    statement.execute(params![key, append.commit.hash.0, append.commit.payload]).map(|_| ())
}

/// The primary key of a commit.
pub(super) fn commit_key(run_key: i64, version: u64) -> i64 {
    run_key << 32 | i64::from(u32::try_from(version).expect("versions were checked to fit"))
}

/// The number of the next run. Numbers of removed runs are not reused: a number that is stored elsewhere must not come to mean another run.
fn next_run_key(connection: &Connection) -> rusqlite::Result<i64> {
    let text = "SELECT max(coalesce((SELECT max(key) FROM runs), 0), coalesce((SELECT max(key) FROM removed_runs), 0)) + 1";
    connection.prepare_cached(text)?.query_row([], |row| row.get(0))
}

fn insert_run(connection: &Connection, row: &RunRow, claim: Option<&DriverId>) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO runs(run, kind, workflow, feature, status, phase, created_at, changed_at, parent, driver, epoch, key) \
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .insert(params![
            row.run.as_str(),
            row.kind.as_str(),
            row.workflow,
            row.feature,
            row.status.as_str(),
            row.phase,
            row.created_at.as_millis(),
            row.changed_at.as_millis(),
            row.parent.as_ref().map(RunId::as_str),
            claim.map(DriverId::as_str),
            i64::from(claim.is_some()),
            next_run_key(connection)?,
        ])
}

fn update_run(connection: &Connection, run_key: i64, row: &RunRow) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE runs SET kind = ?2, workflow = ?3, feature = ?4, status = ?5, phase = ?6, created_at = ?7, changed_at = ?8, parent = ?9 \
             WHERE key = ?1",
        )?
        .execute(params![
            run_key,
            row.kind.as_str(),
            row.workflow,
            row.feature,
            row.status.as_str(),
            row.phase,
            row.created_at.as_millis(),
            row.changed_at.as_millis(),
            row.parent.as_ref().map(RunId::as_str),
        ])
        .map(|_| ())
}

fn insert_values(connection: &Connection, remembered: &mut Remembered, run_key: i64, append: &Append) -> rusqlite::Result<()> {
    for (digest, bytes) in &append.values {
        if !remembered.stored.insert(*digest) {
            continue;
        }
        let mut statement =
            connection.prepare_cached("INSERT INTO stored_values(digest, bytes) VALUES(?1, ?2) ON CONFLICT DO NOTHING")?;
        statement.execute(params![digest.0, bytes])?;
    }
    for digest in &append.index.referenced_values {
        let mut statement =
            connection.prepare_cached("INSERT INTO value_refs(run_key, digest) VALUES(?1, ?2) ON CONFLICT DO NOTHING")?;
        statement.execute(params![run_key, digest.0])?;
    }
    Ok(())
}

fn write_index(connection: &Connection, run_key: i64, index: &IndexRows) -> rusqlite::Result<()> {
    for row in &index.holds {
        write_hold(connection, run_key, row)?;
    }
    for timer in &index.timers_removed {
        let mut statement = connection.prepare_cached("DELETE FROM timers WHERE run_key = ?1 AND timer = ?2")?;
        statement.execute(params![run_key, timer.as_str()])?;
    }
    for TimerRow { timer, run: _, due, kind, target } in &index.timers {
        connection
            .prepare_cached("INSERT OR REPLACE INTO timers(run_key, timer, due, kind, target) VALUES(?1, ?2, ?3, ?4, ?5)")?
            .execute(params![run_key, timer.as_str(), due.as_millis(), kind.as_str(), target])?;
    }
    outbox::insert(connection, run_key, &index.outbox)
}

fn write_hold(connection: &Connection, run_key: i64, row: &HoldRow) -> rusqlite::Result<()> {
    let HoldRow { hold, run: _, kind, state, revision, since, shown } = row;
    let (first, last) = (run_key << 32, run_key << 32 | i64::from(u32::MAX));
    let fields = params![
        first,
        last,
        hold.as_str(),
        kind.as_str(),
        column_codes::of_hold_state(*state),
        revision,
        since.as_millis(),
        shown
    ];
    let updated = connection
        .prepare_cached("UPDATE holds SET kind = ?4, state = ?5, revision = ?6, since = ?7, shown = ?8 WHERE hold = ?3 AND key BETWEEN ?1 AND ?2")?
        .execute(fields)?;
    if updated == 0 {
        connection
            .prepare_cached(
                "INSERT INTO holds(key, hold, kind, state, revision, since, shown) \
                 SELECT coalesce(max(key) + 1, ?1), ?3, ?4, ?5, ?6, ?7, ?8 FROM holds WHERE key BETWEEN ?1 AND ?2",
            )?
            .execute(fields)?;
    }
    Ok(())
}
