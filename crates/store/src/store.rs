//! The store trait that every backend implements, and its data types.

use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::lease::Lease;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::Status;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{HoldRow, IndexRows, OutboxRow, RunRow, TimerRow};
use lockgate_engine::time::Timestamp;
use std::path::PathBuf;

/// The future that store methods return.
pub type Future<'a, T> = futures::future::BoxFuture<'a, T>;

/// A commit to append to a run's history, with everything that must become durable with it.
#[derive(Clone, Debug)]
pub struct Append {
    pub run: RunId,
    /// The version of the last commit that the caller knows; 0 creates the run.
    pub expected: u64,
    /// The epoch of the driver's claim; `None` for callers that do not drive the run, such as an answer.
    pub epoch: Option<u64>,
    /// Claims the run for the store's own driver with this commit; `epoch` is `None` then. The append fails if a live process
    /// drives the run.
    pub claim: Option<DriverId>,
    /// The commit; its version is `expected` + 1.
    pub commit: SealedCommit,
    /// Values to be stored by their digests.
    pub values: Vec<(Digest, Vec<u8>)>,
    /// The index rows that the commit changes; a new run brings its own row.
    pub index: IndexRows,
    /// The materialized state after this commit, if it is to be stored.
    pub materialized: Option<Vec<u8>>,
}

/// A stored run: its newest materialized state and the commits after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The materialized state, if there is one.
    pub materialized: Option<MaterializedState>,
    /// The hash that the first of `commits` links to: that of the last commit in the materialized state, or [`Digest::ZERO`].
    pub before: Digest,
    /// The commits after the materialized state, or all.
    pub commits: Vec<SealedCommit>,
}

impl Loaded {
    /// Version and hash of the last commit.
    pub fn head(&self) -> (u64, Digest) {
        match (self.commits.last(), &self.materialized) {
            (Some(last), _) => (last.version, last.hash),
            (None, Some(materialized)) => (materialized.version, self.before),
            (None, None) => (0, self.before),
        }
    }
}

/// The state of a run after some commit, stored so that loading need not replay the whole history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaterializedState {
    /// The version of the last commit it includes.
    pub version: u64,
    pub state: Vec<u8>,
}

/// A process that drives runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    /// Its driver id.
    pub driver: DriverId,
    /// Its process id, on its host.
    pub pid: u32,
    pub host: String,
    /// When it started driving.
    pub since: Timestamp,
    /// When its lease ends by the store's clock unless it is renewed; `None` if the store notices immediately when the
    /// process ends.
    pub until: Option<Timestamp>,
}

impl std::fmt::Display for DriverInfo {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { driver: _, pid, host, since, until } = self;
        write!(text, "process {pid} on {host} since {since}")?;
        match until {
            Some(until) => write!(text, ", whose lease runs until {until}"),
            None => Ok(()),
        }
    }
}

/// A position in a list: pass it back to continue the list after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(crate) since: i64,
    pub(crate) key: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub after: Option<Cursor>,
    pub limit: usize,
}

impl Page {
    pub const ALL: Self = Self::first(usize::MAX);

    /// The first `limit` entries.
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    pub row: RunRow,
    /// Whether a live process drives it.
    pub driven: bool,
    pub cursor: Cursor,
}

/// A hold in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedHold {
    pub row: HoldRow,
    /// The workflow of its run.
    pub workflow: String,
    pub feature: Option<String>,
    pub cursor: Cursor,
}

/// Which runs to list: those that match everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Runs with one of these statuses; with any status if empty.
    pub statuses: Vec<Status>,
    /// Runs of this workflow.
    pub workflow: Option<String>,
    /// Runs about this feature.
    pub feature: Option<String>,
    /// Runs that have not changed since this time.
    pub changed_before: Option<Timestamp>,
}

impl RunFilter {
    /// Runs with one of these statuses.
    pub fn with_status(statuses: impl IntoIterator<Item = Status>) -> Self {
        Self { statuses: statuses.into_iter().collect(), ..Self::default() }
    }

    /// Whether the row of a run matches.
    pub(crate) fn matches(&self, row: &RunRow) -> bool {
        let Self { statuses, workflow, feature, changed_before } = self;
        (statuses.is_empty() || statuses.iter().any(|status| row.status.is(*status)))
            && workflow.as_ref().is_none_or(|workflow| *workflow == row.workflow)
            && feature.as_ref().is_none_or(|feature| row.feature.as_ref() == Some(feature))
            && changed_before.is_none_or(|before| row.changed_at < before)
    }
}

