//! Which callers may use which command: everyone, processes outside tasks, or a person only.
//!
//! The table is `Command::authority` in `cli`, and it is checked before a command does anything. The engine checks again whenever a
//! run is changed.

use crate::error::CommandError;
use crate::open::{Project, place};
use lockgate::code::Code;
use lockgate::{Error, select};
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::command::{Actor, Caller, Channel};
use lockgate_engine::run::refusal::Refusal;
use lockgate_runner::config::Config;
use lockgate_runner::identity;
use std::path::Path;

/// Who may use a command.
pub(crate) enum Authority<'a> {
    /// Everyone, including agents in tasks: the command reads, checks, or does something that a task may do.
    Anyone,
    /// Processes outside tasks, with or without a terminal. Timers and services have none.
    OutsideTasks(Decision<'a>),
    /// A process that Lockgate starts itself. It has the authority of the process that started Lockgate.
    Background(Decision<'a>),
    /// A person: outside tasks, and at a terminal unless the settings say otherwise.
    Person(Decision<'a>),
}

/// The decision that a command makes.
pub(crate) struct Decision<'a> {
    /// A phrase that completes "may not …".
    what: &'static str,
    about: Subject<'a>,
    help: Option<&'static str>,
}

/// The subject of a decision, as named on the command line.
enum Subject<'a> {
    Run(&'a str),
    Hold(&'a str),
    Project,
}

impl<'a> Decision<'a> {
    pub(crate) fn about_run(what: &'static str, run: &'a str) -> Self {
        Self { what, about: Subject::Run(run), help: None }
    }

    pub(crate) fn about_hold(what: &'static str, hold: &'a str) -> Self {
        Self { what, about: Subject::Hold(hold), help: None }
    }

    /// A decision that does not concern an existing run.
    pub(crate) fn about_project(what: &'static str) -> Self {
        Self { what, about: Subject::Project, help: None }
    }

    /// Adds the help that is shown if the command is refused.
    pub(crate) fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }
}

/// Refuses a command to a caller who may not use it. The attempt is recorded in the run it concerns, or else in the run that the
/// caller belongs to.
pub(crate) async fn authorize(root: Option<&Path>, authority: Authority<'_>) -> Result<(), CommandError> {
    let (decision, actor, refused) = match authority {
        Authority::Anyone => return Ok(()),
        Authority::OutsideTasks(decision) => {
            let actor = identity::cli_actor(&place(root)?, Channel::Command);
            let refused = actor.outside_tasks(decision.what);
            (decision, actor, refused)
        }
        Authority::Background(decision) => {
            let actor = identity::launcher_actor(&place(root)?, Channel::Command);
            let refused = actor.outside_tasks(decision.what);
            (decision, actor, refused)
        }
        Authority::Person(decision) => {
            let place = place(root)?;
            let actor = identity::cli_actor(&place, Channel::Command);
            let rule = Config::read(&place)?.people.terminal_rule();
            let refused = Caller::new(actor.clone(), rule).may_decide(decision.what);
            (decision, actor, refused)
        }
    };
    let Err(refusal) = refused else { return Ok(()) };
    let error = refuse(root, &decision, &actor, refusal).await;
    Err(match decision.help {
        Some(help) => error.help(help),
        None => error,
    })
}

async fn refuse(root: Option<&Path>, decision: &Decision<'_>, actor: &Actor, refusal: Refusal) -> CommandError {
    let unrecorded = |refusal: Refusal, error: &Error| {
        CommandError::from(refusal).help(format!("this attempt could not be recorded: {}", error.message()))
    };
    let project = match crate::open::open(root) {
        Ok(project) => project,
        // Without a project, no history exists that could record the attempt.
        Err(error) if matches!(error.error().code(), Code::ProjectNotFound | Code::DatabaseNotFound) => return refusal.into(),
        Err(error) => return unrecorded(refusal, error.error()),
    };
    match subject(&project, &decision.about).await {
        Ok(Some((run, hold))) => project.refuse(actor, &run, decision.what, hold.as_ref(), refusal).await.into(),
        Ok(None) => project.refuse_about_project(actor, decision.what, refusal).await.into(),
        Err(error) => unrecorded(refusal, &error),
    }
}

/// The run and hold that an attempt concerns.
async fn subject(project: &Project, about: &Subject<'_>) -> Result<Option<(RunId, Option<HoldId>)>, Error> {
    let named = match about {
        Subject::Run(named) => select::run_or_ended(project.store(), named).await.map(|found| Some((found.row.run, None))),
        Subject::Hold(named) => match select::hold_name(named) {
            Ok(name) => select::hold(project.store(), &name).await.map(|found| Some((found.row.run, Some(found.row.hold)))),
            Err(error) => Err(error),
        },
        Subject::Project => Ok(None),
    };
    match named {
        // An unknown or ambiguous name is attributed to the project.
        Err(error) if is_about_the_name(&error) => Ok(None),
        named => named,
    }
}

/// Whether only the given name is wrong.
fn is_about_the_name(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::RunNotFound | Code::HoldNotFound | Code::RevisionNotFound | Code::AmbiguousName | Code::RunEnded | Code::HoldClosed
    )
}
