//! The colour of each status.

use crate::print::{ERROR, FAINT, GOOD, HELP, WARNING};
use anstyle::Style;
use lockgate::graph::Mark;
use lockgate::pipeline::{GateStatus, WorkstreamStatus};
use lockgate::view::{PhaseStatus, RunStatus};
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::run::state::StepStatus;

pub(crate) trait Styled {
    fn style(self) -> Style;
}

impl Styled for Mark {
    fn style(self) -> Style {
        match self {
            Self::Done => GOOD,
            Self::Skipped | Self::Pending => FAINT,
            Self::Running => HELP,
            Self::Asking | Self::Interrupted => WARNING,
            Self::Ended | Self::Failed => ERROR,
        }
    }
}

impl Styled for RunStatus {
    fn style(self) -> Style {
        match self {
            Self::Complete => GOOD,
            Self::Failed | Self::Aborted | Self::Cancelled => ERROR,
            Self::Waiting | Self::Interrupted => WARNING,
            Self::Running => HELP,
            Self::Unknown => FAINT,
        }
    }
}

impl Styled for PhaseStatus {
    fn style(self) -> Style {
        match self {
            Self::Pending | Self::Skipped => FAINT,
            Self::Current(status) => status.style(),
            Self::Complete => GOOD,
        }
    }
}

impl Styled for StepStatus {
    fn style(self) -> Style {
        match self {
            Self::Done | Self::Passed => GOOD,
            Self::Failed => ERROR,
            Self::Waiting | Self::Interrupted => WARNING,
            Self::Running => HELP,
            Self::Backoff
            | Self::Skipped
            | Self::FannedOut
            | Self::Blocked
            | Self::Omitted
            | Self::Tolerated
            | Self::Stopped
            | Self::Repeated
            | Self::HandedOver
            | Self::Waived => FAINT,
        }
    }
}

impl Styled for WorkstreamStatus {
    fn style(self) -> Style {
        match self {
            Self::Completed => GOOD,
            Self::InProgress => HELP,
            Self::Interrupted => WARNING,
            Self::Pending => FAINT,
            Self::Failed => ERROR,
        }
    }
}

impl Styled for GateStatus {
    fn style(self) -> Style {
        match self {
            Self::Passed | Self::Waived => GOOD,
            Self::Running => HELP,
            Self::Interrupted | Self::Manual => WARNING,
            Self::Failed => ERROR,
            Self::Pending => FAINT,
        }
    }
}

impl Styled for Lifecycle {
    fn style(self) -> Style {
        match self {
            Self::Initialized => FAINT,
            Self::InProgress => HELP,
            Self::Paused => WARNING,
            Self::Failed => ERROR,
            Self::Complete => GOOD,
        }
    }
}
