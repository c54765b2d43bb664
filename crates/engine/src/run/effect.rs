//! Effects: the work that should be running outside the engine. They are derived from the state and never stored.

use crate::id::{GateId, HoldId, PhaseId, TaskKey, TimerId};
use crate::run::event::Requester;
use crate::time::Timestamp;
use std::time::Duration;

/// Work that should be running. The list is closed; one function performs each kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Runs an attempt of a task that has started. Ends as `TaskEnded`.
    Task { key: TaskKey, attempt: u32 },
    /// Runs an attempt of a gate that has started. Ends as `GateEnded`.
    Gate { phase: PhaseId, iteration: u32, gate: GateId, attempt: u32 },
    /// Evaluates a checkpoint's condition. Ends as `ConditionEvaluated`.
    Evaluate { phase: PhaseId, iteration: u32 },
    /// Prepares a checkpoint: renders the prompt, digests and stores the files. Ends as `Shown`.
    Show { phase: PhaseId, iteration: u32 },
    /// Records the files at the start of a phase, for questions that show what changed since then. Ends as `DiffBaseRecorded`.
    DiffBase { phase: PhaseId, iteration: u32 },
    /// Digests the files of an answered hold again, and reads its git change again. Ends as `Rechecked`.
    Recheck { hold: HoldId, revision: u32 },
    /// Runs the check of an answered hold. Ends as `Checked`.
    Check { hold: HoldId, revision: u32 },
    /// Evaluates a task's `when`. Ends as `WhenEvaluated`.
    When { key: TaskKey },
    /// Checks whether the work of a phase is complete. Ends as `GapsChecked`.
    Gaps {
        phase: PhaseId,
        iteration: u32,
        /// Counted from 1.
        round: u32,
    },
    /// Sends a script's query to an agent. Ends as `AgentQueryAnswered`.
    QueryAgent {
        requester: Requester,
        /// The number of the query within its script, counted from 1.
        number: u32,
    },
    /// Writes the finalization's file. Ends as `Finalized`.
    Finalize,
    /// Looks for the files that a workstream should have produced. Ends as `ArtifactsFound`.
    Artifacts { key: TaskKey },
    /// Waits for a timer. Ends as `TimerDue`.
    Wake {
        timer: TimerId,
        /// In wall-clock time.
        due: Timestamp,
        /// The maximum wait of a backoff, by a monotonic clock. Absent for deadlines and reminders, which follow the wall clock.
        longest: Option<Duration>,
    },
}

impl Effect {
    /// Whether the effect only reads, so that it may start before the events that call for it are durable.
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
            | Self::Finalize
            | Self::DiffBase { .. } => false,
        }
    }
}
