//! The error type of the library: a stable code for programs, a message, and suggestions for what to do next.

use crate::code::Code;
use crate::view;
use crate::view::{lockgate, resume_command};
use lockgate_engine::id::RunId;
use lockgate_engine::run::hash_chain::CommitError;
use lockgate_engine::run::history::HistoryError;
use lockgate_engine::run::team::TeamRefusal;
use lockgate_engine::run::{Refusal, ReplacedBy};
use lockgate_runner::config::ConfigError;
use lockgate_runner::driver::DriveError;
use lockgate_runner::load::LoadError;
use lockgate_runner::projection::StateFileError;
use lockgate_runner::root::RootError;
use lockgate_runner::start::WorkflowFileError;
use lockgate_store::StoreError;

/// An error with a stable code, a message and suggestions.
///
/// [`Display`](std::fmt::Display) prints the message alone; the suggestions are in [`Error::suggestions`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    help: Vec<String>,
}

impl Error {
    /// Creates an error without suggestions.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: Vec::new() }
    }

    /// Converts a refusal and adds the command to run next, with the id of the run filled in.
    pub fn refused_in(run: &RunId, refusal: Refusal) -> Self {
        let run = run.as_str();
        let next = if matches!(refusal, Refusal::PhaseVanished { .. } | Refusal::PhaseMoved { .. }) {
            Some(("keep the original definition", resume_command(run, ["--changed", "keep"])))
        } else if matches!(refusal, Refusal::AnswerUnchecked { .. }) {
            Some(("apply the answer first", resume_command(run, ["--changed", "keep"])))
        } else if matches!(refusal, Refusal::NotReviewed | Refusal::ReviewsSpent { .. }) {
            Some(("override the review", format!("{} \"…\"", lockgate(["pipeline", "review", run, "--override"]))))
        } else if matches!(refusal, Refusal::ReviewStands { .. }) {
            Some(("continue the run", resume_command(run, [])))
        } else if let Refusal::NotStarted { address } = &refusal {
            Some(("skip it", format!("{} --reason \"…\"", lockgate(["skip", run, address]))))
        } else if matches!(refusal, Refusal::NotAPipeline | Refusal::NotInCurrentPhase { .. }) {
            Some(("see the state of the run", lockgate(["status", run])))
        } else if matches!(refusal, Refusal::StepRunning { .. }) {
            Some(("cancel the run", lockgate(["cancel", run])))
        } else {
            None
        };
        let converted = Self::from(refusal);
        match next {
            Some((what, command)) => converted.help(format!("{what} with `{command}`")),
            None => converted,
        }
    }

    /// Adds a suggestion; each one is printed after `help:`.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Replaces the code, and prefixes the message with a position in a file.
    #[must_use]
    pub fn placed(self, code: Code, position: &str) -> Self {
        Self { code, message: format!("{position}: {}", self.message), ..self }
    }

    /// The message, without suggestions.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The stable code, which `lockgate explain` describes.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Suggestions for what to do next.
    pub fn suggestions(&self) -> &[String] {
        &self.help
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NotFound(_) => Code::DatabaseNotFound,
            StoreError::NoRun(_) => Code::RunNotFound,
            StoreError::Full(_) => Code::DiskFull,
            StoreError::ReadOnly(_) => Code::DatabaseReadOnly,
            StoreError::Locked(_) => Code::DatabaseLocked,
            StoreError::Corrupt(_) => Code::DatabaseCorrupt,
            StoreError::CommitsMissing { .. } => Code::CommitsMissing,
            StoreError::Gone(_) => Code::RootMoved,
            StoreError::Newer { .. } => Code::NewerFormat,
            StoreError::OutcomeUnknown(_) => Code::OutcomeUnknown,
            StoreError::Misused(_) => Code::InternalError,
            StoreError::Io(_) => Code::DatabaseError,
        };
        let converted = Self::new(code, error.to_string());
        match error {
            StoreError::CommitsMissing { .. } => converted
                .help("restore a backup with `lockgate db restore FILE --force`")
                .help("or accept the loss with `lockgate db verify --accept-missing`: work in the missing commits runs again"),
            StoreError::Gone(_) => converted.help("continue with `lockgate resume` where the project is now"),
            StoreError::NotFound(_)
            | StoreError::NoRun(_)
            | StoreError::Full(_)
            | StoreError::ReadOnly(_)
            | StoreError::Locked(_)
            | StoreError::Corrupt(_)
            | StoreError::Newer { .. }
            | StoreError::OutcomeUnknown(_)
            | StoreError::Misused(_)
            | StoreError::Io(_) => converted,
        }
    }
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        HistoryError::from(error).into()
    }
}

