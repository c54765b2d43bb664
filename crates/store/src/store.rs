//! The store: what every backend does, and what goes in and out of it.

use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::lease::Lease;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::Status;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{HoldRow, IndexRows, OutboxRow, RunRow, TimerRow};
use lockgate_engine::time::Timestamp;
use std::path::PathBuf;

/// What the methods of a store give.
pub type Future<'a, T> = futures::future::BoxFuture<'a, T>;

/// A commit to be appended to a run's history, with all that must become durable together with it.
#[derive(Clone, Debug)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// The version of the last commit that the caller knows; 0 creates the run.
    pub expected: u64,
    /// The epoch of the claim under which a driver works; absent for those who only answer.
    pub epoch: Option<u64>,
    /// The store's own driver, which claims the run with this commit; then there is no epoch yet. A run that a live process drives is not taken.
    pub claim: Option<DriverId>,
    /// The commit; its version is `expected` + 1.
    pub commit: SealedCommit,
    /// Values to be stored by their digests.
    pub values: Vec<(Digest, Vec<u8>)>,
    /// The index rows that the commit changes; a new run brings its own row.
    pub index: IndexRows,
    /// The folded state after this commit, when it is to be kept.
    pub materialized: Option<Vec<u8>>,
}

/// A run as it is stored: its newest folded state and the commits after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The folded state, where one is kept.
    pub materialized: Option<MaterializedState>,
    /// The hash that the first of `commits` follows: of the commit that the fold ends with, or [`Digest::ZERO`].
    pub before: Digest,
    /// The commits after the fold, or all.
    pub commits: Vec<SealedCommit>,
}

impl Loaded {
    /// Version and hash of the last commit: what the next one follows.
    pub fn head(&self) -> (u64, Digest) {
        match (self.commits.last(), &self.materialized) {
            (Some(last), _) => (last.version, last.hash),
            (None, Some(materialized)) => (materialized.version, self.before),
            (None, None) => (0, self.before),
        }
    }
}

/// A folded state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaterializedState {
    /// The version of the last commit that is in it.
    pub version: u64,
    /// The state.
    pub state: Vec<u8>,
}

/// A process that drives runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    /// Its driver id.
    pub driver: DriverId,
    /// Its process id, on its host.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// When it began to drive.
    pub since: Timestamp,
    /// Until when it is believed to be alive unless it is heard of again, by the clock of the store; absent where its end is known at once.
    pub until: Option<Timestamp>,
}

impl std::fmt::Display for DriverInfo {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { driver: _, pid, host, since, until } = self;
        write!(text, "process {pid} on {host} since {since}")?;
        match until {
            Some(until) => write!(text, ", which is believed to be alive until {until} unless it is heard of again"),
            None => Ok(()),
        }
    }
}

/// Where in a list something stands: give it back to continue the list after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub(crate) since: i64,
    pub(crate) key: i64,
}

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where the part before it ended.
    pub after: Option<Cursor>,
    /// How many at most.
    pub limit: usize,
}

impl Page {
    /// The whole list.
    pub const ALL: Self = Self::first(usize::MAX);

    /// The first so many.
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// Its row.
    pub row: RunRow,
    /// Whether a live process drives it.
    pub driven: bool,
    /// Where it stands in the list.
    pub cursor: Cursor,
}

/// A hold in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedHold {
    /// Its row.
    pub row: HoldRow,
    /// The workflow of its run.
    pub workflow: String,
    /// What its run is about.
    pub feature: Option<String>,
    /// Where it stands in the list.
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
    /// Those of all runs that wait for an answer; who waits longest comes first.
    Open,
    /// All of one run, in the order in which they were first opened.
    OfRun(RunId),
}

/// A notice in the outbox, and what became of it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// Its row.
    pub row: OutboxRow,
    /// How often its delivery has failed.
    pub attempts: u32,
    /// When it is to be delivered; absent once it is given up.
    pub due: Option<Timestamp>,
    /// Why its delivery failed last.
    pub error: Option<String>,
    /// The process that has claimed it.
    pub driver: Option<DriverId>,
    /// Whether that is a live process other than this one.
    pub claimed: bool,
}

/// Which notices of the outbox to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxFilter {
    /// Those that are to be delivered, now or later; what is due first comes first.
    Undelivered,
    /// Those that were given up, the oldest first.
    GivenUp,
}

/// What became of the delivery of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It succeeded: the notice leaves the outbox.
    Delivered,
    /// It failed, and is tried again.
    Retry {
        /// When.
        due: Timestamp,
        /// Why it failed.
        error: String,
    },
    /// It failed, and is not tried again. Notices that were given up and whose events are older than this leave the outbox.
    GivenUp {
        /// Why it failed.
        error: String,
        /// How long others are kept.
        forget_before: Timestamp,
    },
}

/// A commit row, for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCommit {
    /// Where it is stored; rises from row to row.
    pub place: i64,
    /// Its run; absent where the store knows no run that it could belong to.
    pub run: Option<RunId>,
    /// The commit.
    pub commit: SealedCommit,
}

