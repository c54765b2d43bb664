//! Snapshots: files from which a run can resume or be rebuilt, written off the commit path.
//!
//! Which snapshots are due follows from the history alone, by the numbers of its events, so none is lost if a process is killed
//! before it has written them: the next process that drives the run does.

mod dir;
mod error;
mod file;
mod follow;
mod git_state;
mod prune;
mod writer;

pub use dir::{DirLock, Index, Listing, SnapshotDir};
pub use error::SnapshotError;
pub use file::{EnginePart, HistoryHead, Prerequisites, Snapshot, text};
pub use follow::state_at;
pub use git_state::GitState;
pub use prune::{prune, retention_plan};
pub(crate) use writer::Writer;
pub use writer::{SnapshotOptions, WriteError, take_now, write_due};
