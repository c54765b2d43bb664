//! `lockgate answer`: answer a hold.

use super::resume;
use crate::exit::Exit;
use crate::open::Project;
use crate::prompt::Confirmed;
use crate::select::{self, HoldName};
use crate::trouble::Trouble;
use crate::{neutral, print, prompt, view};
use lockgate_engine::hold::{Hold, HoldState};
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::command::{Body, Way};
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::driver::{DriveError, submit};
use lockgate_runner::load::load;
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
    /// Goes on with the run afterwards
    #[arg(long)]
    resume: bool,
    /// Prints JSON: what was recorded or, with --resume, where the run stands at the end
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let named = select::hold_name(&arguments.hold)?;
    let project = Project::open(root)?;
    let found = select::hold(project.store(), &named).await?;
    let (hold, run) = (found.row.hold, found.row.run);
    let asks = !arguments.json && print::somebody_is_there();
    let seen = see(&project, &run, &hold, &named, &arguments.option, asks).await?;
    let (way, revision) = match seen {
        Seen::Named(revision) => (Way::Command, revision),
        Seen::Shown(revision) => (Way::Prompt, Some(revision)),
        Seen::Declined(exit) => {
            print::say("Nothing was recorded.");
            return Ok(exit);
        }
    };
    let recorded = record(&project, &run, &hold, revision, way, &arguments).await?;
    if arguments.json && !arguments.resume {
        print::json(&json!({"hold": hold, "run": run, "recorded": recorded}));
    }
    if !arguments.resume {
        return Ok(Exit::Done);
    }
    let now = select::run(project.store(), run.as_str()).await?;
    if resume::refuse_ended(&run, &now.row.status).is_err() {
        print::note(format_args!("run {run} is {} already", now.row.status));
        if arguments.json {
            print::json(&super::status::view_of(&project, &run).await?);
        }
        return Ok(if now.row.status == "complete" { Exit::Done } else { Exit::Aborted });
    }
    resume::go_on(&project, &run, false, Vec::new(), arguments.json).await
}

/// How what is answered was seen.
enum Seen {
    /// The command line says so, or there is nothing to see but the question.
    Named(Option<u32>),
    /// It was shown here, and the person confirmed.
    Shown(u32),
    /// It was shown here, and the person did not confirm.
    Declined(Exit),
}

/// A bare id says nothing about what was seen. Where files are shown, somebody at a terminal is shown them first.
async fn see(project: &Project, run: &RunId, hold: &HoldId, named: &HoldName, option: &str, asks: bool) -> Result<Seen, Trouble> {
    if named.revision.is_some() || !asks {
        return Ok(Seen::Named(named.revision));
    }
    let state = load(project.store(), run).await?;
    let Some(open) = state.holds.get(hold).filter(|hold| hold.state == HoldState::Open && !hold.files.is_empty()) else {
        return Ok(Seen::Named(None));
    };
    let Some(choice) = open.option(option) else { return Ok(Seen::Named(None)) };
    print::talk(&prompt::shown(&state, open, project.store()).await?);
    let question = format!("Answer {:?}?", neutral::line(&choice.label));
    Ok(match prompt::confirm(&question).await {
        Confirmed::Yes => Seen::Shown(open.revision),
        Confirmed::No => Seen::Declined(Exit::Waiting),
        Confirmed::Interrupted => Seen::Declined(Exit::Interrupted),
    })
}

/// Records the answer; gives whether it is new.
async fn record(
    project: &Project,
    run: &RunId,
    hold: &HoldId,
    revision: Option<u32>,
    way: Way,
    arguments: &Arguments,
) -> Result<bool, Trouble> {
    let actor = project.actor(way);
    let (option, feedback) = (arguments.option.clone(), arguments.feedback.clone());
    let body = Body::Answer { hold: hold.clone(), revision, option, feedback };
    match submit(&project.world, run, actor.clone(), body, project.require_terminal()).await {
        Ok(state) => {
            let label = state.holds.get(hold).and_then(recorded_label).unwrap_or_else(|| arguments.option.clone());
            print::say(format_args!("hold {hold} is answered: {:?}", neutral::line(&label)));
            if !arguments.resume && project.store().driver_of(run).await?.is_none() {
                print::note(format_args!("nothing drives run {run}; go on with `lockgate resume {run}`"));
            }
            Ok(true)
        }
        Err(DriveError::Refused(Refusal::AlreadyAnswered { by, at })) => {
            let by = crate::progress::by(Some(&by));
            print::say(format_args!("hold {hold} has this answer already, by {by} at {at}"));
            Ok(false)
        }
        Err(DriveError::Refused(refusal)) => {
            project.record_refusal(&actor, run, "answer a hold", Some(hold), &refusal).await;
            Err(explained(project, run, hold, refusal).await)
        }
        Err(error) => Err(error.into()),
    }
}

fn recorded_label(hold: &Hold) -> Option<String> {
    let answer = hold.answers.last()?;
    hold.options.iter().find(|choice| choice.id == answer.option).map(|choice| choice.label.clone())
}

/// A refusal, with what changed and how to answer now where the hold was opened again.
async fn explained(project: &Project, run: &RunId, hold: &HoldId, refusal: Refusal) -> Trouble {
    let reopened = match &refusal {
        Refusal::StaleRevision { .. } => {
            load(project.store(), run).await.ok().and_then(|state: Run| state.holds.get(hold).cloned())
        }
        Refusal::NotAPerson { .. }
        | Refusal::InsideTask { .. }
        | Refusal::NoTerminal { .. }
        | Refusal::NoSuchHold { .. }
        | Refusal::RunEnded { .. }
        | Refusal::AlreadyAnswered { .. }
        | Refusal::AnswerConflicts { .. }
        | Refusal::RevisionNeeded { .. }
        | Refusal::NoSuchOption { .. }
        | Refusal::Ended { .. } => None,
    };
    let mut trouble = Trouble::from(refusal);
    if let Some(hold) = reopened {
        if !hold.notes.is_empty() {
            trouble = trouble.help(format!("what changed:\n{}", hold.notes.join("\n")));
        }
        let commands = view::HoldView::of(&hold).commands();
        trouble = trouble.help(format!("answer what is there now with one of\n{}", commands.join("\n")));
    }
    trouble
}