/// Which holds to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldFilter {
    /// Holds of all runs that wait for an answer, longest waiting first.
    Open,
    /// All holds of one run, in the order in which they were first opened.
    OfRun(RunId),
}

/// A notice in the outbox with the state of its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub row: OutboxRow,
    /// The number of failed deliveries.
    pub attempts: u32,
    /// When it is to be delivered; `None` once it is given up.
    pub due: Option<Timestamp>,
    /// The error of the last failed delivery.
    pub error: Option<String>,
    /// The process that has claimed it.
    pub driver: Option<DriverId>,
    /// Whether that is a live process other than this one.
    pub claimed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxFilter {
    /// Notices to be delivered now or later, earliest due first.
    Undelivered,
    /// Notices that were given up, oldest first.
    GivenUp,
}

/// The outcome of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The notice leaves the outbox.
    Delivered,
    /// It failed and is retried.
    Retry { due: Timestamp, error: String },
    /// It failed and is not retried. Given-up notices with events older than `forget_before` leave the outbox.
    GivenUp { error: String, forget_before: Timestamp },
}

/// A commit row, for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCommit {
    /// Its position; increases from row to row.
    pub place: i64,
    /// `None` if the store has no run that it could belong to.
    pub run: Option<RunId>,
    pub commit: SealedCommit,
}

/// A stored value, for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredValue {
    pub digest: Digest,
    pub bytes: Vec<u8>,
}

/// Everything stored for a run except its commits, for verification.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Its position; increases from run to run.
    pub place: i64,
    pub row: RunRow,
    /// Its last driver.
    pub driver: Option<DriverId>,
    /// The epoch of that driver's claim.
    pub epoch: u64,
    /// Its materialized state.
    pub materialized: Option<MaterializedState>,
    /// Its holds, in the order in which they were first opened.
    pub holds: Vec<HoldRow>,
    /// Its timers, ordered by their ids.
    pub timers: Vec<TimerRow>,
    /// The values that it refers to, in order.
    pub referenced_values: Vec<Digest>,
}

/// Stored values that no run refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreferenced {
    pub count: u64,
    /// Their total size.
    pub bytes: u64,
}

/// A run to be removed with everything that is stored of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRemoval {
    /// The run.
    pub run: RunId,
    /// The epoch of this process's claim on it. The claim ends with the run.
    pub epoch: u64,
    /// The statuses that the run may have when it is removed.
    pub statuses: Vec<Status>,
}

/// The number of rows and values removed with a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedRows {
    /// How many rows, of all tables except the stored values.
    pub rows: u64,
    /// The stored values that no other run refers to.
    pub values: Unreferenced,
}

/// A stored item that belongs to nothing, or a reference to a missing item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Orphan {
    ValueWithoutReference(Digest),
    ReferenceWithoutValue {
        /// The run.
        run: RunId,
        digest: Digest,
    },
    /// Rows of a run that is not stored. Commits without a run are reported by [`Store::scan_commits`].
    RowsWithoutRun {
        /// Which rows: `materialized_states`, `holds`, `outbox`, `timers` or `value_refs`.
        table: String,
        /// The number of the missing run.
        place: i64,
    },
}

/// Acknowledged commits of a run that are missing from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub run: RunId,
    pub first: u64,
    pub last: u64,
}

impl Missing {
    /// The number and range of the missing commits, as text.
    pub fn commits(&self) -> String {
        match self.last - self.first {
            0 => format!("commit {}", self.last),
            more => format!("{} commits ({} to {})", more + 1, self.first, self.last),
        }
    }
}

/// How many runs [`Store::claim_next`] lists first.
const FIRST_UNDRIVEN: usize = 16;

/// Stores histories and derived rows, compares versions and hands out claims. It contains no workflow rules.
///
/// A value of this type is one process's handle on the store, with its own driver id. Methods may block for as long as the
/// disk takes.
pub trait Store: Send + Sync {
    /// Appends a commit with everything that belongs to it, or changes nothing. Returns the epoch if it claims the run.
    fn append(&self, append: Append) -> Future<'_, Result<Option<u64>, AppendError>>;

    /// Does ahead of time what the first append would do, such as opening a connection. The append reports failures.
    fn prepare_append(&self) {}

