//! Reports the worktrees of an ended run.

use crate::print::{self, HELP, styled};
use lockgate::sanitize;
use lockgate::view::worktree_command;
use lockgate::worktrees::settle;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_runner::root::Root;

/// Settles the worktrees of an ended run, and reports those that are kept and how to merge them.
pub(crate) fn report(root: &Root, run: &Run) {
    let stays = settle(root, run).unwrap_or_else(|why| {
        print::warn(why.message());
        Vec::new()
    });
    for worktree in &stays {
        print::say(format_args!("  worktree {}", worktree.line()));
        if run.end == Some(End::Complete) {
            let merge = worktree_command("merge", run.id.as_str(), worktree.task.as_deref());
            print::say(format_args!("  merge it: {}", styled(HELP, sanitize::line(&merge))));
        }
    }
}
