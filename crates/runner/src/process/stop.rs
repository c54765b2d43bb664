//! A handle that asks jobs to end.

use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Asks jobs to end. Clones are one and the same handle.
#[derive(Clone, Debug)]
pub struct Stop {
    asked: Arc<watch::Sender<StopRequest>>,
}

/// What jobs were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StopRequest {
    #[default]
    Nothing,
    /// To end in order.
    End,
    /// To end in order, and to be killed at this time.
    EndBy(Instant),
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// A handle on which nobody asked yet.
    pub fn new() -> Self {
        Self { asked: Arc::new(watch::Sender::default()) }
    }

    /// Asks the jobs that hold a clone of this to end, now and from now on.
    pub fn stop(&self) {
        self.asked.send_modify(|asked| {
            if *asked == StopRequest::Nothing {
                *asked = StopRequest::End;
            }
        });
    }

    /// Asks the same, and that whatever is left at this time is killed, however long it would be given otherwise.
    pub fn stop_by(&self, kill_at: Instant) {
        self.asked.send_modify(|asked| {
            *asked = match *asked {
                StopRequest::EndBy(earlier) => StopRequest::EndBy(earlier.min(kill_at)),
                StopRequest::Nothing | StopRequest::End => StopRequest::EndBy(kill_at),
            }
        });
    }

    /// When whatever is left is to be killed, if somebody said so.
    pub fn kill_at(&self) -> Option<Instant> {
        match *self.asked.borrow() {
            StopRequest::EndBy(kill_at) => Some(kill_at),
            StopRequest::Nothing | StopRequest::End => None,
        }
    }

    /// Waits until somebody says when to kill, or says an earlier time than this one.
    pub async fn hurried(&self, than: Option<Instant>) {
        let earlier = |asked: &StopRequest| match (*asked, than) {
            (StopRequest::EndBy(kill_at), Some(than)) => kill_at < than,
            (StopRequest::EndBy(_), None) => true,
            (StopRequest::Nothing | StopRequest::End, _) => false,
        };
        self.until(earlier).await;
    }

    /// Whether somebody asked.
    pub fn is_stopped(&self) -> bool {
        *self.asked.borrow() != StopRequest::Nothing
    }

    /// Waits until somebody asks.
    pub async fn stopped(&self) {
        self.until(|asked| *asked != StopRequest::Nothing).await;
    }

    async fn until(&self, is_met: impl FnMut(&StopRequest) -> bool) {
        if self.asked.subscribe().wait_for(is_met).await.is_err() {
            // The sender lives as long as `self`, so waiting can only end because somebody asked.
            std::future::pending().await
        }
    }
}
