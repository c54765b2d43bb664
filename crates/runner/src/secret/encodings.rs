//! The encodings in which a secret may appear, besides the escapes that [`escapes`](super::escapes) decodes.

/// The shortest value that is masked, in characters: shorter ones occur too often by chance.
const SHORTEST_VALUE: usize = 4;
/// The shortest line of a multi-line value that is masked on its own, in characters.
const SHORTEST_LINE: usize = 8;
/// The shortest piece of base64 or hex digits that is masked, in characters.
const SHORTEST_ENCODED: usize = 6;
/// How many bytes `xxd -p`, `xxd` and `od` print per line.
const HEX_WIDTHS: [usize; 2] = [30, 16];

pub(super) fn encodings(value: &str) -> Vec<Vec<u8>> {
    let mut texts: Vec<String> = Vec::new();
    for value in [value, value.trim()] {
        if value.chars().count() >= SHORTEST_VALUE {
            texts.extend(forms_of_whole(value));
        }
    }
    let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
    texts.extend(lines.clone().map(str::to_owned));
    texts.extend(lines.flat_map(hex_forms));
    texts.into_iter().map(String::into_bytes).collect()
}

fn forms_of_whole(value: &str) -> Vec<String> {
    let mut texts = vec![value.to_owned()];
    // Form encoding uses `+` for a space, which cannot be told apart from a plus sign when decoding.
    texts.extend([value.replace(' ', "+"), percent_encoded(value)]);
    // As shells print it with `-x`: close the quotes, add an escaped quote, open them again.
    texts.extend([value.replace('\'', r"'\''"), value.replace('\'', r#"'"'"'"#)]);
    // JSON inside JSON: one level is decoded by an escape style, the other is encoded here.
    if let Ok(quoted) = serde_json::to_string(value) {
        texts.push(quoted[1..quoted.len() - 1].to_owned());
    }
    texts.extend(hex_forms(value));
    texts.extend(base64_forms(value.as_bytes()));
    texts
}

fn percent_encoded(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte as char),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The value as hex digits, without separators and with those that common programs use.
fn hex_forms(value: &str) -> Vec<String> {
    let mut encodings = Vec::new();
    for digits in [lower_hex, upper_hex] {
        let pairs: Vec<String> = value.bytes().map(digits).collect();
        encodings.extend([pairs.concat(), pairs.join(" "), pairs.join(":"), pairs.join(" 0x"), pairs.join(", 0x")]);
        let fours: Vec<String> = pairs.chunks(2).map(<[String]>::concat).collect();
        encodings.push(fours.join(" "));
        for width in HEX_WIDTHS.into_iter().filter(|width| pairs.len() > *width) {
            for line in pairs.chunks(width) {
                let fours: Vec<String> = line.chunks(2).map(<[String]>::concat).collect();
                encodings.extend([line.concat(), line.join(" "), fours.join(" ")]);
            }
        }
    }
    encodings.retain(|form| form.len() >= SHORTEST_ENCODED);
    encodings
}

fn lower_hex(byte: u8) -> String {
    format!("{byte:02x}")
}

fn upper_hex(byte: u8) -> String {
    format!("{byte:02X}")
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The value in base64: on its own, wrapped into lines, and as the middle of something longer (`user:password`). In the last
/// case the surrounding text affects the first and last characters, so only those in between are searched for.
fn base64_forms(value: &[u8]) -> Vec<String> {
    let mut encodings = Vec::new();
    for alphabet in [STANDARD, URL] {
        let whole = base64(value, alphabet);
        for width in [64, 76] {
            if whole.len() > width {
                encodings.extend(whole.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned()));
            }
        }
        encodings.push(format!("{whole}{}", "=".repeat((4 - whole.len() % 4) % 4)));
        encodings.push(whole);
        for before in 0..3 {
            let shifted = [&[0; 2][..before], value].concat();
            let characters = base64(&shifted, alphabet);
            // A character depends on the value alone if all six of its bits do.
            let first = (before * 8).div_ceil(6);
            let end = shifted.len() * 8 / 6;
            encodings.push(characters[first..end].to_owned());
        }
    }
    encodings.retain(|form| form.trim_end_matches('=').len() >= SHORTEST_ENCODED);
    encodings
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
pub(super) fn standard_base64(text: &str) -> String {
    base64(text.as_bytes(), STANDARD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_standard_encoding() {
        for (plain, encoded) in
            [("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy"), ("\u{3ff}\u{3fe}", "z7/Pvg")]
        {
            assert_eq!(standard_base64(plain), encoded);
        }
    }
}
