//! Processes that lost their parents and came to us: Lockgate is the reaper of all that its jobs leave behind.

use super::own_children;
use super::table::{self, Entry};
use rustix::process::{WaitOptions, waitpid};
use std::io;

/// Makes this process adopt all descendants that lose their parents, so that no double fork escapes.
/// Does nothing where the system has no such thing.
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Whether this process adopts its orphaned descendants.
pub(super) fn is_subreaper() -> bool {
    #[cfg(target_os = "linux")]
    let adopts = rustix::process::child_subreaper().is_ok_and(|setting| setting.is_some());
    #[cfg(not(target_os = "linux"))]
    let adopts = false;
    adopts
}

/// The session that this process is in. No process of a job ever is.
/// Zero in a container that somebody entered from outside: the session's leader cannot be seen from in there.
/// The table says so plainly, where the safe wrapper of the system call takes zero for impossible.
pub(super) fn own_session() -> u32 {
    table::entry(std::process::id()).map_or(0, |entry| entry.session)
}

/// Takes the exit statuses of adopted processes that have ended, so that they leave the table, and gives their pids.
/// The statuses of our own children stay for those who wait for them.
pub fn reap_adopted() -> Vec<u32> {
    look().0
}

/// Reaps adopted processes as they end. Never returns; spawn it beside the work of a long-lived process.
pub async fn keep_reaping() -> io::Result<std::convert::Infallible> {
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?;
    loop {
        reap_adopted();
        ended.recv().await;
    }
}

/// The adopted processes that live, after those that have ended were reaped.
pub(super) fn living() -> Vec<Entry> {
    look().1
}

fn look() -> (Vec<u32>, Vec<Entry>) {
    let mut reaped = reap_abandoned();
    let me = std::process::id();
    let session = own_session();
    // What an ended one had started came to us only when it ended: so after each that was reaped, there may be more.
    loop {
        let before = reaped.len();
        let mut living = Vec::new();
        let mut candidates = table::children_of_first_thread().unwrap_or_else(|| table::all().into_keys().collect());
        // Asked only after the candidates were listed: one of ours that is just being started is known when this comes back.
        own_children::children().remove_own_children(&mut candidates);
        for pid in candidates {
            // Children that other code started stay in our session; whatever a job leaves behind is in another one.
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
