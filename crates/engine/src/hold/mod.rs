//! Holds: questions of a run that wait for an answer, and the effect of an answer.

mod action;
mod diff;
pub mod option_ids;
mod options;
mod question;

#[cfg(test)]
mod tests;

pub use action::Action;
pub(crate) use options::plain_words;
pub use options::{
    Choice, action_options, authentication_options, budget_options, commit_options, conflict_options, decision_options,
    escalation_options, gap_options, gate_options, handover_options, recovered_task_options, task_options, verify_options,
};
pub use question::{Authentication, HoldQuestion, Topic, offered_text};

pub use diff::{ApprovedDiff, ChangeStatus, ChangedFile, GitChange, LineCounts, SeenDiff, ShownDiff};

use crate::digest::Digest;
use crate::id::{HoldId, OptionId, PhaseId, TaskKey, TimerId};
use crate::run::command::Actor;
use crate::run::index::NamedVariants;
use crate::spec::workflow::{Check, OnDeadline, Question};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A question that waits for an answer, or whose answer has not taken effect yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    pub id: HoldId,
    pub kind: HoldKind,
    pub scope: Scope,
    /// The rendered question.
    pub prompt: String,
    /// Notes shown with the question: errors, warnings, changes.
    pub notes: Vec<String>,
    /// The files that the answer is bound to, as they were when the hold was opened or reopened.
    pub files: Vec<PresentedFile>,
    pub options: Vec<Choice>,
    /// Whether the run waits for the answer.
    pub blocking: bool,
    /// How many people must approve.
    pub quorum: u32,
    /// Incremented each time the hold is reopened. An answer names the revision that was seen.
    pub revision: u32,
    pub state: HoldState,
    /// The answers to the current revision.
    pub answers: Vec<Answer>,
    pub opened_at: Timestamp,
    /// When it was last opened or reopened.
    pub since: Timestamp,
    /// The full question, if there is more to it than the prompt.
    #[serde(default)]
    pub question: Option<Box<HoldQuestion>>,
    /// Settings of holds that do more than wait for a person.
    #[serde(default)]
    pub terms: Terms,
    /// The answer given when the same question was asked before. It is offered again, but never counts as an answer.
    #[serde(default)]
    pub previous: Option<Box<Answer>>,
    /// The git change that the answer is about, as it was when it was opened or reopened.
    #[serde(default)]
    pub diff: Option<Box<ShownDiff>>,
}

/// How the answer is checked, and what may answer instead of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The check that must succeed before an answer that continues the run counts.
    pub check: Option<Check>,
    /// Whether the check succeeded for the current answer.
    pub checked: bool,
    /// The answer with which the run continues immediately.
    pub default: Option<OptionId>,
    /// The answer that the workflow's policy allows without a person.
    pub automatic: Option<OptionId>,
    /// When it expires, and what happens then.
    pub deadline: Option<Due>,
    /// When people are reminded next, and in which intervals.
    pub remind: Option<Remind>,
    /// Whether only a person's answer counts.
    #[serde(default)]
    pub person_only: bool,
}

/// The deadline of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    pub timer: TimerId,
    pub at: Timestamp,
    pub then: OnDeadline,
    /// Whether it has passed.
    pub over: bool,
}

/// The reminders of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remind {
    pub timer: TimerId,
    /// The time of the next reminder.
    pub at: Timestamp,
    /// The interval between reminders.
    pub every: std::time::Duration,
    /// The number of reminders sent.
    pub sent: u32,
}

/// The kind of question that a hold asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    Checkpoint,
    /// Tasks were interrupted, and a person decides what happens.
    Interrupted,
    /// A task or gate failed, and a person decides what happens.
    Failed,
    /// The work of a phase is incomplete, and a person decides what happens.
    Gaps,
    /// A budget is exhausted, and a person decides whether to raise it.
    Budget,
    /// A person verifies that something works.
    Verify,
    /// A person chooses an option.
    Decision,
    /// A person does something that no program can do.
    Action,
    /// A login is missing.
    Authentication,
    /// An agent handed over commits that do not exist.
    Handover,
    /// An agent asks a person in a message.
    Escalation,
    /// Agents disagree, and a person decides.
    Conflict,
}

impl HoldKind {
    pub fn as_str(self) -> &'static str {
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
            Self::Escalation => "escalation",
            Self::Conflict => "conflict",
        }
    }

    /// The kind of hold that a question opens.
    pub fn of(question: Option<&Question>) -> Self {
        match question {
            None => Self::Checkpoint,
            Some(Question::Verify(_)) => Self::Verify,
            Some(Question::Decision(_)) => Self::Decision,
            Some(Question::Action(_)) => Self::Action,
        }
    }

    /// Whether a workflow or an agent asks the question. Otherwise the run itself does.
    pub fn is_declared(self) -> bool {
        match self {
            Self::Checkpoint | Self::Verify | Self::Decision | Self::Action => true,
            Self::Interrupted
            | Self::Failed
            | Self::Gaps
            | Self::Budget
            | Self::Authentication
            | Self::Handover
            | Self::Escalation
            | Self::Conflict => false,
        }
    }

    /// The policy that may answer it; `None` if only a person may.
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
            | Self::Handover
            | Self::Escalation
            | Self::Conflict => None,
        }
    }
}

