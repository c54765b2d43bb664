//! Decodes escapes before searching for secrets. An encoder may escape any character, so decoding is simpler than searching
//! for every possible spelling.

use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeStyle {
    /// No escapes.
    Plain,
    /// `%2F`, as in URLs.
    Percent,
    /// `\n`, `\"`, `\u00e4`, `\x2f`, `\303`: JSON, most languages, `$'…'` and `printf %q`.
    Backslash,
    /// `&amp;`, `&#47;`, `&#x2f;`, as in HTML and XML.
    Entity,
}

impl EscapeStyle {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Percent, Self::Backslash, Self::Entity];

    /// The byte that every escape starts with; text without it need not be decoded.
    pub(super) fn mark(self) -> Option<u8> {
        match self {
            Self::Plain => None,
            Self::Percent => Some(b'%'),
            Self::Backslash => Some(b'\\'),
            Self::Entity => Some(b'&'),
        }
    }
}

pub(super) struct Unescaped<'o> {
    pub(super) bytes: Cow<'o, [u8]>,
    /// The start of each byte in the original, and the end of the last one; `None` if nothing was decoded.
    starts: Option<Vec<usize>>,
}

/// A decoded escape and its length.
enum Escape {
    None,
    /// It may continue in the next piece.
    Cut,
    Is(char, usize),
    Byte(u8, usize),
}

impl<'o> Unescaped<'o> {
    /// Decodes the escapes of one style. Unless this is the end, an incomplete escape is left out.
    pub(super) fn of(view: EscapeStyle, original: &'o [u8], is_end: bool) -> Self {
        let Some(mark) = view.mark() else { return Self { bytes: Cow::Borrowed(original), starts: None } };
        let (mut bytes, mut starts) = (Vec::with_capacity(original.len()), Vec::with_capacity(original.len() + 1));
        let mut at = 0;
        while at < original.len() {
            let rest = &original[at..];
            let escape = if rest[0] == mark { undo(view, rest) } else { Escape::None };
            let mut text = [0; 4];
            let (said, length): (&[u8], usize) = match escape {
                Escape::Cut if !is_end => break,
                Escape::Cut | Escape::None => (&rest[..1], 1),
                Escape::Is(character, length) => (character.encode_utf8(&mut text).as_bytes(), length),
                Escape::Byte(byte, length) => {
                    text[0] = byte;
                    (&text[..1], length)
                }
            };
            bytes.extend_from_slice(said);
            starts.extend(std::iter::repeat_n(at, said.len()));
            at += length;
        }
        starts.push(at);
        Self { bytes: Cow::Owned(bytes), starts: Some(starts) }
    }

    /// The start of a byte in the original, or the end of the last one.
    pub(super) fn start(&self, index: usize) -> usize {
        self.starts.as_ref().map_or(index, |starts| starts[index])
    }

    /// The end, in the original, of the escape before this index.
    pub(super) fn end(&self, index: usize) -> usize {
        let Some(starts) = &self.starts else { return index };
        // All bytes of one escape start where it starts.
        let last = starts[index - 1];
        starts[index..].iter().copied().find(|start| *start > last).unwrap_or(last)
    }

    /// The last position at or before this one that does not split an escape.
    pub(super) fn boundary(&self, place: usize) -> usize {
        let Some(starts) = &self.starts else { return place };
        match starts.partition_point(|start| *start <= place) {
            0 => 0,
            past => starts[past - 1],
        }
    }
}

fn undo(view: EscapeStyle, rest: &[u8]) -> Escape {
    match view {
        EscapeStyle::Plain => Escape::None,
        EscapeStyle::Percent => digits(rest, 1, 2, 2, 16).map_or_byte(0),
        EscapeStyle::Backslash => backslash(rest),
        EscapeStyle::Entity => entity(rest),
    }
}

enum Number {
    None,
    Cut,
    Is(u32, usize),
}

impl Number {
    fn map_or_byte(self, after: usize) -> Escape {
        match self {
            Self::None => Escape::None,
            Self::Cut => Escape::Cut,
            Self::Is(number, length) => Escape::Byte(number as u8, length + after),
        }
    }

    fn map_or_char(self, after: usize) -> Escape {
        match self {
            Self::None => Escape::None,
            Self::Cut => Escape::Cut,
            Self::Is(number, length) => char::from_u32(number).map_or(Escape::None, |it| Escape::Is(it, length + after)),
        }
    }
}

/// Reads `least` to `most` digits after `start` bytes; returns the number and its end.
fn digits(rest: &[u8], start: usize, least: usize, most: usize, radix: u32) -> Number {
    let mut number: u32 = 0;
    let mut count = 0;
    while count < most {
        let Some(byte) = rest.get(start + count) else { return Number::Cut };
        let Some(digit) = char::from(*byte).to_digit(radix) else { break };
        number = number.saturating_mul(radix).saturating_add(digit);
        count += 1;
    }
    if count < least { Number::None } else { Number::Is(number, start + count) }
}

