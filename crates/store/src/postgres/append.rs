//! Appends: one statement applies a whole batch, each append completely or not at all.
//!
//! The statement is its own transaction, so no lock outlives a round trip. It locks the existing runs in the order of their
//! ids, which keeps claims out (a [single append](super::single_append) does not need that), then inserts the commits;
//! everything else is done only for the commits that were inserted. All parts see the database as of the start of the
//! statement. That is sufficient: a statement that saw its expected commit also saw everything written with it, and only the
//! next commit, which just one statement can insert, writes more.

use super::columns::{Columns, Parts};
use super::connection::Session;
use super::single_append::{self, SingleAppend};
use crate::store::Append;
use std::collections::HashSet;
use std::fmt::Write as _;
use tokio_postgres::{Error, Row};

/// The outcome of an append. A rejected one has changed nothing, so it can share a transaction with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Appended {
    /// With the epoch of the claim, if it made one.
    Taken(Option<u64>),
    Conflict,
    Fenced,
    NoRun,
}

impl Appended {
    /// An append that succeeded, including its claim on a new run if it has one.
    pub(super) fn taken(append: &Append) -> Self {
        Self::Taken(append.claim.as_ref().map(|_| 1))
    }
}

/// The statement that appends a batch.
pub(super) enum Statement<'a> {
    /// One append with nothing but its commit.
    SingleAppend(SingleAppend<'a>),
    Batch {
        batch: &'a [&'a Append],
        columns: Box<Columns<'a>>,
        prepared: tokio_postgres::Statement,
    },
}

impl<'a> Statement<'a> {
    /// Prepares the statement for a batch: at most one append per run, ordered by run id.
    pub(super) async fn prepare(session: &Session, batch: &'a [&'a Append]) -> Result<Self, Error> {
        if let [append] = batch
            && single_append::is_one(append)
        {
            return Ok(Self::SingleAppend(SingleAppend::prepare(session, append).await?));
        }
        Self::prepare_batch(session, batch).await
    }

    /// Prepares the general form, which works for every append.
    pub(super) async fn prepare_batch(session: &Session, batch: &'a [&'a Append]) -> Result<Self, Error> {
        let columns = Box::new(Columns::of(batch));
        let parts = columns.parts();
        let prepared = session.prepare_append(parts, || statement(parts)).await?;
        Ok(Self::Batch { batch, columns, prepared })
    }

    /// Executes the statement and returns the outcome of each append.
    pub(super) async fn perform(&self, session: &Session) -> Result<Vec<Appended>, Error> {
        match self {
            Self::SingleAppend(step) => Ok(vec![step.perform(session).await?]),
            Self::Batch { batch, columns, prepared } => {
                outcomes(batch, &session.client.query(prepared, &columns.parameters()).await?)
            }
        }
    }
}

pub(super) fn is_fenced(append: &Append, present: i64) -> bool {
    append.epoch.is_some_and(|epoch| i64::try_from(epoch) != Ok(present))
}

/// Each result row is one of: an existing run with its key and epoch (0), a created run (1), a run with a new commit (2).
fn outcomes(batch: &[&Append], rows: &[Row]) -> Result<Vec<Appended>, Error> {
    let mut known: Vec<Option<(i64, i64)>> = vec![None; batch.len()];
    let mut made = vec![false; batch.len()];
    let mut taken = HashSet::new();
    for row in rows {
        let position = || row.try_get::<_, i64>(1).map(|number| usize::try_from(number - 1).unwrap_or(usize::MAX));
        match row.try_get::<_, i64>(0)? {
            0 => known[position()?] = Some((row.try_get(2)?, row.try_get(3)?)),
            1 => made[position()?] = true,
            _ => drop(taken.insert(row.try_get::<_, i64>(2)?)),
        }
    }
    let of_each = batch.iter().zip(known).zip(made);
    Ok(of_each
        .map(|((append, known), made)| match (known, append.expected) {
            (_, 0) if made => Appended::taken(append),
            (_, 0) => Appended::Conflict,
            (None, 1..) => Appended::NoRun,
            (Some((key, _)), 1..) if taken.contains(&key) => Appended::taken(append),
            (Some((_, present)), 1..) if is_fenced(append, present) => Appended::Fenced,
            (Some(_), 1..) => Appended::Conflict,
        })
        .collect())
}

