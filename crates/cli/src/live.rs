//! The live part of the terminal: the tree of what is under way, drawn below what happened and drawn anew as it changes.
//!
//! While it is there, the cursor stands in an empty row above it. So drawing anew needs no knowledge of what is on the screen: whatever a
//! window that changed its size has done to the rows below the cursor, they are cleared and drawn again; and what happened is
//! printed in their place first, so that at the end the terminal holds that alone.

mod suspend;

pub(crate) use suspend::{stop, stop_with_others, suspension};

use crate::print;
use crate::tree::{Size, Tree};
use anstream::adapter::strip_str;
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::Run;
use lockgate_runner::notifications::{Kind, Notification, StepOutcome};
use lockgate_runner::runtime::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios;
use std::collections::HashMap;
use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long there is at least between two drawings.
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(100);

/// How often times are told anew.
const TICK: Duration = Duration::from_secs(1);

/// The longest part of a line that is kept, in bytes; no window is wider.
const LONGEST_LINE: usize = 1024;

/// Clears the row of the cursor and all below it, and leaves the cursor at its beginning. Not in one piece: some terminals, tmux among
/// them, take what clears the whole screen from its first place as a wish to keep all that in what can be scrolled back to.
const ERASED: &str = "\r\x1b[K\x1b7\x1b[B\x1b[J\x1b8";

/// What is drawn, and what is on the screen.
static SCREEN: Mutex<Screen> = Mutex::new(Screen::new());

/// Whether there is a live part at all, asked for every line that a task prints.
static IS_LIVE: AtomicBool = AtomicBool::new(false);

/// Whether something has changed since the last drawing.
static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// Wakes whoever draws.
static CHANGED: Notify = Notify::const_new();

struct Screen {
    tree: Option<Tree>,
    /// The last line of each step that runs, by its address.
    lines: Option<HashMap<String, String>>,
    /// What happened and is not printed yet.
    record: String,
    /// The rows on the screen; none while there is no live part.
    drawn: Vec<String>,
    size: Option<Size>,
    /// How many have asked that nothing be drawn.
    hidden: usize,
    /// Whether a question has the terminal, so that everything else is printed after it.
    held_back: bool,
    /// Whether the terminal is gone.
    gone: bool,
}

impl Screen {
    const fn new() -> Self {
        Self {
            tree: None,
            lines: None,
            record: String::new(),
            drawn: Vec::new(),
            size: None,
            hidden: 0,
            held_back: false,
            gone: false,
        }
    }
}

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the talk goes to a terminal that a cursor can be moved on.
pub(crate) fn possible() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// A live part; it vanishes when this is dropped.
#[derive(Debug)]
pub(crate) struct Live {
    painting: AbortHandle,
    suspending: AbortHandle,
}

impl Live {
    /// Begins a live part, where there is a terminal for it. Must be called inside the runtime.
    pub(crate) fn begin() -> Option<Self> {
        if !possible() {
            return None;
        }
        *screen() = Screen { lines: Some(HashMap::new()), ..Screen::new() };
        IS_LIVE.store(true, Ordering::Relaxed);
        let painting = tokio::spawn(paint()).abort_handle();
        let suspending = tokio::spawn(suspend::listen()).abort_handle();
        Some(Self { painting, suspending })
    }

