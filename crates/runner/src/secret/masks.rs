//! Masking by value: every form in which a secret may appear is replaced by its name.

use super::Secret;
use super::encodings::encodings;
use super::escapes::{EscapeStyle, Unescaped};
use aho_corasick::{AhoCorasick, Input, MatchKind};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

/// How much of a large input is searched at a time.
const PIECE: usize = 64 * 1024;

/// All texts that must not be shown, with their replacements. Texts are only ever added: an old value is still secret
/// wherever it was written before.
#[derive(Default)]
pub struct Masks {
    found: RwLock<Arc<Finder>>,
}

#[derive(Default)]
struct Finder {
    texts: BTreeMap<Vec<u8>, Arc<str>>,
    search: Option<AhoCorasick>,
    /// In the order of `texts`, which the search uses as indexes.
    patterns: Vec<(Vec<u8>, Arc<str>)>,
}

/// Secrets found in a piece of text.
struct Found {
    /// Their ranges in order of their starts, each with its label; they may overlap.
    ranges: Vec<(Range<usize>, Arc<str>)>,
    /// How many bytes cannot be part of a secret that continues in the next piece.
    certain: usize,
}

impl fmt::Debug for Masks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Masks").field("patterns", &self.finder().patterns.len()).finish_non_exhaustive()
    }
}

impl Masks {
    /// Masks for these secrets: their values, each long line of them, and their base64, URL, JSON, hex and shell forms.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let masks = Self::default();
        masks.add(secrets);
        masks
    }

    /// Adds secrets, which also takes effect in streams that are already being masked.
    pub fn add<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        let mut texts = found.texts.clone();
        for secret in secrets {
            let label: Arc<str> = format!("***{}***", secret.name).into();
            for text in encodings(&secret.value) {
                texts.entry(text).or_insert_with(|| label.clone());
            }
        }
        if texts.len() > found.texts.len() {
            *found = Arc::new(Finder::new(texts));
        }
    }

    fn finder(&self) -> Arc<Finder> {
        self.found.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Masks the strings, keys and numbers in a JSON value.
    pub fn mask_value(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => {
                let text = number.to_string();
                if self.contains(text.as_bytes()) { json!(self.mask_text(&text)) } else { Value::Number(number) }
            }
            Value::String(text) => json!(self.mask_text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.mask_value(value)).collect(),
            Value::Object(values) => {
                let values = values.into_iter();
                values.map(|(key, value)| (self.mask_text(&key).into_owned(), self.mask_value(value))).collect()
            }
        }
    }

    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let finder = self.finder();
        let found = finder.find(text.as_bytes(), true);
        if found.ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        let masked = found.masked(text.as_bytes(), &mut 0).unwrap_or_default();
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Whether these bytes contain any secret, in any of its forms.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        let finder = self.finder();
        let Some(search) = &finder.search else { return false };
        if search.is_match(bytes) {
            return true;
        }
        if !EscapeStyle::ALL.iter().filter_map(|view| view.mark()).any(|mark| bytes.contains(&mark)) {
            return false;
        }
        let mut rest = bytes;
        let mut held: Vec<u8> = Vec::new();
        loop {
            let (piece, later) = rest.split_at(rest.len().min(PIECE));
            held.extend_from_slice(piece);
            let found = finder.find(&held, later.is_empty());
            if !found.ranges.is_empty() || later.is_empty() {
                return !found.ranges.is_empty();
            }
            held.drain(..found.certain);
            rest = later;
        }
    }
}

impl Finder {
    fn new(texts: BTreeMap<Vec<u8>, Arc<str>>) -> Self {
        let patterns: Vec<(Vec<u8>, Arc<str>)> = texts.iter().map(|(text, label)| (text.clone(), label.clone())).collect();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns.iter().map(|(text, _)| text))
            .expect("secrets are limited to a length far below what the finder can hold");
        Self { texts, search: Some(search), patterns }
    }

    /// Finds secrets in a piece of text, escaped or not; at the end nothing is uncertain.
    fn find(&self, bytes: &[u8], is_end: bool) -> Found {
        let mut found = Found { ranges: Vec::new(), certain: bytes.len() };
        let Some(search) = &self.search else { return found };
        let shows_more = |view: &&EscapeStyle| view.mark().is_none_or(|mark| bytes.contains(&mark));
        let views: Vec<Unescaped<'_>> =
            EscapeStyle::ALL.iter().filter(shows_more).map(|view| Unescaped::of(*view, bytes, is_end)).collect();
        for seen in &views {
            let mut from = 0;
            while let Some(one) = search.find(Input::new(&seen.bytes).range(from..)) {
                let label = self.patterns[one.pattern().as_usize()].1.clone();
                found.ranges.push((seen.start(one.start())..seen.end(one.end()), label));
                from = one.start() + 1;
            }
            if !is_end {
                let unfinished = self.unfinished(&seen.bytes);
                found.certain = found.certain.min(seen.start(seen.bytes.len() - unfinished));
            }
        }
        // Held-back bytes are searched again from the first one, so no escape may be split there.
        while let Some(before) = views.iter().map(|seen| seen.boundary(found.certain)).find(|place| *place < found.certain) {
            found.certain = before;
        }
        found.ranges.sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
        found
    }

    /// How many bytes at the end could be the beginning of a secret that continues in the next piece.
    fn unfinished(&self, bytes: &[u8]) -> usize {
        let Some(&last) = bytes.last() else { return 0 };
        let mut longest = 0;
        for (text, _) in &self.patterns {
            for length in (longest + 1..text.len().min(bytes.len() + 1)).rev() {
                if text[length - 1] == last && bytes.ends_with(&text[..length]) {
                    longest = length;
                    break;
                }
            }
        }
        longest
    }
}

