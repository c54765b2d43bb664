//! The state file of a pipeline: one JSON document for each, that other tools read.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`document`], [`written`] | what the file of a run says, and its text |
//! | [`check`], [`rule`], `against` | the rules of the source's document, and what breaks them |
//! | [`lenient`] | files as other tools really write them |
//! | [`by_hand`] | their gates that nobody here can run |

mod against;
pub mod by_hand;
pub mod check;
pub mod document;
pub mod lenient;
pub mod rule;
pub mod written;
