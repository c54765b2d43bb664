//! `lockgate answer`: answer a hold.

use super::resume::{self, ResumeOutcome};
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::prompt::{Confirmed, HoldPrompt};
use crate::{background, print, prompt};
use lockgate::answer::{Answer, Answered};
use lockgate::resume::Resume;
use lockgate::sanitize;
use lockgate::select::{self, HoldName};
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::index::HoldRow;
use lockgate_engine::run::{Run, Status};
use lockgate_runner::load::load;
use lockgate_store::DriverInfo;
use serde_json::json;
use std::path::Path;

/// Answers a hold: records the answer and, with --resume, goes on with the run
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The hold and the revision that was seen; the id may be shortened
    #[arg(value_name = "HOLD[@REV]")]
    hold: String,
    /// The option: its label or its number
    option: String,
    /// What is said with it
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Goes on with the run afterwards, unless a process that drives it does
    #[arg(long)]
    resume: bool,
    /// Prints JSON: what was recorded or, with --resume, where the run stands at the end
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        Authority::Person(Decision::about_hold("answer a hold", &self.hold))
    }
}

pub(super) async fn run(root: Option<&Path>, mut arguments: Arguments) -> Result<Exit, CommandError> {
    let named = select::hold_name(&arguments.hold)?;
    let project = crate::open::open(root)?;
    let row = select::hold(project.store(), &named).await?.row;
    let asks = !arguments.json && print::is_interactive();
    let (channel, revision) = match see(&project, &row, &named, &mut arguments, asks).await? {
        SeenRevision::Named(revision) => (Channel::Command, revision),
        SeenRevision::Shown(revision) => (Channel::Prompt, Some(revision)),
        SeenRevision::Declined(exit) => {
            print::say("Nothing was recorded.");
            return Ok(exit);
        }
    };
    let recorded = record(&project, &row, revision, channel, &arguments).await?;
    let (hold, run) = (&row.hold, &row.run);
    if arguments.json && !arguments.resume {
        print::json(&json!({"hold": hold, "run": run, "recorded": recorded}));
    }
    if !arguments.resume {
        return Ok(Exit::Done);
    }
    let now = select::run(project.store(), run.as_str()).await?;
    if let Some(status) = lockgate::resume::ended(&now.row.status) {
        print::note(format_args!("run {run} is {status} already"));
        if arguments.json {
            print::json(&super::status::view_of(&project, run).await?);
        }
        return Ok(if status == Status::Complete { Exit::Done } else { Exit::Aborted });
    }
    continue_run(&project, run, hold, arguments.json).await
}

/// Goes on with the run, unless the process that drives it does: then what was asked is done with the answer.
async fn continue_run(project: &Project, run: &RunId, hold: &HoldId, json: bool) -> Result<Exit, CommandError> {
    // A run that was left to the background stays there: continuing it here would race with the process that the answer has woken.
    let state = load(project.store(), run).await?;
    if state.detached && state.status() == Status::Running {
        background::ensure_driven(project, run).await.map(drop)?;
        if json {
            print::json(&super::status::view_of(project, run).await?);
        }
        return Ok(Exit::Done);
    }
    // A driver that is about to end no longer sees the answer; once it is gone, the run continues here.
    if state.holds.get(hold).is_some_and(|hold| hold.state == HoldState::Checking) {
        project.until_driver_saw(run, state.version).await?;
    }
    let by = match project.store().driver_of(run).await? {
        Some(by) => by,
        None => match resume::continue_run(
            project,
            run,
            Resume::default(),
            resume::ResumeOptions { json, ..resume::ResumeOptions::default() },
        )
        .await?
        {
            ResumeOutcome::Here(exit) => return Ok(exit),
            ResumeOutcome::Elsewhere(by) => by,
        },
    };
    print_driven(run, &by);
    if json {
        print::json(&super::status::view_of(project, run).await?);
    }
    Ok(Exit::Done)
}

/// Tells who goes on with a run, now that it can; one that was left to the background goes on there.
pub(super) async fn print_who_continues(project: &Project, run: &Run) -> Result<(), CommandError> {
    // Also where it seems to be driven: a process that is about to end may have looked for the last time.
    if run.detached && run.status() == Status::Running {
        return background::ensure_driven(project, &run.id).await.map(drop);
    }
    match project.store().driver_of(&run.id).await? {
        Some(by) => print_driven(&run.id, &by),
        None => print::note(format_args!("nothing drives run {0}; go on with `lockgate resume {0}`", run.id)),
    }
    Ok(())
}

/// Tells who drives a run, and so goes on with it.
pub(super) fn print_driven(run: &RunId, by: &DriverInfo) {
    print::note(format_args!("process {} on {} drives run {run} and goes on with it there", by.pid, sanitize::line(&by.host)));
}

/// How what is answered was seen.
enum SeenRevision {
    /// The command line says so, or there is nothing to see but the question.
    Named(Option<u32>),
    /// It was shown here, and the person confirmed.
    Shown(u32),
    /// It was shown here, and the person did not confirm.
    Declined(Exit),
}

/// A bare id says nothing about what was seen. Where files or a git change are shown, somebody at a terminal is shown them first, and asked for
/// feedback where the option takes it.
async fn see(
    project: &Project,
    row: &HoldRow,
    named: &HoldName,
    arguments: &mut Arguments,
    asks: bool,
) -> Result<SeenRevision, CommandError> {
    if named.revision.is_some() || !asks {
        return Ok(SeenRevision::Named(named.revision));
    }
    let state = load(project.store(), &row.run).await?;
    let Some(open) = state.holds.get(&row.hold).filter(|hold| hold.state == HoldState::Open && hold.shows_content()) else {
        return Ok(SeenRevision::Named(None));
    };
    let Some(choice) = open.option(&arguments.option) else { return Ok(SeenRevision::Named(None)) };
    let about = HoldPrompt::of(&state, open, project.store()).await?;
    let question = format!("Answer {:?}?", sanitize::line(&choice.label));
    match prompt::confirm(&question, Some(&about)).await? {
        Confirmed::Yes => {}
        Confirmed::No => return Ok(SeenRevision::Declined(Exit::Waiting)),
        Confirmed::Interrupted => return Ok(SeenRevision::Declined(Exit::Interrupted)),
    }
    if choice.with_feedback && arguments.feedback.is_none() {
        match prompt::feedback(&about).await? {
            Ok(feedback) => arguments.feedback = Some(feedback),
            Err(Confirmed::Interrupted) => return Ok(SeenRevision::Declined(Exit::Interrupted)),
            Err(Confirmed::Yes | Confirmed::No) => return Ok(SeenRevision::Declined(Exit::Waiting)),
        }
    }
    Ok(SeenRevision::Shown(open.revision))
}

/// Records the answer; gives whether it is new.
async fn record(
    project: &Project,
    row: &HoldRow,
    revision: Option<u32>,
    channel: Channel,
    arguments: &Arguments,
) -> Result<bool, CommandError> {
    let hold = &row.hold;
    let answer = Answer { revision, option: arguments.option.clone(), feedback: arguments.feedback.clone() };
    match project.answer(row, answer, project.caller(channel)).await? {
        Answered::Recorded { run, label } => {
            print::say(format_args!("hold {hold} is answered: {:?}", sanitize::line(&label)));
            if !arguments.resume {
                print_who_continues(project, &run).await?;
            }
            Ok(true)
        }
        Answered::Before { by, at } => {
            let by = lockgate::phrases::by(Some(&by));
            print::say(format_args!("hold {hold} has this answer already, by {by} at {at}"));
            Ok(false)
        }
    }
}
