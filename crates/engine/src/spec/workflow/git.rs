//! How tasks use git: commits and worktrees.

use serde::{Deserialize, Serialize};

/// How the changes of a task are committed with git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// A template; by default the address and the name of the task.
    pub message: Option<String>,
    /// Whether the repository's hooks run; by default they do.
    pub hooks: Option<bool>,
}

impl Commit {
    /// Fills in absent settings.
    pub fn or(self, settings: &Self) -> Self {
        Self { message: self.message.or_else(|| settings.message.clone()), hooks: self.hooks.or(settings.hooks) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worktree {
    #[default]
    No,
    /// In a git worktree with its own branch.
    Own,
}
