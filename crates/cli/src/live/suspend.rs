//! Ctrl+Z: the terminal is restored, this process stops as its shell expects, and everything is drawn again when it continues. Tasks
//! run in sessions of their own, so they are not stopped.

use crate::print::{self, HELP, styled};
use crate::sys::Place;
use rustix::process::{Signal, getpgrp, getpid, kill_process, kill_process_group};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// How long to wait for the stop. The system does not stop a process that no shell could continue.
const STOPS_WITHIN: Duration = Duration::from_millis(200);

/// Wakes the caller that uses the terminal when this process is asked to stop.
static ASKED: Notify = Notify::const_new();

/// Completes when this process is asked to stop while a caller uses the terminal.
pub(crate) async fn suspension() {
    ASKED.notified().await;
}

/// Stops this process on request while the live display is active.
pub(super) async fn listen() {
    let Ok(mut asked) = signal(SignalKind::from_raw(Signal::TSTP.as_raw())) else { return };
    while asked.recv().await.is_some() {
        if super::screen().taken > 0 {
            // The caller that reads keys restores the terminal first.
            ASKED.notify_one();
            continue;
        }
        let hidden = super::hide();
        stop_with_others("running tasks continue; the run itself continues after `fg`").await;
        drop(hidden);
    }
}

/// Stops this process and the others of its job until they are continued, and prints the consequence.
pub(crate) async fn stop_with_others(meaning: &str) {
    if !can_be_set_going() {
        return;
    }
    print::of_question(&format!("{} stopped; {meaning}\n", styled(HELP, "note:")));
    // Like the signal of Ctrl+Z, TTIN stops only processes that a shell can continue; unlike TSTP, it is not caught here.
    stopped(|| kill_process_group(getpgrp(), Signal::TTIN)).await;
}

/// Stops only this process until it is continued. The others have received the same signal.
pub(crate) async fn stop() {
    stopped(|| kill_process(getpid(), Signal::TTIN)).await;
}

/// Whether a shell could continue this process: a parent of its job in the same session. Without one, the system does not stop the
/// job.
fn can_be_set_going() -> bool {
    let Some(own) = Place::of("self") else { return false };
    let mut parent = own.parent.clone();
    // Parents may belong to the same job; the limit guards against a cycle.
    for _ in 0..64 {
        match Place::of(&parent) {
            Some(place) if place.session == own.session && place.group == own.group => parent = place.parent,
            Some(place) => return place.session == own.session,
            None => return false,
        }
    }
    false
}

async fn stopped(ask: impl Fn() -> rustix::io::Result<()>) {
    let Ok(mut continued) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else { return };
    if ask().is_err() {
        return;
    }
    // The stop may reach this thread later than the others, and nothing may be drawn in between.
    tokio::select! {
        _ = continued.recv() => {}
        () = tokio::time::sleep(STOPS_WITHIN) => {}
    }
}
