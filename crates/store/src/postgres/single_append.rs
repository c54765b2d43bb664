//! A lone append that brings nothing beside its commit, as the steps of a run are, most of what a single run asks of its database.
//!
//! It does not lock the run, which the server would have to write down each time: a claim may come between, and whoever claimed finds the
//! commit in its way, since a claim counts only with the commit that follows it.

use super::append::{Appended, is_fenced};
use super::columns::signed;
use super::connection::Session;
use crate::store::Append;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::IndexRows;
use tokio_postgres::{Error, Statement};

/// The last commit of a session: the next one to the same run finds its place by numbers.
#[derive(Debug)]
pub(super) struct LastCommit {
    run: RunId,
    key: i64,
    version: u64,
}

/// Whether an append brings nothing beside its commit.
pub(super) fn is_one(append: &Append) -> bool {
    append.expected > 0
        && append.claim.is_none()
        && append.values.is_empty()
        && append.materialized.is_none()
        && append.index == IndexRows::default()
}

/// The statements for one step.
pub(super) struct SingleAppend<'a> {
    append: &'a Append,
    /// For one that follows the session's last commit, with the number of the run.
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

    /// Appends it, and gives what became of it.
    pub(super) async fn perform(&self, session: &Session) -> Result<Appended, Error> {
        let Append { run, epoch, commit, .. } = self.append;
        let (version, epoch) = (signed(commit.version), epoch.map(signed));
        let (hash, payload) = (&commit.hash.0[..], &commit.payload[..]);
        // Where it is not taken, the other statement tells why.
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

/// That the run and its last commit are still what they were is looked at all the same: somebody may have put an older copy of all tables in their place
/// while the session lived on.
const NEXT: &str = "INSERT INTO lockgate.commits(run_key, version, hash, payload)
SELECT key, $2::int8, $4::bytea, $5::bytea FROM lockgate.runs r
WHERE key = $1::int8 AND run = $6::text AND ($3::int8 IS NULL OR $3::int8 = epoch)
  AND (SELECT 1 FROM lockgate.commits b WHERE b.run_key = r.key AND b.version = $2::int8 - 1) IS NOT NULL
ON CONFLICT DO NOTHING";

/// Gives the run's number and epoch, and whether it has the new commit; nothing where there is no run.
const ANY: &str = "WITH place AS (SELECT key, epoch AS present FROM lockgate.runs WHERE run = $1::text),
taken AS (
  INSERT INTO lockgate.commits(run_key, version, hash, payload)
  SELECT p.key, $2::int8, $4::bytea, $5::bytea FROM place p
  WHERE ($3::int8 IS NULL OR $3::int8 = p.present)
    AND (SELECT 1 FROM lockgate.commits b WHERE b.run_key = p.key AND b.version = $2::int8 - 1) IS NOT NULL
  ON CONFLICT DO NOTHING RETURNING run_key
)
SELECT key, present, (SELECT run_key FROM taken) IS NOT NULL FROM place";
