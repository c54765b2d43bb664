//! Many runs in one process: those that were left to the background are found, driven side by side, and let go when they wait for a person.
//!
//! A run that waits costs its id. No one has claimed it then, so once it is answered any process can continue it. Runs that other live processes drive are passed over. A
//! panic while a run is driven is a failure of that run alone.

use crate::driver::{ClaimedRun, DriveError, Driver, Halt, HaltReason, Listener, Parked, Paused, fire_due, panic_text};
use crate::outbox;
use crate::runtime::Runtime;
use crate::spans;
use futures::FutureExt;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::TimerKind;
use lockgate_engine::time::Timestamp;
use lockgate_store::StoreError;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, info, warn};

/// However much others commit, the store is looked at no more often than this.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// However little others commit, it is looked at this often: what was driven elsewhere may be free, and what failed may be tried again.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a run that could not be driven is left alone: at first, then twice as long each time, and before it is given up. A store that fails is
/// left alone for as long, and never given up.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// How many parked runs are remembered. One that is forgotten is taken over instead of continued, which costs one event.
const REMEMBERED: usize = 10_000;

/// What becomes of the runs of a fleet, for whoever tells people.
pub trait Watcher: Send + Sync {
    /// Hears what happens in a run from now on.
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener>;

    /// A run is no longer driven here, for this reason.
    fn paused(&mut self, run: &RunId, paused: &Paused);

    /// A run could not be driven on; it is tried again after a while, or given up.
    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>);

    /// The store failed; it is tried again after a while. Runs that are driven go on until they need it.
    fn store_failed(&mut self, error: &StoreError, again_in: Duration) {
        let (_, _) = (error, again_in);
    }

    /// Changes of other processes are noticed later than they could be, for this reason. Reported once.
    fn changes_are_late(&mut self, warning: &str) {
        let _ = warning;
    }

    /// Whether a run belongs here; on another machine its files are not.
    fn is_ours(&self, run: &RunId) -> bool;
}

/// When a fleet has nothing more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetLimits {
    /// For how long nothing could be driven; absent where it waits for ever.
    pub idle: Option<Duration>,
    /// How many runs are driven side by side at most.
    pub max_runs: usize,
}

/// Many runs, driven by one process.
pub struct Fleet {
    runtime: Runtime,
    watcher: Box<dyn Watcher>,
    driving: BTreeSet<RunId>,
    /// Runs that wait, and that this process drove last.
    parked: BTreeSet<RunId>,
    backing_off: BTreeMap<RunId, Backoff>,
    drivers: JoinSet<Driven>,
    /// Whether it was reported that changes are noticed late.
    warned: bool,
}

/// What became of driving a run; nothing where it no longer wanted a driver.
type Driven = (RunId, Result<Option<Paused>, DriveError>);

/// A run that is to be driven.
enum Found {
    /// It is claimed.
    Claimed {
        claimed: ClaimedRun,
        /// Whether this process drove it last, and let it go when it waited.
        parked: bool,
    },
    /// This process drove it last, and let it go when it waited: its next commit claims it.
    Parked(Parked),
}

impl Found {
    fn run(&self) -> &RunId {
        match self {
            Self::Claimed { claimed, .. } => claimed.run(),
            Self::Parked(parked) => parked.run(),
        }
    }

    async fn wake(self, runtime: Runtime, listener: Box<dyn Listener>) -> Result<Option<Driver>, DriveError> {
        match self {
            Self::Claimed { claimed, parked } => claimed.resume(runtime, parked, listener).await,
            Self::Parked(parked) => parked.wake_wanted(runtime, listener).await,
        }
    }
}

/// A run that could not be driven.
struct Backoff {
    /// When it is tried again; never once it is given up.
    again: Option<Instant>,
    pause: Duration,
}

impl Fleet {
    /// Nothing is driven yet.
    pub fn new(runtime: Runtime, watcher: Box<dyn Watcher>) -> Self {
        Self {
            runtime,
            watcher,
            driving: BTreeSet::new(),
            parked: BTreeSet::new(),
            backing_off: BTreeMap::new(),
            drivers: JoinSet::new(),
            warned: false,
        }
    }

