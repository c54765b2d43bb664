//! What happened to each file over all attempts, separating the attempts' changes from those of others.

use super::CommitError;
use super::attempts::Attempt;
use super::merge::{self, Version, Versions, between, merged, tree_with};
use super::repository::Repository;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

const NAMED: usize = 5;

struct FileHistory {
    /// Its version without the changes of the attempts.
    others: Option<Version>,
    /// Its version at the end of the last attempt.
    now: Option<Version>,
    /// Whether the two cannot be separated.
    mixed: bool,
    /// Whether it had no uncommitted changes when the attempts started to change it.
    clean: bool,
}

/// A tree with the work of all attempts added to `base`.
pub(super) fn with_work(repository: &Repository, attempts: &[Attempt], base: &str) -> Result<String, CommitError> {
    let Some(end) = attempts.iter().filter_map(|attempt| attempt.end.as_deref()).next_back() else { return Ok(base.to_owned()) };
    // Also creates the directory for temporary files of merges.
    let index = repository.own_index()?;
    let histories = histories(repository, attempts)?;
    let since = between(repository, end, base)?;
    let mut changed = Versions::new();
    let mut mixed = Vec::new();
    for (path, history) in histories {
        let theirs = since.get(&path).map_or(&history.now, |change| &change.after);
        if *theirs == history.now {
            continue;
        }
        match merged(repository, history.others.as_ref(), theirs.as_ref(), history.now.as_ref())? {
            Ok(version) if version == *theirs => {}
            Ok(version) if !history.mixed => drop(changed.insert(path, version)),
            // An attempt committed a part itself, so everything that is left is its own work.
            Err(merge::Conflict) if history.clean && !history.mixed => drop(changed.insert(path, history.now.clone())),
            Ok(_) | Err(merge::Conflict) => mixed.push(path),
        }
    }
    drop(index);
    match mixed.is_empty() {
        true => tree_with(repository, base, &changed),
        false => Err(CommitError::Mixed { files: named(&mixed) }),
    }
}

fn histories(repository: &Repository, attempts: &[Attempt]) -> Result<BTreeMap<Vec<u8>, FileHistory>, CommitError> {
    let mut histories: BTreeMap<Vec<u8>, FileHistory> = BTreeMap::new();
    let mut before: Option<&str> = None;
    for Attempt { start, end } in attempts {
        let Some(end) = end else { continue };
        let uncommitted = between(repository, &start.tree, &repository.tree_of(start.head.as_deref())?)?;
        if let Some(before) = before {
            let meanwhile = between(repository, before, &start.tree)?;
            for (path, history) in &mut histories {
                if let Some(change) = meanwhile.get(path) {
                    history.others_change(repository, change)?;
                }
                if !uncommitted.contains_key(path) {
                    // Earlier changes to the file were committed or undone.
                    *history = FileHistory { others: history.now.clone(), now: history.now.clone(), mixed: false, clean: true };
                }
            }
        }
        for (path, change) in between(repository, &start.tree, end)? {
            if !path.starts_with(&repository.prefix) || merge::is_ours(&path) {
                continue;
            }
            let was_untracked = change.before.is_none() && start.existed(repository, &path);
            if was_untracked && start.is_untouched(repository, &path) {
                continue;
            }
            let clean = !uncommitted.contains_key(&path);
            match histories.entry(path) {
                Entry::Occupied(mut history) => history.get_mut().now = change.after,
                // Committing an untracked file would include the content it had before.
                Entry::Vacant(history) => {
                    history.insert(FileHistory { others: change.before, now: change.after, mixed: was_untracked, clean });
                }
            }
        }
        before = Some(end);
    }
    Ok(histories)
}

impl FileHistory {
    /// Handles a change by others while no attempt was running. A file that exists only because of the attempts still counts
    /// as their work.
    fn others_change(&mut self, repository: &Repository, change: &merge::Change) -> Result<(), CommitError> {
        self.clean = false;
        let made_by_attempts = self.others.is_none() && change.before.is_some() && change.after.is_some();
        if made_by_attempts {
            self.now.clone_from(&change.after);
            return Ok(());
        }
        match merged(repository, change.before.as_ref(), self.others.as_ref(), change.after.as_ref())? {
            Ok(others) => self.others = others,
            Err(merge::Conflict) => self.mixed = true,
        }
        self.now.clone_from(&change.after);
        Ok(())
    }
}

pub(super) fn named(paths: &[Vec<u8>]) -> String {
    let first: Vec<_> = paths.iter().take(NAMED).map(|path| String::from_utf8_lossy(path)).collect();
    match paths.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
