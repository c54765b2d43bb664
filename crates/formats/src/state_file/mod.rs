//! The state file of a pipeline: one JSON document per pipeline, for other tools.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`document`], [`render`] | the content of a run's file, and its text |
//! | [`check`], [`rule`], `spec_diff` | the rules of the reference format, and violations of them |
//! | [`import`] | files as other tools write them |
//! | [`manual_gates`] | gates in these files that have no command here |

pub mod check;
pub mod document;
pub mod import;
pub mod manual_gates;
pub mod render;
pub mod rule;
mod spec_diff;
