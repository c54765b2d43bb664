//! Asking a driver to stop in good order.

use crate::process::Stop;
use std::sync::{Arc, OnceLock};

/// Asks a driver to stop, and says why.
#[derive(Clone, Debug, Default)]
pub struct Halt {
    pub(super) stop: Stop,
    signal: Arc<OnceLock<String>>,
}

impl Halt {
    /// Asks the driver to stop because of this signal; the first one counts.
    pub fn halt(&self, signal: &str) {
        match self.signal.set(signal.to_owned()) {
            Ok(()) => tracing::info!(signal, "asked to stop"),
            Err(later) => tracing::debug!(signal = later, "asked to stop again"),
        }
        self.stop.stop();
    }

    /// Ends when the driver is asked to stop.
    pub async fn halted(&self) {
        self.stop.stopped().await;
    }

    /// Whether the driver was asked to stop.
    pub fn is_halted(&self) -> bool {
        self.stop.is_stopped()
    }

    /// The signal, once there was one.
    pub fn signal(&self) -> Option<&str> {
        self.signal.get().map(String::as_str)
    }
}
