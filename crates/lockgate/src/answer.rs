//! Answering holds.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::view::HoldView;
use lockgate_engine::hold::{Hold, HoldState};
use lockgate_engine::run::command::{Actor, Caller, CommandKind};
use lockgate_engine::run::index::HoldRow;
use lockgate_engine::run::{Refusal, ReplacedBy, Run};
use lockgate_engine::time::Timestamp;
use lockgate_runner::driver::{DriveError, submit};
use lockgate_runner::load::load;

/// An answer to a hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The revision that the person saw. Required if the hold shows files.
    pub revision: Option<u32>,
    /// The option, by id, label or number.
    pub option: String,
    /// Feedback for the tasks that run next.
    pub feedback: Option<String>,
}

impl Answer {
    /// Creates an answer that selects an option by id, label or number.
    pub fn new(option: impl Into<String>) -> Self {
        Self { option: option.into(), ..Self::default() }
    }

    /// Sets the revision of the hold that the person saw.
    #[must_use]
    pub fn seen(self, revision: u32) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// Adds feedback.
    #[must_use]
    pub fn feedback(self, feedback: impl Into<String>) -> Self {
        Self { feedback: Some(feedback.into()), ..self }
    }
}

/// The result of answering a hold.
#[derive(Debug)]
pub enum Answered {
    /// The answer is recorded.
    Recorded {
        /// The run, including the answer.
        run: Box<Run>,
        /// The label of the selected option.
        label: String,
    },
    /// The same answer had been recorded before, so nothing changed.
    Before {
        /// Who gave the answer.
        by: Actor,
        /// When it was given.
        at: Timestamp,
    },
}

impl Project {
    /// Answers a hold. If the caller may not decide, the refused attempt is recorded in the history of the run.
    pub async fn answer(&self, row: &HoldRow, answer: Answer, caller: Caller) -> Result<Answered, Error> {
        let (hold, run) = (&row.hold, &row.run);
        let Answer { revision, option: given, feedback } = answer;
        let (option, actor) = (named_option(row, &given), caller.actor().clone());
        let answer = CommandKind::Answer { hold: hold.clone(), revision, option, feedback };
        match submit(&self.runtime, run, caller, answer).await {
            Ok(run) => {
                let label = run.holds.get(hold).and_then(recorded_label).unwrap_or(given);
                Ok(Answered::Recorded { run: Box::new(run), label })
            }
            Err(DriveError::Refused(refusal)) if refusal.concerns_caller() => {
                Err(self.refuse(&actor, run, "answer a hold", Some(hold), refusal).await)
            }
            Err(DriveError::Refused(refusal)) => refused(self, row, revision, &given, refusal).await,
            Err(error) => Err(error.into()),
        }
    }
}

fn recorded_label(hold: &Hold) -> Option<String> {
    let answer = hold.answers.last()?;
    hold.choice(&answer.option).map(|choice| choice.label.clone())
}

/// The options of a hold as lists show them, by id and label. Closed holds have them too.
fn options(row: &HoldRow) -> Vec<(String, String)> {
    HoldView::listed(row.clone()).options.into_iter().map(|option| (option.id, option.label)).collect()
}

/// Resolves an option to its id. A closed hold is no longer in the state of the run, so only its row maps numbers to options.
fn named_option(row: &HoldRow, given: &str) -> String {
    match row.state {
        HoldState::Open | HoldState::Checking => given.to_owned(),
        HoldState::Settled | HoldState::Void => known_option(row, given).unwrap_or_else(|| given.to_owned()),
    }
}

fn known_option(row: &HoldRow, given: &str) -> Option<String> {
    let (options, given) = (options(row), given.trim());
    let by_name = options.iter().find(|(id, label)| id == given || label.to_lowercase() == given.to_lowercase());
    let by_number = || given.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
    by_name.or_else(by_number).map(|(id, _)| id.clone())
}

