//! Many runs in one process: those that were left to the background are found, driven side by side, and let go when they wait for a person.
//!
//! A run that waits costs its id. No one has claimed it then, so once it is answered any process can continue it. Runs that other live processes drive are passed over. A
//! panic while a run is driven is a failure of that run alone.

use crate::driver::{ClaimedRun, DriveError, Halt, HaltReason, Listener, Paused, fire_due, panic_text};
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

/// How long a run that could not be driven is left alone: at first, then twice as long each time, and before it is given up.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// What becomes of the runs of a fleet, for whoever tells people.
pub trait Watcher: Send + Sync {
    /// Hears what happens in a run from now on.
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener>;

    /// A run is no longer driven here, for this reason.
    fn paused(&mut self, run: &RunId, paused: &Paused);

    /// A run could not be driven on; it is tried again after a while, or given up.
    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>);

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
}

/// What became of driving a run.
type Driven = (RunId, Result<Paused, DriveError>);

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

    async fn drive_on(&mut self, until: FleetLimits, halt: &Halt) -> Result<(), StoreError> {
        let mut busy = Instant::now();
        let mut looked = None;
        let mut marker = self.runtime.store.changes();
        outbox::wake(&self.runtime);
        while !halt.is_halted() {
            // A deadline may let a run go on that nobody drives.
            if looked.is_none_or(|looked: Instant| looked.elapsed() >= MAX_POLL_INTERVAL) {
                looked = Some(Instant::now());
                self.fire_due().await;
            }
            self.start_runs(until.max_runs, halt).await?;
            if !self.driving.is_empty() || self.backing_off.values().any(|backing_off| backing_off.again.is_some()) {
                busy = Instant::now();
            } else if until.idle.is_some_and(|idle| busy.elapsed() >= idle) && !self.has_work().await? {
                return Ok(());
            }
            tokio::time::sleep(MIN_POLL_INTERVAL).await;
            let store = self.runtime.store.clone();
            tokio::select! {
                Some(done) = self.drivers.join_next() => self.done(done),
                () = halt.halted() => {}
                changed = store.changed(marker) => marker = changed?,
                () = tokio::time::sleep(until.idle.unwrap_or(MAX_POLL_INTERVAL).min(MAX_POLL_INTERVAL)) => {}
            }
            while let Some(done) = self.drivers.try_join_next() {
                self.done(done);
            }
        }
        Ok(())
    }

    /// What cannot be fired now is looked at again; `tick` tells why.
    async fn fire_due(&self) {
        match fire_due(&self.runtime, |run| self.watcher.is_ours(run)).await {
            Ok(fired) if fired.is_empty() => {}
            Ok(fired) => debug!(fired = fired.len(), "deadlines and reminders fired"),
            Err(error) => warn!(%error, "deadlines and reminders could not be fired; they are tried again"),
        }
    }

    /// Starts to drive what waits for it.
    async fn start_runs(&mut self, max_runs: usize, halt: &Halt) -> Result<(), StoreError> {
        while self.driving.len() < max_runs {
            let now = Instant::now();
            let is_fit = |run: &RunId| {
                !self.driving.contains(run)
                    && self.backing_off.get(run).is_none_or(|backing_off| backing_off.again.is_some_and(|again| again <= now))
                    && self.watcher.is_ours(run)
            };
            match ClaimedRun::next(&self.runtime, &is_fit).await {
                Ok(Some(claimed)) => self.start(claimed, halt),
                Ok(None) => return Ok(()),
                Err(error @ StoreError::Gone(_)) => return Err(error),
                // What can be read and not claimed, as on a full disk, is tried again later.
                Err(error) => match self.first_undriven(&is_fit).await? {
                    Some(run) => self.back_off(run, &error.into()),
                    None => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn start(&mut self, claimed: ClaimedRun, halt: &Halt) {
        let (runtime, halt, run) = (self.runtime.clone(), halt.clone(), claimed.run().clone());
        let (parked, listener) = (self.parked.remove(&run), self.watcher.listener(&run));
        self.driving.insert(run.clone());
        spans::run(&run).in_scope(|| info!(parked, driving = self.driving.len(), "picked up"));
        self.drivers.spawn(async move {
            let driven = AssertUnwindSafe(drive(&runtime, &claimed, parked, listener, &halt)).catch_unwind().await;
            // Whatever came of it, nothing of the run is running here any more.
            claimed.release(&runtime).await;
            let panicked =
                |panic: Box<dyn Any + Send>| Err(DriveError::Panicked { run: run.clone(), detail: panic_text(&*panic) });
            let driven = driven.unwrap_or_else(panicked);
            (run, driven)
        });
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
                self.watcher.paused(&run, &paused);
                if paused == Paused::Waiting {
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
                self.watcher.failed(&run, &error, Some(MAX_POLL_INTERVAL));
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
        self.watcher.failed(&run, error, again_in);
        self.backing_off.insert(run, Backoff { again: again_in.map(|pause| Instant::now() + pause), pause });
    }
}

/// Drives a run that was claimed until it pauses.
async fn drive(
    runtime: &Runtime,
    claimed: &ClaimedRun,
    parked: bool,
    listener: Box<dyn Listener>,
    halt: &Halt,
) -> Result<Paused, DriveError> {
    let mut driver = claimed.resume(runtime.clone(), parked, listener).await?;
    driver.drive(halt).await
}
