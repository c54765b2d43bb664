//! Statuses of runs and phases, as shown to people and in JSON.

use lockgate_engine::id::PhaseId;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::run::{Run, Status};
use serde::{Serialize, Serializer};
use std::fmt;

/// The displayed status of a run. A run that could continue, but that no process drives, is interrupted.
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
    /// A status of a newer release.
    Unknown,
}

impl RunStatus {
    /// The displayed status. `driven` says whether a live process drives the run.
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

    /// The displayed status for the row of a list.
    pub fn of_row(status: &OpenEnum<Status>, driven: bool) -> Self {
        status.known().map_or(Self::Unknown, |status| Self::of(status, driven))
    }

    /// Whether nothing more happens unless the run is resumed or a step is retried.
    pub fn has_ended(self) -> bool {
        match self {
            Self::Complete | Self::Failed | Self::Aborted | Self::Cancelled => true,
            Self::Running | Self::Interrupted | Self::Waiting | Self::Unknown => false,
        }
    }

    /// Whether a person must answer before the run continues.
    pub fn is_waiting(self) -> bool {
        self == Self::Waiting
    }

    /// Whether the run could continue, but no process drives it.
    pub fn is_interrupted(self) -> bool {
        self == Self::Interrupted
    }

    /// The name of the status.
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

/// The displayed status of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseStatus {
    /// It has not started.
    Pending,
    /// It was skipped.
    Skipped,
    /// The run is in this phase and has this status.
    Current(RunStatus),
    Complete,
}

impl PhaseStatus {
    /// The status of a phase in a run with this displayed status.
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

    /// The name of the status.
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
