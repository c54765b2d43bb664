//! Committing what a task changed, where it asks for that; and seeing what an agent committed by itself.

use super::Shared;
use crate::git::{git, git_with};
use crate::root::FOLDER;
use lockgate_engine::id::TaskKey;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is committed, and where; taken when the task begins.
pub(super) struct Commit {
    message: String,
    /// Whether what is left uncommitted is committed; else only what the agent committed is seen.
    makes: bool,
    /// Unknown until the task starts: its worktree may not exist before.
    start: Option<Start>,
}

/// Where a task works, and what was there when it started.
struct Start {
    dir: PathBuf,
    /// The commit that was checked out.
    head: Option<String>,
    /// What was uncommitted, so that the changes of others stay theirs.
    uncommitted: BTreeMap<String, Stamp>,
}

/// What a file was at a moment; nothing where it was not there.
type Stamp = Option<(SystemTime, u64)>;

impl Commit {
    pub(super) fn new(key: &TaskKey, title: &str, makes: bool) -> Self {
        Self { message: format!("{}: {title}", key.address()), makes, start: None }
    }

    /// Notes what is checked out and what is uncommitted in the directory that the task works in, before it starts.
    pub(super) async fn look(&mut self, dir: PathBuf) {
        let makes = self.makes;
        let looked = tokio::task::spawn_blocking(move || {
            let uncommitted = if makes { uncommitted(&dir).unwrap_or_default() } else { BTreeMap::new() };
            Start { head: head(&dir), uncommitted, dir }
        });
        self.start = looked.await.ok();
    }

    /// Commits what the task changed; gives the commit, or nothing where it changed nothing. What was uncommitted before and is as it was
    /// stays so. Of an agent that committed by itself and left nothing, its last commit is given.
    pub(super) async fn make(self, shared: &Shared) -> Result<Option<String>, String> {
        // Tasks that end together share an index.
        let _alone = shared.committing.lock().await;
        let Self { message, makes, start } = self;
        let Some(Start { dir, head: before, uncommitted: others }) = start else {
            return Err("the directory was not checked when the task started".into());
        };
        let made = tokio::task::spawn_blocking(move || {
            let by_itself = || head(&dir).filter(|now| before.as_ref().is_some_and(|before| before != now));
            if !makes {
                return Ok(by_itself());
            }
            let now = uncommitted(&dir)?;
            let changed = now.iter().filter(|(path, stamp)| others.get(*path) != Some(*stamp)).map(|(path, _)| path.as_str());
            let paths: Vec<&str> = changed.collect();
            if paths.is_empty() {
                return Ok(by_itself());
            }
            let top = PathBuf::from(git(&dir, &["rev-parse", "--show-toplevel"])?);
            let listed = paths.join("\0");
            let from = ["--pathspec-from-file=-", "--pathspec-file-nul"];
            git_with(&top, &[&["--literal-pathspecs", "add", "--all"][..], &from].concat(), &listed)?;
            let commit = ["--literal-pathspecs", "commit", "--quiet", "--no-verify", "-m", &message];
            git_with(&top, &[&commit[..], &from].concat(), &listed)?;
            Ok(head(&dir))
        });
        made.await.map_err(|error| error.to_string())?
    }
}

/// What is uncommitted under a folder, by its path from the top of the repository, save for our own folder.
fn uncommitted(dir: &Path) -> Result<BTreeMap<String, Stamp>, String> {
    let top = PathBuf::from(git(dir, &["rev-parse", "--show-toplevel"])?);
    let told = git(dir, &["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", "."])?;
    let paths = told.split('\0').filter_map(|entry| entry.get(3..)).filter(|path| !path.is_empty());
    let ours = |path: &&str| !Path::new(path).components().any(|part| part.as_os_str() == FOLDER);
    Ok(paths.filter(ours).map(|path| (path.to_owned(), stamp(&top.join(path)))).collect())
}

fn stamp(path: &Path) -> Stamp {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The commit that the branch stands at.
fn head(dir: &Path) -> Option<String> {
    git(dir, &["rev-parse", "--short", "HEAD"]).ok()
}
