//! Leaving runs to the process in the background, and telling what becomes of them.

use crate::error::CommandError;
use crate::open::Project;
use crate::print::{self, HELP, STRONG, styled};
use lockgate::background::{Left, Program};
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Channel;

/// What became of a run that was left to the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Pickup {
    /// A process drives it, or has driven it already.
    Driven,
    /// Nothing drives it, and that was said.
    NotDriven,
}

/// Sees to it that a process drives in the background, now that a run was left to it, and tells what becomes of the run.
pub(crate) async fn ensure_driven(project: &Project, run: &RunId) -> Result<Pickup, CommandError> {
    let program = Program::this().map_err(|error| {
        let message = format!("run {run} is recorded, and no process could be started that drives it: {error}");
        CommandError::new(Code::BackgroundFailed, message).help("drive it with `lockgate worker`")
    })?;
    match project.ensure_driven(run, &program, &project.caller(Channel::Command)).await? {
        Left::DrivenBy(by) => {
            print::note(format_args!("process {} drives run {run} in the background", by.pid));
            Ok(Pickup::Driven)
        }
        Left::Driven => Ok(Pickup::Driven),
        Left::InsideTask(task) => {
            let task = sanitize::line(&task).into_owned();
            print::warn(format_args!(
                "run {run} is recorded, and nothing drives it: a process that task {task} started would end with the task"
            ));
            print::note("start one outside of tasks: `lockgate worker`");
            Ok(Pickup::NotDriven)
        }
        Left::NotYet(log) => {
            print::warn(format_args!("run {run} is recorded, and nothing drives it yet; see {} for why", log.display()));
            Ok(Pickup::NotDriven)
        }
    }
}

/// Tells how to follow a run that was left to the background.
pub(crate) fn print_next_commands(run: &RunId) {
    print::say(format_args!("run {} goes on in the background", styled(STRONG, run)));
    for (what, command) in [("watch it", "watch"), ("wait for it", "wait"), ("see what it waits for", "why")] {
        print::say(format_args!("  {what}: {}", styled(HELP, format_args!("lockgate {command} {run}"))));
    }
}
