//! The state file of a pipeline: one JSON document for each, that other tools read.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`document`], [`render`] | what the file of a run says, and its text |
//! | [`check`], [`rule`], `spec_diff` | the rules of the source's document, and what breaks them |
//! | [`import`] | files as other tools really write them |
//! | [`manual_gates`] | their gates that have no command here |

pub mod check;
pub mod document;
pub mod import;
pub mod manual_gates;
pub mod render;
pub mod rule;
mod spec_diff;
