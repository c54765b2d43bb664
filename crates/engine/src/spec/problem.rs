//! Problems of a file: what is wrong, where, and what would mend it.

use serde::Serialize;
use std::ops::Range;

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable code, such as `unknown-key`.
    pub code: &'static str,
    /// Whether the file can be used in spite of it.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The bytes of the file that it is about.
    #[serde(skip)]
    pub span: Range<usize>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What would mend it.
    pub help: Option<String>,
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
