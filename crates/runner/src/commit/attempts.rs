//! The snapshots of all attempts of a task that is not committed yet.
//!
//! They are a tree in git that a ref points to: garbage collection keeps what they name, and a change of them is atomic. For attempt 7 it
//! has the entries `0007.start` and `0007.staged` (trees), `0007.state` (a file: the commit that was checked out, and the untracked
//! files) and, once the attempt has ended, `0007.end` (a tree).

use super::merge::between;
use super::repository::{Repository, text};
use super::snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// The names of all these refs begin with this.
const REFS: &str = "refs/lockgate/attempts/";

#[derive(Debug, Default)]
pub(super) struct Attempts {
    pub(super) all: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) start: Snapshot,
    /// The tree at its end; none while it runs, or where it was cut off.
    pub(super) end: Option<String>,
}

impl Attempts {
    /// Those that a ref keeps; none where there is no such ref.
    pub(super) fn read(repository: &Repository, name: &str) -> Result<Self, String> {
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
            let damaged = || format!("{REFS}{name} is damaged");
            let state = repository.run(&["cat-file", "blob", &of("state").ok_or_else(damaged)?], b"")?;
            all.push(Attempt { start: snapshot(tree, of("staged").ok_or_else(damaged)?, &state), end: of("end") });
        }
        Ok(Self { all })
    }

    pub(super) fn write(&self, repository: &Repository, name: &str) -> Result<(), String> {
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

    /// The files that the attempts changed or made, as far as they are known.
    pub(super) fn left(&self, repository: &Repository) -> Result<BTreeSet<Vec<u8>>, String> {
        let mut left = BTreeSet::new();
        for Attempt { start, end } in &self.all {
            let Some(end) = end else { continue };
            left.extend(between(repository, &start.tree, end)?.into_keys());
        }
        Ok(left)
    }

    pub(super) fn forget(repository: &Repository, name: &str) -> Result<(), String> {
        repository.run(&["update-ref", "-d", &format!("{REFS}{name}")], b"").map(drop)
    }
}

/// The head, then each untracked path and its stamp, all ended by NUL.
fn state_of(start: &Snapshot) -> Vec<u8> {
    let mut state = start.head.clone().unwrap_or_default().into_bytes();
    state.push(0);
    for (path, stamp) in &start.untracked {
        state.extend(path);
        state.push(0);
        state.extend(stamp.as_bytes());
        state.push(0);
    }
    state
}

fn snapshot(tree: &str, staged: String, state: &[u8]) -> Snapshot {
    let mut parts = state.split(|byte| *byte == 0);
    let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let head = parts.next().map(utf8).filter(|head| !head.is_empty());
    let mut untracked = BTreeMap::new();
    while let (Some(path), Some(stamp)) = (parts.next(), parts.next()) {
        untracked.insert(path.to_vec(), utf8(stamp));
    }
    Snapshot { head, staged, tree: tree.to_owned(), untracked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_snapshot_is_read_as_it_was_written() {
        let untracked = BTreeMap::from([(b"a \xff\n.txt".to_vec(), "1".to_owned()), (b"b".to_vec(), "2".to_owned())]);
        for head in [None, Some("abc".to_owned())] {
            let start = Snapshot { head, staged: "s".into(), tree: "t".into(), untracked: untracked.clone() };
            assert_eq!(snapshot("t", "s".into(), &state_of(&start)), start);
        }
    }
}
