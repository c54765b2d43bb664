//! Holds: questions of a run that wait for an answer, and what an answer does.

use crate::digest::Digest;
use crate::id::{HoldId, OptionId, PhaseId, TaskKey};
use crate::run::budget::BudgetScope;
use crate::run::command::Actor;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A question that waits for an answer, or is being settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// What kind of question it is.
    pub kind: HoldKind,
    /// What it is about.
    pub scope: Scope,
    /// The question, as shown.
    pub prompt: String,
    /// What else must be said with it: errors, warnings, what changed.
    pub notes: Vec<String>,
    /// The files that the answer is about, as they were when it was opened or reopened.
    pub files: Vec<ShownFile>,
    /// What may be answered.
    pub options: Vec<Choice>,
    /// Whether the run waits for it.
    pub blocking: bool,
    /// How many people must agree.
    pub quorum: u32,
    /// Raised each time it is opened again; an answer names the revision that was seen.
    pub revision: u32,
    /// Where it stands.
    pub state: HoldState,
    /// The answers to the present revision.
    pub answers: Vec<Answer>,
    /// When it was opened first.
    pub opened_at: Timestamp,
    /// When it was opened last.
    pub since: Timestamp,
}

/// What kind of question a hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// A declared checkpoint was reached.
    Checkpoint,
    /// Tasks were cut off, and a person says what becomes of them.
    Interrupted,
    /// A task or gate failed, and a person says what becomes of it.
    Failed,
    /// The work of a phase is not whole, and a person says what becomes of it.
    Gaps,
    /// A budget is exhausted, and a person says whether more may be used.
    Budget,
}

impl HoldKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Gaps => "gaps",
            Self::Budget => "budget",
        }
    }
}

/// What a hold is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole run.
    Run,
    /// An execution of a phase.
    Phase {
        /// The phase.
        phase: PhaseId,
        /// Its execution.
        iteration: u32,
    },
    /// Some tasks of one phase.
    Tasks(Vec<TaskKey>),
    /// A gate of a phase.
    Gate {
        /// The phase.
        phase: PhaseId,
        /// Its execution.
        iteration: u32,
        /// The gate.
        gate: crate::id::GateId,
    },
    /// The gap check of a phase.
    Gaps {
        /// The phase.
        phase: PhaseId,
        /// Its execution.
        iteration: u32,
    },
}

/// What stands for a phase's gap check in addresses: `phase/gap_check`.
pub const GAP_CHECK: &str = "gap_check";

impl Scope {
    /// The phase that it lies in.
    pub fn phase(&self) -> Option<&PhaseId> {
        match self {
            Self::Run => None,
            Self::Phase { phase, .. } | Self::Gate { phase, .. } | Self::Gaps { phase, .. } => Some(phase),
            Self::Tasks(keys) => keys.first().map(|key| &key.phase),
        }
    }

    /// The addresses of the tasks or the gate that it is about.
    pub fn addresses(&self) -> Vec<String> {
        match self {
            Self::Run | Self::Phase { .. } => Vec::new(),
            Self::Tasks(keys) => keys.iter().map(TaskKey::address).collect(),
            Self::Gate { phase, gate, .. } => vec![format!("{phase}/{gate}")],
            Self::Gaps { phase, .. } => vec![format!("{phase}/{GAP_CHECK}")],
        }
    }
}

/// Where a hold stands. A hold that was opened again is open, with a higher revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    /// It waits for an answer.
    Open,
    /// It has its answer, and what was seen is compared with what is there now.
    Checking,
    /// Its answer has taken effect.
    Settled,
    /// It no longer matters.
    Void,
}

impl HoldState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Checking => "checking",
            Self::Settled => "settled",
            Self::Void => "void",
        }
    }
}

/// Something that may be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Unique in its hold; made from the label.
    pub id: OptionId,
    /// What people read.
    pub label: String,
    /// Whether feedback is asked for.
    pub with_feedback: bool,
    /// What choosing it does.
    pub action: Action,
}

/// What choosing an option does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The run goes on.
    Continue,
    /// The run goes back to this phase.
    RepeatPhase(PhaseId),
    /// These later phases are passed over.
    SkipPhases(Vec<PhaseId>),
    /// The run ends here.
    Abort,
    /// What was cut off or failed runs again.
    Rerun,
    /// What was cut off or failed counts as done.
    CountAsDone,
    /// As much again may be used under this budget.
    RaiseBudget(BudgetScope),
}

