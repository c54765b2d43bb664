//! Truncates text to a display width.

use unicode_width::UnicodeWidthStr;

/// As much of a text as fits.
pub fn truncate(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut fitting = String::new();
    for character in text.chars() {
        let mut longer = fitting.clone();
        longer.push(character);
        if longer.width() + 1 > room {
            break;
        }
        fitting = longer;
    }
    fitting + "…"
}
