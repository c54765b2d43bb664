//! Worktrees that are there: what lies in them, and how they are merged and removed. Nothing is removed that holds work, unless a person
//! says so.

use super::{BRANCHES, FOLDER, NotRemoved, Tree, WorktreeError};
use crate::git::{GitError, git};
use crate::root::Root;
use lockgate_engine::id::RunId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A worktree with its branch, as far as they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingWorktree {
    /// Which.
    pub tree: Tree,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether the folder is there.
    pub has_folder: bool,
    /// The commit that its branch stands at, where the branch is there.
    pub tip: Option<String>,
    /// How many commits nothing else has.
    pub commits: u64,
    /// How many files hold changes that were not committed; unknown where git could not say.
    pub uncommitted: Option<u64>,
}

impl ExistingWorktree {
    /// Whether something would be lost with it.
    pub fn has_work(&self) -> bool {
        self.commits > 0 || self.uncommitted != Some(0)
    }

    /// The id of its run.
    pub fn run(&self) -> RunId {
        self.tree.run()
    }

    /// What tells it apart from the others of its run; nothing where it is that of the run itself.
    pub fn part(&self) -> Option<&str> {
        self.tree.name.split_once('-').map(|(_, part)| part)
    }
}

/// The worktrees of a run, or of all runs, in the order of their names. Where there never was one, git is not called.
pub fn existing(root: &Root, run: Option<&RunId>) -> Result<Vec<ExistingWorktree>, GitError> {
    let Ok(entries) = std::fs::read_dir(root.folder().join(FOLDER)) else { return Ok(Vec::new()) };
    let folders =
        entries.flatten().filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: BTreeSet<String> = folders.collect();
    let branches = branches(root.dir())?;
    names.extend(branches.keys().cloned());
    let is_meant = |name: &String| run.is_none_or(|run| name.split('-').next() == Some(run.as_str()));
    Ok(names.into_iter().filter(is_meant).map(|name| look(root, name, &branches)).collect())
}

/// Our branches, without what all their names begin with, and the commits they stand at.
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
    let folder = tree.folder(root);
    let has_folder = folder.is_dir();
    let tip = branches.get(&tree.name).cloned();
    // Whoever works in it may have checked out something else, whose commits no branch has.
    let head = if has_folder { logged(git(&folder, &["rev-parse", "--verify", "--quiet", "HEAD"])) } else { None };
    let of_run = tree.name.split_once('-').and_then(|(run, _)| branches.get(run));
    let commits = own_commits(root.dir(), tip.iter().chain(&head).map(String::as_str), of_run.map(String::as_str));
    let uncommitted = match (has_folder, folder.join(".git").exists()) {
        (false, _) => Some(0),
        // Files that were not checked out yet are not changes.
        (true, _) if tree.is_incomplete(root) => Some(0),
        (true, true) => logged(changes(&folder, "normal")).map(|changes| changes.len() as u64),
        // No worktree any more: git would speak of the repository around it.
        (true, false) => None,
    };
    ExistingWorktree { tree, folder, has_folder, tip, commits, uncommitted }
}

/// What git said, where it said anything. The callers take what it cannot say for the worse case.
fn logged<T>(said: Result<T, GitError>) -> Option<T> {
    said.inspect_err(|error| tracing::debug!(%error, "git could not say what is in a worktree")).ok()
}

/// How many commits only these have: nothing but our own branches, save the one of the run. What git cannot say counts as one.
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

/// What is changed in a folder and not committed.
fn changes(dir: &Path, untracked: &str) -> Result<Vec<String>, GitError> {
    let told = git(dir, &["status", "--porcelain", &format!("--untracked-files={untracked}")])?;
    Ok(told.lines().map(|line| line.get(3..).unwrap_or(line).to_owned()).collect())
}

/// Why a worktree was not merged.
#[derive(Debug)]
pub enum NotMerged {
    /// The root has changes that were not committed.
    RootChanged(Vec<String>),
    /// The worktree has, or it cannot be known.
    Uncommitted,
    /// The root has no branch checked out that could take it.
    NoBranch,
    /// The worktree has something else checked out than its branch, so that commits may be on no branch.
    OtherHead,
    /// Both changed the same; all is as it was.
    Conflict(Vec<String>),
    /// Git said something else.
    Git(GitError),
}

/// Merges the branch of a worktree into the branch that the root has checked out. Gives that branch.
pub fn merge(root: &Root, existing: &ExistingWorktree) -> Result<String, NotMerged> {
    let dir = root.dir();
    let into = git(dir, &["symbolic-ref", "--quiet", "--short", "HEAD"]).map_err(|_| NotMerged::NoBranch)?;
    // Files that git does not know are no hindrance; it refuses by itself to write over them.
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

/// Removes a worktree and its branch. Git looks once more whether the folder is clean, unless what is in it may be lost, and the branch
/// must still stand where it was seen.
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
            // A folder that is no worktree any more, because its repository forgot it.
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

/// Removes what a run left that holds no work, those of tasks first, since they may hang on that of the run. Gives what stays.
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
