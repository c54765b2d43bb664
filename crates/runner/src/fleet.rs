//! Drives many runs in one process: finds background runs, drives them concurrently, and parks them when they wait for a
//! person.
//!
//! A waiting run costs no more than its id. It is not claimed, so any process can continue it once it is answered. Runs that
//! other live processes drive are skipped. A panic while driving a run fails that run only.

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

/// The store is polled at most this often on average, however much other processes commit.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How far polling may run ahead of that average: a few changes after a quiet time are noticed at once.
const POLL_BURST: Duration = Duration::from_millis(50);

/// The store is polled at least this often, because a run driven elsewhere may become free, and a failed one may be due for a
/// retry.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Backoff for runs that could not be driven: it doubles each time, and after the maximum the run is given up. A failing
/// store uses the same backoff but is never given up.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// How many parked runs are remembered. A forgotten one is taken over instead of continued, which costs one event.
const REMEMBERED: usize = 10_000;

/// Observes the runs of a fleet.
pub trait Watcher: Send + Sync {
    /// The listener for a run that is about to be driven.
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener>;

    /// A run is no longer driven here.
    fn paused(&mut self, run: &RunId, paused: &Paused);

    /// A run could not be driven; it is retried after a while, or given up.
    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>);

    /// The store failed; it is retried after a while. Running work continues until it needs the store.
    fn store_failed(&mut self, error: &StoreError, again_in: Duration) {
        let (_, _) = (error, again_in);
    }

    /// Changes of other processes are noticed with a delay. Reported once.
    fn changes_are_late(&mut self, warning: &str) {
        let _ = warning;
    }

    /// The last driven run has paused.
    fn idle(&mut self) {}

    /// Whether a run belongs to this project and machine; on another machine its files are missing.
    fn is_ours(&self, run: &RunId) -> bool;
}

/// When a fleet stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetLimits {
    /// The time without anything to drive; `None` to wait forever.
    pub idle: Option<Duration>,
    /// The maximum number of concurrently driven runs.
    pub max_runs: usize,
}

pub struct Fleet {
    runtime: Runtime,
    watcher: Box<dyn Watcher>,
    driving: BTreeSet<RunId>,
    /// Waiting runs that this process drove last.
    parked: BTreeSet<RunId>,
    backing_off: BTreeMap<RunId, Backoff>,
    drivers: JoinSet<Driven>,
    /// Whether the delay of change notifications was already reported.
    warned: bool,
}

/// The outcome of driving a run; `None` if it no longer wanted a driver.
type Driven = (RunId, Result<Option<Paused>, DriveError>);

/// A run to be driven.
enum Found {
    Claimed {
        claimed: ClaimedRun,
        /// Whether this process drove it last and parked it.
        parked: bool,
    },
    /// This process drove it last and parked it: its next commit claims it.
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

struct Backoff {
    /// When it is retried; `None` once it is given up.
    again: Option<Instant>,
    pause: Duration,
}

impl Fleet {
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

    /// Drives all background runs that can continue, until there have been none for a while or a stop is requested. Nothing
    /// is running when this returns.
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

    /// Whether a run of this project wants a driver, other than those that were given up. It counts even while another
    /// process drives it, because that process may be about to end.
    pub async fn has_work(&self) -> Result<bool, StoreError> {
        let mut limit = 16 + self.driving.len() + self.backing_off.len();
        loop {
            // Drive timers come before all others.
            let timers = self.runtime.store.timers(Timestamp::from_millis(0), limit).await?;
            let all = timers.len() < limit;
            let mut wanted = timers.iter().filter(|timer| timer.kind.is(TimerKind::Drive)).map(|timer| &timer.run);
            let has_work = wanted.any(|run| !self.backing_off.contains_key(run) && self.watcher.is_ours(run));
            if all || has_work {
                return Ok(has_work);
            }
            // Runs of other projects may share the store, and any number of them may come first.
            limit = limit.saturating_mul(4);
        }
    }

    /// The first run that has no driver and satisfies the filter.
    async fn first_undriven(&self, is_fit: &(dyn Fn(&RunId) -> bool + Sync)) -> Result<Option<RunId>, StoreError> {
        let mut limit = 16;
        loop {
            let listed = self.runtime.store.undriven(limit).await?;
            let all = listed.len() < limit;
            let first = listed.into_iter().find(is_fit);
            if all || first.is_some() {
                return Ok(first);
            }
            // Runs of other projects may share the store, and any number of them may come first.
            limit = limit.saturating_mul(4);
        }
    }

