//! Effects: what should be under way in the outside world. They are derived from the state, never stored.

use crate::id::{GateId, HoldId, PhaseId, TaskKey, TimerId};
use crate::run::event::Requester;
use crate::time::Timestamp;
use std::time::Duration;

/// Something that should be under way. The list is closed; one function performs each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// An attempt of a task that has started. Ends as `TaskEnded`.
    Task {
        key: TaskKey,
        attempt: u32,
    },
    /// An attempt of a gate that has started. Ends as `GateEnded`.
    Gate {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        attempt: u32,
    },
    /// Evaluate a checkpoint's condition. Ends as `ConditionEvaluated`.
    Evaluate {
        phase: PhaseId,
        iteration: u32,
    },
    /// Make a checkpoint ready to be shown: fill in the prompt, digest and keep the files. Ends as `Shown`.
    Show {
        phase: PhaseId,
        iteration: u32,
    },
    /// Look again at the files of an answered hold. Ends as `Rechecked`.
    Recheck {
        hold: HoldId,
        /// The revision that was answered.
        revision: u32,
    },
    /// Find out whether a person did what they say. Ends as `Checked`.
    Check {
        hold: HoldId,
        /// The revision that was answered.
        revision: u32,
    },
    /// Evaluate a task's `when`. Ends as `WhenEvaluated`.
    When {
        key: TaskKey,
    },
    /// Find out whether the work of a phase is whole. Ends as `GapsChecked`.
    Gaps {
        phase: PhaseId,
        iteration: u32,
        /// Which check it is, counted from 1.
        round: u32,
    },
    /// Ask an agent what it thinks. Ends as `AgentQueryAnswered`.
    QueryAgent {
        requester: Requester,
        /// Which of its questions it is, counted from 1.
        number: u32,
    },
    /// Make what is made from the context in the end. Ends as `Finalized`.
    Finalize,
    /// Look for the files that a workstream was to leave behind. Ends as `ArtifactsFound`.
    Artifacts {
        key: TaskKey,
    },
    /// Wait until a moment. Ends as `TimerDue`.
    Wake {
        timer: TimerId,
        /// When, by the wall clock.
        due: Timestamp,
        /// How long a backoff lasts at most, by a clock that cannot be set; absent for deadlines and reminders, which follow the wall clock.
        longest: Option<Duration>,
    },
}

impl Effect {
    /// Whether it only reads, so that it may be performed before the events that call for it are durable.
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Show { .. } | Self::Recheck { .. } | Self::Artifacts { .. } => true,
            Self::Task { .. }
            | Self::Gate { .. }
            | Self::Evaluate { .. }
            | Self::Wake { .. }
            | Self::When { .. }
            | Self::Check { .. }
            | Self::Gaps { .. }
            | Self::QueryAgent { .. }
            | Self::Finalize => false,
        }
    }
}
