//! What is said to a person below a question: the keys that there are, and what became of those that were pressed.

use super::editor;
use crate::columns::{rows, wrapped};
use crate::live;
use crate::print::{self, FAINT, styled};
use lockgate_engine::hold::{Choice, Hold};

/// What Ctrl+Z means while somebody is asked.
pub(super) const COMES_BACK: &str = "`fg` brings the question back";

/// The key that shows in full what a hold is about; nothing where it shows nothing.
pub(super) fn in_full(hold: &Hold) -> Option<&'static str> {
    match (hold.files.is_empty(), hold.diff.is_none()) {
        (true, true) => None,
        (false, true) => Some("Ctrl+O shows the files in full."),
        (true, false) => Some("Ctrl+O shows the change in full."),
        (false, false) => Some("Ctrl+O shows the files and the change in full."),
    }
}

/// Says what became of feedback that was left.
pub(super) const KEPT: &str = "Your feedback is kept: choose an option with feedback, and it is there again.";

/// What Escape does while feedback is written.
pub(super) const GOES_BACK: &str = "Esc goes back and keeps it";

/// The question in front of what is typed.
pub(super) fn question(hold: &Hold) -> String {
    format!("Choose 1-{} (number, label or arrows), then Enter: ", hold.options.len())
}

/// The keys that there are while feedback is written.
pub(super) fn feedback(escape: &str) -> String {
    let editor = if editor::chosen().is_some() { ", Ctrl+G opens your editor" } else { "" };
    format!("Feedback: Enter ends it (it may be empty), Alt+Enter breaks the line{editor}, {escape}.")
}

/// That words are no answer, and what they would mean.
pub(super) fn no_approval(choice: &Choice) -> String {
    let label = lockgate::sanitize::line(&choice.label);
    format!("That is no approval. Enter once more means \"{label}\" with these words; or change them.")
}

/// Says something in passing, broken between words.
pub(super) fn hint(text: &str) {
    let text = wrapped(text, live::window().columns);
    let text = if print::stderr_has_colour() { styled(FAINT, text) } else { text };
    print::terminal(&format!("{text}\n"));
}

/// Says something in place of the line that was typed, broken between words.
pub(super) fn say(text: &str) {
    print::terminal(&format!("\r\x1b[K{}\n", wrapped(text, live::window().columns)));
}

/// How many rows are needed below the options of a hold until an answer is given.
pub(super) fn rows_below(hold: &Hold, columns: usize) -> usize {
    let of = |text: &str| rows(&wrapped(text, columns), columns);
    let files = in_full(hold).map_or(0, of);
    let feedback = if hold.options.iter().any(|choice| choice.with_feedback) { of(&feedback(GOES_BACK)) + 1 } else { 0 };
    files + of(&question(hold)) + 1 + feedback
}
