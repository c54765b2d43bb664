//! The data of the in-memory store and its queries.

use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::held_claims::{HeldClaims, Reservation};
use crate::store::{
    Append, Cursor, Delivery, DriverInfo, HoldFilter, ListedHold, ListedRun, Loaded, MaterializedState, Orphan, OutboxEntry,
    OutboxFilter, Page, RemovedRows, RunRemoval, StoredCommit, StoredRun, StoredValue, Unreferenced, refuse_misuse,
};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{DriverId, RunId, TimerId};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::run::index::{HoldRow, IndexRows, OutboxRow, RunRow, TimerRow};
use lockgate_engine::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    runs: Vec<Run>,
    /// Where in the list each run is.
    places: BTreeMap<RunId, usize>,
    pub(super) values: BTreeMap<Digest, Vec<u8>>,
    pub(super) live: BTreeMap<DriverId, DriverInfo>,
    pub(super) drivers_made: u32,
    runs_made: usize,
}

#[derive(Clone, Debug)]
struct Run {
    number: usize,
    row: RunRow,
    driver: Option<DriverId>,
    epoch: u64,
    commits: Vec<SealedCommit>,
    materialized: Option<MaterializedState>,
    holds: Vec<HoldRow>,
    timers: BTreeMap<TimerId, TimerRow>,
    referenced_values: BTreeSet<Digest>,
    outbox: Vec<Queued>,
}

#[derive(Clone, Debug)]
struct Queued {
    row: OutboxRow,
    attempts: u32,
    due: Option<Timestamp>,
    error: Option<String>,
    driver: Option<DriverId>,
}

impl Queued {
    fn is(&self, row: &OutboxRow) -> bool {
        self.row.notice == row.notice && self.row.channel == row.channel
    }
}

impl Run {
    /// Runs are numbered from 1, as in a database.
    fn key(&self) -> i64 {
        i64::try_from(self.number).expect("fewer runs than that fit into memory")
    }

    fn key_within(&self, number: usize) -> i64 {
        self.key() << 32 | i64::try_from(number).expect("fewer rows than that fit into memory")
    }
}

impl Data {
    fn run(&self, run: &RunId) -> Option<(usize, &Run)> {
        self.places.get(run).map(|place| (*place, &self.runs[*place]))
    }

    pub(super) fn append(&mut self, append: Append, own: &DriverId, held: &Arc<HeldClaims>) -> Result<Option<u64>, AppendError> {
        refuse_misuse(&append, own)?;
        let mut reservation = None;
        let Append { run, expected, epoch, claim, commit, values, index, materialized } = append;
        let place = match (self.places.get(&run), expected) {
            (Some(place), 1..) => {
                let known = &self.runs[*place];
                if epoch.is_some_and(|epoch| epoch != known.epoch) {
                    return Err(AppendError::Fenced);
                }
                if claim.is_some() {
                    reservation = Some(self.reserve(&run, own, held).map_err(AppendError::DrivenBy)?);
                }
                if known.commits.len() as u64 != expected {
                    return Err(AppendError::Conflict);
                }
                *place
            }
            (Some(_), 0) => return Err(AppendError::Conflict),
            (None, 1..) => return Err(StoreError::NoRun(run).into()),
            (None, 0) => {
                let row = index.run.clone().expect("an append that creates a run has its row");
                reservation = claim.as_ref().and_then(|_| held.reserve(&run));
                self.places.insert(run, self.runs.len());
                self.runs_made += 1;
                self.runs.push(Run {
                    number: self.runs_made,
                    row,
                    driver: None,
                    epoch: 0,
                    commits: Vec::new(),
                    materialized: None,
                    holds: Vec::new(),
                    timers: BTreeMap::new(),
                    referenced_values: BTreeSet::new(),
                    outbox: Vec::new(),
                });
                self.runs.len() - 1
            }
        };
        for (digest, bytes) in values {
            self.values.entry(digest).or_insert(bytes);
        }
        let known = &mut self.runs[place];
        if let Some(state) = materialized {
            known.materialized = Some(MaterializedState { version: commit.version, state });
        }
        known.commits.push(commit);
        known.take(index);
        Ok(claim.zip(reservation).map(|(driver, reservation)| known.claim(driver, reservation)))
    }

    /// Reserves a run to be claimed; fails with its live driver if there is one.
    fn reserve(&self, run: &RunId, own: &DriverId, held: &Arc<HeldClaims>) -> Result<Reservation, DriverInfo> {
        match self.driver_of(run).filter(|info| info.driver != *own) {
            Some(other) => Err(other),
            None => held.reserve(run).ok_or_else(|| self.live.get(own).cloned().expect("a process that claims is alive")),
        }
    }

