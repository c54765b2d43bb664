//! Which of the expected files exist, and what they lack.

use super::output_files::{Outcome, OutputFiles, State};

/// The percentage of expected files that exist and are not empty: 100 only if it is all of them.
pub(super) fn coverage(folder: &OutputFiles) -> Outcome<u32> {
    let expected = folder.expected();
    let mut filled = 0;
    for path in expected {
        filled += usize::from(folder.state(path)? == State::Filled);
    }
    if filled == expected.len() {
        return Ok(100);
    }
    let percent = (filled * 100 + expected.len() / 2) / expected.len();
    Ok(u32::try_from(percent).unwrap_or(99).min(99))
}

/// A line for each file that is missing, empty or unfinished.
pub(super) fn gaps(folder: &OutputFiles, paths: &[String]) -> Outcome<Vec<String>> {
    let mut gaps = Vec::new();
    for path in paths {
        match folder.state(path)? {
            State::Missing => gaps.push(format!("{path} is missing")),
            State::Empty => gaps.push(format!("{path} is empty")),
            State::Filled if folder.holds(path, has_todo)? => gaps.push(format!("{path} contains TODO markers")),
            State::Filled => {}
        }
    }
    Ok(gaps)
}

/// Whether a text contains one of the markers as a whole word.
pub(super) fn has_todo(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    ["TODO", "FIXME", "TBD", "XXX"].iter().any(|marker| {
        text.match_indices(marker)
            .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + marker.len()..].starts_with(is_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todo_markers_are_matched_as_whole_words() {
        for text in ["TODO", "x TODO: y", "// FIXME", "(TBD)", "XXX\n"] {
            assert!(has_todo(text), "{text}");
        }
        for text in ["", "todo", "TODOS", "MASTODON TODOX", "XXXL", "A_TBD", "éTODO"] {
            assert!(!has_todo(text), "{text}");
        }
    }
}
