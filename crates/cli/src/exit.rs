//! How the program ends.

use lockgate::code::Code;
use lockgate_engine::run::Status;
use std::process::ExitCode;

/// How the program ends; scripts rely on these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run is complete, or what was asked is done.
    Done,
    /// A task, gate or script failed; a check found something; the machine did not play along.
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
    /// The number that the caller sees.
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

    /// How driving a run ends the program, from where the run stands.
    pub(crate) fn of(status: Status) -> Self {
        match status {
            Status::Complete => Self::Done,
            Status::Failed => Self::Failed,
            Status::Aborted | Status::Cancelled => Self::Aborted,
            Status::Waiting | Status::Running => Self::Waiting,
        }
    }

    /// How an error ends the program.
    pub(crate) fn of_error(code: Code) -> Self {
        match code {
            Code::AlreadyAnswered | Code::AlreadyAsked => Self::Done,
            Code::CannotStart
            | Code::InTheWay
            | Code::Unwritable
            | Code::LeftRunning
            | Code::BackgroundFailed
            | Code::LeaseLost
            | Code::RootMoved
            | Code::UnreadableLog
            | Code::DiskFull
            | Code::DatabaseReadOnly
            | Code::DatabaseLocked
            | Code::DatabaseDamaged
            | Code::CommitsMissing
            | Code::DatabaseTrouble
            | Code::NewerFormat
            | Code::HistoryDamaged
            | Code::ValueMissing
            | Code::NotAsWritten
            | Code::OutcomeUnknown
            | Code::OurMistake
            | Code::MergeConflict
            | Code::GitTrouble
            | Code::DamagedBackup
            | Code::ReviewBlocks
            | Code::StateFileTrouble => Self::Failed,
            Code::DefinitionChanged
            | Code::NotAPerson
            | Code::InsideTask
            | Code::NoTerminal
            | Code::HoldClosed
            | Code::AnswerConflicts
            | Code::StaleRevision
            | Code::TaskRunning
            | Code::DrivenElsewhere
            | Code::TakenOver
            | Code::RunNotOver
            | Code::DatabaseInUse
            | Code::ResumeChoice => Self::Waiting,
            Code::BadUsage
            | Code::Unexplained
            | Code::NoProject
            | Code::NoFolder
            | Code::BadSettings
            | Code::UnreadableFile
            | Code::NotAFile
            | Code::FileTooLarge
            | Code::NotText
            | Code::NotJson
            | Code::InvalidWorkflow
            | Code::NoAgent
            | Code::BadInput
            | Code::BadOutputDir
            | Code::BadVar
            | Code::BadPreset
            | Code::BadCases
            | Code::NoSuchRun
            | Code::NoSuchHold
            | Code::NoSuchTask
            | Code::NoSuchAttempt
            | Code::NoSuchOption
            | Code::NoSuchRevision
            | Code::AmbiguousName
            | Code::RevisionNeeded
            | Code::WordsNeeded
            | Code::AnswerStands
            | Code::NotUnderWay
            | Code::TaskDone
            | Code::NotStarted
            | Code::NoReason
            | Code::RunEnded
            | Code::NoDatabase
            | Code::FileExists
            | Code::DatabaseExists
            | Code::KeptInPostgresql
            | Code::NoSuchWorktree
            | Code::UncommittedChanges
            | Code::WorkWouldBeLost
            | Code::NoPipeline
            | Code::PipelineExists
            | Code::BadStateFile
            | Code::ReviewRefused
            | Code::NotABackup => Self::Misuse,
        }
    }

    /// How a signal ends the program.
    pub(crate) fn by_signal(signal: Option<&str>) -> Self {
        if signal == Some("SIGINT") { Self::Interrupted } else { Self::Terminated }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
