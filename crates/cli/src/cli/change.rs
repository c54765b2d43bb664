//! `lockgate change`: change an answer that no person gave.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::prompt::{self, Confirmed};
use crate::{background, pipeline, print};
use lockgate::change::{CHANGE_ANSWER, Changed, ChangedView, PlannedChange};
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate::select;
use lockgate_engine::id::RunId;
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::{End, Run};
use std::path::Path;

/// Change an answer that no person gave
///
/// You can change answers that came from a policy, a default or a deadline. Lockgate reruns everything that depends on the answer.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate change k3xw9q2a Revise",
    "lockgate change k3xw9q2a \"Use PostgreSQL\" --yes",
]))]
pub(super) struct Arguments {
    /// Hold: an id or its start
    #[arg(value_name = "HOLD")]
    hold: String,
    /// New answer: the label, number or id of an option
    #[arg(value_name = "OPTION")]
    option: String,
    /// Feedback to record with the answer
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Run whose answer you change, if a fork inherited it; the run that asked otherwise
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print what runs again as JSON; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        Authority::Person(Decision::about_hold(CHANGE_ANSWER, &self.hold))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let named = select::hold_name(&arguments.hold)?;
    let project = crate::open::open(root)?;
    let planned = project.plan_change(&named, arguments.run.as_deref(), &arguments.option).await?;
    let confirmed = if arguments.yes { Confirmed::Yes } else { confirm(&planned).await? };
    if let Some(exit) = confirmed.declined() {
        print::say("Nothing was changed.");
        return Ok(exit);
    }
    let changed = project.change_answer(&planned, arguments.feedback, project.caller(Channel::Command)).await?;
    let run = match &changed {
        Changed::Recorded(now) => {
            report_recorded(&project, &planned, now).await?;
            &now.id
        }
        Changed::Forked { fork, uncommitted, moved_aside } => {
            report_forked(&planned, &fork.id, uncommitted);
            pipeline::print_put_aside(moved_aside);
            &fork.id
        }
    };
    if arguments.json {
        print::json(&ChangedView::of(&planned.hold, run, &planned.consequences));
    }
    Ok(Exit::Done)
}

async fn report_recorded(project: &Project, planned: &PlannedChange, now: &Run) -> Result<(), CommandError> {
    let run = &now.id;
    print::say(format_args!("the answer to hold {} is changed", planned.hold));
    if planned.consequences.aborts {
        print::say(format_args!("run {run} is aborted"));
    } else if now.detached {
        let _ = background::ensure_driven(project, run).await?;
    } else if project.store().driver_of(run).await?.is_none() && now.end.is_none() {
        print::say(format_args!("  continue: lockgate resume {run}"));
    }
    Ok(())
}

fn report_forked(planned: &PlannedChange, fork: &RunId, uncommitted: &[String]) {
    let parent = &planned.run.id;
    for path in uncommitted {
        print::note(format_args!("{} has uncommitted changes, which run {fork} does not include", sanitize::line(path)));
    }
    if planned.consequences.aborts {
        print::say(format_args!("run {parent} is complete and stays unchanged; the changed answer aborts its fork {fork}"));
    } else {
        print::say(format_args!(
            "run {parent} is complete and stays unchanged; its fork {fork} continues with the changed answer"
        ));
        print::say(format_args!("  continue: lockgate resume {fork}"));
    }
}

/// Shows the consequences and asks for confirmation.
async fn confirm(planned: &PlannedChange) -> Result<Confirmed, CommandError> {
    let (state, found) = (&planned.run, &planned.consequences);
    match &found.phase {
        None if found.aborts && state.end == Some(End::Complete) => {
            print::say(format_args!("run {} stays unchanged; a fork of it is created and aborted, and nothing runs", state.id));
        }
        None if found.aborts => print::say(format_args!("run {} is aborted", state.id)),
        None => print::say("no task that has started depends on it"),
        Some(phase) => {
            let phase = sanitize::line(phase.as_str()).into_owned();
            print::say(format_args!("run {} returns to phase {phase} and reruns:", state.id));
            for task in &found.tasks {
                print::say(format_args!("  {phase}/{}", sanitize::line(task.as_str())));
            }
            for phase in &found.phases {
                print::say(format_args!("  all of phase {}", sanitize::line(phase.as_str())));
            }
        }
    }
    for phase in &found.skipped {
        print::say(format_args!("phase {} is skipped", sanitize::line(phase.as_str())));
    }
    if found.answers > 0 {
        let verb = if found.answers == 1 { "is" } else { "are" };
        print::say(format_args!("{} {verb} voided", counted(found.answers, "later answer")));
    }
    if !print::is_interactive() {
        return Err(CommandError::new(Code::TerminalRequired, "changing an answer needs confirmation at a terminal")
            .help("review the changes above, then add --yes"));
    }
    prompt::confirm("Change it?", None).await
}
