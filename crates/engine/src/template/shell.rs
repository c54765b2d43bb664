//! The quoting context of a value in a shell command, so that it can be quoted to stay one piece of text.
//!
//! Single quotes around a value inside double quotes would protect nothing, so the scanner follows the quotes of the command. If
//! it cannot follow them (here-documents, backquotes, `$'…'`, commands inside double quotes), it reports that, and the template
//! is refused: a value that might be run as code is never inserted.

use std::ops::Range;

/// The quoting context of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not in a shell command.
    Text,
    /// Outside quotes.
    Word,
    /// Inside `'…'`.
    SingleQuotes,
    /// Inside `"…"`.
    DoubleQuotes,
}

/// Writes a value as one word.
pub(super) fn write_word(value: &str, to: &mut String) {
    to.push('\'');
    write_in_single_quotes(value, to);
    to.push('\'');
}

/// Writes a value inside open single quotes.
pub(super) fn write_in_single_quotes(value: &str, to: &mut String) {
    for character in value.chars() {
        match character {
            '\'' => to.push_str("'\\''"),
            other => to.push(other),
        }
    }
}

/// Writes a value inside open double quotes.
pub(super) fn write_in_double_quotes(value: &str, to: &mut String) {
    for character in value.chars() {
        if matches!(character, '\\' | '"' | '$' | '`') {
            to.push('\\');
        }
        to.push(character);
    }
}

const INSIDE_EXPANSION: &str = "inside a `${…}`";

/// A tag whose quoting context is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Unplaceable {
    /// Where the tag is. Completes "the tag is …".
    reason: &'static str,
}

/// Follows the quotes of a command from its start. Positions must be requested in order.
pub(super) struct Scanner<'t> {
    command: &'t str,
    at: usize,
    state: State,
    here_documents: Vec<HereDocument>,
    /// The number of open `${` outside quotes.
    expansions: usize,
    /// A description of the construct that was last skipped as a whole.
    passed: &'static str,
    /// The end of the last escaped character.
    escaped_to: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    Single,
    Double,
    Comment,
    /// The rest cannot be interpreted, for this reason.
    Lost(&'static str),
}

struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(command: &'t str) -> Self {
        Self { command, at: 0, state: State::Plain, here_documents: Vec::new(), expansions: 0, passed: "", escaped_to: None }
    }

    /// The context of the tag at this span: `None` in a comment, or the reason why it is unknown.
    pub(super) fn place(&mut self, tag: Range<usize>) -> Result<Option<Place>, Unplaceable> {
        while self.at < tag.start {
            self.step();
        }
        if self.at > tag.start {
            // The tag is inside a construct that was skipped as a whole.
            return match self.state {
                State::Lost(reason) => Err(Unplaceable { reason }),
                State::Plain | State::Single | State::Double | State::Comment => Err(Unplaceable { reason: self.passed }),
            };
        }
        let place = match self.state {
            _ if self.expansions > 0 => Err(Unplaceable { reason: INSIDE_EXPANSION }),
            State::Plain => Ok(Some(Place::Word)),
            State::Single => Ok(Some(Place::SingleQuotes)),
            State::Double => Ok(Some(Place::DoubleQuotes)),
            State::Comment => Ok(None),
            State::Lost(reason) => Err(Unplaceable { reason }),
        };
        self.at = tag.end;
        place
    }

    fn rest(&self) -> &'t str {
        &self.command[self.at..]
    }

    fn step(&mut self) {
        let rest = self.rest();
        let Some(character) = rest.chars().next() else { return };
        let mut length = character.len_utf8();
        match self.state {
            State::Lost(_) => {}
            State::Comment if character == '\n' => {
                self.state = State::Plain;
                length = self.pass_here_documents(length);
            }
            State::Comment => {}
            State::Single if character == '\'' => self.state = State::Plain,
            State::Single => {}
            State::Double => match character {
                '"' => self.state = State::Plain,
                '\\' => length += self.pass_escape(rest),
                '`' => length = self.pass_backquotes(rest),
                '$' if rest.starts_with("$(") => length = self.pass_substitution(rest),
                '$' if rest.starts_with("${") => length = self.pass_expansion(rest),
                '$' if rest.starts_with("$[") => self.state = State::Lost("after `$[`"),
                _ => {}
            },
            State::Plain => match character {
                '\'' => self.state = State::Single,
                '"' => self.state = State::Double,
                '\\' => length += self.pass_escape(rest),
                '`' => length = self.pass_backquotes(rest),
                '$' if rest.starts_with("$'") || rest.starts_with("$\"") => {
                    self.state = State::Lost("after a `$'…'` or `$\"…\"` string")
                }
                '(' if rest.starts_with("((") => length = self.pass_arithmetic(rest),
                '$' if rest.starts_with("$[") => self.state = State::Lost("after `$[`"),
                '$' if rest.starts_with("${") => {
                    self.expansions += 1;
                    self.passed = INSIDE_EXPANSION;
                    length = 2;
                }
                '}' if self.expansions > 0 => self.expansions -= 1,
                // Inside `${…}` none of these has its usual meaning.
                '$' if self.expansions > 0 && rest.starts_with("$(") => self.state = State::Lost(INSIDE_EXPANSION),
                '#' if self.expansions > 0 => {}
                '<' | '\n' if self.expansions > 0 => self.state = State::Lost(INSIDE_EXPANSION),
                // Not POSIX. On an error in it, bash continues with the next line, wherever that is.
                '=' if rest.starts_with("=(") => self.state = State::Lost("in or after a list `x=(…)`"),
                // After a subshell this is a comment, after `$(…)` a part of the word.
                '#' if self.command[..self.at].ends_with(')') => self.state = State::Lost("after `)#`"),
                // After an operator that requires a word this is a comment. It causes an error, after which bash continues with
                // the next line.
                '#' if self.command[..self.at].ends_with(['<', '>']) => self.state = State::Lost("after `>#`"),
                // Either the continuation of a word on the line before, or a new word: that depends on that line.
                '#' if self.command[..self.at].ends_with("\\\n") => {
                    self.state = State::Lost("after a `#` at the start of a continued line")
                }
                '#' if self.at_word_start() => self.state = State::Comment,
                '<' if rest.starts_with("<<<") => length = 3,
                '<' if rest.starts_with("<<") => length = self.start_here_document(rest),
                '\n' => length = self.pass_here_documents(length),
                _ => {}
            },
        }
        self.at += length;
    }

    fn at_word_start(&self) -> bool {
        let before = self.command[..self.at].chars().next_back();
        // An escaped character belongs to the word.
        self.escaped_to != Some(self.at)
            && before.is_none_or(|character| matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '('))
    }

    /// Skips the character after a backslash, and returns its length.
    fn pass_escape(&mut self, rest: &str) -> usize {
        self.passed = "after a backslash";
        let length = escaped(rest);
        self.escaped_to = Some(self.at + 1 + length);
        length
    }

    /// Skips `` `…` `` as a whole.
    fn pass_backquotes(&mut self, rest: &str) -> usize {
        self.passed = "inside backquotes";
        let mut at = 1;
        for (offset, character) in rest.char_indices().skip(1) {
            if offset < at {
                continue;
            }
            match character {
                '\\' => at = offset + 1 + escaped(&rest[offset..]),
                '`' => return offset + 1,
                _ => at = offset + character.len_utf8(),
            }
        }
        self.lose("inside backquotes", rest)
    }

    /// Skips `$(…)` inside double quotes as a whole, if its end is obvious.
    fn pass_substitution(&mut self, rest: &str) -> usize {
        self.passed = "inside a `$(…)` inside double quotes";
        let mut depth = 0_usize;
        let mut skip_to = 0;
        for (offset, character) in rest.char_indices().skip(1) {
            if offset < skip_to {
                continue;
            }
            match character {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        return if is_literal(&rest[2..offset]) {
                            offset + 1
                        } else {
                            self.lose("after a `$(…)` inside double quotes", rest)
                        };
                    }
                }
                '\\' => skip_to = offset + 1 + escaped(&rest[offset..]),
                '\'' | '"' => match rest[offset + 1..].find(character) {
                    Some(close) => skip_to = offset + 1 + close + 1,
                    None => break,
                },
                _ => {}
            }
        }
        self.lose("inside a `$(…)` inside double quotes", rest)
    }

    /// Skips `${…}` inside double quotes as a whole, if its end is obvious.
    fn pass_expansion(&mut self, rest: &str) -> usize {
        self.passed = "inside a `${…}`";
        match rest.find('}') {
            Some(close) if !rest[2..close].contains(['\'', '"', '`', '\\', '{', '$']) => close + 1,
            _ => self.lose("after a `${…}` with quotes in it", rest),
        }
    }

    fn start_here_document(&mut self, rest: &str) -> usize {
        self.passed = "in the first line of a here-document";
        let mut after = &rest[2..];
        let strips_tabs = after.starts_with('-');
        if strips_tabs {
            after = &after[1..];
        }
        after = after.trim_start_matches([' ', '\t']);
        let quote = after.chars().next().filter(|first| matches!(first, '\'' | '"' | '\\'));
        let word = quote.map_or(after, |_| &after[1..]);
        let end = word.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(word.len());
        let (delimiter, behind) = word.split_at(end);
        let behind = match quote {
            Some(quote @ ('\'' | '"')) => behind.strip_prefix(quote),
            Some(_) | None => Some(behind),
        };
        // If the delimiter is not a bare or fully quoted word, its end is unclear.
        match behind {
            Some(behind)
                if !delimiter.is_empty()
                    && (behind.is_empty() || behind.starts_with([' ', '\t', '\n', ';', '|', '&', '>', ')'])) =>
            {
                self.here_documents.push(HereDocument { delimiter: delimiter.to_owned(), strips_tabs });
                rest.len() - behind.len()
            }
            Some(_) | None => self.lose("after a here-document", rest),
        }
    }

    /// Skips `((…))`, in which quotes do not have their usual meaning, as a whole.
    fn pass_arithmetic(&mut self, rest: &str) -> usize {
        self.passed = "inside `((…))`";
        let before = &self.command[..self.at];
        let arithmetic = before.ends_with('$') && !before.ends_with("\\$");
        match rest.find("))") {
            // Without its `$` this may be a nested subshell, with comments and here-documents.
            Some(close) if !arithmetic && (rest[..close].contains('#') || rest[..close].contains("<<")) => {
                self.lose("after `((`", rest)
            }
            Some(close) if !rest[..close].contains(['\'', '"', '`', '\\', '\n']) && !rest[2..close].contains("((") => {
                // `))` may close more than it seems to if parentheses are left open inside.
                let (opened, closed) = (rest[2..close].matches('(').count(), rest[2..close].matches(')').count());
                if opened == closed { close + 2 } else { self.lose("after `((…))`", rest) }
            }
            Some(_) | None => self.lose("after `((`", rest),
        }
    }

    /// At the end of a line: skips the bodies of the here-documents that the line started.
    fn pass_here_documents(&mut self, newline: usize) -> usize {
        let mut length = newline;
        for document in std::mem::take(&mut self.here_documents) {
            self.passed = "inside a here-document";
            loop {
                let rest = &self.rest()[length..];
                let line = rest.split('\n').next().unwrap_or(rest);
                length += (line.len() + 1).min(rest.len());
                let line = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
                if line == document.delimiter {
                    break;
                }
                if length >= self.rest().len() {
                    return self.lose("inside a here-document", self.rest());
                }
            }
        }
        length
    }

    fn lose(&mut self, reason: &'static str, rest: &str) -> usize {
        self.state = State::Lost(reason);
        rest.len()
    }
}

/// The length of the character after a backslash.
fn escaped(rest: &str) -> usize {
    rest.chars().nth(1).map_or(0, char::len_utf8)
}

/// Whether nothing inside a `$(…)` could have hidden a parenthesis.
fn is_literal(inside: &str) -> bool {
    let tricky = ["case", "<<", "`", "$'", "$\"", "#"];
    let nested_in_quotes = inside.split('"').skip(1).step_by(2).any(|quoted| quoted.contains(['$', '\\', '`']));
    // A parenthesis inside `${…}` closes nothing.
    let unclear_expansion = inside.split("${").skip(1).any(|rest| match rest.split_once('}') {
        Some((expansion, _)) => expansion.contains(['(', ')', '\'', '"', '`', '\\', '{', '$']),
        None => true,
    });
    !tricky.iter().any(|trick| inside.contains(trick)) && !nested_in_quotes && !unclear_expansion
}
