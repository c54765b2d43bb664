//! Why a snapshot cannot be read or written.

use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, SnapshotId};
use std::io;
use std::path::PathBuf;

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("there is no snapshot {id} in {}", dir.display())]
    NotFound { id: String, dir: PathBuf },
    #[error("{id} is the start of several snapshots: {}", ids.join(", "))]
    Ambiguous { id: String, ids: Vec<String> },
    #[error("there are no snapshots in {}", dir.display())]
    Empty { dir: PathBuf },
    /// It is a symlink, a pipe or a directory.
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is larger than {limit_mb} MB", path.display())]
    TooLarge { path: PathBuf, limit_mb: u64 },
    /// It is not YAML or JSON, or parts of it are missing.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    /// The content does not match the hash in its id.
    #[error("{} was changed after it was written: its content has the hash {found}, but its id says {expected}", path.display())]
    HashMismatch { path: PathBuf, expected: String, found: String },
    /// The database has the history up to the snapshot, and it says something else.
    #[error("{} does not show the state that run {run} had then", path.display())]
    NotInHistory { path: PathBuf, run: RunId },
    #[error("{} has format {format}; this release reads format {supported}", path.display())]
    Newer { path: PathBuf, format: u64, supported: u64 },
    #[error("{} has format {format}, which is too old: this release reads format {supported}", path.display())]
    Older { path: PathBuf, format: u64, supported: u64 },
    /// Another tool wrote it: there is no state to continue from.
    #[error("{} has no engine state, so nothing can continue from it", path.display())]
    NoState { path: PathBuf },
    #[error("{} belongs to run {found}, not to run {expected}", path.display())]
    WrongRun { path: PathBuf, expected: RunId, found: RunId },
    #[error("snapshot {id} needs the stored value {digest}, which is not in {}", dir.display())]
    ValueMissing { id: SnapshotId, digest: Digest, dir: PathBuf },
    #[error("the stored value {} does not match its name", path.display())]
    ValueDamaged { path: PathBuf },
    #[error("{} cannot be read: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl SnapshotError {
    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Io { path: path.to_path_buf(), source }
    }
}
