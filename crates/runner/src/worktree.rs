//! Git worktrees of runs and tasks: where they lie, on which branch, and how they come into being.

mod kept;

pub use kept::{Kept, NotMerged, kept, merge, remove, tidy};

use crate::root::Root;
use lockgate_engine::id::{RunId, TaskKey};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// The folder beside Lockgate's state that holds worktrees.
pub const FOLDER: &str = "worktrees";

/// What the names of all our branches begin with.
pub const BRANCHES: &str = "lockgate/";

/// A worktree, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// Its folder under the worktrees of the root; its branch is called the same.
    pub name: String,
}

impl Tree {
    /// That of a run.
    pub fn of_run(run: &RunId) -> Self {
        Self { name: run.to_string() }
    }

    /// That of a task, the same for all its attempts and for all executions of its phase. Shortened ids can be the same for several
    /// tasks, so the digests of the whole ids tell them apart. The name for an item starts with that of its task.
    pub fn of_task(run: &RunId, key: &TaskKey) -> Self {
        let plain = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).take(40).collect()
        };
        let (phase, task) = (key.phase.as_str(), key.task.as_str());
        let mut name = format!("{run}-{}-{}-{}", plain(phase), plain(task), short_digest(&format!("{phase}/{task}")));
        if let Some(item) = &key.item {
            name += &format!("-{}-{}", plain(item), short_digest(item));
        }
        Self { name }
    }

    /// Its branch.
    pub fn branch(&self) -> String {
        format!("{BRANCHES}{}", self.name)
    }

    /// Its folder.
    pub fn folder(&self, root: &Root) -> PathBuf {
        root.folder().join(FOLDER).join(&self.name)
    }
}

/// Enough of a digest that no two tasks or items of a run share one.
fn short_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(12).collect()
}

/// Git refuses to make two worktrees at once.
static MAKING: Mutex<()> = Mutex::new(());

/// Makes a worktree unless it is there, branching off from another one or from what the root has checked out. Gives the folder in it
/// that stands for the root.
pub fn make(root: &Root, tree: &Tree, from: Option<&Tree>) -> Result<PathBuf, String> {
    let _alone = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let prefix = git(root.dir(), &["rev-parse", "--show-prefix"])
        .map_err(|why| format!("a worktree needs a git repository at {}: {why}", root.dir().display()))?;
    let folder = tree.folder(root);
    if !folder.join(".git").exists() {
        let start = from.map_or_else(|| "HEAD".to_owned(), Tree::branch);
        if git(root.dir(), &["rev-parse", "--verify", "--quiet", &format!("{start}^{{commit}}")]).is_err() {
            return Err("a worktree needs a commit to begin with, and this repository has none; commit something first".into());
        }
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent).map_err(|error| format!("{} cannot be made: {error}", parent.display()))?;
        }
        // A folder that was removed by hand is forgotten first.
        git(root.dir(), &["worktree", "prune"])?;
        let (path, branch) = (folder.to_string_lossy().into_owned(), tree.branch());
        let known = git(root.dir(), &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
        let made = if known {
            git(root.dir(), &["worktree", "add", &path, &branch])
        } else {
            git(root.dir(), &["worktree", "add", "-b", &branch, &path, &start])
        };
        made.map_err(|why| format!("the worktree {path} cannot be made: {why}"))?;
    }
    Ok(folder.join(prefix.trim()))
}

/// The folder in a worktree that stands for the root, where the worktree is there.
pub fn place(root: &Root, tree: &Tree) -> Option<PathBuf> {
    let folder = tree.folder(root);
    if !folder.join(".git").exists() {
        return None;
    }
    let prefix = git(root.dir(), &["rev-parse", "--show-prefix"]).ok()?;
    Some(folder.join(prefix.trim()))
}

/// Calls git in a folder; gives what it printed, or the last line that it complained with.
pub fn git(dir: &Path, arguments: &[&str]) -> Result<String, String> {
    git_with(dir, arguments, "")
}

/// The same, with something for git to read.
pub fn git_with(dir: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("git cannot be started: {error}"))?;
    let mut stdin = child.stdin.take();
    let input = input.to_owned();
    // Written beside the reading, so that neither waits for the other.
    let writing = std::thread::spawn(move || drop(stdin.as_mut().map(|stdin| stdin.write_all(input.as_bytes()))));
    let output = child.wait_with_output().map_err(|error| format!("git cannot be waited for: {error}"))?;
    let _ = writing.join();
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git failed").trim().to_owned())
}