/// A stored value, for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredValue {
    /// The digest that it is stored under.
    pub digest: Digest,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// All that is stored of a run beside its commits, for verification.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// Where it is stored; rises from run to run.
    pub place: i64,
    /// Its own row.
    pub row: RunRow,
    /// Its last driver.
    pub driver: Option<DriverId>,
    /// The epoch of that driver's claim.
    pub epoch: u64,
    /// Its folded state.
    pub materialized: Option<MaterializedState>,
    /// Its holds, in the order in which they were first opened.
    pub holds: Vec<HoldRow>,
    /// Its timers, ordered by their ids.
    pub timers: Vec<TimerRow>,
    /// The values that it refers to, in order.
    pub refers_to: Vec<Digest>,
}

/// Stored values that no run refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreferenced {
    /// How many there are.
    pub count: u64,
    /// How many bytes they have in all.
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

/// What was removed with a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedRows {
    /// How many rows, of all tables except the stored values.
    pub rows: u64,
    /// The stored values that no other run refers to.
    pub values: Unreferenced,
}

/// Something stored that belongs to nothing, or that something else misses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Orphan {
    /// No run refers to this value.
    ValueWithoutReference(Digest),
    /// A run refers to a value that is not stored.
    ReferenceWithoutValue {
        /// The run.
        run: RunId,
        /// The value.
        digest: Digest,
    },
    /// Rows of a run that is not stored. Commits without a run are found with the commits.
    RowsWithoutRun {
        /// Which rows: `folds`, `holds`, `outbox`, `timers` or `value_refs`.
        table: String,
        /// The number of the run that is missing.
        place: i64,
    },
}

/// Commits of a run that were acknowledged and are no longer stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The run.
    pub run: RunId,
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
}

impl Missing {
    /// How many there are, and which.
    pub fn commits(&self) -> String {
        match self.last - self.first {
            0 => format!("commit {}", self.last),
            more => format!("{} commits ({} to {})", more + 1, self.first, self.last),
        }
    }
}

/// How many runs [`Store::claim_next`] reads first.
const FIRST_UNDRIVEN: usize = 16;

/// Keeps histories and what belongs to them; compares versions, hands out claims, and knows no rules.
///
/// A value of this type is one process's hold on the store, with its own driver id. Methods may block for as long as the disk takes.
pub trait Store: Send + Sync {
    /// Appends a commit with all that belongs to it, or changes nothing. Gives the epoch of the claim where it makes one.
    fn append(&self, append: Append) -> Future<'_, Result<Option<u64>, AppendError>>;

    /// A run's folded state and the commits after it; nothing when there is no such run.
    fn load(&self, run: &RunId) -> Future<'_, Result<Option<Loaded>, StoreError>>;

    /// The commits of a run after version `after`, in order, at most `limit`.
    fn commits(&self, run: &RunId, after: u64, limit: usize) -> Future<'_, Result<Vec<SealedCommit>, StoreError>>;

    /// Stored values by their digests, each where it is known.
    fn values(&self, digests: &[Digest]) -> Future<'_, Result<Vec<Option<Vec<u8>>>, StoreError>>;

    /// Makes this store's driver the one that drives the run, and gives the epoch that its appends must carry. A run that any live process drives is not
    /// taken, and neither is one that this process has claimed and not released.
    fn claim(&self, run: &RunId) -> Future<'_, Result<u64, ClaimError>>;

    /// Gives a claim up, so that any process can claim the run without waiting for this one to end. A claim that is no longer the run's is left alone.
    /// Whatever comes of it, this process can claim the run again.
    fn release(&self, run: &RunId, epoch: u64) -> Future<'_, Result<(), StoreError>>;

    /// The same without waiting for it: for a holder that is dropped.
    fn abandon(&self, run: &RunId, epoch: u64);

    /// Runs in the background that could continue and that no live process drives, this one included; the oldest first, at most so many.
    fn undriven(&self, limit: usize) -> Future<'_, Result<Vec<RunId>, StoreError>>;

    /// Claims the first of these runs that want a driver in the background and that no live process drives, this one included, at most so many; gives
    /// each with its epoch. One that another process is claiming right now is passed over.
    fn claim_any<'a>(&'a self, runs: &'a [RunId], limit: usize) -> Future<'a, Result<Vec<(RunId, u64)>, StoreError>>;

