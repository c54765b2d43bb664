//! Options in a list, or each under its own heading.

use super::Found;
use super::label::{Side, bare, called_line, ends_options, label, marks_options, side, split_sides};

/// How an item starts; all options of a list start the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Number,
    Bullet,
    Heading,
    /// A separate line: `**Option A:** SQLite`.
    Line,
}

/// An option whose lines are still being read.
struct Item {
    found: Found,
    /// Where list items below "Pros:" or "Cons:" are added.
    open: Option<Side>,
}

/// The options of a list. Without a heading such as "Options", each item must have an id or be called an option.
pub(super) fn read(lines: &[&str], marked: bool) -> Vec<Found> {
    let mut items: Vec<Item> = Vec::new();
    let mut shape: Option<(Mark, usize)> = None;
    for line in lines {
        if marks_options(line) && items.is_empty() {
            continue;
        }
        if let (Some((side, rest)), Some(item)) = (side(line), items.last_mut()) {
            item.say(side, &rest);
            continue;
        }
        let item = mark(line).filter(|(mark, text)| {
            let called = label(text);
            let is_item = matches!(mark, Mark::Number | Mark::Bullet);
            let fits = (marked && is_item) || called.certain;
            let indent = indent(line);
            fits && text.contains(char::is_alphanumeric) && shape.is_none_or(|(known, most)| known == *mark && indent <= most + 1)
        });
        match item {
            Some((mark, text)) => {
                shape.get_or_insert((mark, indent(line)));
                let (name, pros, cons) = split_sides(text);
                // The marks around an id identify it, so the label is parsed from the original text.
                let label = if pros.is_none() && cons.is_none() { label(text) } else { label(&name) };
                items.push(Item { found: Found { label, pros, cons }, open: None });
            }
            None => {
                if !marked && !items.is_empty() && ends_options(line) {
                    break;
                }
                if let Some(item) = items.last_mut() {
                    item.more(line);
                }
            }
        }
    }
    items.into_iter().map(|item| item.found).collect()
}

impl Item {
    fn say(&mut self, side: Side, text: &str) {
        let (text, other) = match side {
            // One line may contain both.
            Side::Pros => {
                let (first, _, cons) = split_sides(text);
                (if cons.is_some() { first } else { bare(text) }, cons)
            }
            Side::Cons => (bare(text), None),
        };
        self.add(side, &text);
        if let Some(cons) = other {
            self.add(Side::Cons, &cons);
        }
        self.open = Some(side);
    }

    /// Adds a continuation line: more pros or cons, or a description, which is ignored.
    fn more(&mut self, line: &str) {
        let text = bare(super::label::unmarked(line));
        if !text.contains(char::is_alphanumeric) {
            return;
        }
        match self.open {
            Some(side) if line.starts_with([' ', '\t', '-', '*', '+']) => self.add(side, &text),
            Some(_) | None => {
                let (_, pros, cons) = split_sides(&text);
                for (side, said) in [(Side::Pros, pros), (Side::Cons, cons)] {
                    if let Some(said) = said {
                        self.add(side, &said);
                    }
                }
            }
        }
    }

    fn add(&mut self, side: Side, text: &str) {
        let said = match side {
            Side::Pros => &mut self.found.pros,
            Side::Cons => &mut self.found.cons,
        };
        match said {
            _ if text.is_empty() => {}
            Some(said) => {
                said.push_str("; ");
                said.push_str(text);
            }
            None => *said = Some(text.to_owned()),
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The marker that starts an item, and the text after it.
fn mark(line: &str) -> Option<(Mark, &str)> {
    let text = line.trim();
    let digits = text.len() - text.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    if digits > 0 {
        return text[digits..].strip_prefix(['.', ')']).map(|rest| (Mark::Number, rest.trim()));
    }
    if let Some(rest) = ["- ", "* ", "+ ", "• "].iter().find_map(|mark| text.strip_prefix(mark)) {
        return Some((Mark::Bullet, rest.trim()));
    }
    if text.starts_with('#') {
        return Some((Mark::Heading, text.trim_start_matches('#').trim()));
    }
    called_line(text).then_some((Mark::Line, text))
}
