//! Asking a driver to stop in good order.

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
    /// The program that drives asked for it.
    Stopped,
    /// The project is no longer where it was.
    RootMoved,
    /// A dry run repeats itself without end.
    Endless,
}

impl HaltReason {
    /// The word that histories record.
    pub fn word(self) -> &'static str {
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
        out.write_str(self.word())
    }
}

/// Asks a driver to stop, and says why.
#[derive(Clone, Debug, Default)]
pub struct Halt {
    pub(super) stop: Stop,
    reason: Arc<OnceLock<HaltReason>>,
}

impl Halt {
    /// Asks the driver to stop; the first reason counts.
    pub fn halt(&self, reason: HaltReason) {
        match self.reason.set(reason) {
            Ok(()) => tracing::info!(%reason, "asked to stop"),
            Err(later) => tracing::debug!(reason = %later, "asked to stop again"),
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

    /// Why, once the driver was asked to stop.
    pub fn reason(&self) -> Option<HaltReason> {
        self.reason.get().copied()
    }
}
