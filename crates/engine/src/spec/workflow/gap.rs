//! What a workflow says about gaps: how it is found out whether a phase's work is whole, and what happens when it is not.

use super::{Script, Task};
use serde::{Deserialize, Serialize};

/// Looks whether the work of a phase is whole, after its tasks and before its gates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapCheck {
    /// Conditions that must all hold.
    pub criteria: Vec<Criterion>,
    /// A script that says what is missing, and what to do.
    pub script: Option<Script>,
    /// What happens when something is missing and the script does not say.
    pub on_failure: GapAction,
    /// Who is called then, for `spawn_additional`, when the script does not say.
    pub additional: Vec<Task>,
    /// After so many checks that found gaps a person is asked.
    pub max_iterations: u32,
    /// What people are told with the gaps.
    #[serde(default)]
    pub message: Option<String>,
}

/// A condition of a gap check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    pub name: String,
    pub check: Script,
}

/// What happens when the work of a phase is not whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapAction {
    /// The phase runs again.
    #[default]
    Retry,
    /// More agents work on it.
    SpawnAdditional,
    /// A person decides.
    Escalate,
    /// The run fails.
    Abort,
}

impl GapAction {
    pub const ALL: [Self; 4] = [Self::Retry, Self::SpawnAdditional, Self::Escalate, Self::Abort];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::SpawnAdditional => "spawn_additional",
            Self::Escalate => "escalate",
            Self::Abort => "abort",
        }
    }
}

/// What is made from the context when all phases are done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalization {
    /// The text of the template: a document whose paths may lead nowhere.
    pub template: String,
    /// The file in the output directory that it becomes; a template.
    pub output: String,
}
