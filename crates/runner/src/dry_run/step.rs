//! The steps and questions of a dry run, as programs read them.

use lockgate_engine::hold::HoldKind;
use lockgate_engine::spec::workflow::{GapAction, Question, Work};
use serde::{Serialize, Serializer};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    pub kind: StepKind,
    /// The phase that it happens in or is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<DryRunWork>,
    /// The shell command that would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The agent that would be asked; `None` if none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The command whose success would end a looping task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<DryRunOutcome>,
    /// A message about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The files that it writes to the output directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// The index of its hold, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<usize>,
}

/// The kind of work of a task, named as in the workflow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DryRunWork {
    Run,
    Script,
    /// No work.
    Pass,
    Agent,
    /// A script that returns the agents to start.
    Adaptive,
    /// A list that is fanned out into tasks.
    ForEach,
    Checkpoint,
    /// A question whether something works.
    Verify,
    /// A choice between options.
    Decision,
    /// A manual action.
    Action,
}

impl DryRunWork {
    pub(super) fn of(work: &Work) -> Self {
        match work {
            Work::Run(_) => Self::Run,
            Work::Script(_) => Self::Script,
            Work::Pass => Self::Pass,
            Work::Agent(_) => Self::Agent,
            Work::Adaptive(_) => Self::Adaptive,
            Work::Checkpoint(checkpoint) => match &checkpoint.question {
                None => Self::Checkpoint,
                Some(Question::Verify(_)) => Self::Verify,
                Some(Question::Decision(_)) => Self::Decision,
                Some(Question::Action(_)) => Self::Action,
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRunOutcome {
    Done,
    Again,
    FannedOut,
    Failed,
    /// A task was omitted because of its condition.
    Omitted,
    /// An answer marked a task as done.
    CountsAsDone,
    /// A task failed, but the run continues without it.
    Tolerated,
    /// A task was stopped because another one failed.
    Stopped,
    Passed,
    /// An answer waived a gate.
    CountsAsPassed,
    /// A gap check found no gaps.
    Whole,
    /// A gap check found gaps, with this action.
    Gaps(GapAction),
    /// An answer waived the gaps of a phase.
    CountsAsWhole,
    NotMet,
    Error,
}

impl DryRunOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Again => "repeated",
            Self::FannedOut => "fanned_out",
            Self::Failed => "failed",
            Self::Omitted => "omitted",
            Self::CountsAsDone => "counts_as_done",
            Self::Tolerated => "tolerated",
            Self::Stopped => "stopped",
            Self::Passed => "passed",
            Self::CountsAsPassed => "counts_as_passed",
            Self::Whole => "complete",
            Self::Gaps(action) => action.as_str(),
            Self::CountsAsWhole => "counts_as_complete",
            Self::NotMet => "not_met",
            Self::Error => "error",
        }
    }
}

impl Serialize for DryRunOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    #[default]
    Phase,
    SkippedPhase,
    Task,
    Gate,
    /// A script queries an agent.
    AgentQuery,
    GapCheck,
    /// A checkpoint's condition is not met, or cannot be evaluated.
    Condition,
    /// A question is asked and answered.
    Hold,
    Repeat,
    /// Phases will be skipped.
    SkipList,
    /// The finalization document.
    Finalization,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRunHold {
    pub kind: HoldKind,
    pub phase: Option<String>,
    /// The tasks or the gate that it is about.
    pub addresses: Vec<String>,
    pub prompt: String,
    pub notes: Vec<String>,
    pub files: Vec<String>,
    pub options: Vec<String>,
    /// The answer; `None` if the dry run ended before.
    pub answer: Option<DryRunAnswer>,
    /// The git diff that it shows: since when, and of which paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<RehearsedDiff>,
}

/// The git diff that a question would show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RehearsedDiff {
    /// `phase`, `run`, or a revision.
    pub since: String,
    /// Only changes of these files and directories; all if empty.
    pub paths: Vec<String>,
    /// A title for people.
    #[serde(skip)]
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRunAnswer {
    pub option: String,
    /// What the option does, in one word.
    pub action: &'static str,
    pub feedback: Option<String>,
    /// Whether it was given; otherwise it is the first option.
    pub given: bool,
}

impl DryRunHold {
    /// Whether this names the hold: its phase for a checkpoint, otherwise the address of its task, gate or gap check.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().iter().any(|known| known == name)
    }

    /// The names of the hold: its phase for a checkpoint, otherwise its addresses.
    pub fn names(&self) -> Vec<String> {
        if self.addresses.is_empty() { self.phase.iter().cloned().collect() } else { self.addresses.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_engine::spec::workflow::{Reads, Script};
    use serde_json::json;

    #[test]
    fn outcomes_and_work_kinds_are_snake_case_in_json() {
        assert_eq!(json!(DryRunOutcome::CountsAsDone), json!("counts_as_done"));
        assert_eq!(json!(DryRunOutcome::Gaps(GapAction::SpawnAdditional)), json!("spawn_additional"));
        assert_eq!(json!(DryRunWork::ForEach), json!("for_each"));
    }

    #[test]
    fn work_kinds_are_named_as_in_the_workflow_file() {
        let script = Script { source: String::new(), reads: Reads::All, line: 0 };
        for work in [Work::Run("true".into()), Work::Script(script.clone()), Work::Pass, Work::Adaptive(script)] {
            assert_eq!(json!(DryRunWork::of(&work)), json!(work.as_str()));
        }
    }
}