    /// Takes in what happened, and what is to be told about it.
    pub(crate) fn heard(&self, run: &Run, notifications: &[Notification<'_>], told: &str) {
        let mut screen = screen();
        screen.record += told;
        match &mut screen.tree {
            Some(tree) => tree.heard(run, notifications),
            none => *none = Some(Tree::of(run, true)),
        }
        for notification in notifications {
            // A new attempt has printed nothing yet, and no one needs the last line of a task that is done.
            if let Kind::StepStarted { step, .. } | Kind::StepEnded { step, outcome: StepOutcome::Done { .. }, .. } =
                &notification.kind
            {
                screen.lines.get_or_insert_default().remove(&step.address());
            }
        }
        changed();
    }

    /// Takes in a run that somebody else drives, or nobody.
    pub(crate) fn watch(&self, run: &Run, driven: bool) {
        let mut screen = screen();
        match &mut screen.tree {
            Some(tree) => tree.set_driven(run, driven),
            none => *none = Some(Tree::of(run, driven)),
        }
        changed();
    }

    /// Takes in what happened before, for the moments that the state of the run does not keep.
    pub(crate) fn recall(&self, run: &Run, notifications: &[Notification<'_>]) {
        if let Some(tree) = &mut screen().tree {
            tree.recall(run, notifications);
        }
    }

    /// The steps that run, with the attempt that does.
    pub(crate) fn running(&self) -> Vec<(StepKey, u32)> {
        screen().tree.iter().flat_map(|tree| tree.running()).map(|(key, attempt)| (key.clone(), attempt)).collect()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.painting.abort();
        self.suspending.abort();
        end();
    }
}

/// Takes in that what runs is being ended.
pub(crate) fn ending() {
    if let Some(tree) = &mut screen().tree {
        tree.set_ending();
    }
    changed();
}

/// Ends the live part: what happened is all that stays on the screen.
pub(crate) fn end() {
    let mut screen = screen();
    clear(&mut screen);
    screen.tree = None;
    IS_LIVE.store(false, Ordering::Relaxed);
}

/// Nothing is drawn while this is there; then everything is drawn again.
#[derive(Debug)]
pub(crate) struct Hidden {
    holds_back: bool,
}

/// Takes the live part off the screen, for as long as what this gives is there.
pub(crate) fn hide() -> Hidden {
    let mut screen = screen();
    clear(&mut screen);
    screen.hidden += 1;
    Hidden { holds_back: false }
}

/// The same, and what is printed meanwhile is kept until then: a question has the terminal, while the run continues.
pub(crate) fn hold_back() -> Hidden {
    let mut screen = screen();
    clear(&mut screen);
    screen.hidden += 1;
    screen.held_back = true;
    Hidden { holds_back: true }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let mut screen = screen();
        screen.hidden = screen.hidden.saturating_sub(1);
        if self.holds_back {
            screen.held_back = false;
        }
        // Without a live part there is no later drawing that would print it.
        if !IS_LIVE.load(Ordering::Relaxed) {
            clear(&mut screen);
        }
        changed();
    }
}

/// Keeps the last line that a step of the run that is shown printed. Secrets are masked in it already.
pub(crate) fn line(run: &RunId, address: &str, line: &str) {
    if !IS_LIVE.load(Ordering::Relaxed) || line.trim().is_empty() {
        return;
    }
    let end = (0..=LONGEST_LINE.min(line.len())).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    let mut screen = screen();
    if screen.tree.as_ref().is_some_and(|tree| !tree.is_of(run)) {
        return;
    }
    let lines = screen.lines.get_or_insert_default();
    match lines.get_mut(address) {
        Some(known) => {
            known.clear();
            known.push_str(&line[..end]);
        }
        None => {
            lines.insert(address.to_owned(), line[..end].to_owned());
        }
    }
    drop(screen);
    changed();
}

fn changed() {
    if !HAS_CHANGED.swap(true, Ordering::Relaxed) {
        CHANGED.notify_one();
    }
}

/// Writes text to where talk goes: above the live part, where there is one, and after a question that has the terminal. Gives
/// whether it could be written.
pub(crate) fn write_above(text: &str) -> bool {
    let mut screen = screen();
    if screen.held_back {
        screen.record += text;
        return true;
    }
    let record = std::mem::take(&mut screen.record);
    let text = if record.is_empty() { text.to_owned() } else { coloured(&record) + text };
    let whole = match screen.drawn.is_empty() {
        true => text,
        false => format!("{ERASED}{text}{}", drawing(&screen.drawn)),
    };
    put(&mut screen, &whole)
}

/// Writes text as it is, wherever the cursor is: what belongs to a question, and sequences that show no text.
pub(crate) fn write_now(text: &str) {
    put(&mut screen(), text);
}

fn put(screen: &mut Screen, text: &str) -> bool {
    let mut out = std::io::stderr().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    screen.gone |= written.as_ref().is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock);
    written.is_ok()
}

/// Takes the rows off the screen, and prints what happened before that was not printed.
fn clear(screen: &mut Screen) {
    let record = std::mem::take(&mut screen.record);
    let rows = std::mem::take(&mut screen.drawn);
    if !rows.is_empty() || !record.is_empty() {
        let erased = if rows.is_empty() { "" } else { ERASED };
        put(screen, &format!("{erased}{}", coloured(&record)));
    }
}

/// A text with its styles, or without where there is to be no colour.
fn coloured(text: &str) -> String {
    if print::stderr_has_colour() { text.to_owned() } else { strip_str(text).to_string() }
}

/// What draws rows below the cursor and leaves it where it was. No row goes on in the next one, whatever the terminal makes of its characters.
pub(crate) fn drawing(rows: &[String]) -> String {
    let mut text = String::from("\x1b[?7l\r\x1b[K");
    for row in rows {
        text.push_str(&format!("\r\n{row}\x1b[K"));
    }
    text.push_str(&format!("\x1b[J\x1b[{}A\r\x1b[?7h", rows.len()));
    text
}

