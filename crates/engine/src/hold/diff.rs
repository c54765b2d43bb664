//! The git change that a decision is about, as it was at one point in time.

use crate::digest::Digest;
use crate::spec::workflow::DiffSince;
use serde::{Deserialize, Serialize};

/// A git change that is shown with a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownDiff {
    /// Since when, with values filled in.
    pub since: DiffSince,
    /// Only changes of these files and directories under the root; all when empty.
    pub paths: Vec<String>,
    pub seen: SeenDiff,
}

/// What git said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenDiff {
    /// The change.
    Change(Box<GitChange>),
    /// It cannot be known, and why. An answer is not bound to it.
    Unavailable(String),
}

/// The difference between a starting point and the files as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitChange {
    /// The git object that it starts from: a commit where it starts from a revision, else a tree.
    pub base: String,
    /// The git tree of the files as they were, untracked ones included.
    pub tree: String,
    /// Digest of every changed path with its modes and contents before and after; of all of them, however many are listed.
    pub digest: Digest,
    /// How many files changed.
    pub file_count: u64,
    /// How many lines were added in all of them.
    pub added: u64,
    /// How many lines were removed in all of them.
    pub removed: u64,
    /// The first changed files.
    pub files: Vec<ChangedFile>,
    /// The change as a patch, which is a stored value; absent where it is not kept.
    pub text: Option<Digest>,
    /// Why the patch is not kept, or not all of it.
    pub not_kept: Option<String>,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Relative to the top of the repository.
    pub path: String,
    /// Its path before, where it was renamed.
    pub old_path: Option<String>,
    /// What happened to it.
    pub status: ChangeStatus,
    /// How many lines were added and removed; absent for binary files.
    pub lines: Option<LineCounts>,
}

/// How many lines of a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content changed.
    Modified,
    /// It has another path, and perhaps other content.
    Renamed,
    /// Only its permissions changed.
    ModeChanged,
    /// It became something else: a file, a symbolic link or a submodule.
    TypeChanged,
    /// A submodule or another repository has changes that are not committed in it.
    Dirty,
}

impl ChangeStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Renamed => "renamed",
            Self::ModeChanged => "mode changed",
            Self::TypeChanged => "type changed",
            Self::Dirty => "uncommitted changes inside",
        }
    }
}

/// Which change was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedDiff {
    /// Since when.
    pub since: DiffSince,
    /// The git object that it starts from.
    pub base: String,
    /// The git tree that was approved.
    pub tree: String,
    /// Digest of the change.
    pub digest: Digest,
    /// How many files changed.
    pub files: u64,
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
}

impl ShownDiff {
    /// Whether the approved diff is unchanged. Only the files matter, not the commits in between.
    pub fn is_unchanged_from(&self, then: &Self) -> bool {
        let same = match (&self.seen, &then.seen) {
            (SeenDiff::Change(now), SeenDiff::Change(then)) => now.digest == then.digest,
            (SeenDiff::Unavailable(now), SeenDiff::Unavailable(then)) => now == then,
            (SeenDiff::Change(_), SeenDiff::Unavailable(_)) | (SeenDiff::Unavailable(_), SeenDiff::Change(_)) => false,
        };
        same && self.since == then.since && self.paths == then.paths
    }

    /// The change, where it is known.
    pub fn change(&self) -> Option<&GitChange> {
        match &self.seen {
            SeenDiff::Change(change) => Some(change),
            SeenDiff::Unavailable(_) => None,
        }
    }

    /// What it shows, in words: `the change since the phase started, in src`.
    pub fn title(&self) -> String {
        match self.paths.as_slice() {
            [] => format!("the change {}", self.since),
            paths => format!("the change {}, in {}", self.since, paths.join(", ")),
        }
    }

    /// What stays known of it once it was approved.
    pub fn approved(&self) -> Option<ApprovedDiff> {
        let change = self.change()?;
        Some(ApprovedDiff {
            since: self.since.clone(),
            base: change.base.clone(),
            tree: change.tree.clone(),
            digest: change.digest,
            files: change.file_count,
            added: change.added,
            removed: change.removed,
        })
    }
}