impl From<HistoryError> for Error {
    fn from(error: HistoryError) -> Self {
        Self::new(history_code(&error), error.to_string())
    }
}

fn history_code(error: &HistoryError) -> Code {
    match error {
        HistoryError::Commit(CommitError::Newer { .. }) => Code::NewerFormat,
        HistoryError::Commit(CommitError::Damaged { .. })
        | HistoryError::ApplyError(_)
        | HistoryError::NoBeginning
        | HistoryError::DefinitionNeeded(_)
        | HistoryError::StateNeeded(_)
        | HistoryError::Unreadable { .. } => Code::HistoryCorrupt,
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let code = match &error {
            LoadError::Store(error) => return error.clone().into(),
            LoadError::History { error, .. } => history_code(error),
            LoadError::StoredValueMissing { .. } => Code::StoredValueMissing,
        };
        Self::new(code, error.to_string())
    }
}

impl From<RootError> for Error {
    fn from(error: RootError) -> Self {
        let code = match &error {
            RootError::RootNotFound { .. } => Code::RootNotFound,
            RootError::PathOccupied { .. } => Code::PathOccupied,
            RootError::Unwritable { .. } => Code::Unwritable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let converted = Self::new(Code::InvalidSettings, error.to_string());
        match error.help {
            Some(help) => converted.help(help),
            None => converted,
        }
    }
}

impl From<WorkflowFileError> for Error {
    fn from(error: WorkflowFileError) -> Self {
        let code = match &error {
            WorkflowFileError::Unreadable { .. } => Code::UnreadableFile,
            WorkflowFileError::Folder { .. } => Code::NotAFile,
            WorkflowFileError::AllDone { .. } => {
                return Self::new(Code::InvalidUsage, error.to_string());
            }
            WorkflowFileError::TooLarge { .. } => Code::FileTooLarge,
            WorkflowFileError::NotText { .. } => Code::NotText,
        };
        Self::new(code, error.to_string())
    }
}

impl From<StateFileError> for Error {
    fn from(error: StateFileError) -> Self {
        match error {
            StateFileError::Store(error) => error.into(),
            StateFileError::BadPath { .. } | StateFileError::Io { .. } | StateFileError::Transition { .. } => {
                Self::new(Code::StateFileError, error.to_string())
            }
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::DrivenBy { ref run, .. } => {
                let help = format!(
                    "that process continues the run; see its state with `lockgate status {run}`, and answer its open holds with `lockgate inbox`"
                );
                Self::new(Code::DrivenElsewhere, error.to_string()).help(help)
            }
            DriveError::TakenOver(_) => Self::new(Code::TakenOver, error.to_string()),
            DriveError::LeaseLost(ref run) => {
                let help = format!("when the database answers again, continue with `lockgate resume {run}`");
                Self::new(Code::LeaseLost, error.to_string()).help(help)
            }
            DriveError::Panicked { .. } => Self::new(Code::InternalError, error.to_string()),
            DriveError::Refused(refusal) => refusal.into(),
            DriveError::Load(error) => error.into(),
            DriveError::Store(error) => error.into(),
            DriveError::RunExists(ref run) => Self::new(Code::RunExists, error.to_string())
                .help(format!("see its state with `lockgate status {run}`, and continue it with `lockgate resume {run}`")),
            DriveError::Orphans { .. } => Self::new(Code::OrphansRunning, error.to_string()),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::PersonRequired { .. } => {
                Self::new(Code::PersonRequired, message).help("a person must do this, from a terminal outside any task")
            }
            Refusal::InsideTask { .. } => {
                Self::new(Code::InsideTask, message).help("run the command yourself, from a terminal outside any task")
            }
            Refusal::TerminalRequired { .. } => {
                Self::new(Code::TerminalRequired, message).help("run the command yourself, from a terminal")
            }
            Refusal::HoldNotFound { .. } => {
                Self::new(Code::HoldNotFound, message).help("list the open holds with `lockgate inbox`")
            }
            Refusal::RunEnded { .. } => Self::new(Code::HoldClosed, message),
            Refusal::HoldVoided { now, .. } | Refusal::AnswerSuperseded { now, .. } => {
                let converted = Self::new(Code::HoldClosed, message);
                match now {
                    Some(ReplacedBy::Open(_)) => {
                        converted.help("`lockgate inbox` shows that hold and the commands that answer it")
                    }
                    Some(ReplacedBy::Answered(_)) | None => converted,
                }
            }
            Refusal::AnswerConflict { .. } => Self::new(Code::AnswerConflict, message),
            Refusal::StaleRevision { .. } => Self::new(Code::StaleRevision, message),
            Refusal::AlreadyAnswered { .. } => Self::new(Code::AlreadyAnswered, message),
            Refusal::RevisionRequired { hold, current } => {
                let help = format!("review what it shows, then answer {hold}@{current}; `lockgate inbox` prints the commands");
                Self::new(Code::RevisionRequired, message).help(help)
            }
            Refusal::OptionNotFound { hold, revision, given, options } => {
                let report = options.iter().find(|choice| choice.requires_feedback).zip(revision);
                let issues = report.map(|(choice, revision)| {
                    let seen = format!("{hold}@{revision}");
                    let command = view::lockgate(["answer", &seen, choice.id.as_str(), "--feedback", &given]);
                    format!("only the listed options count; to report issues: {command}\n")
                });
                let options: Vec<String> = options.iter().enumerate().map(|(at, choice)| view::option_line(at, choice)).collect();
                let help = format!("{}its options are\n{}", issues.unwrap_or_default(), options.join("\n"));
                Self::new(Code::OptionNotFound, message).help(help)
            }
            Refusal::FeedbackRequired { .. } => {
                Self::new(Code::FeedbackRequired, message).help("the work is repeated with that feedback")
            }
            Refusal::AnsweredByPerson { .. } => Self::new(Code::AnsweredByPerson, message)
                .help("to change course, repeat a phase at one of its checkpoints, or start a new run"),
            Refusal::ChangeNeedsFork => Self::new(Code::RunEnded, message).help("start a new run and preset the answer"),
            Refusal::NotInCurrentPhase { .. } => Self::new(Code::NotInCurrentPhase, message)
                .help("only tasks and gates of the current phase can be retried or skipped"),
            Refusal::StepRunning { .. } => Self::new(Code::TaskRunning, message).help("wait until it ends, or cancel the run"),
            Refusal::StepDone { .. } => {
                Self::new(Code::TaskDone, message).help("to run it again, repeat its phase at a checkpoint")
            }
            Refusal::NotStarted { .. } => Self::new(Code::NotStarted, message)
                .help("it starts when the tasks that it needs are done; if you skip it, it counts as done"),
            Refusal::RetryPending { .. } => Self::new(Code::RetryPending, message),
            Refusal::ReasonRequired { .. } => Self::new(Code::ReasonRequired, message).help("the history keeps the reason"),
            Refusal::AnswerUnchecked { .. } => Self::new(Code::DefinitionChanged, message),
            Refusal::PhaseVanished { .. } | Refusal::PhaseMoved { .. } => Self::new(Code::DefinitionChanged, message)
                .help("continue with the original definition, or start a new run of the changed one"),
            Refusal::NotAPipeline => Self::new(Code::NotAPipeline, message),
            Refusal::NotReviewed => Self::new(Code::BlockedByReview, message)
                .help("fix the findings and file another review, or have a person override it"),
            Refusal::ReviewTooLate => Self::new(Code::ReviewRejected, message),
            Refusal::ReviewStands { .. } => Self::new(Code::ReviewRejected, message),
            Refusal::ReviewsSpent { .. } => {
                Self::new(Code::ReviewRejected, message).help("a person can override it, from a terminal outside any task")
            }
            Refusal::NoOverrideReason => Self::new(Code::ReviewRejected, message).help("say why; the state file keeps it"),
            Refusal::NoGatesNamed => Self::new(Code::ReviewRejected, message)
                .help("name each gate with its command, which must pass before the pipeline is complete"),
            Refusal::GateKnown { .. } => {
                Self::new(Code::ReviewRejected, message).help("choose another name for the gate of the review")
            }
            Refusal::Ended { .. } => Self::new(Code::RunEnded, message),
            Refusal::SnapshotOfOtherRun { .. } | Refusal::SnapshotOfOtherHistory { .. } => {
                Self::new(Code::SnapshotMismatch, message).help("choose a snapshot that was taken of this run")
            }
            Refusal::Team(refusal) => of_team(&refusal, message),
        }
    }
}

fn of_team(refusal: &TeamRefusal, message: String) -> Error {
    match refusal {
        TeamRefusal::SenderNotRunning | TeamRefusal::TaskRequired { .. } => Error::new(Code::TaskRequired, message)
            .help("the sender is the task that runs the command; run it inside a task of this run"),
        TeamRefusal::AgentRequired { .. } => Error::new(Code::TaskRequired, message).help("only agents hand off their work"),
        TeamRefusal::MemberNotFound { members, .. } => {
            Error::new(Code::MemberNotFound, message).help(format!("its members are {}", members.join(", ")))
        }
        TeamRefusal::MessageNotFound(_) => {
            Error::new(Code::MessageNotFound, message).help("list its messages with `lockgate message list`")
        }
        TeamRefusal::ConflictNotFound(_) => {
            Error::new(Code::ConflictNotFound, message).help("list its conflicts with `lockgate conflict list`")
        }
        TeamRefusal::VoteOutsideConflict => Error::new(Code::MessageRejected, message).help("vote with `lockgate conflict vote`"),
        TeamRefusal::RecipientRequired { .. }
        | TeamRefusal::RecipientNotAllowed
        | TeamRefusal::ToItself { .. }
        | TeamRefusal::CorrelationRequired
        | TeamRefusal::NotRecipient { .. }
        | TeamRefusal::TooManyMessages(_)
        | TeamRefusal::TooManyHandoffs { .. }
        | TeamRefusal::AlreadyHandedOff { .. } => {
            Error::new(Code::MessageRejected, message).help("see the rules with `lockgate message send --help`")
        }
        TeamRefusal::ConflictWithPerson(_) => {
            Error::new(Code::ConflictRejected, message).help("see the question with `lockgate inbox`")
        }
        TeamRefusal::TopicRequired
        | TeamRefusal::TooFewParticipants
        | TeamRefusal::ConflictResolved(_)
        | TeamRefusal::NotParticipant { .. }
        | TeamRefusal::VotedAlready { .. }
        | TeamRefusal::OutOfRange { .. }
        | TeamRefusal::ChoiceRequired
        | TeamRefusal::VetoNotAllowed { .. }
        | TeamRefusal::VetoReasonRequired => {
            Error::new(Code::ConflictRejected, message).help("see the conflict with `lockgate conflict show`")
        }
        TeamRefusal::InvalidKnowledgeType(_) => {
            Error::new(Code::InvalidUsage, message).help("for example decision, resolution, pattern or incident")
        }
    }
}
