//! Building blocks with which a reader of another file format produces a checked workflow: the same syntax tree, checks, report
//! and defaults as for workflow files, so that a problem reads the same in every format.
//!
//! | item | purpose |
//! | --- | --- |
//! | [`parse`], [`Node`], [`Content`], [`Entry`], [`Scalar`] | YAML as a tree with positions, under the limits of workflow files |
//! | [`Report`], [`Draft`], [`Cursor`], [`line_of`], [`place_of`], [`shown`] | collecting problems, and their positions |
//! | [`Checker`], [`Roots`] | reading single values: names, counts, commands, paths |
//! | [`cycles`], [`cycle_text`] | tasks that need each other |
//! | [`question_checkpoint`], [`question_options`], [`default_choices`], [`settle_redo`], [`verify_last`], [`DEFAULT_PROMPT`] | questions to people |
//! | [`SUCCESSOR_KEYS`] | how a workflow of the successor format is recognised |

pub use super::check::{
    Checker, DEFAULT_PROMPT, SUCCESSOR_KEYS, cycle_text, cycles, default_choices, question_checkpoint, question_options,
    settle_redo, verify_last,
};
pub use super::problem::{Cursor, Draft, Report, line_of, place_of, shown};
pub use super::syntax::{Content, Entry, Node, Scalar, parse};
pub use crate::template::Roots;
