//! The rows below the record and the position of the cursor among them. Everything here produces text and does not access the
//! terminal.

use crate::columns::columns;
use anstream::adapter::strip_str;

/// Clears the row of the cursor and all rows below it, and leaves the cursor in the first column. In two steps, because some
/// terminals, such as tmux, save the screen to the scrollback when it is cleared from its first position.
pub(super) const ERASED: &str = "\r\x1b[K\x1b7\x1b[B\x1b[J\x1b8";

/// A position among the rows of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// Rows that are drawn below an empty row, the anchor. No row is wider than the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) rows: Vec<String>,
    /// The input position. Without it, the cursor stays in the anchor.
    pub(crate) cursor: Option<Cursor>,
}

impl Frame {
    pub(crate) fn of(rows: Vec<String>) -> Self {
        Self { rows, cursor: None }
    }

    /// Draws all rows, starting with the cursor in the anchor. Automatic wrapping is off, so no row continues in the next one.
    pub(crate) fn drawn(&self) -> String {
        let mut text = String::from("\x1b[?7l\r\x1b[K");
        for row in &self.rows {
            text.push_str(&format!("\r\n{row}\x1b[K"));
        }
        text.push_str("\x1b[J");
        text + &self.placed(self.rows.len())
    }

    /// Draws another frame over this one in a window of the same size. Only changed rows are sent, so that typing stays responsive on
    /// a slow connection.
    pub(super) fn redrawn(&self, next: &Self) -> String {
        let mut text = format!("\x1b[?7l{}", self.home());
        for (at, row) in next.rows.iter().enumerate() {
            text.push_str("\r\n");
            if self.rows.get(at) != Some(row) {
                text.push_str(&format!("{row}\x1b[K"));
            }
        }
        let fewer = next.rows.len() < self.rows.len();
        if fewer {
            text.push_str("\r\n\x1b[J");
        }
        text + &next.placed(next.rows.len() + usize::from(fewer))
    }

    /// Moves the cursor to its position from `below` rows below the anchor.
    fn placed(&self, below: usize) -> String {
        let (row, column) = self.cursor.map_or((0, 0), |cursor| (cursor.row + 1, cursor.column));
        format!("{}\r{}\x1b[?7h", moved(below.saturating_sub(row), 'A'), moved(column, 'C'))
    }

    /// Moves the cursor back to the anchor.
    pub(super) fn home(&self) -> String {
        format!("\r{}", moved(self.cursor.map_or(0, |cursor| cursor.row + 1), 'A'))
    }

    /// Like [`Frame::home`], after the window has become narrower. Most terminals wrap rows that are too long, and some truncate them.
    pub(super) fn home_in(&self, width: usize, reflow: Reflow) -> String {
        let Some(cursor) = self.cursor else { return self.home() };
        let lines = |wide: usize| match reflow {
            Reflow::Breaks => wide.div_ceil(width.max(1)).max(1),
            Reflow::Cuts => 1,
        };
        let above: usize = self.rows.iter().take(cursor.row).map(|row| lines(columns(&strip_str(row).to_string()))).sum();
        // The cursor may be in a later part of its wrapped row.
        let within = lines(cursor.column + 1) - 1;
        format!("\r{}", moved(1 + above + within, 'A'))
    }
}

/// What a terminal does with rows that are wider than the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reflow {
    /// Wraps them.
    Breaks,
    /// Truncates them.
    Cuts,
}

impl Reflow {
    /// The behaviour of the terminal that the environment names.
    pub(super) fn of(environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let term = environment("TERM").unwrap_or_default();
        let screen = environment("STY").is_some() && environment("TMUX").is_none();
        match environment("XTERM_VERSION").is_some() || screen || term == "linux" {
            true => Self::Cuts,
            false => Self::Breaks,
        }
    }
}

