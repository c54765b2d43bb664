//! What a driver needs of the outside: a store, a clock, randomness, and somebody who performs effects.
//! A simulation puts others in their place.

use crate::commit::CommitError;
use crate::outbox::Courier;
use crate::projection::StateFile;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::effect::Effect;
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// The outside, as a driver sees it.
#[derive(Clone)]
pub struct Runtime {
    /// Where facts are kept.
    pub store: Arc<dyn Store>,
    /// Who performs effects.
    pub perform: Arc<dyn Perform>,
    /// What time it is, and random bytes.
    pub clock: Arc<dyn Clock>,
}

/// Time and randomness.
pub trait Clock: Send + Sync {
    /// What time it is.
    fn now(&self) -> Timestamp;
    /// Ends when the wall clock shows that moment, or when `longest` has passed by a clock that cannot be set, whichever comes first.
    fn sleep_until(&self, due: Timestamp, longest: Option<Duration>) -> BoxFuture<'static, ()>;
    /// Random bytes from which ids are made.
    fn seed(&self) -> [u8; 16];
}

/// Performs effects.
pub trait Perform: Send + Sync {
    /// Begins an effect. What it needs of the run is taken now; the future ends with what came of it.
    /// When `stop` is asked, whatever was started is ended before the future does.
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed>;

    /// The files for people that follow from a run; there are none by default.
    fn project(&self, _run: &Run) -> Option<StateFile> {
        None
    }

    /// Delivers the notices that commits bring; by default there are none.
    fn courier(&self) -> Option<&Arc<Courier>> {
        None
    }

    /// Ends what a driver that died left behind of a run's tasks, before anybody drives it again.
    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), OrphanError>>;
}

/// Why what a dead driver left behind was not ended.
#[derive(Debug, thiserror::Error)]
pub enum OrphanError {
    /// This process is one of those that would have to end.
    #[error("this process was started by an interrupted attempt that `resume` has to end; resume the run from another terminal")]
    Inside,
    /// The system refused.
    #[error(transparent)]
    Processes(#[from] std::io::Error),
    /// A commit that was cut off cannot be repaired.
    #[error(transparent)]
    Commits(#[from] CommitError),
    /// The thread that ends them did not come to its end.
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
}

/// What came of an effect.
#[derive(Clone, Debug)]
pub struct Performed {
    /// The command that tells the engine.
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

/// How long the clock is not looked at.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Both clocks are watched: the monotonic one stands still while the machine is suspended, and the one on the wall may be set.
/// In short pieces, because neither a suspension nor a set clock wakes a sleeper.
async fn sleep_until(due: Timestamp, longest: Option<Duration>, wall: impl Fn() -> Timestamp) {
    let now = wall();
    let started = tokio::time::Instant::now();
    // A clock that was set back before the sleep began must not lengthen it, nor one that is set back during it.
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

/// The clock and the randomness of this machine.
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

    /// A wall clock that goes with the runtime's clock, and is set by so many seconds half a minute later.
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
