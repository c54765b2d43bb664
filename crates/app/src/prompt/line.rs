//! One line of input: what is typed so far, and how it is drawn.

use super::key::Key;
use crate::{neutral, print};

/// What is typed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    text: String,
}

impl Line {
    /// What is typed so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Puts something else in its place.
    pub(crate) fn set(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
    }

    /// Takes a key that edits; whether it was one.
    pub(crate) fn edit(&mut self, key: &Key) -> bool {
        match key {
            Key::Character(character) => self.text.push(*character),
            Key::Paste(text) => self.text.push_str(text),
            Key::NewLine => self.text.push('\n'),
            Key::Backspace => {
                self.text.pop();
            }
            Key::DeleteWord => {
                let kept = self.text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
                self.text.truncate(kept);
            }
            Key::DeleteAll => self.text.clear(),
            Key::Enter | Key::Up | Key::Down | Key::Escape | Key::Interrupt | Key::End => return false,
        }
        true
    }

    /// Draws the line anew behind a label; of a long text, the end is shown.
    pub(crate) fn draw(&self, label: &str, width: usize) {
        let shown = neutral::line(&self.text);
        let room = width.saturating_sub(label.chars().count() + 1).max(8);
        let length = shown.chars().count();
        let end: String = if length > room {
            std::iter::once('…').chain(shown.chars().skip(length - room + 1)).collect()
        } else {
            shown.into_owned()
        };
        print::terminal(&format!("\r\x1b[K{label}{end}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_line() {
        let mut line = Line::default();
        for key in [Key::Paste("one two".into()), Key::Character('!'), Key::Backspace, Key::NewLine, Key::Character('x')] {
            assert!(line.edit(&key));
        }
        assert_eq!(line.text(), "one two\nx");
        line.edit(&Key::DeleteWord);
        assert_eq!(line.text(), "one two\n");
        line.edit(&Key::DeleteWord);
        assert_eq!(line.text(), "one ");
        line.edit(&Key::DeleteAll);
        assert_eq!(line.text(), "");
        line.edit(&Key::Backspace);
        assert!(!line.edit(&Key::Enter));
    }
}
