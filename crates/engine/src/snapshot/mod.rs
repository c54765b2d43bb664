//! Snapshots: the saved state of a run at one point of its history, as a file from which the run can resume.

pub mod retention;
mod trigger;

pub use trigger::Trigger;
