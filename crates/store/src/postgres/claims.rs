//! Claims: which driver drives a run. A claim raises the epoch of the run, which every append of its driver must carry.

use super::append;
use super::columns::signed;
use super::connection::Session;
use super::drivers::{Drivers, INFO, PROCESS, end_lease, info};
use super::process;
use crate::column_codes::row_limit;
use crate::store::{Append, DriverInfo};
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::history::DRIVE_TIMER;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    Epoch(u64),
    DrivenBy(DriverInfo),
    /// The process that drove it has ended: end its lease, then claim the run again.
    Left(DriverId),
    NoRun,
}

impl Drivers {
    /// Claims a run. The lock is a separate statement, so that the next one sees the current driver and its lease.
    pub(super) async fn claim(&self, session: &Session, run: &RunId) -> Result<Claimed, Error> {
        let lock = session.prepare("SELECT 1 FROM lockgate.runs WHERE run = $1 FOR NO KEY UPDATE").await?;
        let claim = session.prepare(&claim_statement()).await?;
        let (client, run, own) = (&session.client, run.as_str(), self.own().as_str());
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
        let (client, run, own) = (&session.client, append.run.as_str(), self.own().as_str());
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
        let rows = session.query(CLAIM_ANY, &[&runs, &self.own().as_str(), &DRIVE_TIMER, &row_limit(limit)]).await?;
        rows.iter().map(|row| Ok((RunId(row.try_get(0)?), row.try_get::<_, i64>(1)?.cast_unsigned()))).collect()
    }

    /// Ends the leases of drivers of these runs whose processes have ended on this machine. Returns whether there were any.
    pub(super) async fn end_left(&self, session: &Session, runs: &[&str]) -> Result<bool, Error> {
        let text = format!(
            "SELECT DISTINCT d.driver, {PROCESS} FROM lockgate.runs r JOIN lockgate.drivers d ON d.driver = r.driver \
             WHERE r.run = ANY($1::text[]) AND d.driver <> $2 AND d.expires_at > clock_timestamp()"
        );
        let mut any = false;
        for row in session.query(&text, &[&runs, &self.own().as_str()]).await? {
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
        let released = session.query(RELEASE, &[&run.as_str(), &self.own().as_str(), &signed(epoch)]).await?;
        Ok(!released.is_empty())
    }
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
