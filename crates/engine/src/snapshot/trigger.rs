//! What causes a snapshot.

use crate::run::index::NamedVariants;
use serde::{Deserialize, Serialize};

/// What caused a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The run started, or a phase completed and the next one has not started.
    PhaseTransition,
    /// Every task of a batch has ended, and of all batches before it.
    BatchComplete,
    /// An agent finished its task.
    AgentComplete,
    /// A conflict between agents was opened.
    ConflictStart,
    ConflictResolved,
    /// Ctrl+C.
    UserInterrupt,
    /// SIGTERM, a closed terminal, or the session timeout.
    SessionEnd,
    /// A person or an agent requested it.
    Manual,
}

impl Trigger {
    /// Whether retention counts the snapshots of each phase separately.
    pub fn is_kept_per_phase(self) -> bool {
        match self {
            Self::BatchComplete | Self::AgentComplete => true,
            Self::PhaseTransition
            | Self::ConflictStart
            | Self::ConflictResolved
            | Self::UserInterrupt
            | Self::SessionEnd
            | Self::Manual => false,
        }
    }
}

impl NamedVariants for Trigger {
    const ALL: &'static [Self] = &[
        Self::PhaseTransition,
        Self::BatchComplete,
        Self::AgentComplete,
        Self::ConflictStart,
        Self::ConflictResolved,
        Self::UserInterrupt,
        Self::SessionEnd,
        Self::Manual,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::PhaseTransition => "phase_transition",
            Self::BatchComplete => "batch_complete",
            Self::AgentComplete => "agent_complete",
            Self::ConflictStart => "conflict_start",
            Self::ConflictResolved => "conflict_resolved",
            Self::UserInterrupt => "user_interrupt",
            Self::SessionEnd => "session_end",
            Self::Manual => "manual",
        }
    }
}

impl std::fmt::Display for Trigger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.as_str())
    }
}
