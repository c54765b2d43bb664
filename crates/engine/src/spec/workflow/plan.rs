//! What a workflow that was made from plans says about them: where the summary of each goes, and what it tells of.

use crate::id::{PhaseId, TaskId};
use serde::{Deserialize, Serialize};

/// A plan that has become tasks of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPart {
    /// What it is known by, such as `08-01`.
    pub id: String,
    /// What it is for, in a line.
    pub purpose: String,
    /// Its file in the folder that was read; nothing where the plan itself was named.
    pub file: Option<String>,
    /// The phase that its tasks stand in.
    pub phase: PhaseId,
    pub tasks: Vec<TaskId>,
    /// Where the plan says that its summary goes, under the root; beside the plan when absent.
    pub summary: Option<String>,
}
