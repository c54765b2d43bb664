//! Ctrl+Z: the terminal is put in order, this process stops as its shell expects, and everything is drawn again when it goes on.
//! Tasks are in sessions of their own, so they are not stopped.

use crate::print::{self, HELP, styled};
use rustix::process::{Signal, getpgrp, getpid, kill_process, kill_process_group};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// How long to wait for being stopped. Where nobody could set this process going again, the system does not stop it.
const STOPS_WITHIN: Duration = Duration::from_millis(200);

/// Wakes whoever has taken over the terminal, when this process is asked to stop.
static ASKED: Notify = Notify::const_new();

/// Ends when this process is asked to stop while something has taken over the terminal.
pub(crate) async fn suspension() {
    ASKED.notified().await;
}

/// Stops this process when it is asked to, for as long as there is a live part.
pub(super) async fn listen() {
    let Ok(mut asked) = signal(SignalKind::from_raw(Signal::TSTP.as_raw())) else { return };
    while asked.recv().await.is_some() {
        if super::screen().taken > 0 {
            // Whoever takes keys from the terminal puts it in order first.
            ASKED.notify_one();
            continue;
        }
        let hidden = super::hide();
        stop_with_others("tasks under way go on, and what follows from them waits until `fg`").await;
        drop(hidden);
    }
}

/// Stops this process and those that share its job until they are set going again, and says what that means.
pub(crate) async fn stop_with_others(meaning: &str) {
    if !can_be_set_going() {
        return;
    }
    print::of_question(&format!("{} stopped; {meaning}\n", styled(HELP, "note:")));
    // Like the signal that Ctrl+Z sends, this one stops nobody whom no shell could set going again; and it is not caught here.
    stopped(|| kill_process_group(getpgrp(), Signal::TTIN)).await;
}

/// Stops this process alone until it is set going again: the others were asked as it was.
pub(crate) async fn stop() {
    stopped(|| kill_process(getpid(), Signal::TTIN)).await;
}

/// Whether there is a shell that would set this process going again: a parent of its job in the same session. Without one the
/// system stops nobody.
fn can_be_set_going() -> bool {
    let Some(own) = Place::of("self") else { return false };
    let mut parent = own.parent.clone();
    // Parents may be of the same job, but not without end.
    for _ in 0..64 {
        match Place::of(&parent) {
            Some(place) if place.session == own.session && place.group == own.group => parent = place.parent,
            Some(place) => return place.session == own.session,
            None => return false,
        }
    }
    false
}

/// Where a process stands among others.
struct Place {
    parent: String,
    group: String,
    session: String,
}

impl Place {
    fn of(process: &str) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::to_owned);
        Some(Self { parent: fields.next()?, group: fields.next()?, session: fields.next()? })
    }
}

async fn stopped(ask: impl Fn() -> rustix::io::Result<()>) {
    let Ok(mut going_on) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else { return };
    if ask().is_err() {
        return;
    }
    // The stop reaches this thread a moment later than the others, perhaps; nothing may be drawn in between.
    tokio::select! {
        _ = going_on.recv() => {}
        () = tokio::time::sleep(STOPS_WITHIN) => {}
    }
}
