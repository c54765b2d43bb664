//! The exit codes of the program.

use lockgate::code::Code;
use lockgate_engine::run::Status;
use lockgate_runner::driver::HaltReason;
use std::process::ExitCode;

/// An exit code. Scripts rely on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run is complete, or the command succeeded.
    Done,
    /// A task, gate or script failed; a check found a problem; the system or the database failed.
    Failed,
    /// A person ended the run.
    Aborted,
    /// A person must answer; also a late or stale answer, and a run that another process drives.
    Waiting,
    /// Bad input or usage.
    Misuse,
    /// Stopped by Ctrl+C; the state is saved.
    Interrupted,
    /// Stopped by another signal; the state is saved.
    Terminated,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Aborted => 2,
            Self::Waiting => 3,
            Self::Misuse => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The exit code for the status of a driven run.
    pub(crate) fn of(status: Status) -> Self {
        match status {
            Status::Complete => Self::Done,
            Status::Failed => Self::Failed,
            Status::Aborted | Status::Cancelled => Self::Aborted,
            Status::Waiting | Status::Running => Self::Waiting,
        }
    }

    pub(crate) fn of_error(code: Code) -> Self {
        match code {
            Code::AlreadyAnswered | Code::RetryPending => Self::Done,
            Code::StartupFailed
            | Code::PathOccupied
            | Code::Unwritable
            | Code::OrphansRunning
            | Code::BackgroundFailed
            | Code::LeaseLost
            | Code::RootMoved
            | Code::UnreadableLog
            | Code::DiskFull
            | Code::DatabaseReadOnly
            | Code::DatabaseLocked
            | Code::DatabaseCorrupt
            | Code::CommitsMissing
            | Code::DatabaseError
            | Code::NewerFormat
            | Code::HistoryCorrupt
            | Code::StoredValueMissing
            | Code::IntegrityError
            | Code::OutcomeUnknown
            | Code::InternalError
            | Code::MergeConflict
            | Code::GitError
            | Code::BackupCorrupt
            | Code::SnapshotDamaged
            | Code::SnapshotChanged
            | Code::BlockedByReview
            | Code::StateFileError => Self::Failed,
            Code::DefinitionChanged
            | Code::PersonRequired
            | Code::InsideTask
            | Code::TerminalRequired
            | Code::HoldClosed
            | Code::AnswerConflict
            | Code::StaleRevision
            | Code::TaskRunning
            | Code::DrivenElsewhere
            | Code::TakenOver
            | Code::RunNotEnded
            | Code::DatabaseInUse
            | Code::ResumeFlagRequired => Self::Waiting,
            Code::InvalidUsage
            | Code::UnknownCode
            | Code::ProjectNotFound
            | Code::RootNotFound
            | Code::InvalidSettings
            | Code::UnreadableFile
            | Code::NotAFile
            | Code::FileTooLarge
            | Code::NotText
            | Code::NotJson
            | Code::InvalidWorkflow
            | Code::AgentNotConfigured
            | Code::InvalidInput
            | Code::InvalidOutputDir
            | Code::InvalidVar
            | Code::InvalidPreset
            | Code::InvalidTestFile
            | Code::RunNotFound
            | Code::HoldNotFound
            | Code::TaskNotFound
            | Code::MessageNotFound
            | Code::ConflictNotFound
            | Code::KnowledgeNotFound
            | Code::MemberNotFound
            | Code::TaskRequired
            | Code::MessageRejected
            | Code::ConflictRejected
            | Code::AttemptNotFound
            | Code::OptionNotFound
            | Code::RevisionNotFound
            | Code::AmbiguousName
            | Code::RevisionRequired
            | Code::FeedbackRequired
            | Code::AnsweredByPerson
            | Code::NotInCurrentPhase
            | Code::TaskDone
            | Code::NotStarted
            | Code::ReasonRequired
            | Code::RunEnded
            | Code::DatabaseNotFound
            | Code::FileExists
            | Code::DatabaseExists
            | Code::SqliteOnly
            | Code::WorktreeNotFound
            | Code::UncommittedChanges
            | Code::WorkWouldBeLost
            | Code::NotAPipeline
            | Code::PipelineExists
            | Code::SnapshotMismatch
            | Code::SnapshotNotFound
            | Code::SnapshotsDisabled
            | Code::InvalidIssue
            | Code::ChangesNotAccepted
            | Code::RunExists
            | Code::InvalidStateFile
            | Code::ReviewRejected
            | Code::NotABackup => Self::Misuse,
        }
    }

    /// The exit code of a program that was asked to stop.
    pub(crate) fn halted(reason: Option<HaltReason>) -> Self {
        match reason {
            Some(HaltReason::Interrupt) => Self::Interrupted,
            Some(
                HaltReason::Terminate
                | HaltReason::HangUp
                | HaltReason::Stopped
                | HaltReason::RootMoved
                | HaltReason::Endless
                | HaltReason::SessionTimeout,
            )
            | None => Self::Terminated,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
