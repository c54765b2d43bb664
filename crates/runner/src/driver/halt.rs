//! Requests an orderly stop of a driver.

use crate::process::Stop;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Why a driver is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltReason {
    /// SIGINT, or Ctrl+C at a question.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
    /// The embedding program requested it.
    Stopped,
    /// The project directory was moved or removed.
    RootMoved,
    /// A dry run loops without end.
    Endless,
}

impl HaltReason {
    /// The reason as the history records it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
            Self::Stopped => "stopped",
            Self::RootMoved => "the root was moved",
            Self::Endless => "going round",
        }
    }
}

impl fmt::Display for HaltReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A stop request with its reason.
#[derive(Clone, Debug, Default)]
pub struct Halt {
    pub(super) stop: Stop,
    reason: Arc<OnceLock<HaltReason>>,
}

impl Halt {
    /// Requests a stop; the first reason counts.
    pub fn halt(&self, reason: HaltReason) {
        match self.reason.set(reason) {
            Ok(()) => tracing::info!(%reason, "asked to stop"),
            Err(later) => tracing::debug!(reason = %later, "asked to stop again"),
        }
        self.stop.stop();
    }

    /// Resolves when a stop is requested.
    pub async fn halted(&self) {
        self.stop.stopped().await;
    }

    pub fn is_halted(&self) -> bool {
        self.stop.is_stopped()
    }

    pub fn reason(&self) -> Option<HaltReason> {
        self.reason.get().copied()
    }
}
