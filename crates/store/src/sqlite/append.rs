//! What happens inside a transaction of the writer: appends and claims, each taken or rejected as a whole.

use super::drivers::Drivers;
use super::outbox;
use crate::column_codes;
use crate::error::StoreError;
use crate::held::Reservation;
use crate::store::{Append, DriverInfo};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::run::index::{HoldRow, IndexRows, RunRow, TimerRow};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{HashMap, HashSet};

/// So many runs are remembered at most.
const REMEMBERED: usize = 4096;

/// Where the runs stand that this connection appended to: what it committed once stays, so it need not be looked up again.
/// Only for as long as every transaction succeeds; after one that did not, nothing is known any more.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    runs: HashMap<RunId, (i64, u64)>,
    /// Values that the transaction under way has stored: many runs of one workflow bring the same.
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

    /// The number of a run, where it is remembered.
    pub(super) fn number_of(&self, run: &RunId) -> Option<i64> {
        self.runs.get(run).map(|(key, _)| *key)
    }

    pub(super) fn forget(&mut self) {
        self.runs.clear();
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self) {
        self.stored.clear();
    }
}

/// A run as an append finds it.
struct Found {
    key: i64,
    epoch: u64,
    /// Whether the commit that the append follows is known to be there.
    follows: bool,
}

/// What became of an append. Where it is not taken, it has changed nothing, so others can share its transaction.
#[derive(Debug)]
pub(super) enum Appended {
    /// With the claim, where it made one.
    Taken(Option<Granted>),
    Conflict,
    Fenced,
    DrivenBy(DriverInfo),
    NoRun,
}

/// A claim that was made in the transaction, and is held once that is durable.
#[derive(Debug)]
pub(super) struct Granted {
    reservation: Reservation,
    epoch: u64,
}

impl Granted {
    pub(super) fn run(&self) -> &RunId {
        self.reservation.run()
    }

    /// The transaction is durable. Gives the run and the epoch.
    pub(super) fn hold(self) -> (RunId, u64) {
        let claim = (self.run().clone(), self.epoch);
        self.reservation.keep(self.epoch);
        claim
    }
}

/// What is to be claimed.
#[derive(Debug)]
pub(super) enum Wanted {
    /// This run.
    Run(RunId),
    /// The first of these that want a driver in the background, at most so many. Those that are not free are passed over.
    Any(Vec<RunId>, usize),
}

/// What became of a claim.
#[derive(Debug)]
pub(super) enum Claimed {
    /// The runs that were claimed.
    Runs(Vec<Granted>),
    DrivenBy(DriverInfo),
    NoRun,
}

/// A failure inside a transaction, which then must be rolled back.
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
                true => match reserve(connection, drivers, &append.run, found.key)? {
                    Ok(reservation) => Some(reservation),
                    Err(other) => return Ok(Appended::DrivenBy(other)),
                },
                false => None,
            };
            if !insert_next_commit(connection, &found, append)? {
                return Ok(Appended::Conflict);
            }
            if let Some(reservation) = reservation {
                granted = Some(take(connection, drivers, found.key, found.epoch, reservation)?);
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
            .prepare_cached("INSERT INTO folds(key, version, state) VALUES(?1, ?2, ?3) ON CONFLICT(key) DO UPDATE SET version = ?2, state = ?3")?
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

/// The comparison of versions: the commit before must be there, and its own place must be free.
/// Plain statements: one that reads and writes would keep a copy of each page that it changes, in case it fails half-way.
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

/// Where a commit is stored.
pub(super) fn commit_key(run_key: i64, version: u64) -> i64 {
    run_key << 32 | i64::from(u32::try_from(version).expect("versions were checked to fit"))
}

/// The number of the next run. Those of removed runs are not used again: what is known elsewhere by number must not be taken for another run.
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
    for digest in &append.index.refers_to {
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

/// Sets a run aside that is to be claimed; says who drives it where that cannot be.
fn reserve(
    connection: &Connection,
    drivers: &Drivers,
    run: &RunId,
    run_key: i64,
) -> Result<Result<Reservation, DriverInfo>, Broken> {
    let driver: Option<Option<String>> =
        connection.prepare_cached("SELECT driver FROM runs WHERE key = ?1")?.query_row([run_key], |row| row.get(0)).optional()?;
    if let Some(other) = driver.flatten().map(DriverId).filter(|driver| driver != drivers.own())
        && let Some(info) = drivers.alive(&other)?
    {
        return Ok(Err(info));
    }
    match drivers.held().reserve(run) {
        Some(reservation) => Ok(Ok(reservation)),
        None => {
            let own = drivers.alive(drivers.own())?;
            Ok(Err(own.ok_or_else(|| StoreError::Misused("a run was claimed before the driver came alive".to_owned()))?))
        }
    }
}

/// Makes this process the one that drives a run.
fn take(
    connection: &Connection,
    drivers: &Drivers,
    run_key: i64,
    epoch: u64,
    reservation: Reservation,
) -> rusqlite::Result<Granted> {
    let mut statement = connection.prepare_cached("UPDATE runs SET driver = ?2, epoch = ?3 WHERE key = ?1")?;
    statement.execute(params![run_key, drivers.own().as_str(), epoch + 1])?;
    Ok(Granted { reservation, epoch: epoch + 1 })
}

/// Claims what is wanted, as far as it is free.
pub(super) fn claim(connection: &Connection, drivers: &Drivers, wanted: &Wanted) -> Result<Claimed, Broken> {
    match wanted {
        Wanted::Run(run) => {
            let Some((run_key, epoch)) = key_and_epoch(connection, run)? else { return Ok(Claimed::NoRun) };
            match reserve(connection, drivers, run, run_key)? {
                Ok(reservation) => Ok(Claimed::Runs(vec![take(connection, drivers, run_key, epoch, reservation)?])),
                Err(other) => Ok(Claimed::DrivenBy(other)),
            }
        }
        Wanted::Any(runs, limit) => claim_any(connection, drivers, runs, *limit),
    }
}

fn claim_any(connection: &Connection, drivers: &Drivers, runs: &[RunId], limit: usize) -> Result<Claimed, Broken> {
    let mut granted = Vec::new();
    for run in runs {
        if granted.len() == limit {
            break;
        }
        // Since it was listed, the run may have been driven to its end, or to where it waits for a person.
        if let Some((run_key, epoch)) = key_and_epoch(connection, run)?
            && connection
                .prepare_cached("SELECT 1 FROM timers WHERE run_key = ?1 AND timer = ?2")?
                .exists(params![run_key, DRIVE_TIMER])?
            && let Ok(reservation) = reserve(connection, drivers, run, run_key)?
        {
            granted.push(take(connection, drivers, run_key, epoch, reservation)?);
        }
    }
    Ok(Claimed::Runs(granted))
}

fn key_and_epoch(connection: &Connection, run: &RunId) -> rusqlite::Result<Option<(i64, u64)>> {
    connection
        .prepare_cached("SELECT key, epoch FROM runs WHERE run = ?1")?
        .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Gives a claim up if it is still the run's; gives whether it was.
pub(super) fn release(connection: &Connection, drivers: &Drivers, run: &RunId, epoch: u64) -> rusqlite::Result<bool> {
    let mut statement =
        connection.prepare_cached("UPDATE runs SET driver = NULL WHERE run = ?1 AND driver = ?2 AND epoch = ?3")?;
    Ok(statement.execute(params![run.as_str(), drivers.own().as_str(), epoch])? == 1)
}
