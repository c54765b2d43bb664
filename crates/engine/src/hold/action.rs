//! What an option of a hold does when someone chooses it.
//!
//! A new action needs a place in each of these, most of which the compiler names: its words in a workflow file
//! (`spec/check/options.rs`), its events (`run/advance/answers.rs`), their effect on the state (`run/apply/holds.rs`), and whether its answer
//! can be changed later (`run/decide/answer_change.rs`).

use crate::id::{PhaseId, TaskId};
use crate::run::budget::BudgetScope;
use serde::{Deserialize, Serialize};

/// The effect of an option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Continue,
    /// The run goes back to this phase.
    RepeatPhase(PhaseId),
    /// These later phases are skipped.
    SkipPhases(Vec<PhaseId>),
    /// The run ends here.
    Abort,
    /// Interrupted or failed work runs again.
    Rerun,
    /// Interrupted or failed work counts as done.
    CountAsDone,
    /// The budget is raised by its original amount.
    RaiseBudget(BudgetScope),
    /// These tasks are redone with the feedback, and then the question is asked again.
    Redo(Vec<TaskId>),
    /// The subject of the hold counts as failed.
    Fail,
    /// Tasks that may already have run before the history was lost run again, and no person is asked about later ones.
    RerunRest,
    /// The answer goes back to the members of the team that asked.
    Reply,
}

impl Action {
    /// The name in files and records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::RepeatPhase(_) => "repeat_phase",
            Self::SkipPhases(_) => "skip_phases",
            Self::Abort => "abort",
            Self::Rerun => "rerun",
            Self::CountAsDone => "count_as_done",
            Self::RaiseBudget(_) => "raise_budget",
            Self::Redo(_) => "redo",
            Self::Fail => "fail",
            Self::RerunRest => "rerun_rest",
            Self::Reply => "reply",
        }
    }

    /// Whether the run continues past the shown files, so that these must not have changed.
    pub fn continues(&self) -> bool {
        match self {
            Self::Continue | Self::SkipPhases(_) | Self::CountAsDone => true,
            Self::RepeatPhase(_)
            | Self::Abort
            | Self::Rerun
            | Self::RaiseBudget(_)
            | Self::Redo(_)
            | Self::Fail
            | Self::RerunRest
            | Self::Reply => false,
        }
    }

    /// Whether a phase, or some of its tasks, run again.
    pub fn repeats(&self) -> bool {
        match self {
            Self::RepeatPhase(_) | Self::Redo(_) => true,
            Self::Continue
            | Self::SkipPhases(_)
            | Self::Abort
            | Self::Rerun
            | Self::CountAsDone
            | Self::RaiseBudget(_)
            | Self::Fail
            | Self::RerunRest
            | Self::Reply => false,
        }
    }
}
