//! Snapshots: the saved state of a run at one point of its history, as a file from which the run can resume.

pub mod document;
mod due;
pub mod retention;
mod trigger;

pub use due::{Detector, Due};
pub use trigger::Trigger;
