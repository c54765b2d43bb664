//! The git change that a question shows.

use lockgate_engine::hold::{ApprovedDiff, ChangeStatus, ChangedFile, SeenDiff, ShownDiff};
use lockgate_engine::plural::counted;
use serde::Serialize;

/// A git change that a question shows.
#[derive(Clone, Debug, Serialize)]
pub struct DiffView {
    /// `phase`, `run`, or a revision.
    pub since: String,
    /// The shown files and directories; all if empty.
    pub paths: Vec<String>,
    /// The git object that the change starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The git tree of the files at that time, including untracked ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The digest that an answer is bound to.
    pub digest: Option<String>,
    pub file_count: u64,
    pub added: u64,
    pub removed: u64,
    /// The first changed files.
    pub files: Vec<ChangedFileView>,
    /// The patch, if it is stored and the view includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why the patch is missing or incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_note: Option<String>,
    /// Why the change cannot be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The title, for people.
    #[serde(skip)]
    pub title: String,
}

/// A changed file.
#[derive(Clone, Debug, Serialize)]
pub struct ChangedFileView {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    pub status: ChangeStatus,
    pub added: u64,
    pub removed: u64,
    pub binary: bool,
}

/// The git change that an answer was bound to.
#[derive(Clone, Debug, Serialize)]
pub struct ApprovedDiffView {
    /// `phase`, `run`, or a revision.
    pub since: String,
    pub base: String,
    pub tree: String,
    pub digest: String,
    pub files: u64,
    pub added: u64,
    pub removed: u64,
}

impl DiffView {
    /// Creates the view of a change, without its patch.
    pub fn of(shown: &ShownDiff) -> Self {
        let none = Self {
            since: shown.since.text().to_owned(),
            paths: shown.paths.clone(),
            base: None,
            tree: None,
            digest: None,
            file_count: 0,
            added: 0,
            removed: 0,
            files: Vec::new(),
            text: None,
            text_note: None,
            error: None,
            title: shown.title(),
        };
        match &shown.seen {
            SeenDiff::Unavailable(why) => Self { error: Some(why.clone()), ..none },
            SeenDiff::Change(change) => Self {
                base: Some(change.base.clone()),
                tree: Some(change.tree.clone()),
                digest: Some(change.digest.to_string()),
                file_count: change.file_count,
                added: change.added,
                removed: change.removed,
                files: change.files.iter().map(ChangedFileView::of).collect(),
                text_note: change.not_kept.clone(),
                ..none
            },
        }
    }

    /// The size of the change: `3 files, +10 -2`.
    pub fn totals(&self) -> String {
        match self.file_count {
            0 => "no file changed".to_owned(),
            count => format!("{}, +{} -{}", counted(count, "file"), self.added, self.removed),
        }
    }
}

impl ChangedFileView {
    fn of(file: &ChangedFile) -> Self {
        let lines = file.lines;
        Self {
            path: file.path.clone(),
            old_path: file.old_path.clone(),
            status: file.status,
            added: lines.map_or(0, |lines| lines.added),
            removed: lines.map_or(0, |lines| lines.removed),
            binary: lines.is_none() && file.status != ChangeStatus::Dirty,
        }
    }

    /// The change in one line: `modified src/main.rs, +3 -1`.
    pub fn line(&self) -> String {
        let path = match &self.old_path {
            Some(old) => format!("{old} → {}", self.path),
            None => self.path.clone(),
        };
        let lines = match (self.binary, self.added + self.removed) {
            (true, _) => ", binary".to_owned(),
            (false, 0) => String::new(),
            (false, _) => format!(", +{} -{}", self.added, self.removed),
        };
        format!("{} {path}{lines}", self.status.as_str())
    }
}

impl ApprovedDiffView {
    /// Creates the view of a change that was shown when its question was answered.
    pub fn of(approved: &ApprovedDiff) -> Self {
        Self {
            since: approved.since.text().to_owned(),
            base: approved.base.clone(),
            tree: approved.tree.clone(),
            digest: approved.digest.to_string(),
            files: approved.files,
            added: approved.added,
            removed: approved.removed,
        }
    }
}
