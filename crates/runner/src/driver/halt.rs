//! Requests an orderly stop of a driver.

use crate::process::Stop;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// How long tasks get to end after a signal before they are killed. The interruption is recorded once they have ended, and that must not
/// take longer than two seconds: a system that shuts down kills this process soon after.
const SIGNAL_GRACE: Duration = Duration::from_secs(1);

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
    /// This process has driven runs for as long as the settings allow.
    SessionTimeout,
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
            Self::SessionTimeout => "session timeout",
        }
    }

    /// How long tasks get to end; `None` for as long as each of them gets when it is stopped for other reasons.
    fn grace(self) -> Option<Duration> {
        match self {
            Self::Interrupt | Self::Terminate | Self::HangUp | Self::SessionTimeout => Some(SIGNAL_GRACE),
            Self::Stopped | Self::RootMoved | Self::Endless => None,
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
        match reason.grace() {
            Some(grace) => self.stop.stop_by(Instant::now() + grace),
            None => self.stop.stop(),
        }
    }

    /// Has the tasks killed that have not ended yet. Their interruption is recorded all the same.
    pub fn kill(&self) {
        self.stop.stop_by(Instant::now());
    }

    /// Requests a stop once this process has driven runs for this long. Must be called inside the runtime.
    pub fn halt_after(&self, session_timeout: Duration, on_halt: impl FnOnce() + Send + 'static) {
        let halt = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(session_timeout).await;
            halt.halt(HaltReason::SessionTimeout);
            on_halt();
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_gives_tasks_a_second_and_a_kill_gives_none() {
        let (halt, sent) = (Halt::default(), Instant::now());
        halt.halt(HaltReason::Terminate);
        let kill_at = halt.stop.kill_at().unwrap();
        assert!(kill_at >= sent + SIGNAL_GRACE && kill_at <= Instant::now() + SIGNAL_GRACE);
        halt.halt(HaltReason::Interrupt);
        assert_eq!(halt.stop.kill_at(), Some(kill_at), "a later request does not give them more time");
        halt.kill();
        assert!(halt.stop.kill_at().unwrap() <= Instant::now());
        assert_eq!(halt.reason(), Some(HaltReason::Terminate));
    }

    #[test]
    fn an_embedding_program_leaves_each_task_its_own_time() {
        let halt = Halt::default();
        halt.halt(HaltReason::Stopped);
        assert!(halt.is_halted() && halt.stop.kill_at().is_none());
    }
}