    pub(super) fn claim(&mut self, run: &RunId, own: &DriverId, held: &Arc<HeldClaims>) -> Result<u64, ClaimError> {
        let place = *self.places.get(run).ok_or_else(|| StoreError::NoRun(run.clone()))?;
        let reservation = self.reserve(run, own, held).map_err(ClaimError::DrivenBy)?;
        Ok(self.runs[place].claim(own.clone(), reservation))
    }

    /// Claims the first of these runs that want a driver and have none, up to `limit`.
    pub(super) fn claim_any(
        &mut self,
        runs: &[RunId],
        limit: usize,
        own: &DriverId,
        held: &Arc<HeldClaims>,
    ) -> Vec<(RunId, u64)> {
        let mut claimed = Vec::new();
        for run in runs {
            if claimed.len() == limit {
                break;
            }
            if self.run(run).is_some_and(|(_, known)| known.wants_driver())
                && let Ok(epoch) = self.claim(run, own, held)
            {
                claimed.push((run.clone(), epoch));
            }
        }
        claimed
    }

    pub(super) fn release(&mut self, run: &RunId, own: &DriverId, epoch: u64) -> bool {
        let known = self.places.get(run).map(|place| &mut self.runs[*place]);
        let Some(known) = known.filter(|known| known.driver.as_ref() == Some(own) && known.epoch == epoch) else { return false };
        known.driver = None;
        true
    }

    pub(super) fn undriven(&self, own: &DriverId, held: &HeldClaims, limit: usize) -> Vec<RunId> {
        let is_free = |known: &&Run| {
            known.driver.as_ref().is_none_or(|driver| driver == own || !self.live.contains_key(driver))
                && !held.has(&known.row.run)
        };
        let wanted = self.runs.iter().filter(|known| known.wants_driver());
        wanted.filter(is_free).map(|known| known.row.run.clone()).take(limit).collect()
    }

    pub(super) fn driver_of(&self, run: &RunId) -> Option<DriverInfo> {
        let (_, known) = self.run(run)?;
        self.live.get(known.driver.as_ref()?).cloned()
    }

    pub(super) fn load(&self, run: &RunId) -> Result<Option<Loaded>, StoreError> {
        let Some((_, known)) = self.run(run) else { return Ok(None) };
        let state_version = known.materialized.as_ref().map_or(0, |materialized| materialized.version);
        let before = match state_version.checked_sub(1) {
            None => Digest::ZERO,
            Some(last) => known.commits[usize::try_from(last).expect("the materialized state ends with a commit")].hash,
        };
        Ok(Some(Loaded {
            materialized: known.materialized.clone(),
            before,
            commits: self.commits(run, state_version, usize::MAX),
        }))
    }

    pub(super) fn commits(&self, run: &RunId, after: u64, limit: usize) -> Vec<SealedCommit> {
        let Some((_, known)) = self.run(run) else { return Vec::new() };
        known.commits.iter().filter(|commit| commit.version > after).take(limit).cloned().collect()
    }

    pub(super) fn list_runs(&self, page: Page, wanted: impl Fn(&RunRow) -> bool) -> Vec<ListedRun> {
        let listed = self.runs.iter().rev().map(|known| ListedRun {
            row: known.row.clone(),
            driven: known.driver.as_ref().is_some_and(|driver| self.live.contains_key(driver)),
            cursor: Cursor { since: 0, key: known.key() },
        });
        let before = page.after.map_or(i64::MAX, |cursor| cursor.key);
        listed.filter(|run| run.cursor.key < before && wanted(&run.row)).take(page.limit).collect()
    }

    fn all_holds(&self) -> impl Iterator<Item = ListedHold> {
        self.runs.iter().flat_map(|known| {
            known.holds.iter().enumerate().map(move |(number, row)| ListedHold {
                row: row.clone(),
                workflow: known.row.workflow.clone(),
                feature: known.row.feature.clone(),
                cursor: Cursor { since: row.since.as_millis(), key: known.key_within(number) },
            })
        })
    }

    pub(super) fn list_holds(&self, filter: &HoldFilter, page: Page) -> Vec<ListedHold> {
        let mut listed: Vec<ListedHold> = match filter {
            HoldFilter::Open => {
                let mut open: Vec<ListedHold> = self.all_holds().filter(|hold| hold.row.state == HoldState::Open).collect();
                open.sort_by_key(|hold| hold.cursor);
                open.into_iter().filter(|hold| page.after.is_none_or(|after| hold.cursor > after)).collect()
            }
            HoldFilter::OfRun(run) => self
                .all_holds()
                .filter(|hold| hold.row.run == *run && page.after.is_none_or(|after| hold.cursor.key > after.key))
                .collect(),
        };
        listed.truncate(page.limit);
        listed
    }

