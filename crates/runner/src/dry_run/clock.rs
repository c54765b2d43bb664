//! Time and ids of a dry run: sleeps return immediately, and the same dry run gives the same ids.

use crate::runtime::{Clock, SystemClock};
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::time::Timestamp;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A clock that skips ahead to the end of every sleep.
#[derive(Debug, Default)]
pub(super) struct TimeSkippingClock {
    /// By how many milliseconds it is ahead.
    ahead: AtomicI64,
    seeds: AtomicU64,
}

impl Clock for TimeSkippingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.ahead.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, due: Timestamp, _: Option<Duration>) -> BoxFuture<'static, ()> {
        let missing = due.as_millis() - self.now().as_millis();
        if missing > 0 {
            self.ahead.fetch_add(missing, Ordering::Relaxed);
        }
        futures::future::ready(()).boxed()
    }

    fn seed(&self) -> [u8; 16] {
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.seeds.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        seed
    }
}
