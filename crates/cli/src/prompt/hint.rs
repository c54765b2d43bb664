//! What is said to a person below a question: the keys that there are, and what became of those that were pressed.

use super::editor;
use lockgate_engine::hold::Choice;

/// What Ctrl+Z means while somebody is asked.
pub(super) const COMES_BACK: &str = "`fg` brings the question back";

/// The key that shows in full what a question shows; nothing if it shows nothing.
pub(super) fn in_full(has_files: bool, has_diff: bool) -> Option<&'static str> {
    match (has_files, has_diff) {
        (false, false) => None,
        (true, false) => Some("Ctrl+O shows the files in full."),
        (false, true) => Some("Ctrl+O shows the change in full."),
        (true, true) => Some("Ctrl+O shows the files and the change in full."),
    }
}

/// Says what became of feedback that was left.
pub(super) const KEPT: &str = "Your feedback is kept: choose an option with feedback, and it is there again.";

/// What Escape does while feedback is written.
pub(super) const GOES_BACK: &str = "Esc goes back and keeps it";

/// The question in front of what is typed.
pub(super) fn question(options: usize) -> String {
    format!("Choose 1-{options} (number, label or arrows), then Enter: ")
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
