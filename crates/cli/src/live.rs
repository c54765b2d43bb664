//! The live display: the open question and the tree of running tasks, drawn below the record of past events and redrawn as they
//! change.
//!
//! It is drawn below an empty row, the anchor. Without a question the cursor stays in the anchor, so a redraw does not depend on the
//! rows on the screen: however a resized window has rearranged the rows below the cursor, they are cleared and drawn again. While a
//! question is open, the cursor is in the input row and first returns to the anchor (`frame`). The record is printed over the rows, so
//! that in the end only the record remains.

mod drawing;
mod frame;
mod suspend;

pub(crate) use drawing::composed;
pub(crate) use frame::{Cursor, Frame};
pub(crate) use suspend::{stop, stop_with_others, suspension};

use drawing::{clear, coloured, draw, paint, put};

use crate::tree::{Size, Tree};
use lockgate_engine::id::{HoldId, RunId, StepKey};
use lockgate_engine::run::Run;
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::{Kind, Notification, StepOutcome};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The longest part of a line that is stored, in bytes; no window is wider.
const LONGEST_LINE: usize = 1024;

static SCREEN: Mutex<Screen> = Mutex::new(Screen::new());

/// Whether the live display is active. It is read for every line of task output.
static IS_LIVE: AtomicBool = AtomicBool::new(false);

static HAS_CHANGED: AtomicBool = AtomicBool::new(false);

/// Wakes the painter.
static CHANGED: Notify = Notify::const_new();

/// A question that is drawn above the tree. It is rendered for every drawing, so it always fits the window.
pub(crate) trait Question: Send + Sync {
    /// The rows of the question in a window of this width; the last one is the input row. It takes at most `most` rows, and leaves
    /// `reserved` of them to the tree if the question fits anyway or is truncated anyway.
    fn frame(&self, now: Timestamp, columns: usize, most: usize, reserved: usize) -> Frame;

    /// The hold of the question, which the tree need not name.
    fn hold(&self) -> Option<&HoldId>;
}

struct Screen {
    tree: Option<Tree>,
    question: Option<Arc<dyn Question>>,
    /// The last output line of each running step, by address.
    lines: Option<HashMap<String, String>>,
    /// Past events that are not printed yet.
    record: String,
    /// The frame on the screen.
    drawn: Option<Frame>,
    size: Option<Size>,
    /// How many callers have hidden the live display.
    hidden: usize,
    /// How many callers read keys, and must restore the terminal before this process stops.
    taken: usize,
    /// Whether another program uses the terminal, so that output is printed after it.
    held_back: bool,
    /// Whether the terminal is gone.
    gone: bool,
}

impl Screen {
    const fn new() -> Self {
        Self {
            tree: None,
            question: None,
            lines: None,
            record: String::new(),
            drawn: None,
            size: None,
            hidden: 0,
            taken: 0,
            held_back: false,
            gone: false,
        }
    }
}

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether stderr is a terminal with a movable cursor.
pub(crate) fn possible() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// The live display; it disappears when this is dropped.
#[derive(Debug)]
pub(crate) struct Live {
    painting: AbortHandle,
    suspending: AbortHandle,
}

impl Live {
    /// Starts the live display if the terminal supports it. Must be called inside the runtime.
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

    /// Updates the display with events, and adds their text to the record.
    pub(crate) fn heard(&self, run: &Run, notifications: &[Notification<'_>], text: &str) {
        let mut screen = screen();
        screen.record += text;
        match &mut screen.tree {
            Some(tree) => tree.heard(run, notifications),
            none => *none = Some(Tree::of(run, true)),
        }
        for notification in notifications {
            // A new attempt has no output yet, and the last line of a finished task is of no interest.
            if let Kind::StepStarted { step, .. } | Kind::StepEnded { step, outcome: StepOutcome::Done { .. }, .. } =
                &notification.kind
            {
                screen.lines.get_or_insert_default().remove(&step.address());
            }
        }
        changed();
    }

    /// Shows a run that another process or no process drives.
    pub(crate) fn watch(&self, run: &Run, driven: bool) {
        let mut screen = screen();
        match &mut screen.tree {
            Some(tree) => tree.set_driven(run, driven),
            none => *none = Some(Tree::of(run, driven)),
        }
        changed();
    }

    /// Replays earlier events for the times that the state of the run does not contain.
    pub(crate) fn recall(&self, run: &Run, notifications: &[Notification<'_>]) {
        if let Some(tree) = &mut screen().tree {
            tree.recall(run, notifications);
        }
    }

    /// The running steps and their attempts.
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

/// Shows that the running tasks are being stopped.
pub(crate) fn ending() {
    if let Some(tree) = &mut screen().tree {
        tree.set_ending();
    }
    changed();
}

/// Ends the live display. Only the record stays on the screen.
pub(crate) fn end() {
    let mut screen = screen();
    clear(&mut screen);
    screen.tree = None;
    IS_LIVE.store(false, Ordering::Relaxed);
}

/// A question is on the screen until this is dropped.
#[derive(Debug)]
pub(crate) struct Asking(());

/// Opens a question above the tree, or without a tree.
pub(crate) fn ask() -> Asking {
    Asking(())
}

impl Asking {
    /// Shows the current state of the question.
    pub(crate) fn show(&self, question: Arc<dyn Question>) {
        let mut screen = screen();
        screen.question = Some(question);
        draw(&mut screen);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut screen = screen();
        screen.question = None;
        // Not left to the next drawing: nothing may be printed below the question.
        clear(&mut screen);
        changed();
    }
}

/// Records that the caller reads keys from the terminal until the guard is dropped.
pub(crate) fn take_keys() -> KeysTaken {
    screen().taken += 1;
    KeysTaken(())
}

/// Keys are read from the terminal until this is dropped.
#[derive(Debug)]
pub(crate) struct KeysTaken(());

impl Drop for KeysTaken {
    fn drop(&mut self) {
        let mut screen = screen();
        screen.taken = screen.taken.saturating_sub(1);
    }
}

/// The live display is hidden until this is dropped.
#[derive(Debug)]
pub(crate) struct Hidden {
    holds_back: bool,
}

/// Hides the live display until the guard is dropped.
pub(crate) fn hide() -> Hidden {
    let mut screen = screen();
    clear(&mut screen);
    screen.hidden += 1;
    Hidden { holds_back: false }
}

/// Hides the live display and delays output, because another program uses the terminal while the run continues.
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
        draw(&mut screen);
        // Without a live display, no later drawing would print the record.
        if !IS_LIVE.load(Ordering::Relaxed) && screen.question.is_none() {
            clear(&mut screen);
        }
        changed();
    }
}

/// Stores the last output line of a step, in which secrets are already masked.
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

/// Writes text to stderr: above the live display, and after another program that uses the terminal. Returns whether it could be
/// written.
pub(crate) fn write_above(text: &str) -> bool {
    let mut screen = screen();
    if screen.held_back || screen.drawn.is_some() {
        screen.record += text;
        draw(&mut screen);
        return !screen.gone;
    }
    let record = std::mem::take(&mut screen.record);
    let text = if record.is_empty() { text.to_owned() } else { coloured(&record) + text };
    put(&mut screen, &text)
}

/// Writes text at the cursor: the parts of a question, and sequences that show no text.
pub(crate) fn write_now(text: &str) {
    put(&mut screen(), text);
}
