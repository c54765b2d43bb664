//! The plans from which a workflow was compiled, and where their summaries are written.

use crate::id::{PhaseId, TaskId};
use serde::{Deserialize, Serialize};

/// A plan that was compiled into tasks of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPart {
    /// Its id, such as `08-01`.
    pub id: String,
    /// One line.
    pub purpose: String,
    /// Its file name in the directory that was read; absent if the plan itself was named.
    pub file: Option<String>,
    /// The phase of its tasks.
    pub phase: PhaseId,
    pub tasks: Vec<TaskId>,
    /// The path of its summary, relative to the root; next to the plan if absent.
    pub summary: Option<String>,
}
