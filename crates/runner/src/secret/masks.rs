//! Masking by value: every form in which a secret may appear is replaced by its name.

use super::Secret;
use aho_corasick::{AhoCorasick, Input, MatchKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The shortest value that is masked, in characters: shorter ones stand in too much that is no secret.
const SHORTEST_VALUE: usize = 4;
/// The shortest line of a value of several lines that is masked on its own, in characters.
const SHORTEST_LINE: usize = 8;
/// The shortest piece of base64 that is masked, in characters.
const SHORTEST_BASE64: usize = 6;

/// All the texts that must not be shown, with what stands in their place.
#[derive(Clone, Default)]
pub struct Masks {
    finder: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
}

#[derive(Clone)]
struct Pattern {
    text: Vec<u8>,
    label: Arc<str>,
}

impl fmt::Debug for Masks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Masks").field("patterns", &self.patterns.len()).finish_non_exhaustive()
    }
}

impl Masks {
    /// Masks for these secrets: their values, each long line of them, and their base64, URL and JSON forms.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut texts: BTreeMap<Vec<u8>, Arc<str>> = BTreeMap::new();
        for secret in secrets {
            let label: Arc<str> = format!("***{}***", secret.name).into();
            for text in forms(&secret.value) {
                texts.entry(text).or_insert_with(|| label.clone());
            }
        }
        if texts.is_empty() {
            return Self::default();
        }
        let patterns: Vec<Pattern> = texts.into_iter().map(|(text, label)| Pattern { text, label }).collect();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns.iter().map(|pattern| &pattern.text))
            .expect("secrets are limited to a length far below what the finder can hold");
        Self { finder: Some(finder), patterns }
    }

    /// The text with every secret replaced.
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.contains(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut masker = Masker::new(Arc::new(self.clone()));
        let mut masked = masker.feed(text.as_bytes()).into_owned();
        masked.extend(masker.finish());
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Whether any secret stands in these bytes, in any of its forms.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(bytes))
    }

    /// How many bytes at the end could be the beginning of a secret that goes on in what is still to come.
    fn unfinished(&self, bytes: &[u8]) -> usize {
        let Some(&last) = bytes.last() else { return 0 };
        let mut longest = 0;
        for Pattern { text, .. } in &self.patterns {
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

/// Masks a stream that comes in pieces: a secret is found wherever the stream was cut.
#[derive(Debug)]
pub struct Masker {
    masks: Arc<Masks>,
    /// What came last and could be the beginning of a secret.
    held: Vec<u8>,
    /// How many of the held bytes belong to a secret whose label was already given.
    covered: usize,
}

impl Masker {
    /// A masker at the beginning of a stream.
    pub fn new(masks: Arc<Masks>) -> Self {
        Self { masks, held: Vec::new(), covered: 0 }
    }

    /// Takes the next piece and gives what is now certain.
    pub fn feed<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.masks.finder.is_none() {
            return Cow::Borrowed(piece);
        }
        let bytes = if self.held.is_empty() {
            Cow::Borrowed(piece)
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(piece);
            Cow::Owned(joined)
        };
        let certain = bytes.len() - self.masks.unfinished(&bytes);
        let masked = self.masked(&bytes, certain);
        self.held = bytes[certain..].to_vec();
        match (masked, bytes) {
            (Some(masked), _) => Cow::Owned(masked),
            (None, Cow::Borrowed(bytes)) => Cow::Borrowed(&bytes[..certain]),
            (None, Cow::Owned(mut bytes)) => {
                bytes.truncate(certain);
                Cow::Owned(bytes)
            }
        }
    }

    /// Gives what was held back, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.masked(&held, held.len()).unwrap_or(held)
    }

    /// Masks the first `certain` bytes; nothing when they stay as they are. Secrets that overlap become one stretch, so that no
    /// remainder of the second shows. Any secret that begins in the certain part also ends in `bytes`, by the choice of `certain`.
    fn masked(&mut self, bytes: &[u8], certain: usize) -> Option<Vec<u8>> {
        let finder = self.masks.finder.as_ref()?;
        let next = |from: usize| finder.find(Input::new(bytes).range(from..)).filter(|found| found.start() < certain);
        let mut found = next(0);
        if found.is_none() && self.covered == 0 {
            return None;
        }
        let mut masked = Vec::with_capacity(certain);
        // Everything before `done` was written or is covered by a label.
        let mut done = std::mem::take(&mut self.covered);
        while let Some(one) = found {
            if one.start() >= done {
                masked.extend_from_slice(&bytes[done..one.start()]);
                masked.extend_from_slice(self.masks.patterns[one.pattern().as_usize()].label.as_bytes());
            }
            done = done.max(one.end());
            found = next(one.start() + 1);
        }
        if done < certain {
            masked.extend_from_slice(&bytes[done..certain]);
        } else {
            self.covered = done - certain;
        }
        Some(masked)
    }
}

