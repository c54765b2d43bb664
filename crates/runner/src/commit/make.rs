//! The commit itself.

use super::attempts::Attempt;
use super::merge::{self, Changes, Versions, between, merged, setting, tree_with};
use super::repository::Repository;
use super::{Message, NotCommitted, Place};
use crate::git::outcome;
use crate::process::{Stop, run_locked};

/// How often the commit is prepared anew because the branch has moved meanwhile.
const TRIES: usize = 5;

/// So many files are named in a message.
const NAMED: usize = 5;

/// Refuses where git could not commit, with what to do about it.
pub(super) fn refuse_unready(repository: &Repository) -> Result<(), String> {
    let under_way = [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
    ];
    for (name, what) in under_way {
        if repository.git_path(name)?.exists() {
            return Err(format!("{what} is under way in this repository; complete or abort it first"));
        }
    }
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        if repository.line(&["var", who]).is_err() {
            return Err(
                "git does not know who commits; set it with `git config user.name NAME` and `git config user.email ADDRESS`"
                    .into(),
            );
        }
    }
    Ok(())
}

/// Commits what some attempts changed; false where that is committed already.
pub(super) fn commit(
    repository: &Repository,
    place: &Place,
    attempts: &[Attempt],
    message: &Message,
    stop: &Stop,
) -> Result<bool, NotCommitted> {
    for _ in 0..TRIES {
        refuse_unready(repository)?;
        let head = repository.head()?;
        let base = repository.tree_of(head.as_deref())?;
        let tree = with_work(repository, attempts, &base)?;
        if tree == base {
            return Ok(false);
        }
        let index = Index::prepare(repository, attempts, &base, &tree)?;
        // Staged first: what a kill leaves behind then looks like work that is about to be committed, not like work that was undone.
        index.set(repository, &index.after)?;
        if let Err(why) = commit_tree(repository, place, &tree, message, stop) {
            index.set(repository, &index.before)?;
            return Err(why);
        }
        if parent(repository)? == head {
            return set_what_hooks_changed(repository, &tree).map(|()| true).map_err(NotCommitted::from);
        }
        // Somebody committed between the look at the branch and our commit, which would undo theirs.
        let made = repository.head()?.unwrap_or_default();
        repository.run(&["update-ref", "HEAD", "HEAD^", &made], b"")?;
        index.set(repository, &index.before)?;
    }
    Err("the branch changed again and again while it was being committed; try again".to_owned().into())
}

/// The first parent of the commit that is checked out.
fn parent(repository: &Repository) -> Result<Option<String>, String> {
    let parents = repository.line(&["rev-list", "--parents", "--max-count=1", "HEAD"])?;
    Ok(parents.split(' ').nth(1).map(str::to_owned))
}

/// A tree with the work of all attempts added to it.
fn with_work(repository: &Repository, attempts: &[Attempt], base: &str) -> Result<String, String> {
    let mut tree = base.to_owned();
    let mut mixed = Vec::new();
    for Attempt { start, end } in attempts {
        let Some(end) = end else { continue };
        let (work, others) = (between(repository, &start.tree, end)?, between(repository, &start.tree, &tree)?);
        let mut changed = Versions::new();
        // Made now for the temporary files of merges.
        let index = repository.own_index()?;
        for (path, change) in work.iter().filter(|(path, _)| path.starts_with(&repository.prefix) && !merge::is_ours(path)) {
            let was_untracked = change.before.is_none() && start.untracked.contains_key(path);
            if was_untracked && start.is_untouched(repository, path) {
                continue;
            }
            let theirs = others.get(path).map_or(&change.before, |other| &other.after);
            match merged(repository, change.before.as_ref(), theirs.as_ref(), change.after.as_ref())? {
                // The whole file would be committed, with what was in it before.
                Ok(version) if was_untracked && version != *theirs => mixed.push(path.clone()),
                Ok(version) if version != *theirs => drop(changed.insert(path.clone(), version)),
                Ok(_) => {}
                Err(merge::Conflict) => mixed.push(path.clone()),
            }
        }
        drop(index);
        tree = tree_with(repository, &tree, &changed)?;
    }
    match mixed.is_empty() {
        true => Ok(tree),
        false => Err(format!(
            "it changed what was uncommitted when it started, in {}, and the two cannot be told apart; commit these files yourself, then try again",
            named(&mixed)
        )),
    }
}

