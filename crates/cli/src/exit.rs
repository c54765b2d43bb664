//! How the program ends.

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
