//! Holds: questions of a run that wait for an answer, and what an answer does.

mod options;
mod question;

#[cfg(test)]
mod tests;

pub(crate) use options::plain_words;
pub use options::{
    Action, Choice, action_options, authentication_options, budget_options, commit_options, decision_options, gap_options,
    gate_options, handover_options, task_options, verify_options,
};
pub use question::{Authentication, HoldQuestion, Topic, offered_text};

use crate::digest::Digest;
use crate::id::{HoldId, OptionId, PhaseId, TaskKey, TimerId};
use crate::run::command::Actor;
use crate::run::index::NamedVariants;
use crate::spec::workflow::{Check, OnDeadline, Question};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A question that waits for an answer, or is being settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    pub id: HoldId,
    pub kind: HoldKind,
    pub scope: Scope,
    /// The question, as shown.
    pub prompt: String,
    /// What else must be said with it: errors, warnings, what changed.
    pub notes: Vec<String>,
    /// The files that the answer is about, as they were when it was opened or reopened.
    pub files: Vec<PresentedFile>,
    /// What may be answered.
    pub options: Vec<Choice>,
    /// Whether the run waits for it.
    pub blocking: bool,
    /// How many people must agree.
    pub quorum: u32,
    /// Raised each time it is opened again; an answer names the revision that was seen.
    pub revision: u32,
    pub state: HoldState,
    /// The answers to the present revision.
    pub answers: Vec<Answer>,
    /// When it was opened first.
    pub opened_at: Timestamp,
    /// When it was opened last.
    pub since: Timestamp,
    /// What is asked, where that is more than the prompt.
    #[serde(default)]
    pub asked: Option<Box<HoldQuestion>>,
    /// What is so only where a hold does more than wait for a person.
    #[serde(default)]
    pub terms: Terms,
    /// What was answered when the same question was asked before; offered again, and never taken for an answer.
    #[serde(default)]
    pub previous: Option<Box<Answer>>,
}

/// How a hold is checked, and what may answer it besides a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// What must succeed before an answer that goes on is believed.
    pub check: Option<Check>,
    /// Whether that has succeeded for the present answer.
    pub checked: bool,
    /// The answer with which the run goes on at once.
    pub default: Option<OptionId>,
    /// The answer that the workflow's policy allows without a person.
    pub automatic: Option<OptionId>,
    /// Until when it waits, and what happens then.
    pub deadline: Option<Due>,
    /// When people are reminded next, and how long after that again.
    pub remind: Option<Remind>,
    /// Whether nothing but a person's answer counts.
    #[serde(default)]
    pub person_only: bool,
}

/// Until when a hold waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    pub timer: TimerId,
    /// The moment.
    pub at: Timestamp,
    pub then: OnDeadline,
    /// Whether it has happened.
    pub over: bool,
}

/// When people are reminded of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remind {
    pub timer: TimerId,
    /// The next moment.
    pub at: Timestamp,
    /// How long after each reminder the next one follows.
    pub every: std::time::Duration,
    /// How many there were.
    pub sent: u32,
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
    /// A person finds out whether something works.
    Verify,
    /// A person chooses a way.
    Decision,
    /// A person does what no program can do.
    Action,
    /// A login is missing.
    Authentication,
    /// An agent handed over, and what it named is not there.
    Handover,
}

impl HoldKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Gaps => "gaps",
            Self::Budget => "budget",
            Self::Verify => "verify",
            Self::Decision => "decision",
            Self::Action => "action",
            Self::Authentication => "authentication",
            Self::Handover => "handover",
        }
    }

    /// The kind of hold that a question makes.
    pub fn of(question: Option<&Question>) -> Self {
        match question {
            None => Self::Checkpoint,
            Some(Question::Verify(_)) => Self::Verify,
            Some(Question::Decision(_)) => Self::Decision,
            Some(Question::Action(_)) => Self::Action,
        }
    }

    /// Whether a workflow or an agent put the question; else it came up by itself.
    pub fn is_declared(self) -> bool {
        match self {
            Self::Checkpoint | Self::Verify | Self::Decision | Self::Action => true,
            Self::Interrupted | Self::Failed | Self::Gaps | Self::Budget | Self::Authentication | Self::Handover => false,
        }
    }

    /// The policy that may answer it; none where only a person may.
    pub fn policy(self) -> Option<PolicyKind> {
        match self {
            Self::Checkpoint => Some(PolicyKind::Checkpoint),
            Self::Verify => Some(PolicyKind::Verify),
            Self::Decision => Some(PolicyKind::Decision),
            Self::Action
            | Self::Interrupted
            | Self::Failed
            | Self::Gaps
            | Self::Budget
            | Self::Authentication
            | Self::Handover => None,
        }
    }
}

/// The questions that a policy may answer without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    Checkpoint,
    Verify,
    Decision,
}