/// Moves the cursor. Terminals treat 0 as 1, so nothing is sent for 0.
fn moved(by: usize, direction: char) -> String {
    if by == 0 { String::new() } else { format!("\x1b[{by}{direction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(rows: &[&str]) -> Frame {
        Frame::of(rows.iter().map(|row| (*row).to_owned()).collect())
    }

    fn with_cursor(rows: &[&str], row: usize, column: usize) -> Frame {
        Frame { cursor: Some(Cursor { row, column }), ..frame(rows) }
    }

    #[test]
    fn a_drawing_leaves_the_cursor_where_it_was_and_fills_the_rows_below() {
        let mut screen = vt100::Parser::new(10, 20, 0);
        screen.process(b"before\r\n");
        screen.process(frame(&["one", "two", "three"]).drawn().as_bytes());
        assert_eq!(screen.screen().contents(), "before\n\none\ntwo\nthree");
        assert_eq!(screen.screen().cursor_position(), (1, 0));
        screen.process(frame(&["1"]).drawn().as_bytes());
        assert_eq!(screen.screen().contents(), "before\n\n1");
        screen.process(ERASED.as_bytes());
        assert_eq!(screen.screen().contents(), "before");
    }

    #[test]
    fn a_drawing_at_the_bottom_scrolls_earlier_output_up_without_losing_any() {
        let mut screen = vt100::Parser::new(5, 20, 10);
        screen.process(b"a\r\nb\r\nc\r\nd\r\n");
        screen.process(frame(&["one", "two"]).drawn().as_bytes());
        assert_eq!(screen.screen().contents(), "c\nd\n\none\ntwo");
        assert_eq!(screen.screen().cursor_position(), (2, 0));
        screen.process(ERASED.as_bytes());
        screen.process(frame(&["three"]).drawn().as_bytes());
        assert_eq!(screen.screen().contents(), "c\nd\n\nthree");
    }

    #[test]
    fn erasing_works_at_any_cursor_position_and_never_clears_the_whole_screen() {
        for row in 1..=5 {
            let mut screen = vt100::Parser::new(5, 20, 10);
            screen.process(format!("1\r\n2\r\n3\r\n4\r\n5\x1b[{row};3H").as_bytes());
            for piece in ERASED.split_inclusive('J') {
                screen.process(piece.trim_end_matches("\x1b[J").as_bytes());
                if piece.ends_with("\x1b[J") {
                    assert_ne!(screen.screen().cursor_position(), (0, 0));
                    screen.process(b"\x1b[J");
                }
            }
            assert_eq!(screen.screen().contents(), ["", "1", "1\n2", "1\n2\n3", "1\n2\n3\n4"][row - 1]);
            assert_eq!(usize::from(screen.screen().cursor_position().0), row - 1);
        }
    }

    #[test]
    fn any_frame_is_drawn_over_any_other_with_the_cursor_in_its_place() {
        let frames = [
            with_cursor(&["question", "> typed", "", "tree"], 1, 7),
            with_cursor(&["question", "hint", "> ", "", "tree", "task"], 2, 2),
            with_cursor(&["> x"], 0, 3),
            frame(&["tree"]),
            with_cursor(&["question", "> typed", "", "tree"], 1, 2),
        ];
        // With space below, and at the bottom of the screen.
        for before in ["a\r\n", "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\n"] {
            for from in &frames {
                for to in &frames {
                    let mut screen = vt100::Parser::new(9, 20, 20);
                    screen.process(before.as_bytes());
                    screen.process(from.drawn().as_bytes());
                    screen.process(from.redrawn(to).as_bytes());
                    let seen = screen.screen().contents();
                    let below = seen.split_once("\n\n").map_or("", |(_, below)| below);
                    assert_eq!(below, to.rows.join("\n"), "{from:?} to {to:?}: {seen}");
                    let (row, column) = screen.screen().cursor_position();
                    let typed = screen.screen().rows(0, 20).nth(row.into()).unwrap();
                    let expected = to.cursor.map_or("", |cursor| &to.rows[cursor.row]);
                    assert_eq!(
                        (typed.trim_end(), usize::from(column)),
                        (expected.trim_end(), to.cursor.map_or(0, |at| at.column))
                    );
                    // Everything can be erased from there.
                    screen.process(format!("{}{ERASED}", to.home()).as_bytes());
                    assert!(!screen.screen().contents().contains(['>', 't']), "{}", screen.screen().contents());
                }
            }
        }
    }

    #[test]
    fn only_rows_that_differ_are_sent() {
        let from = with_cursor(&["question", "> x", "", "tree"], 1, 3);
        let to = with_cursor(&["question", "> xy", "", "tree"], 1, 4);
        let sent = from.redrawn(&to);
        assert!(sent.contains("> xy") && !sent.contains("question") && !sent.contains("tree"), "{sent:?}");
    }

    #[test]
    fn the_anchor_is_found_again_in_a_narrower_window() {
        let frame = with_cursor(&["a question of 26 characters", "short", "> typed text", "tree"], 2, 12);
        assert_eq!(frame.home_in(40, Reflow::Breaks), frame.home());
        assert_eq!(frame.home_in(20, Reflow::Breaks), "\r\x1b[4A");
        assert_eq!(frame.home_in(10, Reflow::Breaks), "\r\x1b[6A", "three rows for the first, one, and the second of the last");
        assert_eq!(frame.home_in(10, Reflow::Cuts), frame.home());
    }

    #[test]
    fn terminals_that_cut_rows_off_are_known_by_their_environment() {
        let of = |set: &[(&str, &str)]| {
            Reflow::of(&|name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[("TERM", "xterm-256color")]), Reflow::Breaks);
        assert_eq!(of(&[("TERM", "tmux-256color"), ("TMUX", "/tmp/tmux"), ("STY", "1.pts")]), Reflow::Breaks);
        assert_eq!(of(&[("TERM", "xterm-256color"), ("XTERM_VERSION", "XTerm(390)")]), Reflow::Cuts);
        assert_eq!(of(&[("TERM", "screen-256color"), ("STY", "1.pts")]), Reflow::Cuts);
        assert_eq!(of(&[("TERM", "linux")]), Reflow::Cuts);
    }
}
