//! A single append with nothing but its commit, which is most of what one run sends to its database.
//!
//! It does not lock the run, since the server would have to write that lock each time. A claim may come in between, but then
//! the claiming process finds this commit in its way: a claim counts only together with the commit that follows it.

use super::append::{Appended, is_fenced};
use super::columns::signed;
use super::connection::Session;
use crate::store::Append;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::IndexRows;
use tokio_postgres::{Error, Statement};

/// The last commit of a session, with which the next one to the same run avoids lookups by id.
#[derive(Debug)]
pub(super) struct LastCommit {
    run: RunId,
    key: i64,
    version: u64,
}

/// Whether an append consists of nothing but its commit.
pub(super) fn is_one(append: &Append) -> bool {
    append.expected > 0
        && append.claim.is_none()
        && append.values.is_empty()
        && append.materialized.is_none()
        && append.index == IndexRows::default()
}

/// The statements for one append.
pub(super) struct SingleAppend<'a> {
    append: &'a Append,
    /// For an append that follows the session's last commit, with the key of the run.
    next: Option<(i64, Statement)>,
    any: Statement,
}

impl<'a> SingleAppend<'a> {
    pub(super) async fn prepare(session: &Session, append: &'a Append) -> Result<Self, Error> {
        let any = session.prepare(ANY).await?;
        let follows =
            session.last().as_ref().filter(|last| last.run == append.run && last.version == append.expected).map(|last| last.key);
        let next = match follows {
            Some(key) => Some((key, session.prepare(NEXT).await?)),
            None => None,
        };
        Ok(Self { append, next, any })
    }

    /// Executes the append and returns its outcome.
    pub(super) async fn perform(&self, session: &Session) -> Result<Appended, Error> {
        let Append { run, epoch, commit, .. } = self.append;
        let (version, epoch) = (signed(commit.version), epoch.map(signed));
        let (hash, payload) = (&commit.hash.0[..], &commit.payload[..]);
        // If it is rejected, the other statement finds out why.
        if let Some((key, next)) = &self.next
            && session.client.execute(next, &[key, &version, &epoch, &hash, &payload, &run.as_str()]).await? == 1
        {
            session.last().iter_mut().for_each(|last| last.version = commit.version);
            return Ok(Appended::taken(self.append));
        }
        let Some(row) = session.client.query_opt(&self.any, &[&run.as_str(), &version, &epoch, &hash, &payload]).await? else {
            return Ok(Appended::NoRun);
        };
        let present = row.try_get::<_, i64>(1)?;
        Ok(match row.try_get::<_, bool>(2)? {
            true => {
                *session.last() = Some(LastCommit { run: run.clone(), key: row.try_get(0)?, version: commit.version });
                Appended::taken(self.append)
            }
            false if is_fenced(self.append, present) => Appended::Fenced,
            false => Appended::Conflict,
        })
    }
}

/// The run and its last commit are compared nevertheless, because an older copy of all tables may have been restored during
/// the session.
const NEXT: &str = "INSERT INTO lockgate.commits(run_key, version, hash, payload)
SELECT key, $2::int8, $4::bytea, $5::bytea FROM lockgate.runs r
WHERE key = $1::int8 AND run = $6::text AND ($3::int8 IS NULL OR $3::int8 = epoch)
  AND (SELECT 1 FROM lockgate.commits b WHERE b.run_key = r.key AND b.version = $2::int8 - 1) IS NOT NULL
ON CONFLICT DO NOTHING";

/// Returns the run's key and epoch, and whether the commit was inserted; no row if there is no such run.
const ANY: &str = "WITH place AS (SELECT key, epoch AS present FROM lockgate.runs WHERE run = $1::text),
taken AS (
  INSERT INTO lockgate.commits(run_key, version, hash, payload)
  SELECT p.key, $2::int8, $4::bytea, $5::bytea FROM place p
  WHERE ($3::int8 IS NULL OR $3::int8 = p.present)
    AND (SELECT 1 FROM lockgate.commits b WHERE b.run_key = p.key AND b.version = $2::int8 - 1) IS NOT NULL
  ON CONFLICT DO NOTHING RETURNING run_key
)
SELECT key, present, (SELECT run_key FROM taken) IS NOT NULL FROM place";
