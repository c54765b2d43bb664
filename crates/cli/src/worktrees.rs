//! What is reported about the worktrees of a run that has ended.

use crate::print::{self, HELP, styled};
use lockgate::sanitize;
use lockgate::view::worktree_command;
use lockgate::worktrees::settle;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_runner::root::Root;

/// Settles the worktrees of a run that has ended, and tells what stays and what can be done with it.
pub(crate) fn report(root: &Root, run: &Run) {
    let stays = settle(root, run).unwrap_or_else(|why| {
        print::warn(why.message());
        Vec::new()
    });
    for worktree in &stays {
        print::say(format_args!("  worktree {}", worktree.line()));
        if run.end == Some(End::Complete) {
            let merge = worktree_command("merge", run.id.as_str(), worktree.task.as_deref());
            print::say(format_args!("  take it over: {}", styled(HELP, sanitize::line(&merge))));
        }
    }
}
