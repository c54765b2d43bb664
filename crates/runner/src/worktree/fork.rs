//! The branches of a fork: it continues from the work of another run, so its worktrees start at that run's branches.

use super::{ExistingWorktree, Tree, existing};
use crate::git::{GitError, git};
use crate::root::Root;
use lockgate_engine::id::RunId;

/// The branches that a fork starts from, and the worktrees whose uncommitted changes it does not get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkBranches {
    branches: Vec<(Tree, String)>,
    /// Worktrees of the other run with uncommitted changes.
    pub uncommitted: Vec<ExistingWorktree>,
}

impl ForkBranches {
    /// Creates a branch of the fork at the tip of each branch of the other run, so that later commits there do not affect the
    /// fork. Worktrees are created on demand.
    pub fn create(root: &Root, parent: &RunId, fork: &RunId) -> Result<Self, GitError> {
        let mut branched = Self::default();
        for existing in existing(root, Some(parent))? {
            let Some(tip) = existing.tip.clone() else { continue };
            let part = existing.part().map(|part| format!("-{part}")).unwrap_or_default();
            let tree = Tree { name: format!("{fork}{part}") };
            // The empty old value requires that the ref does not exist.
            if let Err(why) = git(root.dir(), &["update-ref", &reference(&tree), &tip, ""]) {
                branched.remove(root);
                return Err(why);
            }
            branched.branches.push((tree, tip));
            if existing.uncommitted != Some(0) {
                branched.uncommitted.push(existing);
            }
        }
        Ok(branched)
    }

    /// Removes the branches again, for a fork that was not created.
    pub fn remove(&self, root: &Root) {
        for (tree, tip) in &self.branches {
            if let Err(error) = git(root.dir(), &["update-ref", "-d", &reference(tree), tip]) {
                // It contains no commit that the other run does not have.
                tracing::debug!(branch = tree.branch(), %error, "cannot remove the branch of a failed fork");
            }
        }
    }
}

fn reference(tree: &Tree) -> String {
    format!("refs/heads/{}", tree.branch())
}
