//! The git change that a decision is about.

use super::{Phase, Work, Workflow};
use serde::{Deserialize, Serialize};

/// What `show_diff` says: since when changes are shown, and of which paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowDiff {
    /// Since when.
    pub since: DiffSince,
    /// Only changes of these files and directories under the root; all when empty. Templates.
    #[serde(default)]
    pub paths: Vec<String>,
}

/// The starting point of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffSince {
    /// The phase started. Repeating the phase keeps its starting point until the phase is completed.
    Phase,
    /// The run started.
    Run,
    /// A git revision, or where the current branch left it; a template.
    Ref(String),
}

impl DiffSince {
    /// As it is written in a workflow.
    pub fn text(&self) -> &str {
        match self {
            Self::Phase => "phase",
            Self::Run => "run",
            Self::Ref(name) => name,
        }
    }
}

impl std::fmt::Display for DiffSince {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Phase => out.write_str("since the phase started"),
            Self::Run => out.write_str("since the run started"),
            Self::Ref(name) => write!(out, "since {name}"),
        }
    }
}

impl Phase {
    /// What its checkpoint and the questions among its tasks show of git.
    fn shown_diffs(&self) -> impl Iterator<Item = &ShowDiff> {
        let tasks = self.tasks.iter().filter_map(|task| match &task.work {
            Work::Checkpoint(checkpoint) => checkpoint.show_diff.as_ref(),
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Agent(_) | Work::Adaptive(_) => None,
        });
        self.checkpoint.iter().filter_map(|checkpoint| checkpoint.show_diff.as_ref()).chain(tasks)
    }

    /// Whether a question shows what changed since this phase started.
    pub fn shows_own_diff(&self) -> bool {
        self.shown_diffs().any(|diff| diff.since == DiffSince::Phase)
    }
}

impl Workflow {
    /// Whether a question shows any git change.
    pub fn shows_diff(&self) -> bool {
        self.phases.iter().any(|phase| phase.shown_diffs().next().is_some())
    }

    /// Whether a question shows what changed since the run started.
    pub fn shows_run_diff(&self) -> bool {
        self.phases.iter().any(|phase| phase.shown_diffs().any(|diff| diff.since == DiffSince::Run))
    }
}