    /// Claims the next runs in the background that could continue, that no live process drives, and that are fit for it, at most so many.
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
                // However many unfit ones are listed before it, there may be one that is fit.
                listing = listing.saturating_mul(4);
            }
        })
    }

    /// This process's own driver id, made when the store was opened.
    fn driver(&self) -> &DriverId;

    /// How long this process may rely on its claims. Where they last as long as the process, the lease has no limit.
    fn lease(&self) -> Lease {
        Lease::unlimited()
    }

    /// Who drives the run, if that process is alive.
    fn driver_of(&self, run: &RunId) -> Future<'_, Result<Option<DriverInfo>, StoreError>>;

    /// The runs that match a filter, newest first.
    fn list_runs(&self, filter: RunFilter, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>>;

    /// All runs, newest first.
    fn runs(&self, page: Page) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.list_runs(RunFilter::default(), page)
    }

    /// Runs whose id begins so, newest first.
    fn find_runs(&self, prefix: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>>;

    /// Runs about this feature, newest first.
    fn runs_of_feature(&self, feature: &str) -> Future<'_, Result<Vec<ListedRun>, StoreError>> {
        self.list_runs(RunFilter { feature: Some(feature.to_owned()), ..RunFilter::default() }, Page::ALL)
    }

    /// Holds, in the order that the filter says.
    fn holds(&self, filter: HoldFilter, page: Page) -> Future<'_, Result<Vec<ListedHold>, StoreError>>;

    /// Holds of any state whose id begins so, ordered by their ids.
    fn find_holds(&self, prefix: &str) -> Future<'_, Result<Vec<ListedHold>, StoreError>>;

    /// Timers that are due at this moment or before it, the earliest first.
    fn timers(&self, due_before: Timestamp, limit: usize) -> Future<'_, Result<Vec<TimerRow>, StoreError>>;

    /// Notices of the outbox, at most so many.
    fn outbox(&self, filter: OutboxFilter, limit: usize) -> Future<'_, Result<Vec<OutboxEntry>, StoreError>>;

    /// Claims a notice for this process, as long as it is still as it was listed; gives whether it was.
    fn claim_notice<'a>(&'a self, listed: &'a OutboxEntry) -> Future<'a, Result<bool, StoreError>>;

    /// Records what became of a notice that this process has claimed, and ends the claim. One that another process has claimed since is left alone.
    fn settle_notice<'a>(&'a self, row: &'a OutboxRow, delivery: Delivery) -> Future<'a, Result<(), StoreError>>;

    /// A marker of the present state: another one means that another process may have committed since, or that a driver has ended.
    fn changes(&self) -> u64;

    /// A marker for [`Store::run_changed`], to be taken before the run is read: from then on, changes of this run are told from those of others.
    fn changes_of(&self, run: &RunId) -> u64;

    /// Ends, with the new marker, when any process may have committed since that marker was given.
    fn changed(&self, since: u64) -> Future<'_, Result<u64, StoreError>>;

    /// The same for one run: its commits, and who drives it. With a version that is `known`, commits up to that one do not count.
    /// It may end sooner, and does where a store cannot tell what changed.
    fn run_changed<'a>(&'a self, run: &'a RunId, since: u64, known: Option<u64>) -> Future<'a, Result<u64, StoreError>>;

    /// Why changes of other processes are noticed later than they could be, if they are.
    fn changes_warning(&self) -> Option<String> {
        None
    }

    /// For verification: all that is stored of one run beside its commits.
    fn stored_run(&self, run: &RunId) -> Future<'_, Result<Option<StoredRun>, StoreError>>;

    /// For verification: runs with all that is stored of them beside their commits, after a place, in order.
    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>>;

    /// For verification: commit rows of all runs, run by run, after a place, in order.
    fn scan_commits(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredCommit>, StoreError>>;

    /// For verification: stored values as they are, after a digest, in order.
    fn scan_values(&self, after: Option<Digest>, limit: usize) -> Future<'_, Result<Vec<StoredValue>, StoreError>>;

    /// For verification: what belongs to nothing, and what is missing.
    fn orphans(&self) -> Future<'_, Result<Vec<Orphan>, StoreError>>;

    /// For verification: what the backend itself finds wrong with its files.
    fn damage(&self) -> Future<'_, Result<Vec<String>, StoreError>>;

    /// For verification: commits that were acknowledged and are no longer stored, where the backend can know of them.
    fn missing_commits(&self) -> Future<'_, Result<Vec<Missing>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Fails when what is open is no longer what is at its path: it was removed or moved.
    fn still_there(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// What [`Store::remove_unreferenced_values`] would remove.
    fn unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>>;

    /// Removes the values that no run refers to, all at once, and says what that was.
    fn remove_unreferenced_values(&self) -> Future<'_, Result<Unreferenced, StoreError>>;

    /// Removes a run that this process has claimed, with its history, its rows in every list, and the values that no other run refers to; all of it
    /// or nothing. A run with a status that is not among those given is left alone, and so is one that another process has claimed since.
    fn remove_run(&self, removal: RunRemoval) -> Future<'_, Result<RemovedRows, RemoveError>>;

    /// Writes a copy of all runs into a new database file, as of one moment, while others go on; a file that is there already is an error.
    /// The copy is a database as [`crate::SqliteStore`] has it, whatever this store is.
    fn back_up(&self, file: PathBuf) -> Future<'_, Result<(), StoreError>>;
}

/// What no backend takes, because it could only come from a mistake in the caller.
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