    /// A run's materialized state and the commits after it; `None` if there is no such run.
    fn load(&self, run: &RunId) -> Future<'_, Result<Option<Loaded>, StoreError>>;

    /// The commits of a run after version `after`, in order, at most `limit`.
    fn commits(&self, run: &RunId, after: u64, limit: usize) -> Future<'_, Result<Vec<SealedCommit>, StoreError>>;

    /// Stored values by their digests; `None` for unknown ones.
    fn values(&self, digests: &[Digest]) -> Future<'_, Result<Vec<Option<Vec<u8>>>, StoreError>>;

    /// Makes this store's driver the driver of the run, and returns the epoch that its appends must carry. Fails if a live
    /// process drives the run, or if this process already holds a claim on it.
    fn claim(&self, run: &RunId) -> Future<'_, Result<u64, ClaimError>>;

    /// Releases a claim, so that any process can claim the run without waiting for this one to end. A claim that is no longer
    /// current is ignored. This process can claim the run again even if the release fails.
    fn release(&self, run: &RunId, epoch: u64) -> Future<'_, Result<(), StoreError>>;

    /// Like [`Store::release`] without waiting, for a holder that is being dropped.
    fn abandon(&self, run: &RunId, epoch: u64);

    /// Up to `limit` background runs that can continue and have no live driver, not even this process; oldest first.
    fn undriven(&self, limit: usize) -> Future<'_, Result<Vec<RunId>, StoreError>>;

    /// Claims up to `limit` of these runs, in order, that want a background driver and have no live driver, not even this
    /// process. Returns each with its epoch. A run that another process is claiming right now is skipped.
    fn claim_any<'a>(&'a self, runs: &'a [RunId], limit: usize) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>>;

