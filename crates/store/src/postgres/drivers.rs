//! Drivers: which processes drive runs, and which of them are alive.
//!
//! A driver is alive until its lease expires by the clock of the database; one heartbeat for all its runs renews the lease.
//! By the clock of its own process the lease ends earlier ([`Lease`]), and from then on nothing is started. A late heartbeat
//! has lost nothing yet: only a claim by another process takes a run away, and raises the epoch that appends must carry.
//!
//! A process on the same machine need not wait for the lease: it checks whether the driver's process exists. Two processes
//! are on the same machine if they have the same boot id and the server sees them at the same address, because copies of a
//! virtual machine share their boot id. Even if this check were wrong, the epoch would protect the history of a run.

use super::append;
use super::columns::signed;
use super::connection::{Connection, Session};
use super::errors::{corrupt, explain};
use super::process;
use crate::column_codes::row_limit;
use crate::error::StoreError;
use crate::held::HeldClaims;
use crate::lease::{Lease, machine_clock};
use crate::store::{Append, DriverInfo};
use lockgate_engine::id::{DriverId, IdSource, RunId};
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, OnceCell};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

/// How long a driver counts as alive after its last heartbeat.
const LEASE_LENGTH: Duration = Duration::from_secs(15);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);
/// How long a heartbeat may take before it is sent again on another connection.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The columns of a [`DriverInfo`].
const INFO: &str = "d.driver, d.pid, d.host, (extract(epoch FROM d.since) * 1000)::int8, \
    (extract(epoch FROM d.expires_at) * 1000)::int8";
