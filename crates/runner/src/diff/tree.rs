//! The working tree as a git tree.

use super::{DiffError, Workplace};
use crate::commit::repository::{OwnIndex, Repository};
use crate::commit::snapshot::untracked;
use crate::process::Stop;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// So deep other repositories are looked into.
const DEPTH: usize = 4;

/// The files of a repository as they are now.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Tracked and untracked files, as a tree in git.
    pub(super) tree: String,
    /// Repositories inside this one whose files the tree does not have.
    pub(super) nested: Vec<Nested>,
}

/// A repository inside another one.
#[derive(Debug)]
pub(super) struct Nested {
    /// Where it is, relative to the top of the outer one.
    pub(super) path: Vec<u8>,
    /// The commit that is checked out and the files as they are, as git names them.
    pub(super) state: String,
    /// Whether the outer one tracks it, as a submodule.
    pub(super) tracked: bool,
}

/// What repositories inside others are opened with.
struct Looker<'a> {
    place: &'a Workplace,
    stop: &'a Stop,
}

impl Files {
    pub(super) fn of(place: &Workplace, repository: &Repository, stop: &Stop) -> Result<Self, DiffError> {
        Self::within(&Looker { place, stop }, repository, DEPTH)
    }

    fn within(looker: &Looker<'_>, repository: &Repository, depth: usize) -> Result<Self, DiffError> {
        let index = repository.own_index()?;
        see_all(repository, &index)?;
        index.update()?;
        let (untracked, others) = untracked(repository)?;
        index.add(&untracked)?;
        let tree = index.tree()?;
        let submodules = submodules(&index)?;
        // It is removed before another repository makes its own in the same place.
        drop(index);
        let mut nested = Vec::new();
        let inside = submodules.into_iter().map(|path| (path, true)).chain(others.into_iter().map(|path| (path, false)));
        for (path, tracked) in inside {
            let path: Vec<u8> = path.strip_suffix(b"/").unwrap_or(&path).to_vec();
            let dir = repository.top.join(OsStr::from_bytes(&path));
            if dir.join(".git").symlink_metadata().is_err() {
                continue;
            }
            nested.extend(Self::nested(looker, &dir, path, tracked, depth)?);
        }
        Ok(Self { tree, nested })
    }

    /// A repository inside this one; nothing where it is a submodule without changes of its own, which the tree tells all about.
    fn nested(looker: &Looker<'_>, dir: &Path, path: Vec<u8>, tracked: bool, depth: usize) -> Result<Option<Nested>, DiffError> {
        let state = match depth.checked_sub(1) {
            None => "not looked into".to_owned(),
            Some(depth) => {
                let inner = looker.place.open_at(dir, &[], looker.stop)?;
                let files = Self::within(looker, &inner, depth)?;
                let head = inner.head()?;
                if tracked && files.nested.is_empty() && files.tree == inner.tree_of(head.as_deref())? {
                    return Ok(None);
                }
                let deeper = files.nested.iter().map(|nested| format!(" {}", nested.state));
                format!("{} {}{}", head.unwrap_or_default(), files.tree, deeper.collect::<String>())
            }
        };
        Ok(Some(Nested { path, state, tracked }))
    }

    /// What people must know about repositories that the change does not show.
    pub(super) fn notes(&self) -> Vec<String> {
        let other = |nested: &Nested| {
            let path = String::from_utf8_lossy(&nested.path).into_owned();
            match nested.tracked {
                true => format!("the submodule {path} has uncommitted changes, which are not shown; the answer is bound to them"),
                false => format!("{path} is another git repository, whose files are not shown; the answer is bound to them"),
            }
        };
        self.nested.iter().map(other).collect()
    }
}

/// Files can be marked so that git does not look at them (`--assume-unchanged`, `--skip-worktree`). A task could hide a change that
/// way, so the marks are removed from our own index, except from files that a sparse checkout leaves out.
fn see_all(repository: &Repository, index: &OwnIndex<'_>) -> Result<(), DiffError> {
    let listed = index.run(&["ls-files", "-v", "-z"], b"")?;
    let (mut assumed, mut skipped) = (Vec::new(), Vec::new());
    for entry in listed.split(|byte| *byte == 0) {
        let Some((&[tag, b' '], path)) = entry.split_first_chunk::<2>() else { continue };
        let add = |list: &mut Vec<u8>| list.extend(path.iter().copied().chain([0]));
        if tag.is_ascii_lowercase() {
            add(&mut assumed);
        }
        if tag.eq_ignore_ascii_case(&b's') && repository.top.join(OsStr::from_bytes(path)).symlink_metadata().is_ok() {
            add(&mut skipped);
        }
    }
    for (mark, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
        if !paths.is_empty() {
            index.run(&["update-index", mark, "-z", "--stdin"], &paths)?;
        }
    }
    Ok(())
}

/// The submodules that an index has.
fn submodules(index: &OwnIndex<'_>) -> Result<Vec<Vec<u8>>, DiffError> {
    let listed = index.run(&["ls-files", "--stage", "-z"], b"")?;
    let path = |entry: &[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        entry.starts_with(b"160000 ").then(|| entry[tab + 1..].to_vec())
    };
    Ok(listed.split(|byte| *byte == 0).filter_map(path).collect())
}