/// What a hold is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Run,
    /// An execution of a phase.
    Phase {
        phase: PhaseId,
        iteration: u32,
    },
    /// Some tasks of one phase.
    Tasks(Vec<TaskKey>),
    /// A gate of a phase.
    Gate {
        phase: PhaseId,
        iteration: u32,
        gate: crate::id::GateId,
    },
    /// The gap check of a phase.
    Gaps {
        phase: PhaseId,
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

impl NamedVariants for HoldKind {
    const ALL: &'static [Self] = &[
        Self::Checkpoint,
        Self::Interrupted,
        Self::Failed,
        Self::Gaps,
        Self::Budget,
        Self::Verify,
        Self::Decision,
        Self::Action,
        Self::Authentication,
        Self::Handover,
    ];

    fn as_str(self) -> &'static str {
        self.word()
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
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Checking => "checking",
            Self::Settled => "settled",
            Self::Void => "void",
        }
    }
}

/// What somebody said to a hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub option: OptionId,
    /// What was said with it.
    pub feedback: Option<String>,
    /// Who said it, and by which way.
    pub actor: Actor,
    pub at: Timestamp,
}

/// A file that a decision is about, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentedFile {
    /// Relative to the root, as people would name it.
    pub path: String,
    pub seen: Seen,
    /// Why its bytes are not kept, when they are not.
    #[serde(default)]
    pub not_kept: Option<String>,
    /// The symbolic links that lead to it, in the order in which they are followed.
    #[serde(default)]
    pub links: Vec<SymbolicLink>,
}

/// A symbolic link on the way to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolicLink {
    /// Where it is, named as the file is.
    pub path: String,
    /// Where it leads, as it is written in the link.
    pub target: String,
}

impl PresentedFile {
    /// Something under a path that no symbolic link leads to, with its bytes kept.
    pub fn new(path: &str, seen: Seen) -> Self {
        Self { path: path.to_owned(), seen, not_kept: None, links: Vec::new() }
    }

    /// Whether what was approved there is still there.
    pub fn is_unchanged_from(&self, then: &Self) -> bool {
        self.path == then.path && self.seen == then.seen && self.links == then.links
    }
}

/// What was found under a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    Absent,
    /// A file with these bytes.
    File {
        digest: Digest,
        bytes: u64,
        /// Its permissions: who may read, write and run it, and whether it runs as its owner.
        mode: u32,
    },
    /// A folder; the digest is of its listing, with the digests and permissions of all that is in it.
    Directory {
        digest: Digest,
        /// How many files are in it.
        files: u64,
        mode: u32,
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
    pub fn is_selected_by(&self, selector: &str) -> bool {
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

    /// Whether its deadline passed and it was told louder.
    pub fn is_escalated(&self) -> bool {
        self.terms.deadline.as_ref().is_some_and(|due| due.over && matches!(due.then, OnDeadline::Escalate(_)))
    }

    /// Whether something must succeed before its answer is believed.
    pub fn needs_check(&self) -> bool {
        let continues = self.chosen().is_some_and(|choice| matches!(choice.action, Action::Continue | Action::Rerun));
        continues && self.terms.check.is_some() && !self.terms.checked
    }

    /// Whether a person verified something and found issues.
    pub fn found_issues(&self) -> bool {
        self.kind == HoldKind::Verify && self.chosen().is_some_and(|choice| choice.requires_feedback)
    }

    /// What stops a run at any hold where none of the options does.
    pub fn stop_choice() -> &'static Choice {
        &options::STOP
    }

    /// What stops the run here, where none of the options does. It is apart from them and has no number.
    pub fn stop(&self) -> Option<&Choice> {
        let stop = Self::stop_choice();
        let offered = self.options.iter().any(|choice| choice.action == Action::Abort || choice.has_id(stop.id.as_str()));
        (!offered).then_some(stop)
    }

    /// What has this id: an option, or what stops the run.
    pub fn choice(&self, id: &OptionId) -> Option<&Choice> {
        self.options.iter().chain(self.stop()).find(|choice| choice.id == *id)
    }

    /// The option that was chosen when the same question was asked before.
    pub fn previous_choice(&self) -> Option<&Choice> {
        let previous = self.previous.as_ref()?;
        self.options.iter().find(|choice| choice.id == previous.option)
    }

    /// The option of the last answer.
    pub fn chosen(&self) -> Option<&Choice> {
        self.choice(&self.answers.last()?.option)
    }

    /// The option that somebody means: by its id, its label or another word for it, or its number. What only resembles them is none.
    pub fn option(&self, named: &str) -> Option<&Choice> {
        let named = named.trim();
        let by_id = || self.options.iter().find(|choice| choice.has_id(named));
        let by_number = || named.parse::<usize>().ok().and_then(|number| self.options.get(number.checked_sub(1)?));
        let by_words = || self.options.iter().chain(self.stop()).find(|choice| choice.is_selected_by(named));
        by_id().or_else(by_number).or_else(by_words)
    }
}