    /// Drives all detached runs that can go on, until there have been none for a while or it is asked to stop.
    /// Whatever comes back, nothing is under way any more.
    pub async fn drive(&mut self, until: FleetLimits, halt: &Halt) -> Result<(), StoreError> {
        let driven = self.drive_on(until, halt).await;
        if driven.is_err() {
            halt.halt(HaltReason::Stopped);
        }
        while let Some(done) = self.drivers.join_next().await {
            self.done(done);
        }
        driven
    }

    /// Whether there is a run of ours that wants a driver, other than those that were given up. It also counts while another process drives it: that one may be
    /// about to end, and then it is driven here.
    pub async fn has_work(&self) -> Result<bool, StoreError> {
        let mut limit = 16 + self.driving.len() + self.backing_off.len();
        loop {
            // They come before all other timers.
            let timers = self.runtime.store.timers(Timestamp::from_millis(0), limit).await?;
            let all = timers.len() < limit;
            let mut wanted = timers.iter().filter(|timer| timer.kind.is(TimerKind::Drive)).map(|timer| &timer.run);
            let has_work = wanted.any(|run| !self.backing_off.contains_key(run) && self.watcher.is_ours(run));
            if all || has_work {
                return Ok(has_work);
            }
            // However many of other roots share the store, ours may be listed behind them.
            limit = limit.saturating_mul(4);
        }
    }

    /// The first run that could be driven here and is fit for it.
    async fn first_undriven(&self, is_fit: &(dyn Fn(&RunId) -> bool + Sync)) -> Result<Option<RunId>, StoreError> {
        let mut limit = 16;
        loop {
            let listed = self.runtime.store.undriven(limit).await?;
            let all = listed.len() < limit;
            let first = listed.into_iter().find(is_fit);
            if all || first.is_some() {
                return Ok(first);
            }
            // However many of other roots share the store, ours may be listed behind them.
            limit = limit.saturating_mul(4);
        }
    }

