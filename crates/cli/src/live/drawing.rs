//! Draws the live display: composes a frame of the question and the tree, and writes it to the terminal.

use super::frame::{ERASED, Frame, Reflow};
use super::{CHANGED, HAS_CHANGED, IS_LIVE, Question, Screen, changed, possible, screen};
use crate::print;
use crate::tree::{Size, Tree};
use anstream::adapter::strip_str;
use lockgate_engine::time::Timestamp;
use lockgate_runner::runtime::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios;
use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// The minimum interval between two drawings.
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(100);

/// How often elapsed times are updated.
const TICK: Duration = Duration::from_secs(1);

/// Writes to stderr, and records whether the terminal is gone.
pub(super) fn put(screen: &mut Screen, text: &str) -> bool {
    let mut out = std::io::stderr().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    screen.gone |= written.as_ref().is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock);
    written.is_ok()
}

/// Removes the rows from the screen, and prints the rest of the record.
pub(super) fn clear(screen: &mut Screen) {
    let erased = erased(screen);
    screen.drawn = None;
    let record = std::mem::take(&mut screen.record);
    if !erased.is_empty() || !record.is_empty() {
        put(screen, &format!("{erased}{}", coloured(&record)));
    }
}

/// The sequence that removes the rows and leaves the cursor in the anchor, whatever the size of the window.
fn erased(screen: &Screen) -> String {
    let Some(drawn) = &screen.drawn else { return String::new() };
    if !possible() {
        return String::from("\n");
    }
    let size = window();
    let home = match screen.size {
        Some(before) if size.columns < before.columns => {
            drawn.home_in(size.columns, Reflow::of(&|name: &str| std::env::var(name).ok()))
        }
        Some(_) | None => drawn.home(),
    };
    format!("{home}{ERASED}")
}

/// Removes styles from a text unless colours are on.
pub(super) fn coloured(text: &str) -> String {
    if print::stderr_has_colour() { text.to_owned() } else { strip_str(text).to_string() }
}

/// Redraws after changes and every second, at a limited rate.
pub(super) async fn paint() {
    let resized = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::window_change());
    let Ok(mut resized) = resized else { return };
    loop {
        let resizing = tokio::select! {
            () = CHANGED.notified() => false,
            () = tokio::time::sleep(TICK) => false,
            _ = resized.recv() => true,
        };
        draw_changes();
        if !resizing {
            let next = Instant::now() + BETWEEN_DRAWINGS;
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                _ = resized.recv() => draw_changes(),
            }
        }
    }
}

fn draw_changes() {
    HAS_CHANGED.store(false, Ordering::Relaxed);
    draw(&mut screen());
}

/// Draws the current state.
pub(super) fn draw(screen: &mut Screen) {
    if screen.hidden > 0 || screen.gone {
        return;
    }
    let is_live = IS_LIVE.load(Ordering::Relaxed);
    // Ctrl+S stops the output but not the run. The display is drawn when the terminal accepts output again.
    if is_live && !takes_output() {
        changed();
        return;
    }
    // A background job must not draw over its shell. The record is printed anyway.
    if (screen.tree.is_none() && screen.question.is_none()) || !in_foreground() {
        clear(screen);
        return;
    }
    if !possible() {
        draw_plainly(screen);
        return;
    }
    let size = window();
    let lines = &screen.lines;
    // Escape sequences would be shown as text.
    let line_of = |address: &str| lines.as_ref()?.get(address).map(|line| strip_str(line).to_string());
    let mut frame = composed(screen.question.as_deref(), screen.tree.as_ref(), SystemClock.now(), size, &line_of);
    frame.rows.iter_mut().for_each(|row| *row = coloured(row));
    if frame.rows.is_empty() {
        clear(screen);
        return;
    }
    let same_window = screen.size == Some(size);
    let text = match &screen.drawn {
        Some(drawn) if same_window && screen.record.is_empty() && *drawn == frame => return,
        Some(drawn) if same_window && screen.record.is_empty() => drawn.redrawn(&frame),
        Some(_) | None => format!("{}{}{}", erased(screen), coloured(&screen.record), frame.drawn()),
    };
    screen.record.clear();
    (screen.drawn, screen.size) = (Some(frame), Some(size));
    put(screen, &text);
}

/// Shows a question on a terminal without cursor movement: all of it after a change, and otherwise only the typed text.
fn draw_plainly(screen: &mut Screen) {
    let Some(question) = &screen.question else {
        clear(screen);
        return;
    };
    let mut frame = question.frame(SystemClock.now(), window().columns, usize::MAX, 0);
    frame.rows.iter_mut().for_each(|row| *row = coloured(row));
    let Some((typed, above)) = frame.rows.split_last() else { return };
    let is_known = screen.drawn.as_ref().is_some_and(|drawn| drawn.rows.split_last().is_some_and(|(_, known)| known == above));
    let text = match (is_known, screen.record.is_empty()) {
        (true, true) if screen.drawn.as_ref() == Some(&frame) => return,
        (true, true) => format!("\r\x1b[K{typed}"),
        (true, false) => format!("{}{}{typed}", erased(screen), coloured(&screen.record)),
        (false, _) => format!("{}{}{}", erased(screen), coloured(&screen.record), frame.rows.join("\n")),
    };
    screen.record.clear();
    screen.drawn = Some(frame);
    put(screen, &text);
}

/// Combines the question with as much of the tree as fits below it.
pub(crate) fn composed(
    question: Option<&dyn Question>,
    tree: Option<&Tree>,
    now: Timestamp,
    size: Size,
    line_of: &dyn Fn(&str) -> Option<String>,
) -> Frame {
    let asked = question.and_then(|question| question.hold());
    let of_tree = |most: usize| tree.map_or_else(Vec::new, |tree| tree.rows_in(now, size.columns, most, asked, line_of));
    let Some(question) = question else { return Frame::of(of_tree(size.most_rows())) };
    // One row is the anchor, and an empty one separates the question from the tree.
    let most = size.rows.saturating_sub(1).max(1);
    let reserved = match of_tree(size.most_rows()).len().min(size.rows / 4) {
        0 => 0,
        rows => rows + 1,
    };
    let mut frame = question.frame(now, size.columns, most, reserved);
    let tree = of_tree(most.saturating_sub(frame.rows.len() + 1).min(size.most_rows()));
    if !tree.is_empty() {
        frame.rows.push(String::new());
        frame.rows.extend(tree);
    }
    frame
}

/// Whether the terminal accepts output without blocking.
fn takes_output() -> bool {
    let stderr = std::io::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut asked, Some(&Timespec::default())).map_or(true, |_| !asked[0].revents().is_empty())
}

/// Whether this process is in the foreground of its terminal, or the terminal has no foreground job.
fn in_foreground() -> bool {
    termios::tcgetpgrp(std::io::stderr()).map_or(true, |group| group == rustix::process::getpgrp())
}

/// The size of the terminal window.
fn window() -> Size {
    let size = termios::tcgetwinsize(std::io::stderr());
    let (columns, rows) = size.map_or((0, 0), |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    // Some terminals do not report their size.
    Size { columns: if columns == 0 { 80 } else { columns }, rows: if rows == 0 { 24 } else { rows } }
}
