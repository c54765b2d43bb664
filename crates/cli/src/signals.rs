//! Signals that ask the program to stop. The first one ends what runs in good order, the second one at once.

use crate::error::CommandError;
use crate::live;
use lockgate::code::Code;
use lockgate_runner::driver::{Halt, HaltReason};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Whom Ctrl+C is meant for.
static FOREGROUND: Mutex<Foreground> = Mutex::new(Foreground::Us);

/// How long after a program gave the terminal back its last Ctrl+C may still be on its way here. The terminal itself sends none by then:
/// at the prompt, Ctrl+C is a key.
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
    // Whoever was begun with `nohup` outlives the terminal: listening would end that.
    let mut hangup = match is_ignored(SignalKind::hangup()) {
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
                kill_children();
            }
            halt.halt(reason);
            live::ending();
        }
    });
    Ok(())
}

/// The next signal of a kind; never where nobody listens for it.
async fn next(signals: &mut Option<Signal>) -> Option<()> {
    match signals {
        Some(signals) => signals.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether a signal does nothing to this process, as whoever began it wished. Where the system does not tell, it is not so.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::try_from(kind.as_raw_value() - 1).unwrap_or(u32::MAX);
    1_u64.checked_shl(bit).is_some_and(|bit| ignored & bit != 0)
}

/// Ctrl+C is not meant for this process while this is there.
pub(crate) struct SignalGuard {
    _interrupt: Option<Signal>,
}

/// Leaves Ctrl+C to another program on the same terminal. Must be called inside the runtime.
pub(crate) fn lend() -> SignalGuard {
    Foreground::AnotherProgram.set();
    // Where nobody listens for it, it would end this process.
    SignalGuard { _interrupt: signal(SignalKind::interrupt()).ok() }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        Foreground::UsSince(Instant::now()).set();
    }
}

/// Takes the sting out of writing past a limit on file sizes: the write fails, and the store says so, instead of the process being killed.
/// A handler, unlike ignoring the signal, does not reach the tasks. Must be called inside the runtime.
pub(crate) fn outlive_size_limits() {
    if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
        // Where there is no such signal there is no such limit.
        tracing::debug!(%error, "limits on file sizes are not handled");
    }
}

/// Kills the groups of all children: whoever asks twice does not want to wait for good manners.
fn kill_children() {
    for child in children() {
        // Each task leads a group of its own; what does not is reached by its own pid.
        let group = rustix::process::kill_process_group(child, rustix::process::Signal::KILL);
        let itself = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        tracing::debug!(pid = child.as_raw_pid(), group = group.is_ok(), itself = itself.is_ok(), "killed");
    }
}

fn children() -> Vec<rustix::process::Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<i32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    pids.into_iter().filter_map(rustix::process::Pid::from_raw).collect()
}
