//! The snapshots of all attempts of a task that is not committed yet.
//!
//! They form a tree in git that a ref points to, so garbage collection keeps everything they name, and updates are atomic.
//! For attempt 7 the tree has the entries `0007.start` and `0007.staged` (trees), `0007.state` (a file with the checked-out
//! commit and the untracked files) and, once the attempt has ended, `0007.end` (a tree).

use super::CommitError;
use super::merge::between;
use super::repository::{Repository, remove, text};
use super::snapshot::{Snapshot, Stamp, Time};
use crate::git::{git, git_with};
use lockgate_engine::id::RunId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const REFS: &str = "refs/lockgate/attempts/";

#[derive(Debug, Default)]
pub(super) struct Attempts {
    pub(super) all: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) start: Snapshot,
    /// The tree at its end; `None` while it runs or if it was interrupted.
    pub(super) end: Option<String>,
}

impl Attempts {
    /// The attempts stored in a ref; empty if it does not exist.
    pub(super) fn read(repository: &Repository, name: &str) -> Result<Self, CommitError> {
        let Ok(tree) = repository.line(&["rev-parse", "--verify", "--quiet", &format!("{REFS}{name}")]) else {
            return Ok(Self::default());
        };
        let listed = repository.run(&["ls-tree", "-z", &tree], b"")?;
        let listed = String::from_utf8_lossy(&listed);
        // MODE TYPE ID<tab>NAME
        let entry = |entry: &str| {
            let (about, name) = entry.split_once('\t')?;
            Some((name.to_owned(), about.rsplit(' ').next()?.to_owned()))
        };
        let entries: BTreeMap<String, String> = listed.split('\0').filter_map(entry).collect();
        let mut all = Vec::new();
        while let Some(tree) = entries.get(&format!("{:04}.start", all.len() + 1)) {
            let of = |what: &str| entries.get(&format!("{:04}.{what}", all.len() + 1)).cloned();
            let damaged = || CommitError::Damaged { reference: format!("{REFS}{name}") };
            let state = repository.run(&["cat-file", "blob", &of("state").ok_or_else(damaged)?], b"")?;
            all.push(Attempt { start: snapshot(tree, of("staged").ok_or_else(damaged)?, &state), end: of("end") });
        }
        Ok(Self { all })
    }

    pub(super) fn write(&self, repository: &Repository, name: &str) -> Result<(), CommitError> {
        let mut listed = String::new();
        for (index, Attempt { start, end }) in self.all.iter().enumerate() {
            let number = index + 1;
            let state = repository.run(&["hash-object", "-w", "--stdin"], &state_of(start)).map(text)?;
            listed += &format!("100644 blob {state}\t{number:04}.state\0");
            let trees = [("start", Some(&start.tree)), ("staged", Some(&start.staged)), ("end", end.as_ref())];
            for (what, tree) in trees.into_iter().filter_map(|(what, tree)| Some((what, tree?))) {
                listed += &format!("040000 tree {tree}\t{number:04}.{what}\0");
            }
        }
        let tree = repository.run(&["mktree", "-z"], listed.as_bytes()).map(text)?;
        repository.run(&["update-ref", &format!("{REFS}{name}"), &tree], b"").map(drop)
    }

    /// The files that the attempts changed or created, as far as known.
    pub(super) fn left(&self, repository: &Repository) -> Result<BTreeSet<Vec<u8>>, CommitError> {
        let mut left = BTreeSet::new();
        for Attempt { start, end } in &self.all {
            let Some(end) = end else { continue };
            left.extend(between(repository, &start.tree, end)?.into_keys());
        }
        Ok(left)
    }

    /// Releases the snapshots. The ref itself stays until the run is over: to remove it, git locks all packed refs of the
    /// repository, and a kill would leave them locked for everyone.
    pub(super) fn forget(repository: &Repository, name: &str) -> Result<(), CommitError> {
        repository.run(&["update-ref", &format!("{REFS}{name}"), &repository.empty_tree], b"").map(drop)
    }

    /// Removes a lock of the ref that a kill may have left; only this task ever changes the ref.
    pub(super) fn recover(repository: &Repository, name: &str) -> Result<(), CommitError> {
        remove(&repository.git_path(&format!("{REFS}{name}.lock"))?)
    }
}

