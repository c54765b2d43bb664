//! Signals that ask the program to stop. The first one stops tasks gracefully, the second one kills them.

use crate::error::CommandError;
use crate::live;
use crate::sys;
use lockgate::code::Code;
use lockgate_runner::driver::{Halt, HaltReason};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which process Ctrl+C is meant for.
static FOREGROUND: Mutex<Foreground> = Mutex::new(Foreground::Us);

/// How long the last Ctrl+C of another program may take to arrive here. At the prompt, Ctrl+C is a key and sends no signal.
const LATE_INTERRUPT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
enum Foreground {
    Us,
    AnotherProgram,
    UsSince(Instant),
}

impl Foreground {
    fn set(self) {
        *FOREGROUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = self;
    }

    /// Whether a SIGINT that arrives now was meant for this process.
    fn takes_interrupts() -> bool {
        match *FOREGROUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Self::Us => true,
            Self::AnotherProgram => false,
            Self::UsSince(since) => since.elapsed() > LATE_INTERRUPT,
        }
    }
}

/// Halts the driver when a signal asks for it. Must be called inside the runtime.
pub(crate) fn listen(halt: &Halt) -> Result<(), CommandError> {
    let failed = |error| CommandError::new(Code::StartupFailed, format!("signals cannot be received: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    // A process started with `nohup` outlives the terminal; a listener would end that.
    let mut hangup = match sys::is_ignored(SignalKind::hangup()) {
        true => None,
        false => Some(signal(SignalKind::hangup()).map_err(failed)?),
    };
    let halt = halt.clone();
    tokio::spawn(async move {
        loop {
            let reason = tokio::select! {
                Some(()) = interrupt.recv() => {
                    if !Foreground::takes_interrupts() {
                        continue;
                    }
                    HaltReason::Interrupt
                }
                Some(()) = terminate.recv() => HaltReason::Terminate,
                Some(()) = next(&mut hangup) => HaltReason::HangUp,
                else => return,
            };
            if halt.is_halted() {
                halt.kill();
                kill_children();
            }
            halt.halt(reason);
            live::ending();
        }
    });
    Ok(())
}

/// The next signal, or never without a listener.
async fn next(signals: &mut Option<Signal>) -> Option<()> {
    match signals {
        Some(signals) => signals.recv().await,
        None => std::future::pending().await,
    }
}

/// Ctrl+C is meant for another program until this is dropped.
pub(crate) struct SignalGuard {
    _interrupt: Option<Signal>,
}

/// Leaves Ctrl+C to another program on the same terminal. Must be called inside the runtime.
pub(crate) fn lend() -> SignalGuard {
    Foreground::AnotherProgram.set();
    // Without a listener, the signal would end this process.
    SignalGuard { _interrupt: signal(SignalKind::interrupt()).ok() }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        Foreground::UsSince(Instant::now()).set();
    }
}

/// Makes writes past a file size limit fail with an error instead of killing the process. A handler, unlike ignoring the signal, is
/// not inherited by tasks. Must be called inside the runtime.
pub(crate) fn outlive_size_limits() {
    if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
        // A system without this signal has no such limit.
        tracing::debug!(%error, "limits on file sizes are not handled");
    }
}

/// Kills the process groups of all children, because a second signal asks not to wait.
fn kill_children() {
    for child in sys::children() {
        // Each task leads its own group; other children are reached by their pid.
        let group = rustix::process::kill_process_group(child, rustix::process::Signal::KILL);
        let itself = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        tracing::debug!(pid = child.as_raw_pid(), group = group.is_ok(), itself = itself.is_ok(), "killed");
    }
}
