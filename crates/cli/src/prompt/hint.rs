//! What is said to a person below a question: the keys that there are, and what became of those that were pressed.

use super::editor;
use lockgate_engine::hold::Choice;

/// What Ctrl+Z means while somebody is asked.
pub(super) const COMES_BACK: &str = "`fg` brings the question back";

/// Says which keys there are beside those that choose.
pub(super) const FILES: &str = "Ctrl+O shows the files in full.";

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
