//! The rows of a batch of appends as column arrays, as the statement takes them.

use crate::column_codes;
use crate::store::Append;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::index::{HoldRow, OutboxRow, RunRow, TimerRow};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::types::ToSql;

/// Which kinds of rows a batch contains besides commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Parts {
    /// There is only one append, so its own columns are scalars.
    pub(super) alone: bool,
    pub(super) created: bool,
    pub(super) changed: bool,
    pub(super) values: bool,
    pub(super) referenced_values: bool,
    pub(super) holds: bool,
    pub(super) timers_removed: bool,
    pub(super) timers: bool,
    pub(super) outbox: bool,
    pub(super) states: bool,
}

/// Each row has the number of its append, counted from 1.
#[derive(Default)]
pub(super) struct Columns<'a> {
    run: Vec<&'a str>,
    version: Vec<i64>,
    epoch: Vec<Option<i64>>,
    hash: Vec<&'a [u8]>,
    payload: Vec<&'a [u8]>,
    created: Runs<'a>,
    created_driver: Vec<Option<&'a str>>,
    changed: Runs<'a>,
    values: (Vec<i64>, Vec<&'a [u8]>, Vec<&'a [u8]>),
    referenced_values: (Vec<i64>, Vec<&'a [u8]>),
    holds: Holds<'a>,
    timers_removed: (Vec<i64>, Vec<&'a str>),
    timers: Timers<'a>,
    outbox: Outbox<'a>,
    states: (Vec<i64>, Vec<&'a [u8]>),
}

#[derive(Default)]
struct Runs<'a> {
    number: Vec<i64>,
    kind: Vec<&'a str>,
    workflow: Vec<&'a str>,
    feature: Vec<Option<&'a str>>,
    status: Vec<&'a str>,
    phase: Vec<Option<&'a str>>,
    created_at: Vec<i64>,
    changed_at: Vec<i64>,
    parent: Vec<Option<&'a str>>,
}

#[derive(Default)]
struct Holds<'a> {
    number: Vec<i64>,
    position: Vec<i64>,
    hold: Vec<&'a str>,
    kind: Vec<&'a str>,
    state: Vec<i64>,
    revision: Vec<i64>,
    since: Vec<i64>,
    shown: Vec<&'a str>,
}

#[derive(Default)]
struct Timers<'a> {
    number: Vec<i64>,
    timer: Vec<&'a str>,
    due: Vec<i64>,
    kind: Vec<&'a str>,
    target: Vec<&'a str>,
}

