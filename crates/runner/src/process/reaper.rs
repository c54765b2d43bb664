//! Adopted processes: Lockgate is the subreaper of everything that its jobs leave behind.

use super::own_children;
use super::table::{self, Entry};
use crate::sys;
use rustix::process::{WaitOptions, waitpid};
use std::io;

/// Makes this process adopt all descendants that lose their parents, so that a double fork does not escape. Does nothing on
/// systems without subreapers.
pub fn become_subreaper() -> io::Result<()> {
    sys::adopt_orphans()
}

pub(super) fn is_subreaper() -> bool {
    sys::adopts_orphans()
}

/// The session of this process, which no process of a job is ever in. It is zero in a container that was entered from
/// outside, where the session leader is not visible. This reads the process table because the safe wrapper of the system call
/// treats zero as impossible.
pub(super) fn own_session() -> u32 {
    table::entry(std::process::id()).map_or(0, |entry| entry.session)
}

/// Reaps adopted processes that have ended, and returns their pids. Our own children are left to their waiters.
pub fn reap_adopted() -> Vec<u32> {
    look().0
}

/// Reaps adopted processes as they end. Never returns; spawn it as a background task of a long-lived process.
pub async fn keep_reaping() -> io::Result<std::convert::Infallible> {
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
    loop {
        reap_adopted();
        ended.recv().await;
    }
}

/// The live adopted processes, after reaping those that have ended.
pub(super) fn living() -> Vec<Entry> {
    look().1
}

fn look() -> (Vec<u32>, Vec<Entry>) {
    let mut reaped = reap_abandoned();
    let me = std::process::id();
    let session = own_session();
    // The children of an ended process are adopted only when it ends, so after each reaped process there may be more.
    loop {
        let before = reaped.len();
        let mut living = Vec::new();
        let mut candidates = table::children_of_first_thread().unwrap_or_else(|| table::all().into_keys().collect());
        // Checked after listing the candidates: a child of ours that is just being started is registered by then.
        own_children::children().remove_own_children(&mut candidates);
        for pid in candidates {
            // Children started by other code stay in our session; everything a job leaves behind is in another one.
            let Some(entry) = table::entry(pid).filter(|entry| entry.parent == me && entry.session != session) else { continue };
            match if entry.dead { reap(pid) } else { Reaped::NotYet } {
                Reaped::Yes => reaped.push(pid),
                Reaped::NotYet => living.push(entry),
                Reaped::NotOurs => {}
            }
        }
        if reaped.len() == before {
            return (reaped, living);
        }
    }
}

fn reap_abandoned() -> Vec<u32> {
    let mut reaped = Vec::new();
    own_children::children().abandoned.retain(|pid| match reap(*pid) {
        Reaped::Yes => {
            reaped.push(*pid);
            false
        }
        Reaped::NotYet => true,
        Reaped::NotOurs => false,
    });
    reaped
}

enum Reaped {
    Yes,
    NotYet,
    NotOurs,
}

fn reap(pid: u32) -> Reaped {
    match table::raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG)) {
        Some(Ok(Some(_))) => Reaped::Yes,
        Some(Ok(None)) => Reaped::NotYet,
        Some(Err(_)) | None => Reaped::NotOurs,
    }
}
