//! One line of input with a cursor.

use super::key::Key;
use crate::columns::{columns, first, last};
use lockgate::sanitize;

/// The typed text and the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    text: String,
    /// The position of the cursor, in bytes.
    cursor: usize,
}

impl Line {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the text.
    pub(crate) fn set(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
        self.cursor = text.len();
    }

    /// Applies an editing key, and returns whether it was one.
    pub(crate) fn edit(&mut self, key: &Key) -> bool {
        match key {
            Key::Character(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(text),
            Key::NewLine => self.insert("\n"),
            Key::Backspace => self.delete(self.before(), self.cursor),
            Key::Delete => self.delete(self.cursor, self.after()),
            Key::DeleteWord => {
                let kept = &self.text[..self.cursor];
                let from = kept.trim_end().char_indices().rfind(|(_, character)| character.is_whitespace());
                let from = from.map_or(0, |(at, character)| at + character.len_utf8());
                self.delete(from, self.cursor);
            }
            Key::DeleteAll => self.set(""),
            Key::Left => self.cursor = self.before(),
            Key::Right => self.cursor = self.after(),
            Key::Home => self.cursor = 0,
            Key::LineEnd => self.cursor = self.text.len(),
            Key::Enter | Key::Up | Key::Down | Key::Escape | Key::Interrupt | Key::End => return false,
            Key::Suspend | Key::Redraw | Key::Files | Key::Editor => return false,
        }
        true
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.cursor + self.text[self.cursor..].chars().next().map_or(0, char::len_utf8)
    }

    /// The text before and after the cursor that fits next to a label. A long text scrolls with the cursor, so that it never takes
    /// more than one row.
    pub(super) fn visible(&self, label: &str, wide: usize) -> (String, String) {
        self.visible_in(room(label, wide))
    }

    fn visible_in(&self, room: usize) -> (String, String) {
        let (before, after) = self.text.split_at(self.cursor);
        let (before, after) = (sanitize::line(before), sanitize::line(after));
        if columns(&before) + columns(&after) <= room {
            return (before.into_owned(), after.into_owned());
        }
        let kept = columns(&after).min(room / 3);
        let before = match columns(&before) {
            fits if fits <= room - kept => before.into_owned(),
            _ => format!("…{}", last(&before, (room - kept).saturating_sub(1))),
        };
        let left = room - columns(&before).min(room);
        let after = match columns(&after) {
            fits if fits <= left => after.into_owned(),
            _ if left == 0 => String::new(),
            _ => format!("{}…", first(&after, left - 1)),
        };
        (before, after)
    }
}

/// The columns next to a label, minus one for the cursor.
fn room(label: &str, wide: usize) -> usize {
    wide.saturating_sub(columns(label) + 1)
}

/// Whether enough columns are left next to a label.
pub(crate) fn fits(label: &str, wide: usize) -> bool {
    room(label, wide) >= 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> Line {
        let mut line = Line::default();
        keys.iter().for_each(|key| assert!(line.edit(key)));
        line
    }

    #[test]
    fn keys_edit_the_line() {
        let mut line =
            typed(&[Key::Paste("one two".into()), Key::Character('!'), Key::Backspace, Key::NewLine, Key::Character('x')]);
        assert_eq!(line.text(), "one two\nx");
        line.edit(&Key::DeleteWord);
        assert_eq!(line.text(), "one two\n");
        line.edit(&Key::DeleteWord);
        assert_eq!(line.text(), "one ");
        line.edit(&Key::DeleteAll);
        assert_eq!(line.text(), "");
        line.edit(&Key::Backspace);
        line.edit(&Key::Left);
        line.edit(&Key::Delete);
        assert!(!line.edit(&Key::Enter));
    }

    #[test]
    fn the_cursor_moves_and_text_is_inserted_at_it() {
        use Key::{Backspace, Character, Delete, Home, Left, LineEnd, Paste, Right};
        let line =
            typed(&[Paste("größe".into()), Left, Left, Character('x'), Right, Backspace, Home, Delete, LineEnd, Character('!')]);
        assert_eq!(line.text(), "röxe!");
        let line = typed(&[Paste("one two".into()), Left, Left, Left, Key::DeleteWord, Home, Character('>')]);
        assert_eq!(line.text(), ">two");
    }

    #[test]
    fn a_long_line_scrolls_with_the_cursor_and_never_fills_its_row() {
        let mut line = typed(&[Key::Paste("0123456789日本語abcdefghij".into())]);
        for room in 1..40 {
            for key in [Key::LineEnd, Key::Left, Key::Left, Key::Home, Key::Right] {
                line.edit(&key);
                let (before, after) = line.visible_in(room);
                assert!(columns(&before) + columns(&after) <= room, "{room}: {before:?} {after:?}");
            }
        }
        line.edit(&Key::LineEnd);
        assert_eq!(line.visible_in(6), ("…fghij".into(), String::new()));
        line.edit(&Key::Home);
        assert_eq!(line.visible_in(6), (String::new(), "01234…".into()));
    }
}
