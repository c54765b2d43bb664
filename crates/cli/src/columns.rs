//! How many columns of a terminal a text takes.

use unicode_width::UnicodeWidthChar;

/// How many columns a text takes, at most: terminals that join several characters into one picture need less.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The beginning of a text that takes no more than so many columns.
pub(crate) fn first(text: &str, most: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, character)| {
        used += width_of(*character);
        used > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The end of a text that takes no more than so many columns.
pub(crate) fn last(text: &str, most: usize) -> &str {
    let mut used = 0;
    let start = text.char_indices().rev().take_while(|(_, character)| {
        used += width_of(*character);
        used <= most
    });
    &text[start.last().map_or(text.len(), |(at, _)| at)..]
}

/// A text in no more than so many columns; where something is left out, a sign says so.
pub(crate) fn fitted(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    match most {
        0 => String::new(),
        most => format!("{}…", first(text, most - 1)),
    }
}

/// A text broken between words, so that no line takes more than so many columns; a word that is longer has a line of its own.
pub(crate) fn wrapped(text: &str, most: usize) -> String {
    let (mut broken, mut used) = (String::with_capacity(text.len()), 0);
    for word in text.split_whitespace() {
        let wide = columns(word);
        if used > 0 {
            let fits = used + 1 + wide <= most;
            broken.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        broken += word;
        used += wide;
    }
    broken
}

/// How many rows of so many columns a text takes. It must have no styles.
pub(crate) fn rows(text: &str, width: usize) -> usize {
    let of_line = |line: &str| columns(&line.replace('\t', "        ")).div_ceil(width.max(1)).max(1);
    text.lines().map(of_line).sum()
}

/// How many columns a character takes: none for what joins the one before it, two for wide scripts and pictures.
fn width_of(character: char) -> usize {
    match character {
        // Asks for the wide form of the character before it, and some terminals give it.
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
    fn text_wraps_between_words_only() {
        assert_eq!(wrapped("one two three", 80), "one two three");
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("日本 語 incomprehensible", 6), "日本\n語\nincomprehensible");
        assert_eq!(wrapped("one  two", 0), "one\ntwo");
    }

    #[test]
    fn rows_are_counted_as_terminals_wrap_them() {
        assert_eq!(rows("", 10), 0);
        assert_eq!(rows("\none\n\n", 10), 3);
        assert_eq!(rows("0123456789\n0123456789a\n日本語日本語\n\tabc", 10), 1 + 2 + 2 + 2);
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
