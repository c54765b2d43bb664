//! JSON with the position of every value, parsed within limits on size, depth and number of values.

use serde_json::{Map, Number, Value};
use std::ops::Range;

/// The maximum nesting depth of lists and objects.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values in a file.
pub const MAX_VALUES: usize = 200_000;
/// The maximum size of a file.
pub const MAX_BYTES: usize = 4 << 20;

/// A value and the bytes of the file that it was parsed from.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub span: Range<usize>,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Placed>),
    /// Entries in the order of the file. A repeated key is kept; the last value counts.
    Map(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: String,
    pub key_span: Range<usize>,
    pub value: Placed,
}

/// Why a text is not usable JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    pub message: String,
    /// The byte offset of the error.
    pub at: usize,
}

impl Placed {
    /// The value of a key. `None` if this is not an object, has no such key, or the value is `null`.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Like [`Self::get`], with the key and its position.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        let found = self.entries().iter().rev().find(|entry| entry.key == key);
        found.filter(|entry| entry.value.content != Content::Null)
    }

    /// The entries of an object; empty for other values.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Null | Content::Boolean(_) | Content::Number(_) | Content::Text(_) | Content::List(_) => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Null | Content::Boolean(_) | Content::Number(_) | Content::List(_) | Content::Map(_) => None,
        }
    }

    pub fn items(&self) -> Option<&[Self]> {
        match &self.content {
            Content::List(items) => Some(items),
            Content::Null | Content::Boolean(_) | Content::Number(_) | Content::Text(_) | Content::Map(_) => None,
        }
    }

    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "null",
            Content::Boolean(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::Text(_) => "a string",
            Content::List(_) => "a list",
            Content::Map(_) => "an object",
        }
    }

    /// Converts to a plain value, without positions.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Boolean(boolean) => Value::Bool(*boolean),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect::<Map<_, _>>())
            }
        }
    }
}

/// The line and column of a byte offset, in characters and counted from 1.
pub fn place(source: &str, offset: usize) -> (usize, usize) {
    lockgate_engine::spec::reader::place_of(source, offset)
}

/// Parses a text that contains one value.
pub fn parse(source: &str) -> Result<Placed, JsonError> {
    if source.len() > MAX_BYTES {
        return Err(JsonError { message: format!("the file has {} bytes; the limit is {MAX_BYTES}", source.len()), at: 0 });
    }
    let start = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut reader = Reader { source, at: start, depth: 0, values: 0 };
    reader.space();
    let value = reader.value()?;
    reader.space();
    if reader.at < source.len() {
        return Err(reader.error("unexpected text after the end"));
    }
    Ok(value)
}

struct Reader<'s> {
    source: &'s str,
    at: usize,
    depth: usize,
    values: usize,
}

impl Reader<'_> {
    fn error(&self, message: impl Into<String>) -> JsonError {
        JsonError { message: message.into(), at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Placed, JsonError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.error(format!("the file has more than {MAX_VALUES} values")));
        }
        let start = self.at;
        let content = match self.peek() {
            Some(b'{') => self.nested(Self::map)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Content::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Content::Boolean(true))?,
            Some(b'f') => self.word("false", Content::Boolean(false))?,
            Some(b'n') => self.word("null", Content::Null)?,
            Some(_) => return Err(self.error("expected a value")),
            None => return Err(self.error("the file ends where a value is expected")),
        };
        Ok(Placed { span: start..self.at, content })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Content, JsonError>) -> Result<Content, JsonError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(format!("the file is nested more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        self.at += 1;
        self.space();
        let content = read(self)?;
        self.depth -= 1;
        Ok(content)
    }

    fn list(&mut self) -> Result<Content, JsonError> {
        let mut items = Vec::new();
        if !self.taken(b']') {
            loop {
                items.push(self.value()?);
                if self.ends(b']')? {
                    break;
                }
            }
        }
        Ok(Content::List(items))
    }

    fn map(&mut self) -> Result<Content, JsonError> {
        let mut entries = Vec::new();
        if !self.taken(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.error("expected a key in double quotes"));
                }
                let start = self.at;
                let key = self.string()?;
                let key_span = start..self.at;
                self.space();
                if !self.taken(b':') {
                    return Err(self.error("expected `:` after a key"));
                }
                self.space();
                entries.push(Entry { key, key_span, value: self.value()? });
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        Ok(Content::Map(entries))
    }

    /// Whether a list or object ends here; otherwise skips the comma.
    fn ends(&mut self, close: u8) -> Result<bool, JsonError> {
        self.space();
        if self.taken(close) {
            return Ok(true);
        }
        if !self.taken(b',') {
            return Err(self.error(format!("expected `,` or `{}`", char::from(close))));
        }
        self.space();
        if self.peek() == Some(close) {
            return Err(self.error("trailing comma"));
        }
        Ok(false)
    }

    fn taken(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str, content: Content) -> Result<Content, JsonError> {
        if !self.source[self.at..].starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(content)
    }

    fn number(&mut self) -> Result<Content, JsonError> {
        let rest = &self.source[self.at..];
        let end = rest.find(|letter: char| !matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let number = serde_json::from_str(&rest[..end]).map_err(|_| self.error("invalid number"))?;
        self.at += end;
        Ok(Content::Number(number))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        let bytes = self.source.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                None => return Err(self.error("unterminated string")),
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(byte) if *byte < 0x20 => {
                    self.at = end;
                    return Err(self.error("control character in a string; escape it, for example as `\\n` or `\\t`"));
                }
                Some(_) => end += 1,
            }
        }
        let raw = &self.source[start..=end];
        // A lone surrogate is not a character, but other tools write it all the same.
        let text = serde_json::from_str(raw).or_else(|_| serde_json::from_str(&without_halves(raw)));
        let text = text.map_err(|_| self.error("invalid escape in a string"))?;
        self.at = end + 1;
        Ok(text)
    }
}

