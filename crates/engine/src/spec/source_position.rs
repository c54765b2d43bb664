//! Maps a position in the value of a scalar back to its position in the file.

use super::syntax::{Content, Node};
use serde_saphyr::granit_parser::ScalarStyle;
use std::ops::Range;

/// Finds the bytes of the file for a part of a scalar's text.
///
/// Exact if YAML only adds quotes, indentation or line breaks. For a quoted scalar with escapes, the result is the whole scalar.
pub(crate) fn in_file(source: &str, node: &Node<'_>, part: &Range<usize>) -> Range<usize> {
    let Content::Scalar(scalar) = &*node.content else { return node.span.clone() };
    let Some(raw) = source.get(node.span.clone()) else { return node.span.clone() };
    let (skipped, written) = match scalar.style {
        ScalarStyle::Plain => (0, raw),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if raw.len() >= 2 => (1, &raw[1..raw.len() - 1]),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => (0, raw),
        ScalarStyle::Literal | ScalarStyle::Folded => {
            // The header line may contain indicators and a comment, but no text.
            let header = if raw.starts_with(['|', '>']) { raw.find('\n').map_or(raw.len(), |newline| newline + 1) } else { 0 };
            (header, &raw[header..])
        }
    };
    let start = node.span.start + skipped;
    let text: &str = &scalar.text;
    if written == text {
        return start + part.start..start + part.end;
    }
    if !text.is_char_boundary(part.start) || !same_non_whitespace(written, text) {
        return node.span.clone();
    }
    let begin = start + find(written, text, part.start);
    begin..begin + same_line(&source[begin..node.span.end.max(begin)], &text[part.start..], part.len())
}

/// A byte of the file that belongs to a scalar's text, and the number of lines of that text before it.
pub(crate) fn first_text_byte(source: &str, node: &Node<'_>) -> (usize, usize) {
    let Content::Scalar(scalar) = &*node.content else { return (node.span.start, 0) };
    match scalar.style {
        ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => (node.span.start, 0),
        ScalarStyle::Literal | ScalarStyle::Folded => {
            // The start of such a scalar is not useful: its header is on another line, and empty lines may follow it.
            let first = non_whitespace(&scalar.text).next().map_or(0, |(at, _)| at);
            let place = in_file(source, node, &(first..first + 1));
            (place.start, scalar.text[..first].matches('\n').count())
        }
    }
}

/// Whether two texts differ only in white space.
fn same_non_whitespace(written: &str, text: &str) -> bool {
    non_whitespace(written).map(|(_, character)| character).eq(non_whitespace(text).map(|(_, character)| character))
}

fn non_whitespace(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|(_, character)| !character.is_whitespace())
}

/// The offset in `written` that corresponds to `offset` in `text`. Both have the same characters apart from white space.
fn find(written: &str, text: &str, offset: usize) -> usize {
    let before = non_whitespace(&text[..offset]).count();
    let at_text = text[offset..].chars().next().is_some_and(|character| !character.is_whitespace());
    if at_text {
        return non_whitespace(written).nth(before).map_or(written.len(), |(at, _)| at);
    }
    // White space and the end of the text map to the position right after the last character before them.
    let Some(last) = before.checked_sub(1) else { return 0 };
    non_whitespace(written).nth(last).map_or(written.len(), |(at, character)| at + character.len_utf8())
}

/// How many of `length` bytes are contiguous in the file.
fn same_line(written: &str, text: &str, length: usize) -> usize {
    let same = written.bytes().zip(text.bytes()).take(length).take_while(|(one, other)| one == other && *one != b'\n').count();
    let mut end = same;
    while !written.is_char_boundary(end) {
        end -= 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::super::{problem::Report, syntax};
    use super::*;

    /// The text in the file that corresponds to the first `needle` in the scalar `x`.
    fn behind<'s>(source: &'s str, needle: &str) -> &'s str {
        let root = syntax::parse(source, &mut Report::default()).expect("YAML");
        let Content::Map(entries) = &*root.content else { panic!("a map") };
        let Content::Scalar(scalar) = &*entries[0].value.content else { panic!("a scalar") };
        let at = scalar.text.find(needle).expect("needle");
        let range = in_file(source, &entries[0].value, &(at..at + needle.len()));
        assert!(range.start <= range.end);
        &source[range]
    }

    #[test]
    fn positions_are_exact_in_every_scalar_style_without_escapes() {
        for source in [
            "x: one two three",
            "x: 'one two three'",
            "x: \"one two three\"",
            "x: one\n  two\n  three",
            "x: 'one\n  two\n  three'",
            "x: |\n  one\n  two three\n",
            "x: |-   # a comment about two\n    one\n      two\n    three\n",
            "x: |2\n    one\n  two\n",
            "x: >\n  one\n  two\n\n  three\n",
            "x: >-\r\n  one\r\n  two\r\n",
            "x: | # ü\n  öne, ünd\n  two\n",
        ] {
            assert_eq!(behind(source, "two"), "two", "{source:?}");
        }
    }

    #[test]
    fn positions_in_a_scalar_with_escapes_cover_the_whole_scalar() {
        assert_eq!(behind("x: \"one\\n two\"", "two"), "\"one\\n two\"");
        assert_eq!(behind("x: 'it''s two'", "two"), "'it''s two'");
    }
}