    /// Claims up to `limit` background runs that can continue, have no live driver and satisfy `fit`.
    fn claim_next<'a>(
        &'a self,
        is_fit: &'a (dyn Fn(&RunId) -> bool + Sync),
        limit: usize,
    ) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>> {
        Box::pin(async move {
            let mut listing = limit.max(FIRST_UNDRIVEN);
            loop {
                let listed = self.undriven(listing).await?;
                let all = listed.len() < listing;
                let fit: Vec<RunId> = listed.into_iter().filter(|run| is_fit(run)).collect();
                if !fit.is_empty() {
                    let claimed = self.claim_any(&fit, limit).await?;
                    if !claimed.is_empty() {
                        return Ok(claimed);
                    }
                }
                if all || limit == 0 {
                    return Ok(Vec::new());
                }
                // No matter how many unsuitable runs come first, a suitable one may follow.
                listing = listing.saturating_mul(4);
            }
        })
    }

    /// This process's driver id, generated when the store was opened.
    fn driver(&self) -> &DriverId;

    /// How long this process may rely on its claims: without limit if they last as long as the process.
    fn lease(&self) -> Lease {
        Lease::unlimited()
    }

    /// The live driver of a run.
    fn driver_of(&self, run: &RunId) -> Future<'_, Result<Option<DriverInfo>, StoreError>>;

    /// The runs that match a filter, newest first.
    fn list_runs(&self, filter: RunFilter, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>>;

    /// All runs, newest first.
    fn runs(&self, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.list_runs(RunFilter::default(), page)
    }

    /// Runs whose id starts with this prefix, newest first.
    fn find_runs(&self, prefix: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>>;

    /// Runs about this feature, newest first.
    fn runs_of_feature(&self, feature: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.list_runs(RunFilter { feature: Some(feature.to_owned()), ..RunFilter::default() }, Page::ALL)
    }

    /// Holds, in the order of the filter.
    fn holds(&self, filter: HoldFilter, page: Page) -> Future<'_, Result<Vec<ListedHold>, StoreError>>;

    /// Holds in any state whose id starts with this prefix, ordered by id.
    fn find_holds(&self, prefix: &str) -> Future<'_, Result<Vec<ListedHold>, StoreError>>;

    /// Timers that are due at or before this time, earliest first.
    fn timers(&self, due_before: Timestamp, limit: usize) -> Future<'_, Result<Vec<TimerRow>, StoreError>>;

    fn outbox(&self, filter: OutboxFilter, limit: usize) -> Future<'_, Result<Vec<OutboxEntry>, StoreError>>;

    /// Claims a notice for this process if it is unchanged since it was listed; returns whether it was claimed.
    fn claim_notice<'a>(&'a self, listed: &'a OutboxEntry) -> Future<'a, Result<bool, StoreError>>;

    /// Records the delivery of a notice that this process has claimed and ends the claim. A notice that another process has
    /// claimed since is ignored.
    fn settle_notice<'a>(&'a self, row: &'a OutboxRow, delivery: Delivery) -> Future<'a, Result<(), StoreError>>;

    /// A marker for the current state: a different one later means that another process may have committed, or that a driver
    /// has ended.
    fn changes(&self) -> u64;

    /// A marker for [`Store::run_changed`]; take it before reading the run. From then on, changes of this run are tracked
    /// separately.
    fn changes_of(&self, run: &RunId) -> u64;

    /// Resolves to the new marker when any process may have committed since `since`.
    fn changed(&self, since: u64) -> Future<'_, Result<u64, StoreError>>;

    /// Like [`Store::changed`], for one run: its commits and its driver. Commits up to version `known` do not count. It may
    /// resolve early, and does if the store cannot tell what changed.
    fn run_changed<'a>(&'a self, run: &'a RunId, since: u64, known: Option<u64>) -> Future<'a, Result<u64, StoreError>>;

    /// Why changes of other processes are noticed with a delay, if they are.
    fn changes_warning(&self) -> Option<String> {
        None
    }

    /// For verification: everything stored for one run except its commits.
    fn stored_run(&self, run: &RunId) -> Future<'_, Result<Option<StoredRun>, StoreError>>;

    /// For verification: everything stored for runs except their commits, after a position, in order.
    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>>;

    /// For verification: commit rows of all runs, run by run, after a position, in order.
    fn scan_commits(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredCommit>, StoreError>>;

    /// For verification: raw stored values, after a digest, in order.
    fn scan_values(&self, after: Option<Digest>, limit: usize) -> Future<'_, Result<Vec<StoredValue>, StoreError>>;

    /// For verification: items that belong to nothing, and references to missing items.
    fn orphans(&self) -> Future<'_, Result<Vec<Orphan>, StoreError>>;

    /// For verification: damage that the backend itself finds in its files.
    fn damage(&self) -> Future<'_, Result<Vec<String>, StoreError>>;

    /// For verification: acknowledged commits that are missing from the store, if the backend can detect them.
    fn missing_commits(&self) -> Future<'_, Result<Vec<Missing>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Fails if the open database was removed or moved.
    fn still_there(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// What [`Store::remove_unreferenced_values`] would remove.
    fn unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>>;

    /// Removes the values that no run refers to, in one transaction, and returns their number and size.
    fn remove_unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>>;

    /// Removes a run that this process has claimed, with its history, its rows in every list, and the values that no other run refers to; all of it
    /// or nothing. A run with a status that is not among those given is left alone, and so is one that another process has claimed since.
    fn remove_run(&self, removal: RunRemoval) -> Future<'_, Result<RemovedRows, RemoveError>>;

    /// Writes a consistent copy of all runs into a new database file without blocking other processes; fails if the file
    /// exists. The copy is a [`crate::SqliteStore`] database, whatever the backend.
    fn back_up(&self, file: PathBuf) -> Future<'_, Result<(), StoreError>>;
}

/// Rejects appends that could only come from a bug in the caller.
pub(crate) fn refuse_misuse(append: &Append, own: &DriverId) -> Result<(), StoreError> {
    let misused = |detail: &str| Err(StoreError::Misused(format!("an append to run {} {detail}", append.run)));
    if append.commit.version != append.expected + 1 {
        return misused("has a commit that does not follow the expected version");
    }
    if append.commit.version > u64::from(u32::MAX) {
        return misused("would be past the last version that a history can have");
    }
    if append.expected == 0 && append.index.run.is_none() {
        return misused("would create it without its row");
    }
    if append.index.run.as_ref().is_some_and(|row| row.run != append.run)
        || append.index.holds.iter().any(|row| row.run != append.run)
        || append.index.timers.iter().any(|row| row.run != append.run)
        || append.index.outbox.iter().any(|row| row.notice.run != append.run)
    {
        return misused("brings index rows of another run");
    }
    match &append.claim {
        Some(_) if append.epoch.is_some() => misused("has an epoch and claims the run"),
        Some(driver) if driver != own => misused("claims it for another driver"),
        Some(_) | None => Ok(()),
    }
}