/// Replaces every escaped lone surrogate with `\ufffd`.
fn without_halves(raw: &str) -> String {
    let mut fixed = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(found) = rest.find('\\') {
        fixed.push_str(&rest[..found]);
        let escape = &rest[found..];
        let unit = |text: &str| text.strip_prefix("\\u")?.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                fixed.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
        };
        fixed.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    fixed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(source: &str) -> (usize, String) {
        let error = parse(source).expect_err(source);
        (error.at, error.message)
    }

    #[test]
    fn values_are_parsed_with_positions_and_in_order() {
        let source = "\u{feff} {\"b\": [1, 2.50, -3e2], \"a\": {\"x\": null, \"y\": \"\\u00e4\\ud83d\\ude00\\n\"}, \"b\": true}";
        let root = parse(source).expect("JSON");
        assert_eq!(root.entries().iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["b", "a", "b"]);
        assert_eq!(root.get("b").map(|value| &source[value.span.clone()]), Some("true"), "the last value counts");
        assert_eq!(root.get("a").and_then(|inner| inner.get("y")).and_then(Placed::text), Some("ä😀\n"));
        assert_eq!(root.get("a").and_then(|inner| inner.get("x")), None, "null counts as absent");
        let expected: Value = serde_json::from_str(source.trim_start_matches('\u{feff}')).expect("JSON");
        assert_eq!(root.to_value(), expected);
    }

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(parse(r#""a\ud800b\\ud800""#).expect("JSON").text(), Some("a\u{fffd}b\\ud800"));
    }

    #[test]
    fn a_json_syntax_error_has_a_position() {
        assert_eq!(wrong(""), (0, "the file ends where a value is expected".into()));
        assert_eq!(wrong("{\"a\": 1,}"), (8, "trailing comma".into()));
        assert_eq!(wrong("{\"a\" 1}"), (5, "expected `:` after a key".into()));
        assert_eq!(wrong("{a: 1}"), (1, "expected a key in double quotes".into()));
        assert_eq!(wrong("[1 2]"), (3, "expected `,` or `]`".into()));
        assert_eq!(wrong("\"a"), (0, "unterminated string".into()));
        assert_eq!(wrong("\"a\\x\""), (0, "invalid escape in a string".into()));
        assert_eq!(wrong("1 2"), (2, "unexpected text after the end".into()));
        assert_eq!(wrong("01"), (0, "invalid number".into()));
    }

    #[test]
    fn limits_are_enforced() {
        assert!(wrong(&"[".repeat(100_000)).1.contains("nested more than"));
        assert!(wrong(&format!("[{}1]", "1,".repeat(MAX_VALUES))).1.contains("more than"));
        assert!(wrong(&" ".repeat(MAX_BYTES + 1)).1.contains("bytes"));
    }
}
