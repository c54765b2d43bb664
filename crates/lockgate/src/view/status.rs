//! Statuses as people and JSON see them: of runs and of phases.

use lockgate_engine::id::PhaseId;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::run::{Run, Status};
use serde::{Serialize, Serializer};
use std::fmt;

/// The status of a run as it is shown: a run that could continue and that no process drives is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    Interrupted,
    Waiting,
    Failed,
    Aborted,
    Cancelled,
    Complete,
    /// A status that only a newer release knows.
    Unknown,
}

impl RunStatus {
    /// The status of a run; `driven` says whether a living process drives it.
    pub fn of(status: Status, driven: bool) -> Self {
        match status {
            Status::Running if driven => Self::Running,
            Status::Running => Self::Interrupted,
            Status::Waiting => Self::Waiting,
            Status::Failed => Self::Failed,
            Status::Aborted => Self::Aborted,
            Status::Cancelled => Self::Cancelled,
            Status::Complete => Self::Complete,
        }
    }

    /// The same from the row of a list.
    pub fn of_row(status: &OpenEnum<Status>, driven: bool) -> Self {
        status.known().map_or(Self::Unknown, |status| Self::of(status, driven))
    }

    /// Whether nothing more happens unless the run is resumed, or something in it is retried.
    pub fn has_ended(self) -> bool {
        match self {
            Self::Complete | Self::Failed | Self::Aborted | Self::Cancelled => true,
            Self::Running | Self::Interrupted | Self::Waiting | Self::Unknown => false,
        }
    }

    /// Whether a person must answer before anything happens.
    pub fn is_waiting(self) -> bool {
        self == Self::Waiting
    }

    /// Whether it could continue, and no process drives it.
    pub fn is_interrupted(self) -> bool {
        self == Self::Interrupted
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
            Self::Complete => "complete",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

/// The status of a phase as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseStatus {
    /// Its turn has not come.
    Pending,
    /// It was passed over.
    Skipped,
    /// The run is in it and has this status.
    Current(RunStatus),
    /// It is complete.
    Complete,
}

impl PhaseStatus {
    /// The status of a phase in a run that is shown with this status.
    pub fn of(run: &Run, position: usize, phase: &PhaseId, status: RunStatus) -> Self {
        if run.current.as_ref().is_some_and(|current| current.id == *phase) {
            return match run.status() {
                Status::Complete => Self::Complete,
                Status::Running | Status::Waiting | Status::Failed | Status::Aborted | Status::Cancelled => Self::Current(status),
            };
        }
        if run.completed.contains(phase) {
            Self::Complete
        } else if run.skip_list.contains(phase) && (position < run.position || run.end.is_none()) {
            Self::Skipped
        } else {
            Self::Pending
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Skipped => "skipped",
            Self::Current(status) => status.as_str(),
            Self::Complete => RunStatus::Complete.as_str(),
        }
    }
}

impl fmt::Display for PhaseStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl Serialize for PhaseStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
