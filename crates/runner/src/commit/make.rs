//! The commit itself.

use super::attempts::Attempt;
use super::merge::{self, Changes, Versions, between};
use super::repository::{Repository, text};
use super::story::{named, with_work};
use super::user_index::Locked;
use super::{Message, NotCommitted};
use crate::git::git_command;

/// How often the commit is prepared anew because the branch has moved meanwhile.
const TRIES: usize = 5;

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

/// Commits what some attempts changed; returns the commit, or nothing where all of that is committed already.
pub(super) fn commit(repository: &Repository, attempts: &[Attempt], message: &Message) -> Result<Option<String>, NotCommitted> {
    for _ in 0..TRIES {
        refuse_unready(repository)?;
        let locked = Locked::take(repository)?;
        let head = repository.head()?;
        let base = repository.tree_of(head.as_deref())?;
        let tree = with_work(repository, attempts, &base)?;
        if tree == base {
            return Ok(None);
        }
        locked.prepare(&index_after(repository, attempts, &base, &tree)?, head.as_deref())?;
        let made = match commit_tree(repository, &tree, message) {
            Ok(made) => made,
            Err(NotCommitted::Failed(_)) if repository.head()? != head => continue,
            Err(why) => return Err(why),
        };
        if parent(repository, &made)? == head || repository.head()?.as_ref() != Some(&made) {
            locked.install()?;
            set_what_hooks_changed(repository, &tree)?;
            return Ok(Some(made));
        }
        // Somebody committed between the look at the branch and our commit, which would undo theirs.
        repository.run(&["update-ref", "HEAD", &format!("{made}^"), &made], b"")?;
    }
    Err("the branch changed again and again while it was being committed; try again".to_owned().into())
}

/// The first parent of a commit.
fn parent(repository: &Repository, commit: &str) -> Result<Option<String>, String> {
    let parents = repository.line(&["rev-list", "--parents", "--max-count=1", commit])?;
    Ok(parents.split(' ').nth(1).map(str::to_owned))
}

/// What the user's index is to hold of the changed files once a tree is committed: what is in the tree, with what the user has staged.
fn index_after(repository: &Repository, attempts: &[Attempt], base: &str, tree: &str) -> Result<Versions, String> {
    let staged = merge::staged(repository, base)?;
    let by_user = attempts.iter().map(|attempt| between(repository, base, &attempt.start.staged));
    let by_user: Vec<Changes> = by_user.collect::<Result<_, _>>()?;
    let mut after = Versions::new();
    let mut mixed = Vec::new();
    let scratch = repository.own_index()?;
    for (path, change) in between(repository, base, tree)? {
        let version = match staged.get(&path) {
            None => Ok(change.after.clone()),
            Some(now) => {
                let was_staged = by_user.iter().any(|staged| staged.get(&path).is_some_and(|then| then.after == now.after));
                match merge::merged(repository, change.before.as_ref(), now.after.as_ref(), change.after.as_ref())? {
                    // The task staged an earlier version of its own work.
                    Err(merge::Conflict) if !was_staged => Ok(change.after.clone()),
                    merged => merged,
                }
            }
        };
        match version {
            Ok(version) => drop(after.insert(path, version)),
            Err(merge::Conflict) => mixed.push(path),
        }
    }
    drop(scratch);
    match mixed.is_empty() {
        true => Ok(after),
        false => Err(format!("it changed what you have staged, in {}; commit or unstage that, then try again", named(&mixed))),
    }
}

/// Lets git commit a tree with the user's hooks, signature and identity; returns the commit.
fn commit_tree(repository: &Repository, tree: &str, message: &Message) -> Result<String, NotCommitted> {
    let index = repository.own_index()?;
    index.run(&["read-tree", "--reset", tree], b"")?;
    // Without the times of the files, hooks would find all of them changed. It fails where some are.
    let _ = index.run(&["update-index", "-q", "--refresh"], b"");
    let mut command = git_command(&repository.top);
    // What git would do in the background after a commit would be ended with it.
    command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
    if !message.hooks {
        command.args(["-c", "core.hooksPath=/dev/null"]);
    }
    command.args(["commit", "--cleanup=whitespace", "-m", &message.text]);
    index.use_in(&mut command);
    let printed = repository.run_programs(command, None).map_err(|why| match why {
        NotCommitted::Failed(why) if why == crate::git::SILENT => {
            NotCommitted::Failed("`git commit` failed without a word; a hook of the repository may have refused it".to_owned())
        }
        why => why,
    })?;
    // Others may have committed since, so the branch does not tell which commit is ours. Git does: `[BRANCH COMMIT] MESSAGE`.
    let printed = text(printed);
    let told = printed.lines().find_map(|line| line.strip_prefix('[')?.split(']').next()?.rsplit(' ').next());
    let told = told.ok_or_else(|| format!("git did not tell which commit it made: {printed}"))?;
    Ok(repository.line(&["rev-parse", "--verify", &format!("{told}^{{commit}}")])?)
}

/// Hooks may have changed and added files, and committed by themselves; the user's index then holds these as they were committed.
fn set_what_hooks_changed(repository: &Repository, tree: &str) -> Result<(), String> {
    let committed = repository.tree_of(repository.head()?.as_deref())?;
    let changed = between(repository, tree, &committed)?;
    let staged = merge::staged(repository, &committed)?;
    let versions: Versions = changed
        .into_iter()
        .filter(|(path, change)| staged.get(path).is_some_and(|staged| staged.after == change.before))
        .map(|(path, change)| (path, change.after))
        .collect();
    if versions.is_empty() {
        return Ok(());
    }
    let locked = Locked::take(repository)?;
    locked.prepare(&versions, None)?;
    locked.install()
}
