//! Makes the commit.

use super::attempts::Attempt;
use super::file_history::{named, with_work};
use super::merge::{self, Changes, Versions, between};
use super::repository::{Repository, text};
use super::user_index::{Locked, set_unstaged};
use super::{CommitError, Message, NotCommitted};
use crate::git::{GitError, git_command};

/// How often to retry the commit if the branch moves in the meantime.
const MAX_ATTEMPTS: usize = 5;

/// Fails, with help, if git could not commit.
pub(super) fn refuse_unready(repository: &Repository) -> Result<(), CommitError> {
    let under_way = [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
    ];
    for (name, what) in under_way {
        if repository.git_path(name)?.exists() {
            return Err(CommitError::InProgress(what));
        }
    }
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        if repository.line(&["var", who]).is_err() {
            return Err(CommitError::NoIdentity);
        }
    }
    Ok(())
}

/// Commits the changes of the attempts; `None` if everything is already committed.
pub(super) fn commit(repository: &Repository, attempts: &[Attempt], message: &Message) -> Result<Option<String>, NotCommitted> {
    for _ in 0..MAX_ATTEMPTS {
        refuse_unready(repository)?;
        let locked = Locked::take(repository)?;
        let head = repository.head()?;
        let base = repository.tree_of(head.as_deref())?;
        let tree = with_work(repository, attempts, &base)?;
        if tree == base {
            return Ok(None);
        }
        locked.prepare(&index_after(repository, attempts, &base, &tree)?, head.as_deref(), &tree)?;
        let made = match commit_tree(repository, &tree, message) {
            Ok(made) => made,
            // It may have failed or been stopped after the commit was made.
            Err(why) => match (is_own_commit(repository, head.as_deref(), &tree, message)?, why) {
                (Some(_), NotCommitted::Stopped) => {
                    locked.install()?;
                    set_unstaged(repository, &tree)?;
                    return Err(NotCommitted::Stopped);
                }
                (Some(made), NotCommitted::Failed(_)) => made,
                (None, NotCommitted::Failed(_)) if repository.head()? != head => continue,
                (None, why) => return Err(why),
            },
        };
        if parent(repository, &made)? == head || repository.head()?.as_ref() != Some(&made) {
            locked.install()?;
            // Hooks may have changed and added files, and made commits themselves.
            set_unstaged(repository, &tree)?;
            return Ok(Some(made));
        }
        // Another process committed after we read the branch, and our commit would undo theirs.
        repository.run(&["update-ref", "HEAD", &format!("{made}^"), &made], b"")?;
    }
    Err(CommitError::BranchMoves { tries: MAX_ATTEMPTS }.into())
}

/// The checked-out commit, if it is the one we tried to make.
fn is_own_commit(
    repository: &Repository,
    head: Option<&str>,
    tree: &str,
    message: &Message,
) -> Result<Option<String>, CommitError> {
    let Some(now) = repository.head()?.filter(|now| Some(now.as_str()) != head) else { return Ok(None) };
    let has_our_tree = repository.tree_of(Some(&now))? == tree;
    let subject = message.text.trim().lines().next().unwrap_or_default();
    let has_our_subject =
        || Ok::<_, CommitError>(repository.line(&["log", "--max-count=1", "--format=%B", &now])?.contains(subject));
    let is_ours = parent(repository, &now)?.as_deref() == head && (has_our_tree || has_our_subject()?);
    Ok(is_ours.then_some(now))
}

fn parent(repository: &Repository, commit: &str) -> Result<Option<String>, CommitError> {
    let parents = repository.line(&["rev-list", "--parents", "--max-count=1", commit])?;
    Ok(parents.split(' ').nth(1).map(str::to_owned))
}

/// The versions of the changed files for the user's index after the commit: those of the tree, plus what the user has staged.
fn index_after(repository: &Repository, attempts: &[Attempt], base: &str, tree: &str) -> Result<Versions, CommitError> {
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
        false => Err(CommitError::StagedLines { files: named(&mixed) }),
    }
}

/// Commits a tree with `git commit`, with the user's hooks, signature and identity.
fn commit_tree(repository: &Repository, tree: &str, message: &Message) -> Result<String, NotCommitted> {
    let index = repository.own_index()?;
    index.run(&["read-tree", "--reset", tree], b"")?;
    // Without the file times, hooks would see all files as changed. This fails if some are.
    if let Err(error) = index.run(&["update-index", "-q", "--refresh"], b"") {
        tracing::debug!(%error, "cannot refresh the index; git compares more files");
    }
    let mut command = git_command(&repository.top);
    // Background maintenance would be killed together with the commit, so it is disabled.
    command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
    if !message.hooks {
        command.args(["-c", "core.hooksPath=/dev/null"]);
    }
    command.args(["commit", "--cleanup=whitespace", "-m", &message.text]);
    index.use_in(&mut command);
    let printed = repository.run_programs(command, None).map_err(|why| match why {
        NotCommitted::Failed(CommitError::Git(GitError::FailedSilently)) => CommitError::Rejected.into(),
        why => why,
    })?;
    // Others may have committed since, so the branch does not tell which commit is ours.
    let printed = text(printed);
    let made = commit_in(&printed).unwrap_or("HEAD");
    Ok(repository.line(&["rev-parse", "--verify", &format!("{made}^{{commit}}")])?)
}

/// Parses the commit from git's output: `[BRANCH COMMIT] MESSAGE`, where the branch name may contain brackets and spaces.
fn commit_in(printed: &str) -> Option<&str> {
    let line = printed.lines().find(|line| line.starts_with('['))?;
    let words = line.match_indices(']').filter_map(|(end, _)| line[..end].rsplit(' ').next());
    words.into_iter().find(|word| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_parsed_from_git_output() {
        for printed in [
            "[main 0123abc] work/t: t\n 1 file changed, 1 insertion(+)",
            "[main (Root-Commit) 0123abc] [x] y",
            "[losgelöster HEAD 0123abc] t",
            "[we]ird/na]me 0123abc] [deadbeef] t",
        ] {
            assert_eq!(commit_in(printed), Some("0123abc"), "{printed}");
        }
        assert_eq!(commit_in("nothing"), None);
    }
}
