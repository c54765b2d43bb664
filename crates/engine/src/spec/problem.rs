//! Problems of a file: what is wrong, where, and what would mend it.

use super::code::ProblemCode;
use serde::Serialize;
use std::ops::Range;

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable code, such as `unknown-key`.
    pub code: ProblemCode,
    /// Whether the file can be used in spite of it.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The bytes of the file that it is about; never more than the rest of one line.
    #[serde(skip)]
    pub span: Range<usize>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What would mend it.
    pub help: Option<String>,
    /// The file that it is about, where that is one of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How many problems are only counted, where this says so.
    #[serde(skip)]
    pub untold: usize,
}

impl Problem {
    /// How many problems this is: one, or all that are only counted.
    pub fn weight(&self) -> usize {
        self.untold.max(1)
    }
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used.
    Warning,
}

/// How many problems of one file are listed; the others are only counted, because each one costs a search for what was meant.
pub const MAX_PROBLEMS: usize = 200;

/// Collects problems while a file is checked, in any order.
#[derive(Debug, Default)]
pub struct Report {
    drafts: Vec<Draft>,
    untold: usize,
    /// Told or only counted.
    errors: usize,
}

/// A problem whose line and column are not worked out yet.
#[derive(Debug)]
pub struct Draft {
    code: ProblemCode,
    severity: Severity,
    message: String,
    span: Range<usize>,
    help: Option<String>,
}

impl Draft {
    /// Says what would mend it.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }

    /// Says what would mend it, where that is known.
    pub fn maybe_help(&mut self, help: Option<String>) {
        self.help = help;
    }
}

impl Report {
    /// The file cannot be used because of this.
    pub fn error(&mut self, code: ProblemCode, span: &Range<usize>, message: impl Into<String>) -> &mut Draft {
        self.errors += 1;
        self.add(code, Severity::Error, span, message.into())
    }

    /// The file can be used, but this is probably not what was meant.
    pub fn warning(&mut self, code: ProblemCode, span: &Range<usize>, message: impl Into<String>) -> &mut Draft {
        self.add(code, Severity::Warning, span, message.into())
    }

    fn add(&mut self, code: ProblemCode, severity: Severity, span: &Range<usize>, message: String) -> &mut Draft {
        if self.is_crowded() {
            // The last place is a scratch pad: what is written to it is dropped in `finish`.
            self.drafts.truncate(MAX_PROBLEMS);
            self.untold += 1;
            // However many warnings there are, an error is told before them.
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

    /// Whether further errors are only counted; there are errors enough then.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_PROBLEMS
    }

    /// Whether further warnings are only counted.
    pub fn is_crowded(&self) -> bool {
        self.drafts.len() >= MAX_PROBLEMS
    }

    /// Counts a problem whose words would be dropped.
    pub fn count(&mut self) {
        self.untold += 1;
    }

    /// Whether there was an error.
    pub fn has_error(&self) -> bool {
        self.errors > 0
    }

    /// All problems in the order of their places. What an alias repeats is told once.
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
                help: Some("mend these first".into()),
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

/// Walks once through the text, counting lines and characters.
pub struct Cursor<'s> {
    source: &'s str,
    offset: usize,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

impl<'s> Cursor<'s> {
    /// Stands at the beginning of a text.
    pub fn new(source: &'s str) -> Self {
        Self { source, offset: 0, line: 1, column: 1 }
    }

    /// Goes on to a byte that begins a character; never back.
    pub fn advance_to(&mut self, offset: usize) {
        let offset = offset.max(self.offset);
        for (index, character) in self.source[self.offset..offset].char_indices() {
            match character {
                '\n' => {
                    self.line += 1;
                    self.column = 1;
                }
                // A byte order mark has no width in any editor; elsewhere it is a character like others.
                '\u{feff}' if self.offset + index == 0 => {}
                _ => self.column += 1,
            }
        }
        self.offset = offset;
    }
}

/// The line that a byte of the text stands on, counted from 1.
pub fn line_of(source: &str, offset: usize) -> usize {
    1 + source.as_bytes()[..offset.min(source.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The line and the column, in characters, of a byte of the text; both counted from 1.
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

/// Text of a file inside a message: one line, not long, no control characters.
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