impl Found {
    /// Masks the certain bytes; `None` if they are unchanged. Overlapping secrets are masked as one range, so that no
    /// remainder of the second is visible. `covered` is how many of the first bytes already have a label; on return, how many
    /// of the following ones do.
    fn masked(&self, bytes: &[u8], covered: &mut usize) -> Option<Vec<u8>> {
        let certain = self.certain;
        let mut ranges = self.ranges.iter().filter(|(range, _)| range.start < certain).peekable();
        if ranges.peek().is_none() && *covered == 0 {
            return None;
        }
        let mut masked = Vec::with_capacity(certain);
        // Everything before `done` was written or is covered by a label.
        let mut done = std::mem::take(covered);
        for (range, label) in ranges {
            if range.start >= done {
                masked.extend_from_slice(&bytes[done..range.start]);
                masked.extend_from_slice(label.as_bytes());
            }
            done = done.max(range.end);
        }
        if done < certain {
            masked.extend_from_slice(&bytes[done..certain]);
        } else {
            *covered = done - certain;
        }
        Some(masked)
    }
}

/// Masks a stream that arrives in pieces, wherever it is split.
#[derive(Debug)]
pub struct Masker {
    masks: Arc<Masks>,
    /// The last bytes, which could be the beginning of a secret.
    held: Vec<u8>,
    /// How many of the held bytes belong to a secret whose label was already emitted.
    covered: usize,
}

impl Masker {
    pub fn new(masks: Arc<Masks>) -> Self {
        Self { masks, held: Vec::new(), covered: 0 }
    }