#[derive(Default)]
struct Outbox<'a> {
    number: Vec<i64>,
    seq: Vec<i64>,
    channel: Vec<&'a str>,
    at: Vec<i64>,
    payload: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &[&'a Append]) -> Self {
        let mut columns = Self::default();
        for (number, append) in (1..).zip(batch) {
            columns.add(number, append);
        }
        columns
    }

    fn add(&mut self, number: i64, append: &'a Append) {
        self.run.push(append.run.as_str());
        self.version.push(signed(append.commit.version));
        self.epoch.push(append.epoch.map(signed));
        self.hash.push(&append.commit.hash.0);
        self.payload.push(&append.commit.payload);
        match (&append.index.run, append.expected) {
            (Some(row), 0) => {
                self.created.add(number, row);
                self.created_driver.push(append.claim.as_ref().map(DriverId::as_str));
            }
            (Some(row), 1..) => self.changed.add(number, row),
            (None, _) => {}
        }
        for (digest, bytes) in &append.values {
            self.values.0.push(number);
            self.values.1.push(&digest.0);
            self.values.2.push(bytes);
        }
        for Digest(digest) in &append.index.referenced_values {
            self.referenced_values.0.push(number);
            self.referenced_values.1.push(digest);
        }
        self.holds.add(number, &append.index.holds);
        // One statement cannot change a row twice, so a timer that is both removed and set is only set.
        let timers: BTreeMap<&str, &TimerRow> = append.index.timers.iter().map(|row| (row.timer.as_str(), row)).collect();
        let gone: BTreeSet<&str> = append.index.timers_removed.iter().map(|timer| timer.as_str()).collect();
        for timer in gone.into_iter().filter(|timer| !timers.contains_key(timer)) {
            self.timers_removed.0.push(number);
            self.timers_removed.1.push(timer);
        }
        for (timer, row) in timers {
            self.timers.number.push(number);
            self.timers.timer.push(timer);
            self.timers.due.push(row.due.as_millis());
            self.timers.kind.push(row.kind.as_str());
            self.timers.target.push(&row.target);
        }
        for OutboxRow { notice, channel, at, payload } in &append.index.outbox {
            self.outbox.number.push(number);
            self.outbox.seq.push(signed(notice.seq));
            self.outbox.channel.push(channel.as_str());
            self.outbox.at.push(at.as_millis());
            self.outbox.payload.push(payload);
        }
        if let Some(state) = &append.materialized {
            self.states.0.push(number);
            self.states.1.push(state);
        }
    }

    pub(super) fn parts(&self) -> Parts {
        Parts {
            alone: self.run.len() == 1,
            created: !self.created.number.is_empty(),
            changed: !self.changed.number.is_empty(),
            values: !self.values.0.is_empty(),
            referenced_values: !self.referenced_values.0.is_empty(),
            holds: !self.holds.number.is_empty(),
            timers_removed: !self.timers_removed.0.is_empty(),
            timers: !self.timers.number.is_empty(),
            outbox: !self.outbox.number.is_empty(),
            states: !self.states.0.is_empty(),
        }
    }

    /// The parameters of the statement for these parts, in its order.
    pub(super) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        let parts = self.parts();
        let mut all: Vec<&(dyn ToSql + Sync)> = if parts.alone {
            vec![&self.run[0], &self.version[0], &self.epoch[0], &self.hash[0], &self.payload[0]]
        } else {
            vec![&self.run, &self.version, &self.epoch, &self.hash, &self.payload]
        };
        if parts.created {
            all.extend(self.created.columns());
            all.push(&self.created_driver);
        }
        if parts.changed {
            all.extend(self.changed.columns());
        }
        if parts.values {
            let (number, digest, bytes) = &self.values;
            all.extend([number as &(dyn ToSql + Sync), digest, bytes]);
        }
        if parts.referenced_values {
            all.extend([&self.referenced_values.0 as &(dyn ToSql + Sync), &self.referenced_values.1]);
        }
        if parts.holds {
            let Holds { number, position, hold, kind, state, revision, since, shown } = &self.holds;
            all.extend([number as &(dyn ToSql + Sync), position, hold, kind, state, revision, since, shown]);
        }
        if parts.timers_removed {
            all.extend([&self.timers_removed.0 as &(dyn ToSql + Sync), &self.timers_removed.1]);
        }
        if parts.timers {
            let Timers { number, timer, due, kind, target } = &self.timers;
            all.extend([number as &(dyn ToSql + Sync), timer, due, kind, target]);
        }
        if parts.outbox {
            let Outbox { number, seq, channel, at, payload } = &self.outbox;
            all.extend([number as &(dyn ToSql + Sync), seq, channel, at, payload]);
        }
        if parts.states {
            all.extend([&self.states.0 as &(dyn ToSql + Sync), &self.states.1]);
        }
        all
    }
}

impl<'a> Runs<'a> {
    fn add(&mut self, number: i64, row: &'a RunRow) {
        self.number.push(number);
        self.kind.push(row.kind.as_str());
        self.workflow.push(&row.workflow);
        self.feature.push(row.feature.as_deref());
        self.status.push(row.status.as_str());
        self.phase.push(row.phase.as_deref());
        self.created_at.push(row.created_at.as_millis());
        self.changed_at.push(row.changed_at.as_millis());
        self.parent.push(row.parent.as_ref().map(RunId::as_str));
    }

    fn columns(&self) -> [&(dyn ToSql + Sync); 9] {
        let Self { number, kind, workflow, feature, status, phase, created_at, changed_at, parent } = self;
        [number, kind, workflow, feature, status, phase, created_at, changed_at, parent]
    }
}

impl<'a> Holds<'a> {
    /// A hold that appears twice keeps the position of the first and the content of the last.
    fn add(&mut self, number: i64, rows: &'a [HoldRow]) {
        let last: BTreeMap<&str, &HoldRow> = rows.iter().map(|row| (row.hold.as_str(), row)).collect();
        let mut seen = BTreeSet::new();
        for (position, row) in (0..).zip(rows) {
            if !seen.insert(row.hold.as_str()) {
                continue;
            }
            let HoldRow { hold, run: _, kind, state, revision, since, shown } = last[row.hold.as_str()];
            self.number.push(number);
            self.position.push(position);
            self.hold.push(hold.as_str());
            self.kind.push(kind.as_str());
            self.state.push(column_codes::of_hold_state(*state));
            self.revision.push(i64::from(*revision));
            self.since.push(since.as_millis());
            self.shown.push(shown);
        }
    }
}

/// A count as PostgreSQL stores it; no version or epoch comes near the limit.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