/// Some paths for a message.
fn named(paths: &[Vec<u8>]) -> String {
    let first: Vec<_> = paths.iter().take(NAMED).map(|path| String::from_utf8_lossy(path)).collect();
    match paths.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// What the user's index has for the files of a commit.
struct Index {
    before: Versions,
    after: Versions,
}

impl Index {
    /// What the index is to hold once a tree is committed: what is in the tree, with what the user had staged before.
    fn prepare(repository: &Repository, attempts: &[Attempt], base: &str, tree: &str) -> Result<Self, String> {
        let changes = between(repository, base, tree)?;
        let staged = merge::staged(repository, base)?;
        let by_user = match attempts.first() {
            Some(first) => between(repository, base, &first.start.staged)?,
            None => Changes::new(),
        };
        let (mut before, mut after) = (Versions::new(), Versions::new());
        let mut mixed = Vec::new();
        let scratch = repository.own_index()?;
        for (path, change) in changes {
            let now = staged.get(&path);
            before.insert(path.clone(), now.map_or(&change.before, |now| &now.after).clone());
            let of_user = now.filter(|now| by_user.get(&path).is_some_and(|staged| staged.after == now.after));
            let version = match of_user {
                None => Ok(change.after),
                Some(user) => merged(repository, change.before.as_ref(), user.after.as_ref(), change.after.as_ref())?,
            };
            match version {
                Ok(version) => drop(after.insert(path, version)),
                Err(merge::Conflict) => mixed.push(path),
            }
        }
        drop(scratch);
        match mixed.is_empty() {
            true => Ok(Self { before, after }),
            false => {
                Err(format!("it changed what you have staged, in {}; commit or unstage that, then try again", named(&mixed)))
            }
        }
    }

    fn set(&self, repository: &Repository, versions: &Versions) -> Result<(), String> {
        let (arguments, input) = setting(repository, versions);
        repository.run(&arguments, &input).map(drop)
    }
}

/// Lets git commit a tree with the user's hooks, signature and identity.
fn commit_tree(repository: &Repository, place: &Place, tree: &str, message: &Message, stop: &Stop) -> Result<(), NotCommitted> {
    let index = repository.own_index()?;
    index.run(&["read-tree", "--reset", tree], b"")?;
    // Without the times of the files, hooks would find all of them changed. It fails where some are.
    let _ = index.run(&["update-index", "-q", "--refresh"], b"");
    // What git would do in the background after a commit would be ended with it.
    let mut arguments = vec!["-c", "gc.auto=0", "-c", "maintenance.auto=false"];
    if !message.hooks {
        arguments.extend(["-c", "core.hooksPath=/dev/null"]);
    }
    arguments.extend(["commit", "--quiet", "-m", &message.text]);
    let ran = run_locked(index.command(&arguments), &place.lock, stop).map_err(|error| format!("git cannot be run: {error}"))?;
    outcome(ran.ok_or(NotCommitted::Stopped)?)?;
    Ok(())
}

/// Hooks may have changed and added files; the user's index then holds them as they were committed.
fn set_what_hooks_changed(repository: &Repository, tree: &str) -> Result<(), String> {
    let committed = repository.tree_of(Some("HEAD"))?;
    let changed = between(repository, tree, &committed)?;
    if changed.is_empty() {
        return Ok(());
    }
    let versions = changed.into_iter().map(|(path, change)| (path, change.after)).collect();
    let (arguments, input) = setting(repository, &versions);
    repository.run(&arguments, &input).map(drop)
}
