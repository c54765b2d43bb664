//! The hints below a question: available keys, and results of pressed ones.

use super::editor;
use lockgate_engine::hold::Choice;

/// The consequence of Ctrl+Z during a question.
pub(super) const COMES_BACK: &str = "`fg` brings the question back";

/// The key that shows files and changes in full, if there are any.
pub(super) fn in_full(has_files: bool, has_diff: bool) -> Option<&'static str> {
    match (has_files, has_diff) {
        (false, false) => None,
        (true, false) => Some("Ctrl+O shows the files in full."),
        (false, true) => Some("Ctrl+O shows the change in full."),
        (true, true) => Some("Ctrl+O shows the files and the change in full."),
    }
}

pub(super) const KEPT: &str = "Your feedback is kept: choose an option with feedback to edit it.";

/// The effect of Escape while feedback is written.
pub(super) const GOES_BACK: &str = "Esc goes back and keeps it";

/// The label of the input row.
pub(super) fn question(options: usize) -> String {
    match options {
        1 => "Choose 1 (number or label), then Enter: ".to_owned(),
        _ => format!("Choose 1-{options} (number, label or arrows), then Enter: "),
    }
}

/// The keys that are available while feedback is written.
pub(super) fn feedback(escape: &str) -> String {
    let editor = if editor::chosen().is_some() { ", Ctrl+G opens your editor" } else { "" };
    format!("Feedback: Enter sends it (it may be empty), Alt+Enter inserts a line break{editor}, {escape}.")
}

/// Explains that words are not an approval, and what entering them again does.
pub(super) fn no_approval(choice: &Choice) -> String {
    let label = lockgate::sanitize::line(&choice.label);
    format!("That is not an approval. Press Enter again to answer \"{label}\" with these words, or change them.")
}