/// The statement for a batch with these parts. Parts that are not needed are left out, because they would slow down every
/// append.
fn statement(parts: Parts) -> String {
    let mut text = String::from(if parts.alone { HEAD_ALONE } else { HEAD });
    let mut next = FIRST_OF_PARTS;
    let mut add = |template: &str, columns: usize| {
        // The columns of a part are `$a`, `$b` and so on in its template.
        let mut part = template.to_owned();
        for (letter, number) in ('a'..).zip(next..next + columns) {
            part = part.replace(&format!("${letter}::"), &format!("${number}::"));
        }
        next += columns;
        write!(text, ",\n{part}").expect("text takes everything");
    };
    if parts.created {
        add(CREATED, 10);
        add(TAKEN_OR_CREATED, 0);
    } else {
        add(TAKEN, 0);
    }
    if parts.changed
        || parts.values
        || parts.referenced_values
        || parts.holds
        || parts.timers_removed
        || parts.timers
        || parts.outbox
        || parts.states
    {
        add(if parts.created { ACCEPTED_OR_CREATED } else { ACCEPTED }, 0);
    }
    for (wanted, template, columns) in [
        (parts.changed, CHANGED, 9),
        (parts.values, VALUES, 3),
        (parts.referenced_values, REFERS_TO, 2),
        (parts.holds, HOLDS, 8),
        (parts.timers_removed, TIMERS_GONE, 2),
        (parts.timers, TIMERS, 5),
        (parts.outbox, OUTBOX, 5),
        (parts.states, STATES, 2),
    ] {
        if wanted {
            add(template, columns);
        }
    }
    text.push_str("\nSELECT 0::int8, number, key, present FROM place WHERE key IS NOT NULL");
    if parts.created {
        text.push_str("\nUNION ALL SELECT 1, number, key, 0 FROM made");
    }
    text.push_str("\nUNION ALL SELECT 2, 0, run_key, 0 FROM taken");
    text
}

/// The number of the first parameter after those of [`HEAD`].
const FIRST_OF_PARTS: usize = 6;

/// The planner cannot turn this locking subquery into a sequential scan.
const HEAD: &str = "WITH place AS (
  SELECT i.*, r.key, r.present
  FROM unnest($1::text[], $2::int8[], $3::int8[], $4::bytea[], $5::bytea[])
    WITH ORDINALITY AS i(run, version, epoch, hash, payload, number)
  LEFT JOIN LATERAL (SELECT key, epoch AS present FROM lockgate.runs WHERE run = i.run FOR NO KEY UPDATE) r ON true
)";

/// The form for a batch of one; an append with nothing but its commit is a [single append](super::single_append).
const HEAD_ALONE: &str = "WITH place AS (
  SELECT i.*, r.key, r.present
  FROM (SELECT $1::text AS run, $2::int8 AS version, $3::int8 AS epoch, $4::bytea AS hash, $5::bytea AS payload, 1::int8 AS number) i
  LEFT JOIN LATERAL (SELECT key, epoch AS present FROM lockgate.runs WHERE run = i.run FOR NO KEY UPDATE) r ON true
)";

const CREATED: &str = "created AS (
  INSERT INTO lockgate.runs(run, kind, workflow, feature, status, phase, created_at, changed_at, parent, driver, epoch)
  SELECT p.run, n.kind, n.workflow, n.feature, n.status, n.phase, n.created_at, n.changed_at, n.parent, n.driver,
    CASE WHEN n.driver IS NULL THEN 0 ELSE 1 END
  FROM unnest($a::int8[], $b::text[], $c::text[], $d::text[], $e::text[], $f::text[], $g::int8[], $h::int8[], $i::text[], $j::text[])
    AS n(number, kind, workflow, feature, status, phase, created_at, changed_at, parent, driver)
  JOIN place p ON p.number = n.number WHERE p.key IS NULL ORDER BY n.number
  ON CONFLICT (run) DO NOTHING RETURNING key, run
), made AS (SELECT p.number, c.key FROM created c JOIN place p ON p.run = c.run)";

const TAKEN: &str = "taken AS (
  INSERT INTO lockgate.commits(run_key, version, hash, payload)
  SELECT key, version, hash, payload FROM place p
  WHERE key IS NOT NULL AND (epoch IS NULL OR epoch = present)
    AND (SELECT 1 FROM lockgate.commits b WHERE b.run_key = p.key AND b.version = p.version - 1) IS NOT NULL
  ON CONFLICT DO NOTHING RETURNING run_key
)";

const TAKEN_OR_CREATED: &str = "taken AS (
  INSERT INTO lockgate.commits(run_key, version, hash, payload)
  SELECT key, version, hash, payload FROM place p
  WHERE key IS NOT NULL AND (epoch IS NULL OR epoch = present)
    AND (SELECT 1 FROM lockgate.commits b WHERE b.run_key = p.key AND b.version = p.version - 1) IS NOT NULL
  UNION ALL SELECT m.key, p.version, p.hash, p.payload FROM made m JOIN place p ON p.number = m.number
  ON CONFLICT DO NOTHING RETURNING run_key
)";

