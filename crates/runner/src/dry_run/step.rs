//! The steps and questions of a rehearsal, as programs read them.

use lockgate_engine::hold::HoldKind;
use lockgate_engine::spec::workflow::{GapAction, Question, Work};
use serde::{Serialize, Serializer};

/// Something that would happen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// What it is.
    pub kind: StepKind,
    /// The phase that it happens in, or that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Which execution of the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The task or gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Which attempt of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What kind of work a task is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<DryRunWork>,
    /// The command that would be given to a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The shell that would run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The agent that would be asked; nothing where none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it would be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The command whose success would end a task that goes round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<DryRunOutcome>,
    /// What is said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The files that it leaves in the output directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Which of the holds it is, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<usize>,
}

/// What kind of work a task is, as the workflow file calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DryRunWork {
    /// A shell command.
    Run,
    /// A script.
    Script,
    /// Nothing.
    Pass,
    /// Something that an agent does.
    Agent,
    /// A script that names the agents that work.
    Adaptive,
    /// A list, of which each item becomes a task.
    ForEach,
    /// A question without a kind.
    Checkpoint,
    /// A question whether something works.
    Verify,
    /// A question that chooses between options.
    Decision,
    /// A request to do what no program can do.
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

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRunOutcome {
    /// A task is done.
    Done,
    /// A task starts another round.
    Again,
    /// A task became several.
    FannedOut,
    /// A task or gate failed.
    Failed,
    /// A task is left out because of its condition.
    Omitted,
    /// A task counts as done because an answer says so.
    CountsAsDone,
    /// A task failed, and the run continues without it.
    Tolerated,
    /// A task was ended because another one failed.
    Stopped,
    /// A gate passed.
    Passed,
    /// A gate counts as passed because an answer says so.
    CountsAsPassed,
    /// A gap check found nothing missing.
    Whole,
    /// A gap check found gaps, and this follows.
    Gaps(GapAction),
    /// The work of a phase counts as whole because an answer says so.
    CountsAsWhole,
    /// The condition of a checkpoint is not met.
    NotMet,
    /// The condition of a checkpoint cannot be evaluated.
    Error,
}

impl DryRunOutcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
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
            Self::Gaps(action) => action.word(),
            Self::CountsAsWhole => "counts_as_complete",
            Self::NotMet => "not_met",
            Self::Error => "error",
        }
    }
}

impl Serialize for DryRunOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// What a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A phase begins.
    #[default]
    Phase,
    /// A phase is passed over.
    SkippedPhase,
    /// An attempt of a task.
    Task,
    /// An attempt of a gate.
    Gate,
    /// A script asks an agent what it thinks.
    AgentQuery,
    /// The work of a phase is looked at.
    GapCheck,
    /// A checkpoint's condition is not met, or cannot be evaluated.
    Condition,
    /// A question waits, and is answered.
    Hold,
    /// The run goes back to a phase.
    Repeat,
    /// Phases will be passed over.
    SkipList,
    /// What is made from the context in the end.
    Finalization,
}

/// A question that was asked, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRunHold {
    /// What kind of question it is.
    pub kind: HoldKind,
    /// The phase that it lies in.
    pub phase: Option<String>,
    /// The tasks or the gate that it is about.
    pub addresses: Vec<String>,
    /// The question.
    pub prompt: String,
    /// What else is said with it.
    pub notes: Vec<String>,
    /// The files that it shows.
    pub files: Vec<String>,
    /// The labels of its options.
    pub options: Vec<String>,
    /// What was answered; nothing where the rehearsal ended before.
    pub answer: Option<DryRunAnswer>,
    /// The git change that it shows: since when, and of which paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<RehearsedDiff>,
}

/// The git change that a question would show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RehearsedDiff {
    /// `phase`, `run`, or a revision.
    pub since: String,
    /// Only changes of these files and directories; all when empty.
    pub paths: Vec<String>,
    /// The same, for people.
    #[serde(skip)]
    pub title: String,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRunAnswer {
    /// The label of the option.
    pub option: String,
    /// What the option does, in one word.
    pub action: &'static str,
    /// What was said with it.
    pub feedback: Option<String>,
    /// Whether it was given; else it is the first option.
    pub given: bool,
}

impl DryRunHold {
    /// Whether this names the hold: its phase where it is a checkpoint, else the address of its task, gate or gap check.
    pub fn is_named(&self, name: &str) -> bool {
        self.names().iter().any(|known| known == name)
    }

    /// What it is called: its phase where it is a checkpoint, else what it is about.
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
            assert_eq!(json!(DryRunWork::of(&work)), json!(work.word()));
        }
    }
}