/// The kinds of questions that a policy may answer without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    Checkpoint,
    Verify,
    Decision,
}

/// The subject of a hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Run,
    Phase {
        phase: PhaseId,
        iteration: u32,
    },
    /// Tasks of one phase.
    Tasks(Vec<TaskKey>),
    Gate {
        phase: PhaseId,
        iteration: u32,
        gate: crate::id::GateId,
    },
    Gaps {
        phase: PhaseId,
        iteration: u32,
    },
}

/// The name of a phase's gap check in addresses: `phase/gap_check`.
pub const GAP_CHECK: &str = "gap_check";

impl Scope {
    /// The phase of its subject.
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
        Self::Escalation,
        Self::Conflict,
    ];

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}

/// The state of a hold. A reopened hold is open, with a higher revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldState {
    Open,
    /// It was answered, and the shown files are compared with the current ones.
    Checking,
    /// Its answer took effect.
    Settled,
    /// It no longer applies.
    Void,
}

impl HoldState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Checking => "checking",
            Self::Settled => "settled",
            Self::Void => "void",
        }
    }
}

/// An answer to a hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub option: OptionId,
    pub feedback: Option<String>,
    /// Who answered, and through which channel.
    pub actor: Actor,
    pub at: Timestamp,
}

/// A file that an answer is bound to, as it was when it was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentedFile {
    /// Relative to the root, as people would name it.
    pub path: String,
    pub seen: Seen,
    /// Why its bytes are not stored, if they are not.
    #[serde(default)]
    pub not_kept: Option<String>,
    /// The symbolic links on its path, in the order in which they are followed.
    #[serde(default)]
    pub links: Vec<SymbolicLink>,
}

/// A symbolic link on the path of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolicLink {
    /// The path of the link, in the same form as that of the file.
    pub path: String,
    /// The target, as written in the link.
    pub target: String,
}

impl PresentedFile {
    /// A path without symbolic links, whose bytes are stored.
    pub fn new(path: &str, seen: Seen) -> Self {
        Self { path: path.to_owned(), seen, not_kept: None, links: Vec::new() }
    }

    /// Whether the content is still the same.
    pub fn is_unchanged_from(&self, then: &Self) -> bool {
        self.path == then.path && self.seen == then.seen && self.links == then.links
    }
}

/// The observed content of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    Absent,
    File {
        digest: Digest,
        bytes: u64,
        /// Permissions, including the setuid bit.
        mode: u32,
    },
    /// A directory. The digest covers its listing, with the digests and permissions of everything in it.
    Directory {
        digest: Digest,
        files: u64,
        mode: u32,
    },
    /// Unreadable or not allowed to be shown, with the reason.
    Unreadable(String),
}

impl Seen {
    /// The digest, if the path exists.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } | Self::Directory { digest, .. } => Some(*digest),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// The size of a file.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::File { bytes, .. } => Some(*bytes),
            Self::Absent | Self::Directory { .. } | Self::Unreadable(_) => None,
        }
    }
}

impl Hold {
    /// Whether a selector refers to this hold: its id, its phase (for a declared checkpoint), or the address of its task or gate.
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

    /// Whether it shows files or a git diff that an answer is bound to.
    pub fn shows_content(&self) -> bool {
        !self.files.is_empty() || self.diff.is_some()
    }

    /// Whether its deadline passed and it was escalated.
    pub fn is_escalated(&self) -> bool {
        self.terms.deadline.as_ref().is_some_and(|due| due.over && matches!(due.then, OnDeadline::Escalate(_)))
    }

    /// Whether a check must succeed before its answer counts.
    pub fn needs_check(&self) -> bool {
        let continues = self.chosen().is_some_and(|choice| matches!(choice.action, Action::Continue | Action::Rerun));
        continues && self.terms.check.is_some() && !self.terms.checked
    }

    /// Whether a person verified something and found issues.
    pub fn found_issues(&self) -> bool {
        self.kind == HoldKind::Verify && self.chosen().is_some_and(|choice| choice.requires_feedback)
    }

    /// The option that stops a run at a hold whose own options do not.
    pub fn stop_choice() -> &'static Choice {
        &options::STOP
    }

    /// The option that stops the run here, if none of the hold's own options does. It is separate from them and has no number.
    pub fn stop(&self) -> Option<&Choice> {
        let stop = Self::stop_choice();
        let offered = self.options.iter().any(|choice| choice.action == Action::Abort || choice.has_id(stop.id.as_str()));
        (!offered).then_some(stop)
    }

    /// The option with this id, or the one that stops the run.
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

    /// The option with this id, label, signal word or number. Words that only resemble one do not match.
    pub fn option(&self, named: &str) -> Option<&Choice> {
        let named = named.trim();
        let by_id = || self.options.iter().find(|choice| choice.has_id(named));
        let by_number = || named.parse::<usize>().ok().and_then(|number| self.options.get(number.checked_sub(1)?));
        let by_words = || self.options.iter().chain(self.stop()).find(|choice| choice.is_selected_by(named));
        by_id().or_else(by_number).or_else(by_words)
    }
}
