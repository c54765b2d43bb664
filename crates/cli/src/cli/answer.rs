//! `lockgate answer`: answer a hold.

use super::after_decision::{Continues, ResumeFlags, ResumeMode, continue_run};
use super::help::examples;
use super::inbox;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::prompt::HoldPrompt;
use crate::{complete, print, prompt, signals};
use clap_complete::ArgValueCompleter;
use lockgate::answer::{Answer, Answered};
use lockgate::code::Code;
use lockgate::select::{self, HoldName};
use lockgate::view::HoldView;
use lockgate::{human_time, sanitize};
use lockgate_engine::hold::HoldState;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::index::HoldRow;
use lockgate_runner::driver::Halt;
use lockgate_runner::load::load;
use serde_json::json;
use std::path::Path;

const ANSWER: &str = "answer a hold";

/// Answer a hold
///
/// The answer is recorded, and the run continues: in the process that drives it, else here at a terminal, else in the background.
/// Without an option, Lockgate shows the hold and asks you.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate answer",
    "lockgate answer k3xw9q2a@1 Continue",
    "lockgate answer k3x Revise --feedback \"keep the old API\"",
]))]
pub(super) struct Arguments {
    /// Hold: an id or its start, and the revision that you saw [default: the only open hold]
    #[arg(value_name = "HOLD[@REV]", add = ArgValueCompleter::new(complete::holds))]
    hold: Option<String>,
    /// Label or number of an option
    #[arg(value_name = "OPTION", add = ArgValueCompleter::new(complete::options))]
    option: Option<String>,
    /// Feedback to record with the answer
    #[arg(long, value_name = "TEXT", requires = "option")]
    feedback: Option<String>,
    #[command(flatten)]
    resume: ResumeFlags,
    /// Print the recorded answer as JSON, without prompting; with --foreground, print the final state
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        Authority::Person(match &self.hold {
            Some(hold) => Decision::about_hold(ANSWER, hold),
            None => Decision::about_project(ANSWER),
        })
    }
}

pub(super) async fn run(root: Option<&Path>, mut arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let asks = !arguments.json && print::is_interactive();
    let Some(named) = named_hold(&project, arguments.hold.as_deref(), asks).await? else {
        return inbox::answer_all(&project).await;
    };
    let found = match select::hold(project.store(), &named).await {
        Err(error) if error.code() == Code::HoldNotFound && arguments.option.is_none() => {
            return Err(hold_left_out(&project, error, arguments.hold.as_deref().unwrap_or_default()).await);
        }
        found => found?,
    };
    let row = found.row;
    let mode = arguments.resume.mode(arguments.json);
    let Some(option) = arguments.option.take() else {
        return match asks {
            true => ask(&project, &row, mode).await,
            false => Err(option_missing(&row)),
        };
    };
    let mut answer = Answer { revision: named.revision, option, feedback: arguments.feedback.take() };
    let channel = match see(&project, &row, &mut answer, asks).await? {
        Seen::AsNamed => Channel::Command,
        Seen::Here => Channel::Prompt,
        Seen::Declined(exit) => {
            print::say("Nothing was recorded.");
            return Ok(exit);
        }
    };
    let recorded = record(&project, &row, answer, channel).await?;
    let continues = continue_run(&project, &row.run, mode).await?;
    if arguments.json && !matches!(continues, Continues::Here(_)) {
        print::json(&json!({"hold": row.hold, "run": row.run, "recorded": recorded, "continues": continues}));
    }
    Ok(continues.exit())
}

/// The hold that the command line names, or the only one that is open. None if a person at the terminal has to pick one.
async fn named_hold(project: &Project, given: Option<&str>, asks: bool) -> Result<Option<HoldName>, CommandError> {
    if let Some(given) = given {
        return Ok(Some(select::hold_name(given)?));
    }
    let open = project.inbox(LISTED, None).await?.lines;
    match open.as_slice() {
        [] => Err(CommandError::new(Code::HoldNotFound, "no hold waits for an answer").help("see the runs with `lockgate runs`")),
        [only] => Ok(Some(HoldName { id: only.hold.id.clone(), revision: None })),
        _ if asks => Ok(None),
        several => {
            let line = |line: &lockgate::lists::HoldLine| {
                let question = lockgate::phrases::first_line(&line.hold.prompt);
                sanitize::line(&format!("{}@{}  {}  {question}", line.hold.id, line.hold.revision, line.workflow)).into_owned()
            };
            let listed: Vec<String> = several.iter().map(line).collect();
            Err(CommandError::new(Code::AmbiguousName, "several holds wait for an answer")
                .help(format!("name one of them:\n{}", listed.join("\n"))))
        }
    }
}