    /// Drives until there is nothing more to do. An unreachable store does not end it: running work ends or fails by itself,
    /// and the rest waits.
    async fn drive_on(&mut self, until: FleetLimits, halt: &Halt) -> Result<(), StoreError> {
        let mut rounds =
            Rounds { busy: Instant::now(), looked: None, marker: self.runtime.store.changes(), pace: Pace::default() };
        let mut pause = INITIAL_BACKOFF;
        outbox::wake(&self.runtime);
        while !halt.is_halted() {
            match self.round(until, halt, &mut rounds).await {
                Ok(true) => return Ok(()),
                Ok(false) => pause = INITIAL_BACKOFF,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    warn!(%error, ?pause, "the store failed; retrying");
                    self.guard("store_failed", |watcher| watcher.store_failed(&error, pause)).unwrap_or_default();
                    rounds.busy = Instant::now();
                    self.rest(pause, halt).await;
                    pause = (pause * 2).min(MAX_BACKOFF);
                }
            }
        }
        Ok(())
    }

    /// Sleeps while running runs may end.
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

    /// Starts runs that can be driven, then waits for a possible change. Returns whether there is nothing more to do.
    async fn round(&mut self, until: FleetLimits, halt: &Halt, rounds: &mut Rounds) -> Result<bool, StoreError> {
        // A passed deadline may unblock a run that has no driver.
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
        tokio::time::sleep(rounds.pace.delay(Instant::now())).await;
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

    /// Forgets failed runs that no longer want a driver, because they were cancelled or driven on by another process.
    async fn forget_settled(&mut self) -> Result<(), StoreError> {
        if self.backing_off.is_empty() {
            return Ok(());
        }
        let mut limit = 16 + self.driving.len() + self.backing_off.len();
        loop {
            // Drive timers come before all others.
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

    /// Failures are retried; `tick` reports the reason.
    async fn fire_due(&self) {
        match fire_due(&self.runtime, |run| self.watcher.is_ours(run)).await {
            Ok(fired) if fired.is_empty() => {}
            Ok(fired) => debug!(fired = fired.len(), "deadlines and reminders fired"),
            Err(error) => warn!(%error, "cannot fire deadlines and reminders; retrying"),
        }
    }

    fn is_fit(&self, run: &RunId, now: Instant) -> bool {
        !self.driving.contains(run)
            && self.backing_off.get(run).is_none_or(|backing_off| backing_off.again.is_some_and(|again| again <= now))
            && self.watcher.is_ours(run)
    }

    async fn start_runs(&mut self, max_runs: usize, halt: &Halt) -> Result<(), StoreError> {
        if !self.begin_parked(max_runs, halt).await? {
            return Ok(());
        }
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
                // If a run can be read but not claimed, as on a full disk, back off.
                Err(error) => match self.first_undriven(&is_fit).await? {
                    Some(run) => self.back_off(run, &error.into()),
                    None => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Continues runs that this process parked, without a separate claim: the commit that starts the next task makes it. Runs
    /// that are not among the first are claimed like all others. Returns whether there may be more runs to drive.
    async fn begin_parked(&mut self, max_runs: usize, halt: &Halt) -> Result<bool, StoreError> {
        let free = max_runs.saturating_sub(self.driving.len());
        if free == 0 || self.parked.is_empty() {
            return Ok(free > 0);
        }
        let (now, limit) = (Instant::now(), free.saturating_mul(2));
        let listed = self.runtime.store.undriven(limit).await?;
        let all = listed.len() < limit;
        let (parked, others): (Vec<RunId>, Vec<RunId>) =
            listed.into_iter().filter(|run| self.is_fit(run, now)).partition(|run| self.parked.contains(run));
        let more = !all || !others.is_empty();
        for run in parked.into_iter().take(free) {
            self.parked.remove(&run);
            self.start(Found::Parked(Parked::here(run)), halt);
        }
        Ok(more)
    }

    fn start(&mut self, found: Found, halt: &Halt) {
        let (runtime, halt, run) = (self.runtime.clone(), halt.clone(), found.run().clone());
        let listener = match self.guard("listener", |watcher| watcher.listener(&run)) {
            Ok(listener) => listener,
            // Dropping the claimed run releases it.
            Err(detail) => return self.back_off(run.clone(), &DriveError::Panicked { run, detail }),
        };
        self.driving.insert(run.clone());
        spans::run(&run).in_scope(|| {
            let claimed = matches!(found, Found::Claimed { .. });
            info!(claimed, driving = self.driving.len(), "started driving");
        });
        self.drivers.spawn(async move {
            // After a panic, the driver and its claim are dropped.
            let driven = AssertUnwindSafe(drive(runtime, found, listener, &halt)).catch_unwind().await;
            let panicked =
                |panic: Box<dyn Any + Send>| Err(DriveError::Panicked { run: run.clone(), detail: panic_text(&*panic) });
            let driven = driven.unwrap_or_else(panicked);
            (run, driven)
        });
    }

    /// Calls the watcher. A panic in it must not stop the drivers of other runs.
    fn guard<T>(&mut self, call: &'static str, act: impl FnOnce(&mut dyn Watcher) -> T) -> Result<T, String> {
        std::panic::catch_unwind(AssertUnwindSafe(|| act(&mut *self.watcher))).map_err(|panic| {
            let detail = panic_text(&*panic);
            warn!(call, detail, "the watcher panicked");
            detail
        })
    }

    fn done(&mut self, done: Result<Driven, JoinError>) {
        let (run, driven) = match done {
            Ok(done) => done,
            // Panics of drivers are caught where they happen, so this one does not belong to a run.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self.driving.remove(&run);
        self.settle(run, driven);
        if self.driving.is_empty() {
            self.guard("idle", |watcher| watcher.idle()).unwrap_or_default();
        }
    }

    /// Remembers a run that is no longer driven, or schedules a retry.
    fn settle(&mut self, run: RunId, driven: Result<Option<Paused>, DriveError>) {
        match driven {
            Ok(paused) => {
                self.backing_off.remove(&run);
                let Some(paused) = paused else { return };
                // A panic in the watcher is logged; there is no driver left that it could stop.
                self.guard("paused", |watcher| watcher.paused(&run, &paused)).unwrap_or_default();
                if paused == Paused::Waiting {
                    if self.parked.len() >= REMEMBERED {
                        self.parked.clear();
                    }
                    self.parked.insert(run);
                }
            }
            // Another process drives it. It is listed again once that process releases it.
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
                | DriveError::RunExists(_)
                | DriveError::Orphans { .. }),
            ) => {
                self.back_off(run, &error);
            }
        }
    }

    /// Schedules a retry with a delay that doubles each time, and finally gives up.
    fn back_off(&mut self, run: RunId, error: &DriveError) {
        let pause = self.backing_off.get(&run).map_or(INITIAL_BACKOFF, |before| before.pause * 2);
        let again_in = (pause <= MAX_BACKOFF).then_some(pause);
        spans::run(&run).in_scope(|| match again_in {
            Some(pause) => warn!(%error, ?pause, "cannot drive the run; retrying"),
            None => warn!(%error, "cannot drive the run; giving up"),
        });
        self.guard("failed", |watcher| watcher.failed(&run, error, again_in)).unwrap_or_default();
        self.backing_off.insert(run, Backoff { again: again_in.map(|pause| Instant::now() + pause), pause });
    }
}

/// Drives a run until it pauses, then releases it.
async fn drive(runtime: Runtime, found: Found, listener: Box<dyn Listener>, halt: &Halt) -> Result<Option<Paused>, DriveError> {
    let Some(mut driver) = found.wake(runtime, listener).await? else { return Ok(None) };
    let paused = driver.drive(halt).await;
    // Whatever the outcome, nothing of the run is running here any more.
    driver.release().await;
    paused.map(Some)
}

/// The state of the polling loop.
struct Rounds {
    busy: Instant,
    looked: Option<Instant>,
    marker: u64,
    pace: Pace,
}

/// Limits how often the store is polled.
#[derive(Default)]
struct Pace {
    /// When the next poll would be due at the average rate; in the past after a quiet time.
    due: Option<Instant>,
}

impl Pace {
    /// How long to wait before the next poll.
    fn delay(&mut self, now: Instant) -> Duration {
        let due = self.due.map_or(now, |due| due.max(now)) + MIN_POLL_INTERVAL;
        self.due = Some(due);
        (due - now).saturating_sub(POLL_BURST)
    }
}

/// Whether the store cannot recover from this error by itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_run_ahead_only_after_a_quiet_time() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let mut polls = |now: &mut Instant| {
            let until = *now + Duration::from_secs(1);
            let mut polls = 0;
            while *now < until {
                *now += pace.delay(*now) + Duration::from_micros(100);
                polls += 1;
            }
            polls
        };
        assert!((200..=215).contains(&polls(&mut now)), "a busy second");
        assert!((200..=205).contains(&polls(&mut now)), "no second burst without a quiet time");
        now += Duration::from_secs(1);
        assert!((206..=215).contains(&polls(&mut now)), "a burst after a quiet time");
    }
}
