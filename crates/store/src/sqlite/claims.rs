//! Claims: which process drives a run. They are made in the transaction of an append, or in one of their own.

use super::append::Broken;
use super::drivers::Drivers;
use crate::error::StoreError;
use crate::held_claims::Reservation;
use crate::store::DriverInfo;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::history::DRIVE_TIMER;
use rusqlite::{Connection, OptionalExtension, params};

/// A claim made in the transaction; it is held once that is durable.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) reservation: Reservation,
    pub(super) epoch: u64,
}

impl Granted {
    pub(super) fn run(&self) -> &RunId {
        self.reservation.run()
    }

    /// Marks the claim as held, after the transaction is durable. Returns the run and the epoch.
    pub(super) fn hold(self) -> (RunId, u64) {
        let claim = (self.run().clone(), self.epoch);
        self.reservation.keep(self.epoch);
        claim
    }
}

/// Which runs to claim.
#[derive(Debug)]
pub(super) enum Wanted {
    Run(RunId),
    /// The first of these that want a background driver, up to a limit. Runs with a live driver are skipped.
    Any(Vec<RunId>, usize),
}

#[derive(Debug)]
pub(super) enum Claimed {
    Runs(Vec<Granted>),
    DrivenBy(DriverInfo),
    NoRun,
}

/// Reserves a run to be claimed; fails with its live driver if there is one.
pub(super) fn reserve(
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
            Ok(Err(own.ok_or_else(|| StoreError::Misused("a run was claimed before the driver was registered".to_owned()))?))
        }
    }
}

/// Makes this process the driver of a run.
pub(super) fn take(
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

/// Claims the wanted runs that are free.
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
        // Since it was listed, the run may have ended or may be waiting for a person.
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

/// Releases a claim if it is still current; returns whether it was.
pub(super) fn release(connection: &Connection, drivers: &Drivers, run: &RunId, epoch: u64) -> rusqlite::Result<bool> {
    let mut statement =
        connection.prepare_cached("UPDATE runs SET driver = NULL WHERE run = ?1 AND driver = ?2 AND epoch = ?3")?;
    Ok(statement.execute(params![run.as_str(), drivers.own().as_str(), epoch])? == 1)
}
