//! The working tree as a git tree.

use super::{DiffError, Workplace};
use crate::commit::repository::{OwnIndex, Repository};
use crate::commit::snapshot::untracked;
use crate::git::HiddenFiles;
use crate::process::Stop;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// How deeply nested repositories are inspected.
const DEPTH: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) tree: String,
    /// Nested repositories whose files are not in the tree.
    pub(super) nested: Vec<Nested>,
}

#[derive(Debug)]
pub(super) struct Nested {
    /// The path relative to the top of the outer repository.
    pub(super) path: Vec<u8>,
    /// The checked-out commit and the tree of its files.
    pub(super) state: String,
    /// Whether the outer repository tracks it, as a submodule.
    pub(super) tracked: bool,
}

/// What is needed to open nested repositories.
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
        // Drop it before a nested repository creates its own index in the same directory.
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

    /// A nested repository; `None` for a submodule without its own changes, which the tree fully describes.
    fn nested(looker: &Looker<'_>, dir: &Path, path: Vec<u8>, tracked: bool, depth: usize) -> Result<Option<Nested>, DiffError> {
        let state = match depth.checked_sub(1) {
            None => "not inspected".to_owned(),
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

    /// Notes for people about repositories that the diff does not show.
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

/// Files can be marked so that git ignores their changes (`--assume-unchanged`, `--skip-worktree`). A task could hide a
/// change that way, so the marks are removed from our own index, except for files that a sparse checkout leaves out.
fn see_all(repository: &Repository, index: &OwnIndex<'_>) -> Result<(), DiffError> {
    let listed = index.run(&["ls-files", "-v", "-z"], b"")?;
    let hidden = HiddenFiles::parse(&listed, &repository.top);
    for (mark, paths) in [("--no-assume-unchanged", hidden.assumed), ("--no-skip-worktree", hidden.skipped)] {
        if !paths.is_empty() {
            index.run(&["update-index", mark, "-z", "--stdin"], &paths.join(&0))?;
        }
    }
    Ok(())
}

fn submodules(index: &OwnIndex<'_>) -> Result<Vec<Vec<u8>>, DiffError> {
    let listed = index.run(&["ls-files", "--stage", "-z"], b"")?;
    let path = |entry: &[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        entry.starts_with(b"160000 ").then(|| entry[tab + 1..].to_vec())
    };
    Ok(listed.split(|byte| *byte == 0).filter_map(path).collect())
}