    pub(super) fn find_holds(&self, prefix: &str) -> Vec<ListedHold> {
        let mut found: Vec<ListedHold> = self.all_holds().filter(|hold| hold.row.hold.as_str().starts_with(prefix)).collect();
        found.sort_by(|one, two| (&one.row.hold, one.cursor.key).cmp(&(&two.row.hold, two.cursor.key)));
        found
    }

    pub(super) fn timers(&self, due_before: Timestamp, limit: usize) -> Vec<TimerRow> {
        let all = self.runs.iter().flat_map(|known| known.timers.values());
        let mut due: Vec<TimerRow> = all.filter(|timer| timer.due <= due_before).cloned().collect();
        // The sort is stable: timers with the same due time stay in the order of runs and ids.
        due.sort_by_key(|timer| timer.due);
        due.truncate(limit);
        due
    }

    pub(super) fn outbox(&self, filter: OutboxFilter, limit: usize, own: &DriverId) -> Vec<OutboxEntry> {
        let all = self.runs.iter().flat_map(|known| &known.outbox);
        let mut listed: Vec<&Queued> = match filter {
            OutboxFilter::Undelivered => all.filter(|queued| queued.due.is_some()).collect(),
            OutboxFilter::GivenUp => all.filter(|queued| queued.due.is_none()).collect(),
        };
        // The sort is stable: notices with the same due time stay in the order of runs and events.
        listed.sort_by_key(|queued| queued.due.unwrap_or(queued.row.at));
        let is_claimed = |driver: &DriverId| driver != own && self.live.contains_key(driver);
        let entry = |queued: &Queued| {
            let Queued { row, attempts, due, error, driver } = queued.clone();
            OutboxEntry { row, attempts, due, error, claimed: driver.as_ref().is_some_and(is_claimed), driver }
        };
        listed.into_iter().take(limit).map(entry).collect()
    }

    fn queued(&mut self, row: &OutboxRow) -> Option<&mut Queued> {
        let place = *self.places.get(&row.notice.run)?;
        self.runs[place].outbox.iter_mut().find(|queued| queued.is(row))
    }

    pub(super) fn claim_notice(&mut self, listed: &OutboxEntry, own: &DriverId) -> bool {
        let as_listed = |queued: &&mut Queued| queued.driver == listed.driver && queued.due.is_some() && queued.due == listed.due;
        match self.queued(&listed.row).filter(as_listed) {
            Some(queued) => {
                queued.driver = Some(own.clone());
                true
            }
            None => false,
        }
    }

    pub(super) fn settle_notice(&mut self, row: &OutboxRow, delivery: Delivery, own: &DriverId) {
        let Some(queued) = self.queued(row).filter(|queued| queued.driver.as_ref() == Some(own)) else { return };
        let (due, error) = match delivery {
            Delivery::Delivered => {
                let place = self.places[&row.notice.run];
                self.runs[place].outbox.retain(|queued| !queued.is(row));
                return;
            }
            Delivery::Retry { due, error } => (Some(due), error),
            Delivery::GivenUp { error, forget_before } => {
                queued.attempts += 1;
                (queued.due, queued.error, queued.driver) = (None, Some(error), None);
                let is_kept = |queued: &Queued| queued.due.is_some() || queued.row.at >= forget_before;
                self.runs.iter_mut().for_each(|known| known.outbox.retain(is_kept));
                return;
            }
        };
        queued.attempts += 1;
        (queued.due, queued.error, queued.driver) = (due, Some(error), None);
    }

    pub(super) fn stored_run(&self, run: &RunId) -> Option<StoredRun> {
        self.run(run).map(|(_, known)| known.stored())
    }

    pub(super) fn scan_runs(&self, after: Option<i64>, limit: usize) -> Vec<StoredRun> {
        let wanted = self.runs.iter().filter(|known| after.is_none_or(|after| known.key() > after));
        wanted.take(limit).map(Run::stored).collect()
    }

    pub(super) fn scan_commits(&self, after: Option<i64>, limit: usize) -> Vec<StoredCommit> {
        let all = self.runs.iter().flat_map(|known| {
            known.commits.iter().map(move |commit| StoredCommit {
                place: known.key_within(usize::try_from(commit.version).expect("versions are numbers of commits in memory")),
                run: Some(known.row.run.clone()),
                commit: commit.clone(),
            })
        });
        all.filter(|commit| after.is_none_or(|after| commit.place > after)).take(limit).collect()
    }