impl Action {
    /// The word for it in files and records.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::RepeatPhase(_) => "repeat_phase",
            Self::SkipPhases(_) => "skip_phases",
            Self::Abort => "abort",
            Self::Rerun => "rerun",
            Self::CountAsDone => "count_as_done",
            Self::RaiseBudget(_) => "raise_budget",
        }
    }

    /// Whether it lets the run go past what was shown, so that what was shown must still be so.
    pub fn goes_on(&self) -> bool {
        match self {
            Self::Continue | Self::SkipPhases(_) | Self::CountAsDone => true,
            Self::RepeatPhase(_) | Self::Abort | Self::Rerun | Self::RaiseBudget(_) => false,
        }
    }
}

/// What somebody said to a hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The option.
    pub option: OptionId,
    /// What was said with it.
    pub feedback: Option<String>,
    /// Who said it, and by which way.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
}

/// A file that a decision is about, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownFile {
    /// Relative to the root, as people would name it.
    pub path: String,
    /// What was there.
    pub seen: Seen,
    /// Why its bytes are not kept, when they are not.
    #[serde(default)]
    pub not_kept: Option<String>,
}

/// What was found under a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Nothing.
    Absent,
    /// A file with these bytes.
    File {
        /// Digest of its bytes.
        digest: Digest,
        /// Its length in bytes.
        bytes: u64,
    },
    /// A folder; the digest is of its listing, with the digests of all that is in it.
    Directory {
        /// Digest of its listing.
        digest: Digest,
        /// How many files are in it.
        files: u64,
    },
    /// Something that cannot be read or may not be shown, and why.
    Unreadable(String),
}

impl Seen {
    /// The digest, where there is something.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } | Self::Directory { digest, .. } => Some(*digest),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// How many bytes there are, where it is a file.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::File { bytes, .. } => Some(*bytes),
            Self::Absent | Self::Directory { .. } | Self::Unreadable(_) => None,
        }
    }
}

impl Hold {
    /// Whether a selector means this hold: its id, its phase (a declared checkpoint), or the address of its task or gate.
    pub fn is_meant_by(&self, selector: &str) -> bool {
        if self.id.as_str() == selector {
            return true;
        }
        match &self.scope {
            Scope::Run => false,
            Scope::Phase { phase, .. } => phase.as_str() == selector,
            Scope::Tasks(keys) => keys.iter().any(|key| key.address() == selector),
            Scope::Gate { phase, gate, .. } => format!("{phase}/{gate}") == selector,
            Scope::Gaps { phase, .. } => format!("{phase}/{GAP_CHECK}") == selector,
        }
    }

    /// The option of the last answer.
    pub fn chosen(&self) -> Option<&Choice> {
        let answer = self.answers.last()?;
        self.options.iter().find(|choice| choice.id == answer.option)
    }

    /// The option that somebody means: by its id, its label in any case, or its number.
    pub fn option(&self, named: &str) -> Option<&Choice> {
        let named = named.trim();
        let by_name = |choice: &&Choice| choice.id.as_str() == named || choice.label.to_lowercase() == named.to_lowercase();
        let by_number = || named.parse::<usize>().ok().and_then(|number| self.options.get(number.checked_sub(1)?));
        self.options.iter().find(by_name).or_else(by_number)
    }
}

impl Choice {
    /// Something that may be answered without further words.
    pub fn plain(id: &str, label: &str, action: Action) -> Self {
        Self { id: OptionId::from(id), label: label.to_owned(), with_feedback: false, action }
    }
}

/// What may be answered where the work of a phase is not whole.
pub fn gap_options(phase: &PhaseId) -> Vec<Choice> {
    vec![
        Choice { with_feedback: true, ..Choice::plain("retry", "Run the phase again", Action::RepeatPhase(phase.clone())) },
        Choice::plain("continue", "Continue anyway", Action::CountAsDone),
        Choice::plain("abort", "Abort", Action::Abort),
    ]
}

/// What may be answered where a budget is used up.
pub fn budget_options(scope: &BudgetScope) -> Vec<Choice> {
    vec![
        Choice::plain("go-on", "Go on with as much again", Action::RaiseBudget(scope.clone())),
        Choice::plain("count-as-done", "Count as done", Action::CountAsDone),
        Choice::plain("abort", "Abort", Action::Abort),
    ]
}

/// What may be answered where a task or gate failed or was cut off.
pub fn task_options() -> Vec<Choice> {
    let choice = Choice::plain;
    vec![
        choice("rerun", "Run again", Action::Rerun),
        choice("count-as-done", "Count as done", Action::CountAsDone),
        choice("abort", "Abort", Action::Abort),
    ]
}
