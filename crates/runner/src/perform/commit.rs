//! Committing what a task changed, where it asks for that.

use super::Shared;
use crate::worktree::git;
use lockgate_engine::id::TaskKey;
use std::path::{Path, PathBuf};

/// What is committed, and where; taken when the task begins.
pub(super) struct Commit {
    pub(super) dir: PathBuf,
    pub(super) message: String,
}

impl Commit {
    pub(super) fn new(dir: &Path, key: &TaskKey, title: &str) -> Self {
        Self { dir: dir.to_owned(), message: format!("{}: {title}", key.address()) }
    }

    /// Commits what has changed; gives the commit, or nothing where nothing has. An agent that committed by itself leaves nothing.
    pub(super) async fn make(self, shared: &Shared) -> Result<Option<String>, String> {
        // Tasks that end together share an index.
        let _alone = shared.committing.lock().await;
        let Self { dir, message } = self;
        let made = tokio::task::spawn_blocking(move || {
            git(&dir, &["add", "--all", "--", ".", ":(exclude,top).lockgate"])?;
            if git(&dir, &["diff", "--cached", "--quiet"]).is_ok() {
                return Ok(None);
            }
            git(&dir, &["commit", "--quiet", "--no-verify", "-m", &message])?;
            git(&dir, &["rev-parse", "--short", "HEAD"]).map(Some)
        });
        made.await.map_err(|error| error.to_string())?
    }
}
