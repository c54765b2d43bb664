//! Everything a driver needs from outside: a store, a clock, randomness and an effect performer. A simulation replaces them.

use crate::commit::CommitError;
use crate::config::ConfigError;
use crate::outbox::Courier;
use crate::projection::StateFile;
use crate::secret::Masks;
use crate::snapshot::SnapshotOptions;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::effect::Effect;
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub struct Runtime {
    pub store: Arc<dyn Store>,
    pub perform: Arc<dyn Perform>,
    /// Time and randomness.
    pub clock: Arc<dyn Clock>,
}

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    /// Resolves when the wall clock reaches `due`, or when `longest` has elapsed on the monotonic clock, whichever comes
    /// first.
    fn sleep_until(&self, due: Timestamp, longest: Option<Duration>) -> BoxFuture<'static, ()>;
    /// Random bytes for generating ids.
    fn seed(&self) -> [u8; 16];
}

pub trait Perform: Send + Sync {
    /// Starts an effect. It reads what it needs from `run` now; the future resolves to the outcome. After `stop` is
    /// requested, the future resolves only once everything it started has ended.
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed>;

    /// The generated files of a run; none by default.
    fn project(&self, _run: &Run) -> Option<StateFile> {
        None
    }

    /// Where and which snapshots of a run are written; none by default.
    fn snapshots(&self, _run: &Run) -> Result<Option<SnapshotOptions>, ConfigError> {
        Ok(None)
    }

    /// Masks for the secrets of a run that this process can know; none by default.
    fn masks(&self, _run: &Run) -> BoxFuture<'static, Arc<Masks>> {
        futures::future::ready(Arc::default()).boxed()
    }

    /// Delivers the notices of commits; none by default.
    fn courier(&self) -> Option<&Arc<Courier>> {
        None
    }

    /// Stops processes of a run's tasks that a dead driver left behind, before the run is driven again.
    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), OrphanError>>;
}

/// Why the orphans of a dead driver were not stopped.
#[derive(Debug, thiserror::Error)]
pub enum OrphanError {
    /// This process is one of the orphans.
    #[error("this process was started by an interrupted attempt that `resume` has to end; resume the run from another terminal")]
    Inside,
    #[error(transparent)]
    Processes(#[from] std::io::Error),
    /// An interrupted git commit cannot be repaired.
    #[error(transparent)]
    Commits(#[from] CommitError),
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
}

/// The outcome of an effect.
#[derive(Clone, Debug)]
pub struct Performed {
    /// The command that reports the outcome to the engine.
    pub command: CommandKind,
    /// Values that the command refers to.
    pub values: Vec<(Digest, Vec<u8>)>,
}

impl From<CommandKind> for Performed {
    fn from(command: CommandKind) -> Self {
        Self { command, values: Vec::new() }
    }
}

pub use crate::process::Stop;

/// The wall clock is checked at least this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Watches both clocks: the monotonic one stops during suspend, and the wall clock may be set. It sleeps in short intervals
/// because neither a resume nor a clock change wakes a sleeping task.
async fn sleep_until(due: Timestamp, longest: Option<Duration>, wall: impl Fn() -> Timestamp) {
    let now = wall();
    let started = tokio::time::Instant::now();
    // A clock that is set back before or during the sleep must not extend it.
    let longest = longest.map(|longest| longest.min(due.since(now)));
    loop {
        let by_wall = due.since(wall());
        let left = longest.map_or(by_wall, |longest| by_wall.min(longest.saturating_sub(started.elapsed())));
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
    }
}

/// The system clock and its randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    fn sleep_until(&self, due: Timestamp, longest: Option<Duration>) -> BoxFuture<'static, ()> {
        Box::pin(sleep_until(due, longest, || Self.now()))
    }

    fn seed(&self) -> [u8; 16] {
        rand::random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use tokio::time::Instant;

    const MINUTE: Duration = Duration::from_secs(60);

    /// A wall clock that follows the runtime's clock and is set forward by `seconds` after half a minute.
    fn wall_set_by(seconds: i64) -> impl Fn() -> Timestamp {
        let (started, set) = (Instant::now(), AtomicI64::new(0));
        move || {
            if started.elapsed() > MINUTE / 2 {
                set.store(seconds * 1000, Ordering::Relaxed);
            }
            Timestamp::from_millis(1_700_000_000_000 + started.elapsed().as_millis() as i64 + set.load(Ordering::Relaxed))
        }
    }

    async fn slept(seconds: i64, longest: Option<Duration>) -> Duration {
        let (wall, started) = (wall_set_by(seconds), Instant::now());
        sleep_until(wall().plus(MINUTE), longest, wall).await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn setting_the_wall_clock_back_does_not_extend_a_backoff() {
        assert_eq!(slept(-3_600, Some(MINUTE)).await, MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_suspend_counts_towards_a_backoff() {
        let slept = slept(3_600, Some(MINUTE)).await;
        assert!(slept > MINUTE / 2 && slept <= MINUTE / 2 + 2 * LONGEST_SLEEP, "{slept:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_backoff_scheduled_before_the_clock_was_set_back_is_not_extended() {
        let wall = wall_set_by(0);
        let (due, started) = (wall().plus(Duration::from_secs(36_000)), Instant::now());
        sleep_until(due, Some(MINUTE), wall).await;
        assert_eq!(started.elapsed(), MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_follows_the_wall_clock() {
        assert_eq!(slept(-600, None).await, MINUTE + Duration::from_secs(600));
    }
}
