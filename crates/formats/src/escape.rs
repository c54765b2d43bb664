//! Escapes values for lines, cells and blocks, so that they read back unchanged.
//!
//! Characters that would break the format become numeric character references such as `&#10;`, as Markdown defines them; all other
//! text stays as written.

/// Whether the text is one of the usual ways to write "nothing".
pub(super) fn is_nothing(text: &str) -> bool {
    matches!(text.to_lowercase().as_str(), "" | "-" | "–" | "—" | "none" | "(none)" | "n/a" | "null")
}

/// Escapes a value for one line: line breaks, leading and trailing spaces, and the given other characters.
pub(super) fn in_line(value: &str, others: &[char]) -> String {
    let mut escaped = String::with_capacity(value.len());
    let inner = value.trim_start().trim_end();
    let start = value.len() - value.trim_start().len();
    let end = start + inner.len();
    for (index, character) in value.char_indices() {
        let is_reference = character == '&' && value[index + 1..].starts_with('#');
        let is_outside = index < start || index >= end;
        if is_reference || is_outside || matches!(character, '\n' | '\r') || others.contains(&character) {
            push_reference(&mut escaped, character);
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Escapes a text of several lines. It keeps its lines as they are, except for space that would be trimmed and lines that would be
/// taken for part of the format.
pub(super) fn in_block(text: &str, is_syntax: impl Fn(&str) -> bool) -> String {
    let start = text.len() - text.trim_start().len();
    let end = start + text.trim().len();
    let mut escaped = String::with_capacity(text.len());
    for (index, character) in text.char_indices() {
        let is_reference = character == '&' && text[index + 1..].starts_with('#');
        let is_outside = index < start || index >= end;
        if is_reference || is_outside || character == '\r' {
            push_reference(&mut escaped, character);
        } else {
            escaped.push(character);
        }
    }
    let line = |line: &str| {
        let (space, rest) = line.split_at(line.len() - line.trim_start().len());
        let guard = if is_syntax(rest.trim_start_matches('\\')) { "\\" } else { "" };
        format!("{space}{guard}{rest}")
    };
    escaped.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Restores the text that [`in_block`] escaped.
pub(super) fn from_block(lines: &[&str], is_syntax: impl Fn(&str) -> bool) -> String {
    let line = |line: &&str| {
        let (space, rest) = line.split_at(line.len() - line.trim_start().len());
        match rest.strip_prefix('\\') {
            Some(bare) if is_syntax(rest.trim_start_matches('\\')) => format!("{space}{bare}"),
            Some(_) | None => (*line).to_owned(),
        }
    };
    plain(lines.iter().map(line).collect::<Vec<_>>().join("\n").trim())
}

/// Turns the first character of a value into a reference, so that the value is not taken for a keyword; an empty value becomes a
/// reference to nothing.
pub(super) fn not_a_word(escaped: &str) -> String {
    let mut characters = escaped.chars();
    let mut guarded = String::new();
    match characters.next() {
        // The value already starts with a reference.
        Some('&') => guarded.push('&'),
        Some(first) => push_reference(&mut guarded, first),
        None => guarded.push_str("&#;"),
    }
    guarded + characters.as_str()
}

fn push_reference(text: &mut String, character: char) {
    text.push_str(&format!("&#{};", u32::from(character)));
}

/// Resolves the references in a value.
pub(super) fn plain(escaped: &str) -> String {
    let mut plain = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = rest.find("&#") {
        plain.push_str(&rest[..at]);
        let number = &rest[at + 2..];
        let digits = number.len() - number.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let character = number[..digits].parse().ok().and_then(char::from_u32);
        rest = match (number[digits..].strip_prefix(';'), character) {
            (Some(after), Some(character)) => {
                plain.push(character);
                after
            }
            (Some(after), None) if digits == 0 => after,
            (Some(_) | None, _) => {
                plain.push_str("&#");
                number
            }
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_values_are_not_escaped() {
        assert_eq!(in_line("Fish & chips #1 <b> \\n", &[]), "Fish & chips #1 <b> \\n");
        assert_eq!(in_block("one\n\n  two && three", |_| false), "one\n\n  two && three");
    }

    #[test]
    fn line_breaking_values_round_trip() {
        for value in ["", " a ", "a\r\nb", "&#10;", "&#", "&#x;", "&&#35;", "\u{a0}é\n", "&#;", "&#99999999;"] {
            let escaped = in_line(value, &[]);
            assert!(!escaped.contains('\n') && escaped.trim() == escaped, "{escaped:?}");
            assert_eq!(plain(&escaped), value);
            assert_eq!(plain(&not_a_word(&escaped)), value);
        }
    }

    #[test]
    fn lines_with_special_meaning_are_escaped() {
        let means = |line: &str| line.starts_with("END");
        for text in ["END", "a\n  END\n\\END\n\\\\END", "\nEND\n", "\\x\n\\"] {
            let escaped = in_block(text, means);
            let lines: Vec<&str> = escaped.split('\n').collect();
            assert!(!lines.iter().any(|line| means(line.trim_start())), "{escaped:?}");
            assert_eq!(from_block(&lines, means), text);
        }
    }
}
