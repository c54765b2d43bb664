//! What a driver needs of the outside: a store, a clock, randomness, and somebody who performs effects.
//! A simulation puts others in their place.

use crate::projection::StateFile;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Body;
use lockgate_engine::run::effect::Effect;
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// The outside, as a driver sees it.
#[derive(Clone)]
pub struct World {
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
    /// Ends when that moment has come.
    fn sleep_until(&self, due: Timestamp) -> BoxFuture<'static, ()>;
    /// Random bytes from which ids are made.
    fn seed(&self) -> [u8; 16];
}

/// Performs effects.
pub trait Perform: Send + Sync {
    /// Begins an effect. What it needs of the run is taken now; the future ends with what came of it.
    /// When `stop` is asked, whatever was started is ended before the future does.
    fn begin(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed>;

    /// The files for people that follow from a run; there are none by default.
    fn project(&self, _run: &Run) -> Option<StateFile> {
        None
    }

    /// Ends what a driver that died left behind of a run's tasks, before anybody drives it again.
    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), String>>;
}

/// What came of an effect.
#[derive(Clone, Debug)]
pub struct Performed {
    /// The command that tells the engine.
    pub body: Body,
    /// Values that the command refers to.
    pub values: Vec<(Digest, Vec<u8>)>,
}

impl From<Body> for Performed {
    fn from(body: Body) -> Self {
        Self { body, values: Vec::new() }
    }
}

pub use crate::process::Stop;

/// How long the clock is not looked at.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The clock and the randomness of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    fn sleep_until(&self, due: Timestamp) -> BoxFuture<'static, ()> {
        // In short pieces: the runtime's own clock stands still while the machine sleeps, and this one may be set.
        Box::pin(async move {
            loop {
                let left = due.since(Self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
            }
        })
    }

    fn seed(&self) -> [u8; 16] {
        rand::random()
    }
}
