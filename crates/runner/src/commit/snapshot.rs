//! The working tree at a moment.

use super::repository::Repository;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

/// The files as they were when an attempt started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The commit that was checked out; none before the first one.
    pub(super) head: Option<String>,
    /// What was staged, as a tree in git.
    pub(super) staged: String,
    /// The tracked files, as a tree in git.
    pub(super) tree: String,
    /// The untracked files, by path, each with a stamp that differs once it has changed. Their content is not recorded: they can be many
    /// and large, and none of them is committed.
    pub(super) untracked: BTreeMap<Vec<u8>, String>,
}

impl Snapshot {
    /// Takes a snapshot. Untracked files that earlier attempts left count as tracked: they will be committed.
    pub(super) fn take(repository: &Repository, left_before: &BTreeSet<Vec<u8>>) -> Result<Self, String> {
        let index = repository.own_index()?;
        let staged = index.tree()?;
        index.run(&["add", "--update"], b"")?;
        let (left, others): (Vec<_>, Vec<_>) =
            untracked_paths(repository)?.into_iter().partition(|path| left_before.contains(path));
        index.add(&left)?;
        let tree = index.tree()?;
        let untracked = others.into_iter().map(|path| (path.clone(), stamp(repository, &path))).collect();
        Ok(Self { head: repository.head()?, staged, tree, untracked })
    }

    /// The tree at the end of the attempt: the tracked files as they are now, and untracked ones that are new or have changed.
    pub(super) fn end(&self, repository: &Repository) -> Result<String, String> {
        let index = repository.own_index()?;
        index.run(&["add", "--update"], b"")?;
        let untracked = untracked_paths(repository)?;
        index.add(&untracked.into_iter().filter(|path| !self.is_untouched(repository, path)).collect::<Vec<_>>())?;
        index.tree()
    }

    /// Whether a file that was untracked at the start is still as it was.
    pub(super) fn is_untouched(&self, repository: &Repository, path: &[u8]) -> bool {
        self.untracked.get(path).is_some_and(|before| *before == stamp(repository, path))
    }
}

/// The untracked files of the directory that are not ignored. Other repositories in it, which end with a slash, are not ours to commit.
fn untracked_paths(repository: &Repository) -> Result<Vec<Vec<u8>>, String> {
    let mut list = crate::git::git_command(&repository.dir);
    list.args(["ls-files", "-z", "--others", "--exclude-standard", "--full-name", "--", "."]);
    let listed = crate::git::printed_by(list, b"")?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !path.ends_with(b"/"));
    Ok(paths.filter(|path| !super::merge::is_ours(path)).map(<[u8]>::to_vec).collect())
}

fn stamp(repository: &Repository, path: &[u8]) -> String {
    match repository.top.join(OsStr::from_bytes(path)).symlink_metadata() {
        Ok(file) => {
            let changed = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
            format!("{:o} {} {} {changed:?}", file.mode(), file.size(), file.ino())
        }
        Err(_) => "absent".to_owned(),
    }
}