fn backslash(rest: &[u8]) -> Escape {
    let plain = |character| Escape::Is(character, 2);
    match rest.get(1) {
        None => Escape::Cut,
        Some(b'n') => plain('\n'),
        Some(b't') => plain('\t'),
        Some(b'r') => plain('\r'),
        Some(b'a') => plain('\u{7}'),
        Some(b'b') => plain('\u{8}'),
        Some(b'f') => plain('\u{c}'),
        Some(b'v') => plain('\u{b}'),
        Some(b'e' | b'E') => plain('\u{1b}'),
        Some(b'x') => digits(rest, 2, 2, 2, 16).map_or_byte(0),
        Some(b'0'..=b'7') => digits(rest, 1, 1, 3, 8).map_or_byte(0),
        Some(b'u') if rest.get(2) == Some(&b'{') => braced(rest),
        Some(b'u') => utf16(rest),
        Some(b'U') => digits(rest, 2, 8, 8, 16).map_or_char(0),
        Some(&other) => Escape::Byte(other, 2),
    }
}

/// `\u{e4}`
fn braced(rest: &[u8]) -> Escape {
    match digits(rest, 3, 1, 6, 16) {
        Number::Is(number, end) => match rest.get(end) {
            None => Escape::Cut,
            Some(b'}') => Number::Is(number, end).map_or_char(1),
            Some(_) => Escape::None,
        },
        other => other.map_or_char(0),
    }
}

/// `\u00e4`, or two of them for a character outside the basic multilingual plane.
fn utf16(rest: &[u8]) -> Escape {
    let high = match digits(rest, 2, 4, 4, 16) {
        Number::Is(high @ 0xd800..=0xdbff, _) => high,
        other => return other.map_or_char(0),
    };
    match (rest.get(6), rest.get(7)) {
        (None, _) | (Some(b'\\'), None) => Escape::Cut,
        (Some(b'\\'), Some(b'u')) => match digits(rest, 8, 4, 4, 16) {
            Number::Is(low @ 0xdc00..=0xdfff, end) => {
                Number::Is(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), end).map_or_char(0)
            }
            Number::Cut => Escape::Cut,
            Number::Is(..) | Number::None => Escape::None,
        },
        (Some(_), _) => Escape::None,
    }
}

fn entity(rest: &[u8]) -> Escape {
    const NAMED: [(&[u8], char); 5] = [(b"&amp;", '&'), (b"&lt;", '<'), (b"&gt;", '>'), (b"&quot;", '"'), (b"&apos;", '\'')];
    let number = match (rest.get(1), rest.get(2)) {
        (None, _) | (Some(b'#'), None) => return Escape::Cut,
        (Some(b'#'), Some(b'x' | b'X')) => digits(rest, 3, 1, 6, 16),
        (Some(b'#'), Some(_)) => digits(rest, 2, 1, 7, 10),
        (Some(_), _) => {
            if let Some((name, character)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
                return Escape::Is(*character, name.len());
            }
            return if NAMED.iter().any(|(name, _)| name.starts_with(rest)) { Escape::Cut } else { Escape::None };
        }
    };
    match number {
        Number::Is(_, end) if rest.get(end).is_none() => Escape::Cut,
        Number::Is(_, end) if rest[end] != b';' => Escape::None,
        other => other.map_or_char(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(view: EscapeStyle, text: &str) -> String {
        String::from_utf8_lossy(&Unescaped::of(view, text.as_bytes(), true).bytes).into_owned()
    }

    #[test]
    fn escapes_are_decoded_and_everything_else_is_unchanged() {
        assert_eq!(seen(EscapeStyle::Percent, "a%2Fb%c3%a4 100% %zz"), "a/bä 100% %zz");
        assert_eq!(seen(EscapeStyle::Backslash, r#"\u0073\x33\143 \"\\ \u{e4} \303\244 \ud83d\ude00 \ "#), "s3c \"\\ ä ä 😀  ");
        assert_eq!(seen(EscapeStyle::Entity, "&lt;&#47;&#x2F; &amp;&quot; & &x; R&D"), "<// &\" & &x; R&D");
    }

    #[test]
    fn offsets_map_back_to_the_original() {
        let seen = Unescaped::of(EscapeStyle::Percent, b"a%C3%A4b%2", false);
        assert_eq!(&*seen.bytes, "aäb".as_bytes());
        assert_eq!((seen.start(1), seen.end(2), seen.start(4), seen.boundary(2)), (1, 4, 8, 1));
    }
}