    /// Drives until there is nothing more to do. A store that cannot be reached for a while does not end it: what is driven meanwhile ends or fails
    /// by itself, and the rest waits.
    async fn drive_on(&mut self, until: FleetLimits, halt: &Halt) -> Result<(), StoreError> {
        let mut rounds = Rounds { busy: Instant::now(), looked: None, marker: self.runtime.store.changes() };
        let mut pause = INITIAL_BACKOFF;
        outbox::wake(&self.runtime);
        while !halt.is_halted() {
            match self.round(until, halt, &mut rounds).await {
                Ok(true) => return Ok(()),
                Ok(false) => pause = INITIAL_BACKOFF,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    warn!(%error, ?pause, "the store failed; it is tried again");
                    self.guard("store_failed", |watcher| watcher.store_failed(&error, pause)).unwrap_or_default();
                    rounds.busy = Instant::now();
                    self.rest(pause, halt).await;
                    pause = (pause * 2).min(MAX_BACKOFF);
                }
            }
        }
        Ok(())
    }

    /// Waits this long, while runs may end.
    async fn rest(&mut self, pause: Duration, halt: &Halt) {
        let rested = tokio::time::sleep(pause);
        tokio::pin!(rested);
        loop {
            tokio::select! {
                Some(done) = self.drivers.join_next() => self.done(done),
                () = halt.halted() => return,
                () = &mut rested => return,
            }
        }
    }

    /// Starts what can be driven, then waits until something may have changed. Gives whether there is nothing more to do.
    async fn round(&mut self, until: FleetLimits, halt: &Halt, rounds: &mut Rounds) -> Result<bool, StoreError> {
        // A deadline may let a run go on that nobody drives.
        if rounds.looked.is_none_or(|looked| looked.elapsed() >= MAX_POLL_INTERVAL) {
            rounds.looked = Some(Instant::now());
            self.fire_due().await;
            self.forget_settled().await?;
            if !self.warned
                && let Some(warning) = self.runtime.store.changes_warning()
            {
                self.warned = true;
                self.guard("changes_are_late", |watcher| watcher.changes_are_late(&warning)).unwrap_or_default();
            }
        }
        self.start_runs(until.max_runs, halt).await?;
        if !self.driving.is_empty() || self.backing_off.values().any(|backing_off| backing_off.again.is_some()) {
            rounds.busy = Instant::now();
        } else if until.idle.is_some_and(|idle| rounds.busy.elapsed() >= idle) && !self.has_work().await? {
            return Ok(true);
        }
        tokio::time::sleep(MIN_POLL_INTERVAL).await;
        let store = self.runtime.store.clone();
        tokio::select! {
            Some(done) = self.drivers.join_next() => self.done(done),
            () = halt.halted() => {}
            changed = store.changed(rounds.marker) => rounds.marker = changed?,
            () = tokio::time::sleep(until.idle.unwrap_or(MAX_POLL_INTERVAL).min(MAX_POLL_INTERVAL)) => {}
        }
        while let Some(done) = self.drivers.try_join_next() {
            self.done(done);
        }
        Ok(false)
    }

    /// Forgets runs that could not be driven here and that want no driver any more: they were cancelled, or another process drove them on.
    async fn forget_settled(&mut self) -> Result<(), StoreError> {
        if self.backing_off.is_empty() {
            return Ok(());
        }
        let mut limit = 16 + self.driving.len() + self.backing_off.len();
        loop {
            // They come before all other timers.
            let timers = self.runtime.store.timers(Timestamp::from_millis(0), limit).await?;
            if timers.len() < limit {
                let wanted: BTreeSet<RunId> =
                    timers.into_iter().filter(|timer| timer.kind.is(TimerKind::Drive)).map(|timer| timer.run).collect();
                self.backing_off.retain(|run, _| wanted.contains(run));
                return Ok(());
            }
            limit = limit.saturating_mul(4);
        }
    }

    /// What cannot be fired now is looked at again; `tick` tells why.
    async fn fire_due(&self) {
        match fire_due(&self.runtime, |run| self.watcher.is_ours(run)).await {
            Ok(fired) if fired.is_empty() => {}
            Ok(fired) => debug!(fired = fired.len(), "deadlines and reminders fired"),
            Err(error) => warn!(%error, "deadlines and reminders could not be fired; they are tried again"),
        }
    }

    /// Whether a run may be driven here now.
    fn is_fit(&self, run: &RunId, now: Instant) -> bool {
        !self.driving.contains(run)
            && self.backing_off.get(run).is_none_or(|backing_off| backing_off.again.is_some_and(|again| again <= now))
            && self.watcher.is_ours(run)
    }

    /// Starts to drive what waits for it.
    async fn start_runs(&mut self, max_runs: usize, halt: &Halt) -> Result<(), StoreError> {
        self.begin_parked(max_runs, halt).await?;
        while self.driving.len() < max_runs {
            let now = Instant::now();
            let is_fit = |run: &RunId| self.is_fit(run, now);
            match ClaimedRun::next(&self.runtime, &is_fit, max_runs - self.driving.len()).await {
                Ok(claimed) if claimed.is_empty() => return Ok(()),
                Ok(claimed) => {
                    for claimed in claimed {
                        let parked = self.parked.remove(claimed.run());
                        self.start(Found::Claimed { claimed, parked }, halt);
                    }
                }
                Err(error) if is_final(&error) => return Err(error),
                // What can be read and not claimed, as on a full disk, is tried again later.
                Err(error) => match self.first_undriven(&is_fit).await? {
                    Some(run) => self.back_off(run, &error.into()),
                    None => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Continues runs that this process let go when they waited, without a claim of their own: the commit that starts the next task makes it. Those that
    /// are not among the first are claimed like all others.
    async fn begin_parked(&mut self, max_runs: usize, halt: &Halt) -> Result<(), StoreError> {
        let free = max_runs.saturating_sub(self.driving.len());
        if free == 0 || self.parked.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let listed = self.runtime.store.undriven(free.saturating_mul(2)).await?;
        let parked = listed.into_iter().filter(|run| self.parked.contains(run) && self.is_fit(run, now));
        for run in parked.take(free).collect::<Vec<RunId>>() {
            self.parked.remove(&run);
            self.start(Found::Parked(Parked::here(run)), halt);
        }
        Ok(())
    }

    fn start(&mut self, found: Found, halt: &Halt) {
        let (runtime, halt, run) = (self.runtime.clone(), halt.clone(), found.run().clone());
        let listener = match self.guard("listener", |watcher| watcher.listener(&run)) {
            Ok(listener) => listener,
            // What was claimed is released as it is dropped.
            Err(detail) => return self.back_off(run.clone(), &DriveError::Panicked { run, detail }),
        };
        self.driving.insert(run.clone());
        spans::run(&run).in_scope(|| {
            let claimed = matches!(found, Found::Claimed { .. });
            info!(claimed, driving = self.driving.len(), "picked up");
        });
        self.drivers.spawn(async move {
            // Where it panics, the driver is dropped, and with it its claim.
            let driven = AssertUnwindSafe(drive(runtime, found, listener, &halt)).catch_unwind().await;
            let panicked =
                |panic: Box<dyn Any + Send>| Err(DriveError::Panicked { run: run.clone(), detail: panic_text(&*panic) });
            let driven = driven.unwrap_or_else(panicked);
            (run, driven)
        });
    }

    /// Calls the watcher. A panic in it is no reason to end the drivers of other runs.
    fn guard<T>(&mut self, call: &'static str, act: impl FnOnce(&mut dyn Watcher) -> T) -> Result<T, String> {
        std::panic::catch_unwind(AssertUnwindSafe(|| act(&mut *self.watcher))).map_err(|panic| {
            let detail = panic_text(&*panic);
            warn!(call, detail, "the observer panicked");
            detail
        })
    }

    fn done(&mut self, done: Result<Driven, JoinError>) {
        let (run, driven) = match done {
            Ok(done) => done,
            // Panics of drivers are caught where they happen; this one is not of a run.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self.driving.remove(&run);
        match driven {
            Ok(paused) => {
                self.backing_off.remove(&run);
                let Some(paused) = paused else { return };
                // What a panic in the observer said is logged, and there is no driver left that it could end.
                self.guard("paused", |watcher| watcher.paused(&run, &paused)).unwrap_or_default();
                if paused == Paused::Waiting {
                    if self.parked.len() >= REMEMBERED {
                        self.parked.clear();
                    }
                    self.parked.insert(run);
                }
            }
            // Another process drives it. It is found again once that one lets it go.
            Err(DriveError::DrivenBy { by, .. }) => {
                spans::run(&run).in_scope(|| debug!(%by, "driven by another process"));
                self.backing_off.remove(&run);
            }
            Err(error @ DriveError::TakenOver(_)) => {
                self.backing_off.remove(&run);
                self.guard("failed", |watcher| watcher.failed(&run, &error, Some(MAX_POLL_INTERVAL))).unwrap_or_default();
            }
            Err(
                error @ (DriveError::LeaseLost(_)
                | DriveError::Panicked { .. }
                | DriveError::Refused(_)
                | DriveError::Load(_)
                | DriveError::Store(_)
                | DriveError::Orphans { .. }),
            ) => {
                self.back_off(run, &error);
            }
        }
    }

    /// A run cannot be driven now: it is tried again after a while that doubles each time, and given up in the end.
    fn back_off(&mut self, run: RunId, error: &DriveError) {
        let pause = self.backing_off.get(&run).map_or(INITIAL_BACKOFF, |before| before.pause * 2);
        let again_in = (pause <= MAX_BACKOFF).then_some(pause);
        spans::run(&run).in_scope(|| match again_in {
            Some(pause) => warn!(%error, ?pause, "could not be driven; it is tried again"),
            None => warn!(%error, "given up"),
        });
        self.guard("failed", |watcher| watcher.failed(&run, error, again_in)).unwrap_or_default();
        self.backing_off.insert(run, Backoff { again: again_in.map(|pause| Instant::now() + pause), pause });
    }
}

/// Drives a run until it pauses, then lets it go.
async fn drive(runtime: Runtime, found: Found, listener: Box<dyn Listener>, halt: &Halt) -> Result<Option<Paused>, DriveError> {
    let Some(mut driver) = found.wake(runtime, listener).await? else { return Ok(None) };
    let paused = driver.drive(halt).await;
    // Whatever came of it, nothing of the run is running here any more.
    driver.release().await;
    paused.map(Some)
}

/// When the store was looked at, and what was seen.
struct Rounds {
    /// When there was last something to drive.
    busy: Instant,
    looked: Option<Instant>,
    marker: u64,
}

/// Whether a store that fails so will not be what it was by itself.
fn is_final(error: &StoreError) -> bool {
    match error {
        StoreError::Gone(_)
        | StoreError::NotFound(_)
        | StoreError::Corrupt(_)
        | StoreError::Newer { .. }
        | StoreError::CommitsMissing { .. }
        | StoreError::Misused(_) => true,
        StoreError::Full(_)
        | StoreError::ReadOnly(_)
        | StoreError::Locked(_)
        | StoreError::OutcomeUnknown(_)
        | StoreError::NoRun(_)
        | StoreError::Io(_) => false,
    }
}