/// Turns a refusal into a result: either the same answer was given before, or an error that says what to do next.
async fn refused(
    project: &Project,
    row: &HoldRow,
    revision: Option<u32>,
    option: &str,
    refusal: Refusal,
) -> Result<Answered, Error> {
    let hold = &row.hold;
    if refusal.concerns_caller() {
        return Err(refusal.into());
    }
    let state: Option<Run> = load(project.store(), &row.run).await.ok();
    let now = state.as_ref().and_then(|state| state.holds.get(hold));
    let latest = now.map_or(row.revision, |hold| hold.revision);
    if let Some(given) = revision.filter(|given| *given == 0 || *given > latest) {
        let message = format!("hold {hold} has no revision {given}; the latest is {latest}");
        let command = if now.is_some() { "why" } else { "log" };
        return Err(Error::new(Code::RevisionNotFound, message)
            .help(format!("see its current state with `lockgate {command} {}`", row.run)));
    }
    if now.is_none() && known_option(row, option).is_none() {
        let labels: Vec<String> =
            options(row).iter().enumerate().map(|(at, (_, label))| format!("{}. {label}", at + 1)).collect();
        let error =
            Error::new(Code::OptionNotFound, format!("{option:?} is not an option of hold {hold}, which is no longer open"));
        return Err(if labels.is_empty() { error } else { error.help(format!("its options were\n{}", labels.join("\n"))) });
    }
    match refusal {
        Refusal::AlreadyAnswered { by, at } => Ok(Answered::Before { by, at }),
        Refusal::StaleRevision { .. } => Err(stale(refusal, now)),
        Refusal::RevisionRequired { current, .. } => {
            let help = format!("see what it shows with `lockgate why {}`, then answer {hold}@{current}", row.run);
            Err(Error::new(Code::RevisionRequired, refusal.to_string()).help(help))
        }
        Refusal::RunEnded { .. }
        | Refusal::AnswerConflict { .. }
        | Refusal::HoldVoided { now: None | Some(ReplacedBy::Answered(_)), .. }
        | Refusal::AnswerSuperseded { now: None | Some(ReplacedBy::Answered(_)), .. } => {
            Err(Error::from(refusal).help(format!("see what happened to it with `lockgate log {}`", row.run)))
        }
        Refusal::PersonRequired { .. }
        | Refusal::InsideTask { .. }
        | Refusal::TerminalRequired { .. }
        | Refusal::HoldNotFound { .. }
        | Refusal::HoldVoided { .. }
        | Refusal::AnswerSuperseded { .. }
        | Refusal::OptionNotFound { .. }
        | Refusal::FeedbackRequired { .. }
        | Refusal::AnsweredByPerson { .. }
        | Refusal::ChangeNeedsFork
        | Refusal::NotInCurrentPhase { .. }
        | Refusal::PhaseVanished { .. }
        | Refusal::PhaseMoved { .. }
        | Refusal::AnswerUnchecked { .. }
        | Refusal::StepRunning { .. }
        | Refusal::StepDone { .. }
        | Refusal::NotStarted { .. }
        | Refusal::RetryPending { .. }
        | Refusal::ReasonRequired { .. }
        | Refusal::NotAPipeline
        | Refusal::NotReviewed
        | Refusal::ReviewTooLate
        | Refusal::ReviewStands { .. }
        | Refusal::ReviewsSpent { .. }
        | Refusal::NoOverrideReason
        | Refusal::NoGatesNamed
        | Refusal::GateKnown { .. }
        | Refusal::Ended { .. }
        | Refusal::SnapshotOfOtherRun { .. }
        | Refusal::SnapshotOfOtherHistory { .. }
        | Refusal::Team(_) => Err(refusal.into()),
    }
}

/// Adds the changes since the answered revision, and the commands that answer the current one.
fn stale(refusal: Refusal, now: Option<&Hold>) -> Error {
    let error = Error::from(refusal);
    let Some(hold) = now else { return error };
    let error = match hold.notes.as_slice() {
        [] => error,
        notes => error.help(format!("what changed:\n{}", notes.join("\n"))),
    };
    let commands = HoldView::of(hold).commands();
    error.help(format!("answer the current revision with one of\n{}", commands.join("\n")))
}
