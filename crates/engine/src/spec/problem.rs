//! Problems of a file: a message, a position, and how to fix it.

use super::code::ProblemCode;
use serde::Serialize;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable code, such as `unknown-key`.
    pub code: ProblemCode,
    /// Whether the file can be used despite the problem.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// The byte range in the file; never longer than the rest of one line.
    #[serde(skip)]
    pub span: Range<usize>,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// How to fix it.
    pub help: Option<String>,
    /// The file that it is about, if the workflow has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of further problems that are not listed, if this one summarizes them.
    #[serde(skip)]
    pub untold: usize,
}

impl Problem {
    /// The number of problems that this one summarizes.
    pub fn weight(&self) -> usize {
        self.untold.max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used.
    Warning,
}

/// How many problems of one file are listed. The others are only counted, because each one costs a search for suggestions.
pub const MAX_PROBLEMS: usize = 200;

/// Collects problems while a file is checked, in any order.
#[derive(Debug, Default)]
pub struct Report {
    drafts: Vec<Draft>,
    untold: usize,
    /// Listed or only counted.
    errors: usize,
}

/// A problem whose line and column have not been computed yet.
#[derive(Debug)]
pub struct Draft {
    code: ProblemCode,
    severity: Severity,
    message: String,
    span: Range<usize>,
    help: Option<String>,
}

impl Draft {
    /// Adds how to fix it.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }

    /// Adds how to fix it, if known.
    pub fn maybe_help(&mut self, help: Option<String>) {
        self.help = help;
    }
}

impl Report {
    /// Adds a problem that makes the file unusable.
    pub fn error(&mut self, code: ProblemCode, span: &Range<usize>, message: impl Into<String>) -> &mut Draft {
        self.errors += 1;
        self.add(code, Severity::Error, span, message.into())
    }

    /// Adds a problem that does not make the file unusable, but is probably unintended.
    pub fn warning(&mut self, code: ProblemCode, span: &Range<usize>, message: impl Into<String>) -> &mut Draft {
        self.add(code, Severity::Warning, span, message.into())
    }

    fn add(&mut self, code: ProblemCode, severity: Severity, span: &Range<usize>, message: String) -> &mut Draft {
        if self.is_crowded() {
            // The last element is a scratch pad: anything written to it is dropped in `finish`.
            self.drafts.truncate(MAX_PROBLEMS);
            self.untold += 1;
            // Errors are listed before warnings, however many warnings there are.
            if severity == Severity::Error
                && let Some(warning) = self.drafts.iter().rposition(|draft| draft.severity == Severity::Warning)
            {
                self.drafts.remove(warning);
            }
        }
        self.drafts.push(Draft { code, severity, message, span: span.clone(), help: None });
        let last = self.drafts.len() - 1;
        &mut self.drafts[last]
    }

    /// Whether further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_PROBLEMS
    }

    /// Whether further warnings are only counted.
    pub fn is_crowded(&self) -> bool {
        self.drafts.len() >= MAX_PROBLEMS
    }

    /// Counts a problem whose message would be dropped.
    pub fn count(&mut self) {
        self.untold += 1;
    }

    pub fn has_error(&self) -> bool {
        self.errors > 0
    }

    /// All problems, sorted by position. A problem that an alias repeats is listed once.
    pub fn finish(mut self, source: &str) -> Vec<Problem> {
        self.drafts.truncate(MAX_PROBLEMS);
        if self.untold > 0 {
            let message = match self.untold {
                1 => "1 more problem is not listed".to_owned(),
                count => format!("{count} more problems are not listed"),
            };
            let severity = if self.errors > 0 { Severity::Error } else { Severity::Warning };
            self.drafts.push(Draft {
                code: ProblemCode::TooManyProblems,
                severity,
                message,
                span: source.len()..source.len(),
                help: Some("fix these first".into()),
            });
        }
        self.drafts.sort_by_key(|draft| draft.span.start);
        let mut cursor = Cursor::new(source);
        let mut problems: Vec<Problem> = Vec::with_capacity(self.drafts.len());
        for draft in self.drafts {
            let start = boundary(source, draft.span.start);
            cursor.advance_to(start);
            let span = start..end_in_line(source, start, draft.span.end);
            let Draft { code, severity, message, help, .. } = draft;
            let untold = if code == ProblemCode::TooManyProblems { self.untold } else { 0 };
            let (line, column) = (cursor.line, cursor.column);
            let problem = Problem { code, severity, message, span, line, column, help, file: None, untold };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

/// Walks once through a text, counting lines and characters.
pub struct Cursor<'s> {
    source: &'s str,
    offset: usize,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
}

impl<'s> Cursor<'s> {
    pub fn new(source: &'s str) -> Self {
        Self { source, offset: 0, line: 1, column: 1 }
    }

    /// Advances to the start of a character, never backwards.
    pub fn advance_to(&mut self, offset: usize) {
        let offset = offset.max(self.offset);
        for (index, character) in self.source[self.offset..offset].char_indices() {
            match character {
                '\n' => {
                    self.line += 1;
                    self.column = 1;
                }
                // A byte order mark at the start of the file has no width in any editor; elsewhere it is a character like any
                // other.
                '\u{feff}' if self.offset + index == 0 => {}
                _ => self.column += 1,
            }
        }
        self.offset = offset;
    }
}

/// The line of a byte offset, counted from 1.
pub fn line_of(source: &str, offset: usize) -> usize {
    1 + source.as_bytes()[..offset.min(source.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The line and column (in characters) of a byte offset, both counted from 1.
pub fn place_of(source: &str, offset: usize) -> (usize, usize) {
    let mut cursor = Cursor { source, offset: 0, line: 1, column: 1 };
    cursor.advance_to(boundary(source, offset));
    (cursor.line, cursor.column)
}

fn boundary(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn end_in_line(source: &str, start: usize, end: usize) -> usize {
    let end = boundary(source, end).max(start);
    let text = &source[start..end];
    let line = text.find('\n').map_or(text, |newline| &text[..newline]);
    start + line.trim_end().len()
}

/// Sanitizes text of a file for a message: one line, not too long, no control characters.
pub fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == LONGEST {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}