/// Adds the full command to an error if the person named an option of the only open hold, and no hold.
async fn hold_left_out(project: &Project, error: lockgate::Error, given: &str) -> CommandError {
    let error = CommandError::from(error);
    let Ok(open) = project.inbox(2, None).await else { return error };
    let [only] = open.lines.as_slice() else { return error };
    let is_given = |label: &str| label.to_lowercase() == given.to_lowercase();
    match only.hold.options.iter().position(|option| is_given(&option.label) || is_given(&option.id)) {
        Some(at) => error.help(format!("to answer the only open hold: {}", only.hold.commands()[at])),
        None => error,
    }
}

/// How many open holds an error lists.
const LISTED: usize = 10;

fn option_missing(row: &HoldRow) -> CommandError {
    let commands = HoldView::listed(row.clone()).commands();
    let error = CommandError::new(Code::OptionNotFound, format!("the answer to hold {} is missing", row.hold));
    match commands.is_empty() {
        true => error,
        false => error.help(format!("answer it with one of\n{}", commands.join("\n"))),
    }
}

/// Shows a hold at the terminal, asks for the answer, and continues the run.
async fn ask(project: &Project, row: &HoldRow, mode: ResumeMode) -> Result<Exit, CommandError> {
    let halt = Halt::default();
    signals::listen(&halt)?;
    match inbox::ask(project, row, &halt).await? {
        inbox::Asked::Answered => Ok(continue_run(project, &row.run, mode).await?.exit()),
        inbox::Asked::NotAnswered => Ok(Exit::Waiting),
        inbox::Asked::Stopped(exit) => Ok(exit),
    }
}

/// Whether the person has seen the content that they answer.
enum Seen {
    /// They named its revision, or the hold shows nothing besides the question.
    AsNamed,
    /// It was shown here, and the person confirmed the answer.
    Here,
    /// It was shown here, and the person declined.
    Declined(Exit),
}

/// An id without a revision does not prove that the caller has seen the content. If the hold shows files or a git change, a person at
/// a terminal sees them first and confirms the answer.
async fn see(project: &Project, row: &HoldRow, answer: &mut Answer, asks: bool) -> Result<Seen, CommandError> {
    if answer.revision.is_some() || !asks {
        return Ok(Seen::AsNamed);
    }
    let state = load(project.store(), &row.run).await?;
    let Some(open) = state.holds.get(&row.hold).filter(|hold| hold.state == HoldState::Open && hold.shows_content()) else {
        return Ok(Seen::AsNamed);
    };
    let Some(choice) = open.option(&answer.option) else { return Ok(Seen::AsNamed) };
    let about = HoldPrompt::of(&state, open, project.store()).await?;
    let question = format!("Answer {:?}?", sanitize::line(&choice.label));
    if let Some(exit) = prompt::confirm(&question, Some(&about)).await?.declined() {
        return Ok(Seen::Declined(exit));
    }
    if choice.with_feedback && answer.feedback.is_none() {
        match prompt::feedback(&about).await? {
            Ok(feedback) => answer.feedback = Some(feedback),
            Err(left) => return Ok(Seen::Declined(left.declined().unwrap_or(Exit::Waiting))),
        }
    }
    answer.revision = Some(open.revision);
    Ok(Seen::Here)
}

/// Records an answer, and returns whether it is new.
async fn record(project: &Project, row: &HoldRow, answer: Answer, channel: Channel) -> Result<bool, CommandError> {
    let hold = &row.hold;
    match project.answer(row, answer, project.caller(channel)).await? {
        Answered::Recorded { label, .. } => {
            print::say(format_args!("hold {hold} is answered: {:?}", sanitize::line(&label)));
            Ok(true)
        }
        Answered::Before { by, at } => {
            let by = lockgate::phrases::by(Some(&by));
            print::say(format_args!("hold {hold} already has this answer, by {by} at {}", human_time::local(at)));
            Ok(false)
        }
    }
}
