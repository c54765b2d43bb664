//! How tasks use git: commits and worktrees.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape};
use crate::spec::syntax::Content;
use crate::spec::workflow::{Commit, Worktree};
use crate::template::Roots;

pub(super) static COMMIT: Format = Format {
    name: "commit",
    what: "`commit`",
    known: &[
        Key::optional("message", Shape::Filled, "The commit message, a template; by default the task's address and name."),
        Key::optional("hooks", Shape::Boolean, "Whether to run the repository's hooks.").default("true"),
    ],
    later: &[],
    rule: None,
};

pub(super) const COMMIT_SHAPES: [Shape; 2] = [Shape::Boolean, Shape::Map(&COMMIT)];

impl Checker<'_, '_> {
    /// Whether something works in its own git worktree.
    pub(super) fn worktree(&mut self, fields: &Fields<'_, '_>) -> Worktree {
        match fields.get("worktree").and_then(|node| self.boolean(node, "`worktree`")) {
            Some(true) => Worktree::Own,
            Some(false) | None => Worktree::No,
        }
    }

    /// Reads how the changes of a task are committed.
    pub(super) fn commit(&mut self, fields: &Fields<'_, '_>) -> Option<Commit> {
        let node = fields.get("commit")?;
        let Content::Map(_) = &*node.content else {
            return self.boolean(node, "`commit`").filter(|commits| *commits).map(|_| Commit::default());
        };
        let fields = self.fields(node, &COMMIT)?;
        let message = fields.get("message").and_then(|node| {
            self.filled(node, "`message`")?;
            self.template(node, "`message`", Roots::Task)
        });
        Some(Commit { message, hooks: fields.get("hooks").and_then(|node| self.boolean(node, "`hooks`")) })
    }
}
