//! Drivers: which processes drive runs, and which of them are alive.
//!
//! A driver is alive until its lease expires by the clock of the database; one heartbeat for all its runs renews the lease.
//! By the clock of its own process the lease ends earlier ([`Lease`]), and from then on nothing is started. A late heartbeat
//! has lost nothing yet: only a claim by another process takes a run away, and raises the epoch that appends must carry.
//!
//! A process on the same machine need not wait for the lease: it checks whether the driver's process exists. Two processes
//! are on the same machine if they have the same boot id and the server sees them at the same address, because copies of a
//! virtual machine share their boot id. Even if this check were wrong, the epoch would protect the history of a run.

use super::connection::{Connection, Session};
use super::errors::{corrupt, explain};
use super::process;
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::held_claims::HeldClaims;
use crate::lease::{Lease, machine_clock};
use crate::store::DriverInfo;
use lockgate_engine::id::{DriverId, IdSource, RunId};
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, OnceCell};
use tokio_postgres::{Error, Row};

/// How long a driver counts as alive after its last heartbeat.
const LEASE_LENGTH: Duration = Duration::from_secs(15);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);
/// How long a heartbeat may take before it is sent again on another connection.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The columns of a [`DriverInfo`].
pub(super) const INFO: &str = "d.driver, d.pid, d.host, (extract(epoch FROM d.since) * 1000)::int8, \
    (extract(epoch FROM d.expires_at) * 1000)::int8";
/// The identity of a driver's process if it may be on this machine, for [`process::has_ended`].
pub(super) const PROCESS: &str = "CASE WHEN d.address IS NOT DISTINCT FROM inet_client_addr() THEN d.process END";

#[derive(Debug)]
pub(super) struct Drivers {
    own: DriverId,
    lease: Lease,
    held: Arc<HeldClaims>,
    since: Timestamp,
    alive: OnceCell<()>,
    /// Set to false when the store closes, after which no heartbeat is sent.
    heartbeat_running: Mutex<bool>,
}

fn not_renewed(error: &dyn std::fmt::Display) -> bool {
    tracing::warn!(%error, "cannot renew the lease; retrying");
    false
}

impl Drivers {
    pub(super) fn new() -> Self {
        let mut ids = IdSource::new(rand::random());
        let own = DriverId(format!("{}{}", ids.next_id(), ids.next_id()));
        let lease = Lease::new(LEASE_LENGTH, machine_clock);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        Self { own, lease, held: Arc::default(), since, alive: OnceCell::new(), heartbeat_running: Mutex::new(true) }
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn held(&self) -> &Arc<HeldClaims> {
        &self.held
    }

    /// Describes this process, for callers in it that cannot claim a run because another driver in it holds the claim.
    pub(super) fn own_info(&self) -> DriverInfo {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        DriverInfo { driver: self.own.clone(), pid: std::process::id(), host, since: self.since, until: None }
    }

    pub(super) fn own(&self) -> &DriverId {
        &self.own
    }

    /// Registers this process's driver as alive before it claims its first run, and starts its heartbeat.
    pub(super) async fn register(self: &Arc<Self>, connection: &Arc<Connection>) -> Result<(), StoreError> {
        let begin = || async {
            let session = connection.session().await?;
            self.heartbeat(&session).await.map_err(|error| explain(&error, &connection.address))?;
            tokio::spawn(self.clone().keep_alive(connection.clone()));
            // Rows of processes that ended without cleaning up are useless after a day.
            let old = "DELETE FROM lockgate.drivers WHERE expires_at < clock_timestamp() - interval '1 day'";
            if let Err(error) = session.query(old, &[]).await {
                tracing::debug!(%error, "cannot remove expired leases");
            }
            Ok(())
        };
        self.alive.get_or_try_init(begin).await.copied()
    }

    async fn keep_alive(self: Arc<Self>, connection: Arc<Connection>) {
        let mut pause = HEARTBEAT_INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            let heartbeat_running = self.heartbeat_running.lock().await;
            if !*heartbeat_running {
                return;
            }
            pause = if self.heartbeat_once(&connection).await { HEARTBEAT_INTERVAL } else { RETRY_DELAY };
        }
    }