/// The identity of a driver's process if it may be on this machine, for [`process::has_ended`].
pub(super) const PROCESS: &str = "CASE WHEN d.address IS NOT DISTINCT FROM inet_client_addr() THEN d.process END";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    Epoch(u64),
    DrivenBy(DriverInfo),
    /// The process that drove it has ended: end its lease, then claim the run again.
    Left(DriverId),
    NoRun,
}

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

    /// Claims a run. The lock is a separate statement, so that the next one sees the current driver and its lease.
    pub(super) async fn claim(&self, session: &Session, run: &RunId) -> Result<Claimed, Error> {
        let lock = session.prepare("SELECT 1 FROM lockgate.runs WHERE run = $1 FOR NO KEY UPDATE").await?;
        let claim = session.prepare(&claim_statement()).await?;
        let (client, run, own) = (&session.client, run.as_str(), self.own.as_str());
        // All statements are pipelined, so no lock is held while this process does something else.
        let (lock_with, claim_with): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) = ([&run], [&run, &own]);
        let (begun, locked, claimed, ended) = futures::join!(
            client.batch_execute("BEGIN"),
            client.query(&lock, &lock_with),
            client.query(&claim, &claim_with),
            client.batch_execute("COMMIT"),
        );
        begun?;
        locked?;
        let claimed = claimed?;
        ended?;
        read_claim(&claimed)
    }

    /// Claims a run and appends a commit to it, both or neither. All statements are pipelined; a final check fails the
    /// transaction if the claim or the commit was rejected.
    pub(super) async fn claim_with(&self, session: &Session, append: &Append) -> Result<(Claimed, bool), Error> {
        let batch = [append];
        let lock = session.prepare("SELECT 1 FROM lockgate.runs WHERE run = $1 FOR NO KEY UPDATE").await?;
        let claim = session.prepare(&claim_statement()).await?;
        let statement = append::Statement::prepare_batch(session, &batch).await?;
        let check = session.prepare(CHECK_BOTH).await?;
        let (client, run, own) = (&session.client, append.run.as_str(), self.own.as_str());
        let (version, hash) = (signed(append.commit.version), &append.commit.hash.0[..]);
        let (lock_with, claim_with): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) = ([&run], [&run, &own]);
        let check_with: [&(dyn ToSql + Sync); 4] = [&run, &own, &version, &hash];
        let (started, locked, claimed, appended, checked, ended) = futures::join!(
            client.batch_execute("BEGIN"),
            client.query(&lock, &lock_with),
            client.query(&claim, &claim_with),
            statement.perform(session),
            client.query(&check, &check_with),
            client.batch_execute("COMMIT"),
        );
        started?;
        locked?;
        let claimed = claimed?;
        appended?;
        let both = match checked {
            Ok(_) => true,
            Err(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => false,
            Err(error) => return Err(error),
        };
        ended?;
        Ok((read_claim(&claimed)?, both))
    }

    /// Claims the first of these runs that want a driver and have no other live driver, up to `limit`. A run that another
    /// process is about to claim is skipped.
    pub(super) async fn claim_any(&self, session: &Session, runs: &[&str], limit: usize) -> Result<Vec<(RunId, u64)>, Error> {
        let rows = session.query(CLAIM_ANY, &[&runs, &self.own.as_str(), &DRIVE_TIMER, &row_limit(limit)]).await?;
        rows.iter().map(|row| Ok((RunId(row.try_get(0)?), row.try_get::<_, i64>(1)?.cast_unsigned()))).collect()
    }

    /// Ends the leases of drivers of these runs whose processes have ended on this machine. Returns whether there were any.
    pub(super) async fn end_left(&self, session: &Session, runs: &[&str]) -> Result<bool, Error> {
        let text = format!(
            "SELECT DISTINCT d.driver, {PROCESS} FROM lockgate.runs r JOIN lockgate.drivers d ON d.driver = r.driver \
             WHERE r.run = ANY($1::text[]) AND d.driver <> $2 AND d.expires_at > clock_timestamp()"
        );
        let mut any = false;
        for row in session.query(&text, &[&runs, &self.own.as_str()]).await? {
            if row.try_get::<_, Option<&str>>(1)?.is_some_and(process::has_ended) {
                end_lease(session, &DriverId(row.try_get(0)?)).await?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Releases a claim if it is still current; returns whether it was. It need not be durable before others see it: if it
    /// reappears after a server crash, it still belongs to this process, which may drive the run again.
    pub(super) async fn release(&self, session: &Session, run: &RunId, epoch: u64) -> Result<bool, Error> {
        let released = session.query(RELEASE, &[&run.as_str(), &self.own.as_str(), &signed(epoch)]).await?;
        Ok(!released.is_empty())
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

fn read_claim(claimed: &[Row]) -> Result<Claimed, Error> {
    let Some(row) = claimed.first() else { return Ok(Claimed::NoRun) };
    match row.try_get::<_, Option<i64>>(0)? {
        Some(epoch) => Ok(Claimed::Epoch(epoch.cast_unsigned())),
        None => {
            let info = info(row, 1)?;
            let left = row.try_get::<_, Option<&str>>(6)?.is_some_and(process::has_ended);
            Ok(if left { Claimed::Left(info.driver) } else { Claimed::DrivenBy(info) })
        }
    }
}

/// Fails with a division by zero if the run is not claimed or does not have the commit.
const CHECK_BOTH: &str = "SELECT 1 / count(*) FROM lockgate.runs r JOIN lockgate.commits c ON c.run_key = r.key \
    WHERE r.run = $1 AND r.driver = $2 AND c.version = $3 AND c.hash = $4";

/// Locks the first free runs that no other transaction has locked, and claims them. A run that was claimed after the
/// statement started has a different epoch when it is locked and is skipped, because the statement may not see its driver
/// yet. A run that has since ended or started to wait has lost its timer, which is locked for that reason.
const CLAIM_ANY: &str = "WITH free AS ( \
    SELECT r.key, w.number FROM unnest($1::text[]) WITH ORDINALITY AS w(run, number) JOIN lockgate.runs r ON r.run = w.run \
    JOIN lockgate.runs seen ON seen.key = r.key AND seen.epoch = r.epoch \
    JOIN lockgate.timers t ON t.run_key = r.key AND t.timer = $3 \
    WHERE NOT EXISTS (SELECT 1 FROM lockgate.drivers d \
      WHERE d.driver = r.driver AND d.driver <> $2 AND d.expires_at > clock_timestamp()) \
    ORDER BY w.number LIMIT $4 FOR NO KEY UPDATE OF r, t SKIP LOCKED \
  ), claimed AS ( \
    UPDATE lockgate.runs r SET driver = $2, epoch = epoch + 1 FROM free WHERE r.key = free.key RETURNING r.run, r.epoch, free.number \
  ) SELECT run, epoch FROM claimed ORDER BY number";

const RELEASE: &str = "UPDATE lockgate.runs SET driver = NULL WHERE run = $1 AND driver = $2 AND epoch = $3 \
    RETURNING set_config('synchronous_commit', 'off', true)";

fn claim_statement() -> String {
    format!(
        "WITH other AS ( \
           SELECT {INFO}, {PROCESS} FROM lockgate.runs r JOIN lockgate.drivers d ON d.driver = r.driver \
           WHERE r.run = $1 AND r.driver <> $2 AND d.expires_at > clock_timestamp() \
         ), claimed AS ( \
           UPDATE lockgate.runs SET driver = $2, epoch = epoch + 1 \
           WHERE run = $1 AND NOT EXISTS (SELECT 1 FROM other) RETURNING epoch \
         ) SELECT epoch, NULL::text, NULL::int8, NULL::text, NULL::int8, NULL::int8, NULL::text FROM claimed UNION ALL SELECT NULL, o.* FROM other o"
    )
}

fn info(row: &Row, first: usize) -> Result<DriverInfo, Error> {
    Ok(DriverInfo {
        driver: DriverId(row.try_get(first)?),
        pid: u32::try_from(row.try_get::<_, i64>(first + 1)?).unwrap_or_default(),
        host: row.try_get(first + 2)?,
        since: Timestamp::from_millis(row.try_get(first + 3)?),
        until: Some(Timestamp::from_millis(row.try_get(first + 4)?)),
    })
}
