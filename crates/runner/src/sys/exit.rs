//! The end of a process, without reaping it.

use super::process_table;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::process::Child;

/// Tells that a process has ended, without reaping it.
#[derive(Debug)]
pub(crate) enum Exit {
    /// A descriptor that becomes readable when the process ends.
    #[cfg(target_os = "linux")]
    Handle(tokio::io::unix::AsyncFd<OwnedFd>),
    /// Signals that say that some child has ended.
    #[cfg(not(target_os = "linux"))]
    Signals(tokio::signal::unix::Signal, u32),
    /// Not watched.
    Unknown,
}

impl Exit {
    #[cfg(target_os = "linux")]
    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        use tokio::io::unix::AsyncFd;
        let pid = process_table::raw(child.id()).ok_or(io::ErrorKind::InvalidInput)?;
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        // SAFETY: the handle owns its descriptor and gives the same one for as long as it lives; nobody else closes it.
        let watched = unsafe { AsyncFd::register_with_interest(handle, tokio::io::Interest::READABLE) };
        Ok(Self::Handle(watched?))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self::Signals(signal(SignalKind::child())?, child.id()))
    }

    pub(crate) async fn wait(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Handle(handle) => {
                if let Err(error) = handle.readable().await {
                    // Only a runtime that is shutting down gives an error; nothing would be waited for then.
                    tracing::debug!(%error, "stopped waiting for a process to exit");
                }
            }
            #[cfg(not(target_os = "linux"))]
            Self::Signals(signals, pid) => {
                use rustix::process::{WaitId, WaitIdOptions, waitid};
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                let ended =
                    |pid: u32| process_table::raw(pid).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)));
                while !ended(*pid) {
                    signals.recv().await;
                }
            }
            Self::Unknown => std::future::pending().await,
        }
    }
}