    /// Sends a heartbeat; if it does not arrive in time, the connection is discarded.
    async fn heartbeat_once(&self, connection: &Connection) -> bool {
        let session = match tokio::time::timeout(HEARTBEAT_TIMEOUT, connection.session()).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => return not_renewed(&error),
            Err(late) => return not_renewed(&late),
        };
        match tokio::time::timeout(HEARTBEAT_TIMEOUT, self.heartbeat(&session)).await {
            Ok(Ok(())) => {
                tracing::trace!("lease renewed");
                true
            }
            Ok(Err(error)) => not_renewed(&error),
            Err(late) => {
                if tokio::time::timeout(HEARTBEAT_TIMEOUT, connection.lose(&session)).await.is_err() {
                    tracing::debug!("another task still uses the lost connection");
                }
                not_renewed(&late)
            }
        }
    }

    async fn heartbeat(&self, session: &Session) -> Result<(), Error> {
        let text = "INSERT INTO lockgate.drivers(driver, pid, host, process, address, since, expires_at) \
            VALUES($1, $2, $3, $5, inet_client_addr(), clock_timestamp(), clock_timestamp() + $4 * interval '1 second') \
            ON CONFLICT (driver) DO UPDATE SET expires_at = excluded.expires_at";
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let pid = i64::from(std::process::id());
        let sent = self.lease.now();
        session.query(text, &[&self.own.as_str(), &pid, &host, &LEASE_LENGTH.as_secs_f64(), &process::own()]).await?;
        self.lease.renewed(sent);
        Ok(())
    }

    /// Ends the lease, so that others need not wait for it to expire.
    pub(super) async fn end(&self, connection: &Connection) {
        *self.heartbeat_running.lock().await = false;
        if self.alive.initialized()
            && let Ok(session) = connection.session().await
        {
            match end_lease(&session, &self.own).await {
                Ok(_) => tracing::debug!("lease ended"),
                Err(error) => tracing::debug!(%error, "cannot end the lease; it will expire"),
            }
        }
    }

    /// Background runs that can continue and have no live driver, not even this process. Live drivers are read first, because
    /// only this process can check those on its machine; then the database need not list more runs than requested.
    pub(super) async fn undriven(&self, connection: &Connection, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let others = Self::all_alive(connection).await?.into_iter().filter(|driver| *driver != self.own);
        let others: Vec<String> = others.map(|driver| driver.to_string()).collect();
        let held: Vec<String> = self.held.all().iter().map(|run| run.as_str().to_owned()).collect();
        let text = "SELECT r.run FROM lockgate.timers t JOIN lockgate.runs r ON r.key = t.run_key \
             WHERE t.due <= 0 AND t.kind = $1 AND (r.driver IS NULL OR r.driver <> ALL($2::text[])) AND r.run <> ALL($3::text[]) \
             ORDER BY t.due, t.run_key LIMIT $4";
        connection.list(text, &[&DRIVE_TIMER, &others, &held, &row_limit(limit)], |row| Ok(RunId(row.get(0)?))).await
    }

    pub(super) async fn of_run(connection: &Connection, run: &RunId) -> Result<Option<DriverInfo>, StoreError> {
        let text = format!(
            "SELECT {INFO}, {PROCESS} FROM lockgate.runs r JOIN lockgate.drivers d ON d.driver = r.driver \
             WHERE r.run = $1 AND d.expires_at > clock_timestamp()"
        );
        let rows = connection.read(&text, &[&run.as_str()]).await?;
        let read = |row: &Row| {
            let left = row.try_get::<_, Option<&str>>(5)?.is_some_and(process::has_ended);
            Ok(if left { None } else { Some(info(row, 0)?) })
        };
        let info = rows.first().map(read).transpose().map(Option::flatten);
        info.map_err(|error: Error| corrupt(&connection.address, &error.to_string()))
    }

    /// All live drivers, as far as this process can tell.
    pub(super) async fn all_alive(connection: &Connection) -> Result<BTreeSet<DriverId>, StoreError> {
        let text = format!("SELECT d.driver, {PROCESS} FROM lockgate.drivers d WHERE d.expires_at > clock_timestamp()");
        let rows = connection.read(&text, &[]).await?;
        let read = |row: &Row| {
            let left = row.try_get::<_, Option<&str>>(1)?.is_some_and(process::has_ended);
            Ok(if left { None } else { Some(DriverId(row.try_get(0)?)) })
        };
        let alive: Result<Vec<Option<DriverId>>, Error> = rows.iter().map(read).collect();
        Ok(alive.map_err(|error| corrupt(&connection.address, &error.to_string()))?.into_iter().flatten().collect())
    }
}

pub(super) async fn end_lease(session: &Session, driver: &DriverId) -> Result<(), Error> {
    session.query("DELETE FROM lockgate.drivers WHERE driver = $1", &[&driver.as_str()]).await.map(|_| ())
}

pub(super) fn info(row: &Row, first: usize) -> Result<DriverInfo, Error> {
    Ok(DriverInfo {
        driver: DriverId(row.try_get(first)?),
        pid: u32::try_from(row.try_get::<_, i64>(first + 1)?).unwrap_or_default(),
        host: row.try_get(first + 2)?,
        since: Timestamp::from_millis(row.try_get(first + 3)?),
        until: Some(Timestamp::from_millis(row.try_get(first + 4)?)),
    })
}
