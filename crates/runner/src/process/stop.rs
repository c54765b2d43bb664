//! A handle that asks jobs to end.

use std::sync::Arc;
use tokio::sync::watch;

/// Asks jobs to end. Clones are one and the same handle.
#[derive(Clone, Debug)]
pub struct Stop {
    asked: Arc<watch::Sender<bool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// A handle on which nobody asked yet.
    pub fn new() -> Self {
        Self { asked: Arc::new(watch::Sender::new(false)) }
    }

    /// Asks the jobs that hold a clone of this to end, now and from now on.
    pub fn stop(&self) {
        self.asked.send_replace(true);
    }

    /// Whether somebody asked.
    pub fn is_stopped(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits until somebody asks.
    pub async fn stopped(&self) {
        let mut asked = self.asked.subscribe();
        // The sender lives as long as `self`, so waiting can only end because somebody asked.
        let _ = asked.wait_for(|asked| *asked).await;
    }
}