const ACCEPTED: &str = "accepted AS (SELECT p.number, p.key FROM place p JOIN taken t ON t.run_key = p.key)";

const ACCEPTED_OR_CREATED: &str =
    "accepted AS (SELECT p.number, p.key FROM place p JOIN taken t ON t.run_key = p.key UNION ALL SELECT number, key FROM made)";

const CHANGED: &str = "changed AS (
  UPDATE lockgate.runs r SET kind = n.kind, workflow = n.workflow, feature = n.feature, status = n.status, phase = n.phase,
    created_at = n.created_at, changed_at = n.changed_at, parent = n.parent
  FROM unnest($a::int8[], $b::text[], $c::text[], $d::text[], $e::text[], $f::text[], $g::int8[], $h::int8[], $i::text[])
    AS n(number, kind, workflow, feature, status, phase, created_at, changed_at, parent)
  JOIN accepted a ON a.number = n.number WHERE r.key = a.key
)";

const VALUES: &str = "valued AS (
  INSERT INTO lockgate.stored_values(digest, bytes)
  SELECT v.digest, v.bytes FROM unnest($a::int8[], $b::bytea[], $c::bytea[]) AS v(number, digest, bytes)
  JOIN accepted a ON a.number = v.number ORDER BY v.digest
  ON CONFLICT DO NOTHING
)";

const REFERS_TO: &str = "referred AS (
  INSERT INTO lockgate.value_refs(run_key, digest)
  SELECT a.key, v.digest FROM unnest($a::int8[], $b::bytea[]) AS v(number, digest) JOIN accepted a ON a.number = v.number
  ON CONFLICT DO NOTHING
)";

const HOLDS: &str = "held AS (
  SELECT a.key, h.*, (SELECT x.number FROM lockgate.holds x WHERE x.run_key = a.key AND x.hold = h.hold) AS present
  FROM unnest($a::int8[], $b::int8[], $c::text[], $d::text[], $e::int8[], $f::int8[], $g::int8[], $h::text[])
    AS h(number, position, hold, kind, state, revision, since, shown)
  JOIN accepted a ON a.number = h.number
), held_again AS (
  UPDATE lockgate.holds x SET kind = h.kind, state = h.state, revision = h.revision, since = h.since, shown = h.shown
  FROM held h WHERE x.run_key = h.key AND x.number = h.present
), held_first AS (
  INSERT INTO lockgate.holds(run_key, number, hold, kind, state, revision, since, shown)
  SELECT h.key,
    (SELECT coalesce(max(x.number) + 1, 0) FROM lockgate.holds x WHERE x.run_key = h.key)
      + row_number() OVER (PARTITION BY h.key ORDER BY h.position) - 1,
    h.hold, h.kind, h.state, h.revision, h.since, h.shown
  FROM held h WHERE h.present IS NULL
)";

const TIMERS_GONE: &str = "gone AS (
  DELETE FROM lockgate.timers t USING unnest($a::int8[], $b::text[]) AS g(number, timer) JOIN accepted a ON a.number = g.number
  WHERE t.run_key = a.key AND t.timer = g.timer
)";

const TIMERS: &str = "timed AS (
  INSERT INTO lockgate.timers(run_key, timer, due, kind, target)
  SELECT a.key, t.timer, t.due, t.kind, t.target
  FROM unnest($a::int8[], $b::text[], $c::int8[], $d::text[], $e::text[]) AS t(number, timer, due, kind, target)
  JOIN accepted a ON a.number = t.number
  ON CONFLICT (run_key, timer) DO UPDATE SET due = excluded.due, kind = excluded.kind, target = excluded.target
)";

const OUTBOX: &str = "queued AS (
  INSERT INTO lockgate.outbox(run_key, seq, channel, at, payload, attempts, due)
  SELECT a.key, o.seq, o.channel, o.at, o.payload, 0, o.at
  FROM unnest($a::int8[], $b::int8[], $c::text[], $d::int8[], $e::text[]) AS o(number, seq, channel, at, payload)
  JOIN accepted a ON a.number = o.number
)";

const STATES: &str = "materialized AS (
  INSERT INTO lockgate.materialized_states(run_key, version, state)
  SELECT a.key, p.version, f.state FROM unnest($a::int8[], $b::bytea[]) AS f(number, state)
  JOIN accepted a ON a.number = f.number JOIN place p ON p.number = f.number
  ON CONFLICT (run_key) DO UPDATE SET version = excluded.version, state = excluded.state
)";