    /// Takes the next piece and returns the bytes that are now certain.
    pub fn feed<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let finder = self.masks.finder();
        if finder.search.is_none() {
            return Cow::Borrowed(piece);
        }
        let bytes = if self.held.is_empty() {
            Cow::Borrowed(piece)
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(piece);
            Cow::Owned(joined)
        };
        let found = finder.find(&bytes, false);
        let masked = found.masked(&bytes, &mut self.covered);
        self.held = bytes[found.certain..].to_vec();
        match (masked, bytes) {
            (Some(masked), _) => Cow::Owned(masked),
            (None, Cow::Borrowed(bytes)) => Cow::Borrowed(&bytes[..found.certain]),
            (None, Cow::Owned(mut bytes)) => {
                bytes.truncate(found.certain);
                Cow::Owned(bytes)
            }
        }
    }

    /// Returns the held-back bytes at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let found = self.masks.finder().find(&held, true);
        found.masked(&held, &mut self.covered).unwrap_or(held)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encodings::standard_base64;
    use super::*;

    fn masks(secrets: &[(&str, &str)]) -> Arc<Masks> {
        let secrets: Vec<Secret> =
            secrets.iter().map(|(name, value)| Secret { name: (*name).into(), value: (*value).into() }).collect();
        Arc::new(Masks::new(&secrets))
    }

    fn in_pieces(masks: &Arc<Masks>, text: &[u8], size: usize) -> String {
        let mut masker = Masker::new(masks.clone());
        let mut masked: Vec<u8> = text.chunks(size).flat_map(|piece| masker.feed(piece).into_owned()).collect();
        masked.extend(masker.finish());
        String::from_utf8(masked).unwrap()
    }

    #[test]
    fn a_value_is_masked_in_every_form() {
        let masks = masks(&[("TOKEN", "s3cret/pä ss\"word")]);
        for form in [
            "s3cret/pä ss\"word",
            "s3cret%2Fp%C3%A4%20ss%22word",
            "s3cret%2fp%c3%a4%20ss%22word",
            "s3cret%2Fp%C3%A4+ss%22word",
            "s3cret/pä ss\\\"word",
            "czNjcmV0L3DDpCBzcyJ3b3Jk",
            "%733cret%2fp%C3%a4+ss%22word",
            r#"\u0073\u0033cret\/p\u00e4 ss\"word"#,
            r#"s3cret\/p\303\244\ ss\"word"#,
            r#"s3cret/pä ss\\\"word"#,
            "7333637265742f70c3a420737322776f7264",
            "7333 6372 6574 2F70 C3A4 2073 7322 776F 7264",
            "73:33:63:72:65:74:2f:70:c3:a4:20:73:73:22:77:6f:72:64",
            "s3cret&#x2F;p&#228; ss&quot;word",
        ] {
            assert_eq!(masks.mask_text(&format!("<{form}>")), "<***TOKEN***>");
            assert!(masks.contains(form.as_bytes()), "{form}");
        }
    }

    #[test]
    fn a_value_inside_longer_base64_is_masked() {
        let masks = masks(&[("PASSWORD", "correct-horse")]);
        for around in ["", "u:", "me:", "you:"] {
            let header = standard_base64(&format!("{around}correct-horse!"));
            let masked = masks.mask_text(&header).into_owned();
            assert!(masked.contains("***PASSWORD***"), "{around}: {masked}");
            assert!(masked.replace("***PASSWORD***", "").len() <= 8, "{around}: {masked}");
        }
    }

    #[test]
    fn each_long_line_of_a_value_is_masked_and_short_ones_are_not() {
        let masks = masks(&[("KEY", "-----BEGIN KEY-----\nMIIEabcdefgh\nend\n")]);
        assert_eq!(masks.mask_text("a MIIEabcdefgh b end"), "a ***KEY*** b end");
        assert_eq!(masks.mask_text("-----BEGIN KEY-----\nMIIEabcdefgh\nend\n"), "***KEY***");
    }

    #[test]
    fn a_value_of_three_characters_is_not_masked() {
        assert_eq!(masks(&[("SHORT", "abc")]).mask_text("abc abc"), "abc abc");
    }

    #[test]
    fn a_secret_is_masked_across_chunk_boundaries() {
        let masks = masks(&[("A", "abcdefgh"), ("B", "ghijkl"), ("C", "abcd"), ("D", "aaaa")]);
        let text = b"x abcdefgh y abcdefghijkl z abcdefg aaaaaaaaa abcabcd gh ghijk";
        let whole = "x ***A*** y ***A*** z ***C***efg ***D*** abc***C*** gh ghijk";
        for size in 1..=text.len() {
            assert_eq!(in_pieces(&masks, text, size), whole, "pieces of {size}");
        }
    }

    #[test]
    fn bytes_that_cannot_start_a_secret_are_emitted_immediately() {
        let mut masker = Masker::new(masks(&[("A", "abcdefgh")]));
        assert_eq!(&*masker.feed(b"Password: "), b"Password: ");
        assert_eq!(&*masker.feed(b"crab"), b"cr");
        assert_eq!(&*masker.feed(b"!"), b"ab!");
        assert!(masker.finish().is_empty());
    }

    #[test]
    fn memory_is_bounded_while_a_secret_repeats_endlessly() {
        let mut masker = Masker::new(masks(&[("A", "aaaa")]));
        let mut given = 0;
        for _ in 0..100 {
            given += masker.feed(&[b'a'; 1000]).len();
            assert!(masker.held.len() < 16);
        }
        assert_eq!(given, "***A***".len());
    }

    #[test]
    fn a_quoted_value_is_masked_as_shells_show_it() {
        let masks = masks(&[("TOKEN", "it's a\tsecret")]);
        for form in [r"it'\''s a	secret", r#"it'"'"'s a	secret"#, r"it\'s a\tsecret"] {
            assert_eq!(masks.mask_text(&format!("'{form}'")), "'***TOKEN***'", "{form}");
        }
    }

    #[test]
    fn an_escaped_secret_is_masked_across_chunk_boundaries() {
        let masks = masks(&[("A", "pass/word"), ("B", "33-44-55")]);
        let text = br"x pass%2Fword y \u0070\u0061ss\/word z pass&#47;word 33-44%2D55 \\ 100% %41";
        let whole = r"x ***A*** y ***A*** z ***A*** ***B*** \\ 100% %41";
        for size in 1..=text.len() {
            assert_eq!(in_pieces(&masks, text, size), whole, "pieces of {size}");
        }
    }

    #[test]
    fn earlier_values_stay_masked_and_new_ones_are_masked_in_a_running_stream() {
        let masks = masks(&[("TOKEN", "first-value")]);
        let mut masker = Masker::new(masks.clone());
        assert_eq!(&*masker.feed(b"first-value "), b"***TOKEN*** ");
        masks.add(&[Secret { name: "TOKEN".into(), value: "second-value".into() }]);
        assert_eq!(&*masker.feed(b"first-value second-value."), b"***TOKEN*** ***TOKEN***.");
    }

    #[test]
    fn a_secret_in_a_large_file_is_found_across_chunks() {
        let masks = masks(&[("A", "pass/word")]);
        for at in PIECE - 12..PIECE + 2 {
            let file = [vec![b'.'; at], b"pass%2fword".to_vec(), vec![b'.'; 10]].concat();
            assert!(masks.contains(&file), "{at}");
        }
        assert!(!masks.contains(&[vec![b'%'; PIECE * 2], b"pass".to_vec()].concat()));
    }
}