/// Removes the snapshots and diff bases of all tasks of some runs. Without `lock_refs`, only refs that git has not packed are
/// removed.
pub(super) fn forget_runs(dir: &Path, is_over: impl Fn(&RunId) -> bool, lock_refs: bool) -> Result<(), CommitError> {
    let refs = git(dir, &["for-each-ref", "--format=%(refname)", REFS, crate::diff::REFS])?;
    let run = |name: &str| name.rsplit('/').next()?.split('-').next().map(RunId::new);
    let over: Vec<&str> = refs.lines().filter(|name| run(name).is_some_and(|run| is_over(&run))).collect();
    if over.is_empty() {
        return Ok(());
    }
    if lock_refs {
        let delete: String = over.iter().map(|name| format!("delete {name}\n")).collect();
        git_with(dir, &["-c", "core.hooksPath=/dev/null", "update-ref", "--stdin"], &delete)?;
        return Ok(());
    }
    let common = dir.join(git(dir, &["rev-parse", "--git-common-dir"])?);
    let packed = match std::fs::read_to_string(common.join("packed-refs")) {
        Ok(packed) => packed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            // Without this list, removing a ref's file could bring back an older, packed version of it.
            tracing::debug!(%error, "cannot remove the refs of ended runs: packed-refs is unreadable");
            return Ok(());
        }
    };
    for name in over.into_iter().filter(|name| !packed.contains(name)) {
        // In a repository with another ref format there is no such file.
        lockgate_store::cleanup::remove_file(&common.join(name));
    }
    Ok(())
}

/// The head, the time and the paths, each prefixed with `h` (hidden) or `u` (untracked) and followed by its stamp. Every
/// field ends with a NUL.
fn state_of(start: &Snapshot) -> Vec<u8> {
    let mut state = start.head.clone().unwrap_or_default().into_bytes();
    state.extend(format!("\0{} {}\0", start.at.0, start.at.1).into_bytes());
    let hidden = start.hidden.iter().map(|(path, stamp)| (b'h', path, stamp));
    let untracked = start.untracked.iter().map(|(path, stamp)| (b'u', path, stamp));
    for (kind, path, stamp) in hidden.chain(untracked) {
        let Stamp { mode, size, inode, modified, changed } = stamp;
        state.push(kind);
        state.extend(path);
        let stamp = format!("\0{mode} {size} {inode} {} {} {} {}\0", modified.0, modified.1, changed.0, changed.1);
        state.extend(stamp.into_bytes());
    }
    state
}

/// Parses a stored snapshot; fields that cannot be parsed count as absent.
fn snapshot(tree: &str, staged: String, state: &[u8]) -> Snapshot {
    let mut parts = state.split(|byte| *byte == 0);
    let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let head = parts.next().map(utf8).filter(|head| !head.is_empty());
    let at = parts.next().map(utf8).unwrap_or_default();
    let (mut untracked, mut hidden) = (BTreeMap::new(), BTreeMap::new());
    while let (Some(path), Some(stamped)) = (parts.next(), parts.next()) {
        let stamped = stamp(&utf8(stamped));
        match path.split_first() {
            Some((b'h', path)) => drop(hidden.insert(path.to_vec(), stamped)),
            Some((_, path)) => drop(untracked.insert(path.to_vec(), stamped)),
            None => {}
        }
    }
    Snapshot { head, staged, tree: tree.to_owned(), untracked, hidden, at: time(&mut at.split(' ')) }
}

fn stamp(written: &str) -> Stamp {
    let mut numbers = written.split(' ');
    let mut number = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let (mode, size, inode) = (number(), number(), number());
    Stamp { mode: u32::try_from(mode).unwrap_or(0), size, inode, modified: time(&mut numbers), changed: time(&mut numbers) }
}

fn time<'s>(numbers: &mut impl Iterator<Item = &'s str>) -> Time {
    let mut number = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    (number(), number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_snapshot_round_trips() {
        let stamp = Stamp { mode: 0o100_644, size: 12, inode: 345, modified: (1_700_000_000, 5), changed: (-1, 999_999_999) };
        let untracked = BTreeMap::from([(b"a \xff\n.txt".to_vec(), stamp), (b"h".to_vec(), Stamp::default())]);
        for head in [None, Some("abc".to_owned())] {
            let hidden = BTreeMap::from([(b"build/".to_vec(), stamp), (b"u".to_vec(), Stamp::default())]);
            let (staged, tree, at) = ("s".to_owned(), "t".to_owned(), (7, 8));
            let start = Snapshot { head, staged, tree, untracked: untracked.clone(), hidden, at };
            assert_eq!(snapshot("t", "s".into(), &state_of(&start)), start);
        }
    }
}