/// The forms in which a secret value may appear.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut texts: Vec<String> = Vec::new();
    for value in [value, value.trim()] {
        if value.chars().count() < SHORTEST_VALUE {
            continue;
        }
        texts.push(value.to_owned());
        texts.push(percent_encoded(value, false));
        texts.push(percent_encoded(value, true));
        texts.push(percent_encoded(value, true).replace("%20", "+"));
        if let Ok(quoted) = serde_json::to_string(value) {
            texts.push(quoted[1..quoted.len() - 1].to_owned());
        }
        texts.extend(base64_forms(value.as_bytes()));
    }
    let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
    texts.extend(lines.map(str::to_owned));
    texts.into_iter().map(String::into_bytes).collect()
}

fn percent_encoded(value: &str, upper: bool) -> String {
    let mut encoded = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte as char),
            _ if upper => encoded.push_str(&format!("%{byte:02X}")),
            _ => encoded.push_str(&format!("%{byte:02x}")),
        }
    }
    encoded
}

/// The value in base64: as itself, wrapped into lines, and as the middle of something longer (`user:password`), where what
/// surrounds it decides on its first and last characters, so that only the characters between are looked for.
fn base64_forms(value: &[u8]) -> Vec<String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut forms = Vec::new();
    for alphabet in [STANDARD, URL] {
        let whole = base64(value, alphabet);
        for width in [64, 76] {
            if whole.len() > width {
                forms.extend(whole.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned()));
            }
        }
        forms.push(format!("{whole}{}", "=".repeat((4 - whole.len() % 4) % 4)));
        forms.push(whole);
        for before in 0..3 {
            let shifted = [&[0; 2][..before], value].concat();
            let characters = base64(&shifted, alphabet);
            // A character is decided by the value alone when all its six bits are.
            let first = (before * 8).div_ceil(6);
            let end = shifted.len() * 8 / 6;
            forms.push(characters[first..end].to_owned());
        }
    }
    forms.retain(|form| form.trim_end_matches('=').len() >= SHORTEST_BASE64);
    forms
}

/// Base64 without padding.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = (0..3).fold(0_u32, |word, index| word << 8 | u32::from(group.get(index).copied().unwrap_or(0)));
        for index in 0..=group.len() {
            encoded.push(alphabet[(word >> (18 - 6 * index) & 63) as usize] as char);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
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
    fn base64_is_as_others_write_it() {
        for (plain, encoded) in
            [("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy"), ("\u{3ff}\u{3fe}", "z7/Pvg")]
        {
            assert_eq!(base64(plain.as_bytes(), b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"), encoded);
        }
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
        ] {
            assert_eq!(masks.mask_text(&format!("<{form}>")), "<***TOKEN***>");
            assert!(masks.contains(form.as_bytes()), "{form}");
        }
    }

    #[test]
    fn a_value_inside_longer_base64_is_masked() {
        let masks = masks(&[("PASSWORD", "correct-horse")]);
        for around in ["", "u:", "me:", "you:"] {
            let header = base64(
                format!("{around}correct-horse!").as_bytes(),
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            );
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
    fn a_secret_is_found_wherever_the_stream_was_cut() {
        let masks = masks(&[("A", "abcdefgh"), ("B", "ghijkl"), ("C", "abcd"), ("D", "aaaa")]);
        let text = b"x abcdefgh y abcdefghijkl z abcdefg aaaaaaaaa abcabcd gh ghijk";
        let whole = "x ***A*** y ***A*** z ***C***efg ***D*** abc***C*** gh ghijk";
        for size in 1..=text.len() {
            assert_eq!(in_pieces(&masks, text, size), whole, "pieces of {size}");
        }
    }

    #[test]
    fn what_cannot_be_the_beginning_of_a_secret_is_given_at_once() {
        let mut masker = Masker::new(masks(&[("A", "abcdefgh")]));
        assert_eq!(&*masker.feed(b"Password: "), b"Password: ");
        assert_eq!(&*masker.feed(b"crab"), b"cr");
        assert_eq!(&*masker.feed(b"!"), b"ab!");
        assert!(masker.finish().is_empty());
    }

    #[test]
    fn nothing_grows_while_a_secret_repeats_for_ever() {
        let mut masker = Masker::new(masks(&[("A", "aaaa")]));
        let mut given = 0;
        for _ in 0..100 {
            given += masker.feed(&[b'a'; 1000]).len();
            assert!(masker.held.len() < 16);
        }
        assert_eq!(given, "***A***".len());
    }
}
