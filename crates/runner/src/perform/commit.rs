//! Committing what a task changed, where it asks for that; and seeing what an agent committed by itself.

use super::Shared;
use crate::root::FOLDER;
use crate::worktree::git;
use lockgate_engine::id::TaskKey;
use std::path::{Path, PathBuf};

/// What is committed, and where; taken when the task begins.
pub(super) struct Commit {
    dir: PathBuf,
    message: String,
    /// Whether what is left uncommitted is committed; else only what the agent committed is seen.
    makes: bool,
    /// Where the branch stood when the work began.
    before: Option<String>,
}

impl Commit {
    pub(super) fn new(dir: &Path, key: &TaskKey, title: &str, makes: bool) -> Self {
        Self { dir: dir.to_owned(), message: format!("{}: {title}", key.address()), makes, before: None }
    }

    /// Looks where the branch stands before the work begins.
    pub(super) async fn look(&mut self) {
        let dir = self.dir.clone();
        self.before = tokio::task::spawn_blocking(move || head(&dir)).await.ok().flatten();
    }

    /// Commits what has changed; gives the commit, or nothing where nothing has. Of an agent that committed by itself and left
    /// nothing, its last commit is given.
    pub(super) async fn make(self, shared: &Shared) -> Result<Option<String>, String> {
        // Tasks that end together share an index.
        let _alone = shared.committing.lock().await;
        let Self { dir, message, makes, before } = self;
        let made = tokio::task::spawn_blocking(move || {
            let by_itself = || head(&dir).filter(|now| before.as_ref().is_some_and(|before| before != now));
            if !makes {
                return Ok(by_itself());
            }
            add_all(&dir)?;
            if git(&dir, &["diff", "--cached", "--quiet"]).is_ok() {
                return Ok(by_itself());
            }
            git(&dir, &["commit", "--quiet", "--no-verify", "-m", &message])?;
            Ok(head(&dir))
        });
        made.await.map_err(|error| error.to_string())?
    }
}

/// Takes up everything that has changed, save for our own folder. To name that where it is ignored anyway is an error to git.
fn add_all(dir: &Path) -> Result<(), String> {
    let ours = format!("{}/{FOLDER}", git(dir, &["rev-parse", "--show-toplevel"])?);
    let mut arguments = vec!["add", "--all", "--", "."];
    let exclude = format!(":(exclude,top){FOLDER}");
    if git(dir, &["check-ignore", "--quiet", "--", &ours]).is_err() {
        arguments.push(&exclude);
    }
    git(dir, &arguments).map(drop)
}

/// The commit that the branch stands at.
fn head(dir: &Path) -> Option<String> {
    git(dir, &["rev-parse", "--short", "HEAD"]).ok()
}
