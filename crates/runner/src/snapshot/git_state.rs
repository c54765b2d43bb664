//! What git says about the project: branch, commit, changed files.

use crate::git::{GitError, git_command, output_of};
use crate::root::STATE_DIR;
use lockgate_engine::snapshot::document::{ChangedFile, FileStatus};
use std::path::Path;

/// More changed files than anyone reads; a snapshot says how many there are beyond.
const MAX_FILES: usize = 1_000;

/// The state of a git working tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitState {
    /// `None` if no branch is checked out.
    pub branch: Option<String>,
    /// The commit that is checked out; `None` before the first one.
    pub commit: Option<String>,
    pub files: Vec<ChangedFile>,
    /// How many changed files are not listed.
    pub more: usize,
}

impl GitState {
    /// Reads the state of the working tree that contains `dir`; `None` if there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, GitError> {
        if !dir.ancestors().any(|dir| dir.join(".git").symlink_metadata().is_ok()) {
            return Ok(None);
        }
        let mut command = git_command(dir);
        command.args(["--no-optional-locks", "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=normal"]);
        Ok(Some(Self::parse(&output_of(command, b"")?)))
    }

    fn parse(printed: &[u8]) -> Self {
        let text = String::from_utf8_lossy(printed);
        let mut state = Self::default();
        let mut entries = text.split('\0').filter(|entry| !entry.is_empty());
        while let Some(entry) = entries.next() {
            if let Some(header) = entry.strip_prefix("# branch.") {
                match header.split_once(' ') {
                    Some(("oid", commit)) if commit != "(initial)" => state.commit = Some(commit.to_owned()),
                    Some(("head", branch)) if branch != "(detached)" => state.branch = Some(branch.to_owned()),
                    Some(_) | None => {}
                }
                continue;
            }
            // The entry of a renamed file is followed by its old path.
            if entry.starts_with("2 ") {
                entries.next();
            }
            let Some(file) = changed_file(entry).filter(|file| !is_own(&file.path)) else { continue };
            if state.files.len() < MAX_FILES {
                state.files.push(file);
            } else {
                state.more += 1;
            }
        }
        state
    }
}

/// Whether a path is in a directory of Lockgate's own state.
fn is_own(path: &str) -> bool {
    path.split('/').any(|part| part == STATE_DIR)
}

/// One entry of `git status --porcelain=v2`.
fn changed_file(entry: &str) -> Option<ChangedFile> {
    let (kind, rest) = entry.split_once(' ')?;
    // How many fields come before the path.
    let fields = match kind {
        "1" => 7,
        "2" => 8,
        "u" => 9,
        "?" => {
            return Some(ChangedFile { path: rest.to_owned(), status: FileStatus::Untracked, staged: false });
        }
        _ => return None,
    };
    let path = rest.splitn(fields + 1, ' ').nth(fields)?.to_owned();
    let mut letters = rest.chars();
    let (index, tree) = (letters.next()?, letters.next()?);
    let staged = index != '.';
    let status = match (kind, if staged { index } else { tree }) {
        ("u", _) => FileStatus::Conflicted,
        (_, 'A') => FileStatus::Added,
        (_, 'D') => FileStatus::Deleted,
        (_, 'R' | 'C') => FileStatus::Renamed,
        _ => FileStatus::Modified,
    };
    Some(ChangedFile { path, status, staged })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_commit_and_changed_files_are_read_from_the_status() {
        let printed = "# branch.oid 1234\0# branch.head main\0\
            1 M. N... 100644 100644 100644 aa bb staged file.txt\0\
            1 .D N... 100644 100644 000000 aa aa gone.txt\0\
            2 R. N... 100644 100644 100644 aa aa R100 new name.txt\0old name.txt\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both.txt\0\
            ? dir/\0? sub/.lockgate/\0";
        let state = GitState::parse(printed.as_bytes());
        assert_eq!((state.branch.as_deref(), state.commit.as_deref()), (Some("main"), Some("1234")));
        let files: Vec<(&str, FileStatus, bool)> =
            state.files.iter().map(|file| (file.path.as_str(), file.status, file.staged)).collect();
        let expected = [
            ("staged file.txt", FileStatus::Modified, true),
            ("gone.txt", FileStatus::Deleted, false),
            ("new name.txt", FileStatus::Renamed, true),
            ("both.txt", FileStatus::Conflicted, true),
            ("dir/", FileStatus::Untracked, false),
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn a_detached_head_and_a_repository_without_commits_have_no_branch_or_commit() {
        assert_eq!(GitState::parse(b"# branch.oid 12\0# branch.head (detached)\0").branch, None);
        assert_eq!(GitState::parse(b"# branch.oid (initial)\0# branch.head main\0").commit, None);
    }
}
