//! Git worktrees of runs and tasks: where they lie, on which branch, and how they come into being.

mod forked;
mod kept;

pub use forked::Branched;
pub use kept::{Kept, NotMerged, kept, merge, remove, tidy};

use crate::process::{OF_ANOTHER_REPOSITORY, run_locked};
use crate::root::Root;
use lockgate_engine::id::{RunId, TaskKey};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
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

    /// The run that it belongs to.
    pub fn run(&self) -> RunId {
        RunId::new(self.name.split('-').next().unwrap_or_default())
    }

    /// A file that exists while the worktree is being created. One that is left over says that the worktree is incomplete.
    fn creating(&self, root: &Root) -> PathBuf {
        root.folder().join(FOLDER).join(format!("{}.creating", self.name))
    }

    /// Whether its creation was started and never completed, so that nothing has worked in it.
    fn is_incomplete(&self, root: &Root) -> bool {
        self.creating(root).symlink_metadata().is_ok()
    }

    /// Whether it is complete and can be worked in.
    fn is_ready(&self, root: &Root) -> bool {
        self.folder(root).join(".git").exists() && !self.is_incomplete(root)
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
    if !tree.is_ready(root) {
        let start = from.map_or_else(|| "HEAD".to_owned(), Tree::branch);
        if git(root.dir(), &["rev-parse", "--verify", "--quiet", &format!("{start}^{{commit}}")]).is_err() {
            return Err("a worktree needs a commit to begin with, and this repository has none; commit something first".into());
        }
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent).map_err(|error| format!("{} cannot be made: {error}", parent.display()))?;
        }
        if tree.is_incomplete(root) {
            discard(root, &folder)?;
        }
        // A folder that was removed by hand is forgotten first.
        git(root.dir(), &["worktree", "prune"])?;
        let (path, branch) = (folder.to_string_lossy().into_owned(), tree.branch());
        if folder.symlink_metadata().is_ok() && std::fs::remove_dir(&folder).is_err() {
            return Err(format!("{path} exists and is not a git worktree; move it away, then try again"));
        }
        let unwritable = |error: std::io::Error| format!("the worktree {path} cannot be created: {error}");
        mark_as_creating(&tree.creating(root)).map_err(unwritable)?;
        let known = git(root.dir(), &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
        let mut command = git_command(root.dir());
        match known {
            true => command.args(["worktree", "add", &path, &branch]),
            false => command.args(["worktree", "add", "-b", &branch, &path, &start]),
        };
        let made = run_locked(command, &root.worktree_lock(&tree.run(), &tree.name)).map_err(|error| error.to_string());
        let made = made.and_then(outcome);
        if let Err(why) = made {
            // Git removes what it could not complete. Only a failing hook leaves the worktree behind, and must run again next time.
            let why = if folder.join(".git").exists() {
                discard(root, &folder)?;
                format!("the post-checkout hook of the repository failed: {why}")
            } else {
                why
            };
            if folder.symlink_metadata().is_err() {
                std::fs::remove_file(tree.creating(root)).map_err(unwritable)?;
            }
            return Err(format!("the worktree {path} cannot be created: {why}"));
        }
        std::fs::remove_file(tree.creating(root)).map_err(unwritable)?;
    }
    Ok(folder.join(prefix.trim()))
}

/// Notes durably that a worktree is being created, before any of it exists.
fn mark_as_creating(path: &Path) -> std::io::Result<()> {
    std::fs::File::create(path)?.sync_all()?;
    path.parent().map_or(Ok(()), |parent| std::fs::File::open(parent)?.sync_all())
}

/// Removes a worktree that no task has worked in. Its branch stays.
fn discard(root: &Root, folder: &Path) -> Result<(), String> {
    // Given twice, it also removes what git itself locked while it was creating it.
    let removed = git(root.dir(), &["worktree", "remove", "--force", "--force", &folder.to_string_lossy()]);
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let why = removed.err().unwrap_or_else(|| error.to_string());
            Err(format!("the incomplete worktree {} cannot be removed: {why}", folder.display()))
        }
    }
}

/// The folder in a worktree that stands for the root, where the worktree is there.
pub fn place(root: &Root, tree: &Tree) -> Option<PathBuf> {
    if !tree.is_ready(root) {
        return None;
    }
    let prefix = git(root.dir(), &["rev-parse", "--show-prefix"]).ok()?;
    Some(tree.folder(root).join(prefix.trim()))
}

/// Calls git in a directory; gives what it printed, or its complaint in one line.
pub fn git(dir: &Path, arguments: &[&str]) -> Result<String, String> {
    git_with(dir, arguments, "")
}

/// The same, with something for git to read.
pub fn git_with(dir: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    use std::io::Write as _;
    let mut child = git_command(dir)
        .args(arguments)
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
    outcome(output)
}

/// Git in a directory, whatever the environment says of other repositories.
fn git_command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env("GIT_TERMINAL_PROMPT", "0");
    for name in OF_ANOTHER_REPOSITORY {
        command.env_remove(name);
    }
    command
}

/// What git printed, or its complaint where it failed.
fn outcome(output: Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    Err(complaint(&String::from_utf8_lossy(&output.stderr)))
}

/// Lines of git that report progress; a complaint can come before or after them.
const PROGRESS: [&str; 8] = [
    "Preparing worktree",
    "HEAD is now at",
    "Updating files:",
    "Checking out files:",
    "Filtering content:",
    "Switched to",
    "Auto-merging",
    "hint:",
];

/// More lines of a complaint are left out.
const COMPLAINT_LINES: usize = 20;

/// What git and its hooks complained about, in one line and without progress.
fn complaint(stderr: &str) -> String {
    let lines = stderr.split(['\n', '\r']).map(str::trim);
    let matter: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !PROGRESS.iter().any(|progress| line.starts_with(progress))).collect();
    match matter.len() {
        0 => "git failed and did not say why".to_owned(),
        count if count > COMPLAINT_LINES => format!("{}; …", matter[..COMPLAINT_LINES].join("; ")),
        _ => matter.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_all_that_git_says_except_for_progress() {
        let said = "Preparing worktree (new branch 'x')\nUpdating files:  50% (1/2)\rUpdating files: 100% (2/2), done.\n\
            error: external filter 'f' failed 1\nfatal: a.txt: smudge filter f failed\nHEAD is now at 1234567 first\n";
        assert_eq!(complaint(said), "error: external filter 'f' failed 1; fatal: a.txt: smudge filter f failed");
        assert_eq!(complaint("Preparing worktree (checking out 'x')\n"), "git failed and did not say why");
        assert_eq!(complaint(&"x\n".repeat(30)), format!("{}; …", ["x"; 20].join("; ")));
    }
}
