//! Makes control characters visible. Prompts, file names, labels and messages are untrusted and must not control a terminal.

use std::borrow::Cow;

/// Sanitizes text for a single line. Invisible characters, including line breaks, are replaced by a symbol or their code point.
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, &|character| character != ' ' && is_control(character))
}

/// Sanitizes text of several lines. Like [`line()`], but keeps line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    let unbroken = if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let steering = |character: char| !matches!(character, '\n' | '\t') && is_control(character);
    match unbroken {
        Cow::Borrowed(text) => escape(text, &steering),
        Cow::Owned(text) => Cow::Owned(escape(&text, &steering).into_owned()),
    }
}

/// Escapes control characters that JSON permits, without changing the meaning of the JSON text.
pub fn json(text: String) -> String {
    // Unescaped line breaks occur only between values.
    let steering = |character: char| character != '\n' && is_control(character);
    if !text.contains(steering) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if steering(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn escape<'t>(text: &'t str, steering: &dyn Fn(char) -> bool) -> Cow<'t, str> {
    if !text.contains(steering) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if steering(character) { push_escaped(&mut visible, character) } else { visible.push(character) }
    }
    Cow::Owned(visible)
}

fn push_escaped(visible: &mut String, character: char) {
    match character {
        '\0'..='\x1f' => visible.extend(char::from_u32(0x2400 + character as u32)),
        '\x7f' => visible.push('\u{2421}'),
        other => {
            visible.push_str(&format!("\\u{{{:x}}}", other as u32));
        }
    }
}

/// Whether a character controls a terminal, changes the writing direction, or is invisible.
pub fn is_control(character: char) -> bool {
    let control = matches!(character, '\0'..='\x1f' | '\x7f'..='\u{9f}');
    let direction = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let invisible = matches!(
        character,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{feff}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    control || direction || invisible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(line("\x1b[2Jgone\x07"), "␛[2Jgone␇");
        assert_eq!(line("a\u{9b}31m\x7f"), "a\\u{9b}31m␡");
        assert_eq!(lines("one\n\x1b]0;title\x07\ttwo\r\nthree\rfour"), "one\n␛]0;title␇\ttwo\nthree␍four");
    }

    #[test]
    fn bidirectional_control_characters_become_visible() {
        assert_eq!(line("safe\u{202e}txt.exe\u{2066}\u{200f}"), "safe\\u{202e}txt.exe\\u{2066}\\u{200f}");
        assert_eq!(lines("a\u{2028}b"), "a\\u{2028}b");
    }

    #[test]
    fn single_line_text_stays_on_one_line() {
        assert_eq!(line("a\nb\r\nc\td"), "a␊b␍␊c␉d");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in ["", "plain", "größe — 日本語 🙂👩‍💻"] {
            assert_eq!(line(text), text);
            assert_eq!(lines(text), text);
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"prompt": "a\u{9b}\u{202e}b\x7f\x1b\u{e0041}"});
        let text = json(serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.contains(|character: char| character != '\n' && is_control(character)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
