//! The width of text in terminal columns.

use unicode_width::UnicodeWidthChar;

/// The maximum width of a text. A terminal that joins several characters into one glyph needs less.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The longest prefix that fits into `most` columns.
pub(crate) fn first(text: &str, most: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, character)| {
        used += width_of(*character);
        used > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The longest suffix that fits into `most` columns.
pub(crate) fn last(text: &str, most: usize) -> &str {
    let mut used = 0;
    let start = text.char_indices().rev().take_while(|(_, character)| {
        used += width_of(*character);
        used <= most
    });
    &text[start.last().map_or(text.len(), |(at, _)| at)..]
}

/// Truncates a text to `most` columns, and marks the truncation with "…".
pub(crate) fn fitted(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    match most {
        0 => String::new(),
        most => format!("{}…", first(text, most - 1)),
    }
}

/// Wraps a text into rows of at most `most` columns, between words if possible. Lines keep their indentation, and empty lines are
/// kept.
pub(crate) fn folded(text: &str, most: usize) -> Vec<String> {
    text.lines().flat_map(|line| folded_line(&line.replace('\t', "    "), most.max(1))).collect()
}

fn folded_line(line: &str, most: usize) -> Vec<String> {
    let indent: String = line.chars().take_while(|character| *character == ' ').take(most / 2).collect();
    let mut rows = vec![indent.clone()];
    let mut used = columns(&indent);
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let mut rest = word;
        let is_first = rows.last().is_some_and(|row| row.len() == indent.len());
        let gap = usize::from(!is_first);
        if !is_first && used + gap + columns(rest) > most {
            rows.push(indent.clone());
            used = columns(&indent);
        } else if let Some(row) = rows.last_mut() {
            row.push_str(&" ".repeat(gap));
            used += gap;
        }
        while used + columns(rest) > most {
            let piece = first(rest, most - used);
            // A character wider than the window gets a row of its own.
            let end = if piece.is_empty() { rest.chars().next().map_or(0, char::len_utf8) } else { piece.len() };
            rows.last_mut().into_iter().for_each(|row| row.push_str(&rest[..end]));
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
            rows.push(indent.clone());
            used = columns(&indent);
        }
        rows.last_mut().into_iter().for_each(|row| row.push_str(rest));
        used += columns(rest);
    }
    rows
}

/// The width of a character: 0 for combining characters, 2 for wide scripts and emoji.
fn width_of(character: char) -> usize {
    match character {
        // Requests the wide form of the previous character, which some terminals draw.
        '\u{fe0f}' => 1,
        _ => character.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_combining_ones_zero() {
        for (text, wide) in [("", 0), ("abc", 3), ("日本", 4), ("e\u{301}", 1), ("🙂", 2), ("⌚", 2), ("✓●…│", 4)] {
            assert_eq!(columns(text), wide, "{text}");
        }
    }

    #[test]
    fn a_text_is_broken_between_words_and_inside_them_only_where_it_must_be() {
        assert_eq!(folded("one two three", 80), ["one two three"]);
        assert_eq!(folded("one two three", 7), ["one two", "three"]);
        assert_eq!(folded("日本 語 incomprehensible", 6), ["日本", "語", "incomp", "rehens", "ible"]);
        assert_eq!(folded("one  two\n\n  three four", 7), ["one two", "", "  three", "  four"]);
        assert_eq!(folded("日本", 1), ["日", "本"]);
        assert!(folded("", 5).is_empty());
    }

    #[test]
    fn truncation_keeps_characters_whole_and_fits_the_width() {
        assert_eq!(fitted("short", 5), "short");
        assert_eq!(fitted("日本語", 5), "日本…");
        assert_eq!(fitted("日本語", 4), "日…");
        for most in 0..12 {
            for text in ["plain words", "日本語の行", "🙂👩‍💻🙂", "e\u{301}e\u{301}e\u{301}"] {
                assert!(columns(&fitted(text, most)) <= most, "{text} in {most}");
                assert!(columns(first(text, most)) <= most && columns(last(text, most)) <= most, "{text} in {most}");
            }
        }
    }
}
