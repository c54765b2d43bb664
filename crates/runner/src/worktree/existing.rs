//! Existing worktrees: their contents, merging and removing them. Nothing that contains work is removed unless a person asks
//! for it.

use super::{BRANCHES, NotRemoved, Tree, WORKTREES_DIR, WorktreeError};
use crate::git::{GitError, HiddenFiles, git, git_command, output_of};
use crate::root::Root;
use lockgate_engine::id::RunId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A worktree and its branch, either of which may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingWorktree {
    pub tree: Tree,
    pub folder: PathBuf,
    pub has_folder: bool,
    /// The tip of its branch, if the branch exists.
    pub tip: Option<String>,
    /// The number of commits that exist nowhere else.
    pub commits: u64,
    /// The number of files with uncommitted changes; `None` if git could not tell.
    pub uncommitted: Option<u64>,
}

impl ExistingWorktree {
    /// Whether removing it would lose work.
    pub fn has_work(&self) -> bool {
        self.commits > 0 || self.uncommitted != Some(0)
    }

    pub fn run(&self) -> RunId {
        self.tree.run()
    }

    /// What distinguishes it from the others of its run; `None` for the worktree of the run itself.
    pub fn part(&self) -> Option<&str> {
        self.tree.name.split_once('-').map(|(_, part)| part)
    }
}

/// The worktrees of a run, or of all runs, sorted by name. If there never was one, git is not called.
pub fn existing(root: &Root, run: Option<&RunId>) -> Result<Vec<ExistingWorktree>, GitError> {
    let Ok(entries) = std::fs::read_dir(root.state_dir().join(WORKTREES_DIR)) else { return Ok(Vec::new()) };
    let folders =
        entries.flatten().filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: BTreeSet<String> = folders.collect();
    let branches = branches(root.dir())?;
    names.extend(branches.keys().cloned());
    let is_meant = |name: &String| run.is_none_or(|run| name.split('-').next() == Some(run.as_str()));
    Ok(names.into_iter().filter(is_meant).map(|name| look(root, name, &branches)).collect())
}

/// Our branches, without their common prefix, and their tips.
fn branches(dir: &Path) -> Result<BTreeMap<String, String>, GitError> {
    let listed = git(dir, &["for-each-ref", "--format=%(objectname) %(refname)", &format!("refs/heads/{BRANCHES}")])?;
    let ours = format!("refs/heads/{BRANCHES}");
    let split = |line: &str| {
        let (tip, name) = line.split_once(' ')?;
        Some((name.strip_prefix(&ours)?.to_owned(), tip.to_owned()))
    };
    Ok(listed.lines().filter_map(split).collect())
}

fn look(root: &Root, name: String, branches: &BTreeMap<String, String>) -> ExistingWorktree {
    let tree = Tree { name };
    let folder = tree.dir(root);
    let has_folder = folder.is_dir();
    let tip = branches.get(&tree.name).cloned();
    // A task may have checked out something else, whose commits are on no branch.
    let head = if has_folder { logged(git(&folder, &["rev-parse", "--verify", "--quiet", "HEAD"])) } else { None };
    let of_run = tree.name.split_once('-').and_then(|(run, _)| branches.get(run));
    let commits = own_commits(root.dir(), tip.iter().chain(&head).map(String::as_str), of_run.map(String::as_str));
    let uncommitted = match (has_folder, folder.join(".git").exists()) {
        (false, _) => Some(0),
        // Files that were not checked out yet are not changes.
        (true, _) if tree.is_incomplete(root) => Some(0),
        (true, true) => {
            logged(changes(&folder, "normal")).and_then(|changes| Some(changes.len() as u64 + logged(hidden_files(&folder))?))
        }
        // It is no longer a worktree: git would report on the repository around it.
        (true, false) => None,
    };
    ExistingWorktree { tree, folder, has_folder, tip, commits, uncommitted }
}

/// Git's result, if it succeeded. Callers assume the worse case otherwise.
fn logged<T>(said: Result<T, GitError>) -> Option<T> {
    said.inspect_err(|error| tracing::debug!(%error, "git cannot tell what is in a worktree")).ok()
}

/// The number of commits that are reachable only from our own branches, excluding the branch of the run. If git fails, it
/// counts as one.
fn own_commits<'c>(dir: &Path, of: impl Iterator<Item = &'c str>, without: Option<&str>) -> u64 {
    let of: Vec<&str> = of.collect();
    if of.is_empty() {
        return 0;
    }
    let others = format!("--exclude={BRANCHES}*");
    let mut arguments = vec!["rev-list", "--count"];
    arguments.extend(of);
    arguments.extend(["--not", "HEAD", &others, "--branches", "--remotes", "--tags"]);
    arguments.extend(without);
    logged(git(dir, &arguments)).and_then(|count| count.trim().parse().ok()).unwrap_or(1)
}

