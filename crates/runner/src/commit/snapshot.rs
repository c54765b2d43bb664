//! The working tree at one point in time.

use super::repository::Repository;
use super::{CommitError, NotCommitted};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, UNIX_EPOCH};

/// The files at the start of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The checked-out commit; `None` before the first one.
    pub(super) head: Option<String>,
    /// The staged files, as a tree in git.
    pub(super) staged: String,
    pub(super) tree: String,
    /// The untracked files, by path. Their content is not recorded: they may be many and large, and none of them is
    /// committed.
    pub(super) untracked: BTreeMap<Vec<u8>, Stamp>,
    /// Paths that git did not look into: ignored ones, with a trailing slash for a directory that is ignored as a whole, and
    /// other repositories. The task may change the ignore rules, so that they become visible at its end.
    pub(super) hidden: BTreeMap<Vec<u8>, Stamp>,
    /// When it was taken, by the clock of the file system.
    pub(super) at: Time,
}

pub(crate) type Paths = Vec<Vec<u8>>;

pub(super) type Time = (i64, i64);

/// Metadata that differs once a file has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) inode: u64,
    pub(super) modified: Time,
    /// Changes with every write and rename; no program can set it.
    pub(super) changed: Time,
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            mode: file.mode(),
            size: file.size(),
            inode: file.ino(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Whether this is the same file with the same content, perhaps at another path.
    fn is_moved(&self, from: &Self) -> bool {
        Self { changed: from.changed, ..*self } == *from
    }
}

impl Snapshot {
    /// Takes a snapshot. Untracked files left by earlier attempts count as tracked, because they will be committed.
    pub(super) fn take(repository: &Repository, left_before: &BTreeSet<Vec<u8>>) -> Result<Self, NotCommitted> {
        let index = repository.own_index()?;
        let at = index.path().parent().and_then(|folder| folder.symlink_metadata().ok());
        let at = at.map(|folder| Stamp::of(&folder).changed).unwrap_or_default();
        let staged = index.tree().map_err(|why| CommitError::Unmerged(Box::new(why)))?;
        index.update()?;
        let (untracked, repositories) = untracked(repository)?;
        let (left, others): (Vec<_>, Vec<_>) = untracked.into_iter().partition(|path| left_before.contains(path));
        index.add(&left)?;
        let tree = index.tree()?;
        let stamped = |path: Vec<u8>| Some((path.clone(), stamp(repository, &path)?));
        let untracked = others.into_iter().filter_map(stamped).collect();
        let hidden = ignored(repository)?.into_iter().chain(repositories).filter_map(stamped).collect();
        Ok(Self { head: repository.head()?, staged, tree, untracked, hidden, at })
    }

    /// The tree at the end of the attempt: the tracked files, and untracked ones that are new or have changed.
    pub(super) fn end(&self, repository: &Repository) -> Result<String, NotCommitted> {
        let index = repository.own_index()?;
        index.update()?;
        let (untracked, _) = untracked(repository)?;
        index.add(&untracked.into_iter().filter(|path| !self.is_untouched(repository, path)).collect::<Vec<_>>())?;
        Ok(index.tree()?)
    }

    /// Whether an untracked file existed at the start, perhaps ignored or under another name, and is unchanged.
    pub(super) fn is_untouched(&self, repository: &Repository, path: &[u8]) -> bool {
        let Some(now) = stamp(repository, path) else { return false };
        match self.untracked.get(path) {
            Some(before) => now == *before,
            None if self.is_hidden(path) => now.changed < self.at,
            None => self.untracked.values().chain(self.hidden.values()).any(|before| now.is_moved(before)),
        }
    }

    /// Whether an untracked file existed at the start, as far as known.
    pub(super) fn existed(&self, repository: &Repository, path: &[u8]) -> bool {
        self.untracked.contains_key(path) || (self.is_hidden(path) && !self.was_created_later(repository, path))
    }

    fn is_hidden(&self, path: &[u8]) -> bool {
        let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..=at]);
        self.hidden.contains_key(path) || folders.into_iter().any(|folder| self.hidden.contains_key(folder))
    }

    fn was_created_later(&self, repository: &Repository, path: &[u8]) -> bool {
        let born = repository.top.join(OsStr::from_bytes(path)).symlink_metadata().and_then(|file| file.created());
        let at = u64::try_from(self.at.0).unwrap_or(0);
        let at = UNIX_EPOCH + Duration::new(at, u32::try_from(self.at.1).unwrap_or(0));
        born.is_ok_and(|born| born >= at)
    }
}

/// The untracked files of the directory that are not ignored, and other repositories in it, which have a trailing slash.
pub(crate) fn untracked(repository: &Repository) -> Result<(Paths, Paths), CommitError> {
    Ok(listed(repository, &["--exclude-standard"])?.into_iter().partition(|path| !path.ends_with(b"/")))
}

/// The ignored files of the directory, and directories that are ignored as a whole. Git also lists directories in which every
/// file happens to be ignored, followed by these files; a new file in such a directory would not be ignored.
fn ignored(repository: &Repository) -> Result<BTreeSet<Vec<u8>>, CommitError> {
    let listed: BTreeSet<Vec<u8>> =
        listed(repository, &["--exclude-standard", "--ignored", "--directory"])?.into_iter().collect();
    let has_more = |folder: &Vec<u8>| listed.range(folder.clone()..).nth(1).is_some_and(|next| next.starts_with(folder));
    Ok(listed.iter().filter(|path| !path.ends_with(b"/") || !has_more(path)).cloned().collect())
}

fn listed(repository: &Repository, which: &[&str]) -> Result<Vec<Vec<u8>>, CommitError> {
    let mut list = repository.command(&["ls-files", "-z", "--others", "--full-name"]);
    list.args(which).args(["--", "."]).current_dir(&repository.dir);
    let listed = crate::git::output_of(list, b"")?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !super::merge::is_ours(path));
    Ok(paths.map(<[u8]>::to_vec).collect())
}

/// The stamp of a file; `None` if it has disappeared.
fn stamp(repository: &Repository, path: &[u8]) -> Option<Stamp> {
    repository.top.join(OsStr::from_bytes(path)).symlink_metadata().ok().map(|file| Stamp::of(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ignored_by_its_directory_or_its_own_name() {
        let hidden = [&b"build/"[..], b"a/secret.env"].map(|path| (path.to_vec(), Stamp::default())).into();
        let snapshot =
            Snapshot { head: None, staged: String::new(), tree: String::new(), untracked: BTreeMap::new(), hidden, at: (0, 0) };
        for path in ["build/x", "build/deep/x", "a/secret.env"] {
            assert!(snapshot.is_hidden(path.as_bytes()), "{path}");
        }
        for path in ["building", "a/build/x", "secret.env", "a/secret.env.bak"] {
            assert!(!snapshot.is_hidden(path.as_bytes()), "{path}");
        }
    }
}