/// Draws when something has changed or a second has passed, but not too often.
async fn paint() {
    let resized = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change());
    let Ok(mut resized) = resized else { return };
    loop {
        let at_once = tokio::select! {
            () = CHANGED.notified() => false,
            () = tokio::time::sleep(TICK) => false,
            _ = resized.recv() => true,
        };
        draw();
        if !at_once {
            let next = Instant::now() + BETWEEN_DRAWINGS;
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                _ = resized.recv() => draw(),
            }
        }
    }
}

/// Draws what has changed.
fn draw() {
    HAS_CHANGED.store(false, Ordering::Relaxed);
    let mut screen = screen();
    // Whoever has stopped the output with Ctrl+S has not stopped the run.
    if screen.hidden > 0 || screen.gone || !takes_output() {
        return;
    }
    // A job in the background must not draw over what its shell shows; what happened is told all the same.
    let (Some(tree), true) = (&screen.tree, in_foreground()) else {
        clear(&mut screen);
        return;
    };
    let size = window();
    let lines = &screen.lines;
    // Colours would only be shown as the signs that they consist of.
    let line_of = |address: &str| lines.as_ref()?.get(address).map(|line| strip_str(line).to_string());
    let rows: Vec<String> = tree.rows(SystemClock.now(), size, &line_of).iter().map(|row| coloured(row)).collect();
    if rows.is_empty() {
        clear(&mut screen);
        return;
    }
    if rows == screen.drawn && screen.record.is_empty() && screen.size == Some(size) {
        return;
    }
    let record = std::mem::take(&mut screen.record);
    let erased = if screen.drawn.is_empty() { "" } else { ERASED };
    let erased = if record.is_empty() && screen.size == Some(size) { "" } else { erased };
    let text = format!("{erased}{}{}", coloured(&record), drawing(&rows));
    (screen.drawn, screen.size) = (rows, Some(size));
    put(&mut screen, &text);
}

/// Whether the terminal takes what is written to it at once.
fn takes_output() -> bool {
    let stderr = std::io::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |_| !asked[0].revents().is_empty())
}

/// Whether the terminal is ours to draw on; one that has no foreground is.
fn in_foreground() -> bool {
    termios::tcgetpgrp(std::io::stderr()).map_or(true, |group| group == rustix::process::getpgrp())
}

/// How large the window is that the talk goes to.
pub(crate) fn window() -> Size {
    let size = termios::tcgetwinsize(std::io::stderr());
    let (columns, rows) = size.map_or((0, 0), |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    // A terminal that does not say how large it is.
    Size { columns: if columns == 0 { 80 } else { columns }, rows: if rows == 0 { 24 } else { rows } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_leaves_the_cursor_where_it_was_and_fills_the_rows_below() {
        let mut screen = vt100::Parser::new(10, 20, 0);
        screen.process(b"before\r\n");
        screen.process(drawing(&["one".into(), "two".into(), "three".into()]).as_bytes());
        assert_eq!(screen.screen().contents(), "before\n\none\ntwo\nthree");
        assert_eq!(screen.screen().cursor_position(), (1, 0));
        screen.process(drawing(&["1".into()]).as_bytes());
        assert_eq!(screen.screen().contents(), "before\n\n1");
        screen.process(ERASED.as_bytes());
        assert_eq!(screen.screen().contents(), "before");
    }

    #[test]
    fn a_drawing_at_the_bottom_scrolls_earlier_output_up_without_losing_any() {
        let mut screen = vt100::Parser::new(5, 20, 10);
        screen.process(b"a\r\nb\r\nc\r\nd\r\n");
        screen.process(drawing(&["one".into(), "two".into()]).as_bytes());
        assert_eq!(screen.screen().contents(), "c\nd\n\none\ntwo");
        assert_eq!(screen.screen().cursor_position(), (2, 0));
        screen.process(ERASED.as_bytes());
        screen.process(drawing(&["three".into()]).as_bytes());
        assert_eq!(screen.screen().contents(), "c\nd\n\nthree");
    }

    #[test]
    fn erasing_works_at_any_cursor_position_and_never_clears_the_whole_screen() {
        for row in 1..=5 {
            let mut screen = vt100::Parser::new(5, 20, 10);
            screen.process(format!("1\r\n2\r\n3\r\n4\r\n5\x1b[{row};3H").as_bytes());
            for piece in ERASED.split_inclusive('J') {
                screen.process(piece.trim_end_matches("\x1b[J").as_bytes());
                if piece.ends_with("\x1b[J") {
                    assert_ne!(screen.screen().cursor_position(), (0, 0));
                    screen.process(b"\x1b[J");
                }
            }
            assert_eq!(screen.screen().contents(), ["", "1", "1\n2", "1\n2\n3", "1\n2\n3\n4"][row - 1]);
            assert_eq!(usize::from(screen.screen().cursor_position().0), row - 1);
        }
    }
}