    pub(super) fn scan_values(&self, after: Option<Digest>, limit: usize) -> Vec<StoredValue> {
        let wanted = self.values.iter().filter(|(digest, _)| after.is_none_or(|after| **digest > after));
        wanted.take(limit).map(|(digest, bytes)| StoredValue { digest: *digest, bytes: bytes.clone() }).collect()
    }

    pub(super) fn unreferenced(&self) -> Unreferenced {
        let referred = self.referred();
        let found = self.values.iter().filter(|(digest, _)| !referred.contains(digest));
        found.fold(Unreferenced::default(), |sum, (_, bytes)| Unreferenced {
            count: sum.count + 1,
            bytes: sum.bytes + bytes.len() as u64,
        })
    }

    pub(super) fn remove_unreferenced(&mut self) -> Unreferenced {
        let removed = self.unreferenced();
        let referred: BTreeSet<Digest> = self.referred().into_iter().copied().collect();
        self.values.retain(|digest, _| referred.contains(digest));
        removed
    }

    pub(super) fn remove_run(&mut self, removal: &RunRemoval, own: &DriverId) -> Result<RemovedRows, RemoveError> {
        let RunRemoval { run, epoch, statuses } = removal;
        let place = *self.places.get(run).ok_or_else(|| StoreError::NoRun(run.clone()))?;
        let known = &self.runs[place];
        if known.driver.as_ref() != Some(own) || known.epoch != *epoch {
            return Err(RemoveError::Fenced);
        }
        if !statuses.iter().any(|allowed| known.row.status.is(*allowed)) {
            return Err(RemoveError::Status(known.row.status.clone()));
        }
        let known = self.runs.remove(place);
        self.places = self.runs.iter().enumerate().map(|(place, known)| (known.row.run.clone(), place)).collect();
        let referred: BTreeSet<Digest> = self.referred().into_iter().copied().collect();
        let mut values = Unreferenced::default();
        for digest in known.referenced_values.difference(&referred) {
            if let Some(bytes) = self.values.remove(digest) {
                values.count += 1;
                values.bytes += bytes.len() as u64;
            }
        }
        Ok(RemovedRows { rows: known.rows(), values })
    }

    fn referred(&self) -> BTreeSet<&Digest> {
        self.runs.iter().flat_map(|known| &known.referenced_values).collect()
    }

    pub(super) fn orphans(&self) -> Vec<Orphan> {
        let referred = self.referred();
        let unreferenced = self.values.keys().filter(|digest| !referred.contains(digest));
        let mut orphans: Vec<Orphan> = unreferenced.map(|digest| Orphan::ValueWithoutReference(*digest)).collect();
        for known in &self.runs {
            let missing = known.referenced_values.iter().filter(|digest| !self.values.contains_key(digest));
            orphans.extend(missing.map(|digest| Orphan::ReferenceWithoutValue { run: known.row.run.clone(), digest: *digest }));
        }
        orphans.sort();
        orphans
    }
}

impl Run {
    fn claim(&mut self, driver: DriverId, reservation: Reservation) -> u64 {
        self.driver = Some(driver);
        self.epoch += 1;
        reservation.keep(self.epoch);
        self.epoch
    }

    /// How many rows a database would have of it.
    fn rows(&self) -> u64 {
        let Self { number: _, row: _, driver: _, epoch: _, commits, materialized, holds, timers, referenced_values, outbox } =
            self;
        let several = commits.len() + holds.len() + timers.len() + referenced_values.len() + outbox.len();
        (1 + usize::from(materialized.is_some()) + several) as u64
    }

    fn stored(&self) -> StoredRun {
        StoredRun {
            place: self.key(),
            row: self.row.clone(),
            driver: self.driver.clone(),
            epoch: self.epoch,
            materialized: self.materialized.clone(),
            holds: self.holds.clone(),
            timers: self.timers.values().cloned().collect(),
            referenced_values: self.referenced_values.iter().copied().collect(),
        }
    }

    fn wants_driver(&self) -> bool {
        self.timers.contains_key(&TimerId::new(DRIVE_TIMER))
    }

    fn take(&mut self, index: IndexRows) {
        let IndexRows { run, holds, timers, timers_removed, referenced_values, outbox } = index;
        if let Some(row) = run {
            self.row = row;
        }
        for row in holds {
            match self.holds.iter_mut().find(|hold| hold.hold == row.hold) {
                Some(hold) => *hold = row,
                None => self.holds.push(row),
            }
        }
        for timer in timers_removed {
            self.timers.remove(&timer);
        }
        for row in timers {
            self.timers.insert(row.timer.clone(), row);
        }
        self.referenced_values.extend(referenced_values);
        let queue = |row: OutboxRow| Queued { due: Some(row.at), row, attempts: 0, error: None, driver: None };
        self.outbox.extend(outbox.into_iter().map(queue));
    }
}
