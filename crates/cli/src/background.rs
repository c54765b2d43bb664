//! Handing runs to the background process.

use crate::error::CommandError;
use crate::open::Project;
use crate::print::{self, HELP, STRONG, styled};
use lockgate::background::{Left, Program};
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Channel;

/// The result of handing a run to the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Pickup {
    /// A process drives it or has already finished it.
    Driven,
    /// No process drives it, and the user has been warned.
    NotDriven,
}

/// Ensures that a background process drives a detached run, and reports which one.
pub(crate) async fn ensure_driven(project: &Project, run: &RunId) -> Result<Pickup, CommandError> {
    let program = Program::this().map_err(|error| {
        let message = format!("run {run} is recorded, but its background process could not be started: {error}");
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
                "run {run} is recorded, but no process drives it: a process started by task {task} would end with the task"
            ));
            print::note("start one outside the task with `lockgate worker`");
            Ok(Pickup::NotDriven)
        }
        Left::NotYet(log) => {
            print::warn(format_args!(
                "run {run} is recorded, but no process drives it yet; see {} for the reason",
                log.display()
            ));
            Ok(Pickup::NotDriven)
        }
    }
}

/// Prints the commands that follow a run in the background.
pub(crate) fn print_next_commands(run: &RunId) {
    print::say(format_args!("run {} continues in the background", styled(STRONG, run)));
    for (what, command) in [("watch it", "watch"), ("wait for it", "wait"), ("see what it waits for", "why")] {
        print::say(format_args!("  {what}: {}", styled(HELP, format_args!("lockgate {command} {run}"))));
    }
}