/// The uncommitted changes in a directory.
fn changes(dir: &Path, untracked: &str) -> Result<Vec<String>, GitError> {
    let output = git(dir, &["status", "--porcelain", &format!("--untracked-files={untracked}")])?;
    Ok(output.lines().map(|line| line.get(3..).unwrap_or(line).to_owned()).collect())
}

/// The number of files that may have changes that git does not report.
fn hidden_files(dir: &Path) -> Result<u64, GitError> {
    let mut command = git_command(dir);
    command.args(["ls-files", "-v", "-z"]);
    let listed = output_of(command, b"")?;
    let hidden = HiddenFiles::parse(&listed, dir);
    Ok((hidden.assumed.len() + hidden.skipped.len()) as u64)
}

#[derive(Debug)]
pub enum NotMerged {
    RootChanged(Vec<String>),
    /// The worktree has uncommitted changes, or that is unknown.
    Uncommitted,
    /// The root has no branch checked out to merge into.
    NoBranch,
    /// The worktree has something other than its branch checked out, so commits may be on no branch.
    OtherHead,
    /// Both changed the same lines; nothing was changed.
    Conflict(Vec<String>),
    Git(GitError),
}

/// Merges the branch of a worktree into the branch that the root has checked out, and returns that branch.
pub fn merge(root: &Root, existing: &ExistingWorktree) -> Result<String, NotMerged> {
    let dir = root.dir();
    let into = git(dir, &["symbolic-ref", "--quiet", "--short", "HEAD"]).map_err(|_| NotMerged::NoBranch)?;
    // Untracked files do not block a merge; git itself refuses to overwrite them.
    let changed = changes(dir, "no").map_err(NotMerged::Git)?;
    if !changed.is_empty() {
        return Err(NotMerged::RootChanged(changed));
    }
    if existing.uncommitted != Some(0) {
        return Err(NotMerged::Uncommitted);
    }
    let checked_out = logged(git(&existing.folder, &["symbolic-ref", "--quiet", "--short", "HEAD"]));
    if existing.has_folder && checked_out.as_ref() != Some(&existing.tree.branch()) {
        return Err(NotMerged::OtherHead);
    }
    let merged = git(dir, &["merge", "--no-edit", &existing.tree.branch()]);
    let Err(why) = merged else { return Ok(into) };
    let conflicts = logged(git(dir, &["diff", "--name-only", "--diff-filter=U"])).unwrap_or_default();
    if git(dir, &["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).is_ok() {
        git(dir, &["merge", "--abort"]).map_err(NotMerged::Git)?;
    }
    match conflicts.is_empty() {
        true => Err(NotMerged::Git(why)),
        false => Err(NotMerged::Conflict(conflicts.lines().map(str::to_owned).collect())),
    }
}

/// Removes a worktree and its branch. Git checks again that the directory is clean, unless its contents may be lost, and the
/// branch must not have moved.
pub fn remove(root: &Root, existing: &ExistingWorktree, even_with_work: bool) -> Result<(), WorktreeError> {
    let _alone = super::MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = existing.folder.to_string_lossy().into_owned();
    let not_removed = |why: NotRemoved| WorktreeError::NotRemoved { path: existing.folder.clone(), why };
    if existing.tree.is_incomplete(root) {
        super::discard(root, &existing.folder)?;
        std::fs::remove_file(existing.tree.creating(root)).map_err(|error| not_removed(error.into()))?;
    } else if existing.has_folder {
        let force: &[&str] = if even_with_work { &["--force"] } else { &[] };
        let removed = git(root.dir(), &[&["worktree", "remove"], force, &[path.as_str()]].concat());
        match removed {
            Ok(_) => {}
            // The directory is no longer a worktree, because its repository forgot it.
            Err(_) if even_with_work => {
                std::fs::remove_dir_all(&existing.folder).map_err(|error| not_removed(error.into()))?;
            }
            Err(why) => return Err(not_removed(why.into())),
        }
    }
    git(root.dir(), &["worktree", "prune"])?;
    if let Some(tip) = &existing.tip {
        let name = format!("refs/heads/{}", existing.tree.branch());
        git(root.dir(), &["update-ref", "-d", &name, tip]).map_err(WorktreeError::BranchNotRemoved)?;
    }
    Ok(())
}

/// Removes a run's worktrees without work, those of tasks first, since they may depend on that of the run. Returns the
/// remaining ones.
pub fn remove_unused(root: &Root, run: &RunId) -> Result<Vec<ExistingWorktree>, GitError> {
    let mut stays = Vec::new();
    for existing in existing(root, Some(run))?.into_iter().rev() {
        if existing.has_work() || remove(root, &existing, false).is_err() {
            stays.push(existing);
        }
    }
    stays.reverse();
    Ok(stays)
}
