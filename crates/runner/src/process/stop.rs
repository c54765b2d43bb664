//! A handle that asks jobs to stop.

use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Asks jobs to stop. Clones share the request.
#[derive(Clone, Debug)]
pub struct Stop {
    asked: Arc<watch::Sender<StopRequest>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StopRequest {
    #[default]
    Nothing,
    /// An orderly stop.
    End,
    /// An orderly stop, with a kill at this time.
    EndBy(Instant),
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// A handle without a request.
    pub fn new() -> Self {
        Self { asked: Arc::new(watch::Sender::default()) }
    }

    /// Asks the jobs that hold a clone of this to stop, now and in the future.
    pub fn stop(&self) {
        self.asked.send_modify(|asked| {
            if *asked == StopRequest::Nothing {
                *asked = StopRequest::End;
            }
        });
    }

    /// Asks for a stop, and a kill of everything that is left at this time, however long it would be given otherwise.
    pub fn stop_by(&self, kill_at: Instant) {
        self.asked.send_modify(|asked| {
            *asked = match *asked {
                StopRequest::EndBy(earlier) => StopRequest::EndBy(earlier.min(kill_at)),
                StopRequest::Nothing | StopRequest::End => StopRequest::EndBy(kill_at),
            }
        });
    }

    /// When everything that is left is to be killed, if set.
    pub fn kill_at(&self) -> Option<Instant> {
        match *self.asked.borrow() {
            StopRequest::EndBy(kill_at) => Some(kill_at),
            StopRequest::Nothing | StopRequest::End => None,
        }
    }

    /// Waits until a kill time is set that is earlier than this one.
    pub async fn hurried(&self, than: Option<Instant>) {
        let earlier = |asked: &StopRequest| match (*asked, than) {
            (StopRequest::EndBy(kill_at), Some(than)) => kill_at < than,
            (StopRequest::EndBy(_), None) => true,
            (StopRequest::Nothing | StopRequest::End, _) => false,
        };
        self.until(earlier).await;
    }

    pub fn is_stopped(&self) -> bool {
        *self.asked.borrow() != StopRequest::Nothing
    }

    /// Waits until a stop is requested.
    pub async fn stopped(&self) {
        self.until(|asked| *asked != StopRequest::Nothing).await;
    }

    async fn until(&self, is_met: impl FnMut(&StopRequest) -> bool) {
        if self.asked.subscribe().wait_for(is_met).await.is_err() {
            // The sender lives as long as `self`, so waiting can only end with a request.
            std::future::pending().await
        }
    }
}
