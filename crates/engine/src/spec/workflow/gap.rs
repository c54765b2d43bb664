//! Gap checks in a workflow: how a phase finds out whether its work is complete, and what happens if it is not.

use super::{Script, Task};
use serde::{Deserialize, Serialize};

/// Checks whether the work of a phase is complete, after its tasks and before its gates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapCheck {
    pub criteria: Vec<Criterion>,
    /// A script that returns the gaps, and what to do about them.
    pub script: Option<Script>,
    /// What happens if there are gaps and the script does not say.
    pub on_failure: GapAction,
    /// The agents that `spawn_additional` starts if the script does not name any.
    pub additional: Vec<Task>,
    /// After this many checks that found gaps, a person is asked.
    pub max_iterations: u32,
    /// A message shown with the gaps.
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    pub name: String,
    pub check: Script,
}

/// What happens if the work of a phase is incomplete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapAction {
    /// The phase is repeated.
    #[default]
    Retry,
    /// Additional agents work on it.
    SpawnAdditional,
    /// A person decides.
    Escalate,
    /// The run fails.
    Abort,
}

impl GapAction {
    pub const ALL: [Self; 4] = [Self::Retry, Self::SpawnAdditional, Self::Escalate, Self::Abort];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::SpawnAdditional => "spawn_additional",
            Self::Escalate => "escalate",
            Self::Abort => "abort",
        }
    }
}

/// The file that is rendered from the context when all phases are done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalization {
    /// The text of the template. Its paths may be missing.
    pub template: String,
    /// A template for the path in the output directory.
    pub output: String,
}
