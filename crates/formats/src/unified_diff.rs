//! The difference between two texts, in the format of `diff -u`.

use similar::TextDiff;
use std::time::Duration;

/// How long to search for the shortest difference; after that a longer one will do.
const TIME_LIMIT: Duration = Duration::from_millis(300);

const CONTEXT_LINES: usize = 3;

/// A text and the name that the header gives it.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

pub fn unified_diff(old: Side<'_>, new: Side<'_>) -> String {
    let diff = TextDiff::configure().timeout(TIME_LIMIT).diff_lines(old.text, new.text);
    diff.unified_diff().context_radius(CONTEXT_LINES).header(old.name, new.name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        unified_diff(Side { name: "a", text: old }, Side { name: "b", text: new })
    }

    #[test]
    fn changed_lines_have_three_lines_of_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let expected = "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(diff(old, &old.replace('5', "five")), expected);
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(diff("same\n", "same\n"), "");
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_noted() {
        assert_eq!(diff("a\n", "a"), "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
    }
}
