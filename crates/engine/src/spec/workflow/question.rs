//! The kinds of questions that a checkpoint can ask, how long it waits, and automatic answers.

use super::Script;
use crate::hold::PolicyKind;
use crate::id::{OptionId, TaskId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many times work is redone because of issues, unless a checkpoint sets a limit.
pub const DEFAULT_ROUNDS: u32 = 3;

/// How many times a phase is repeated without a person, because of failures or by automatic answers, before a person is asked.
pub const MAX_AUTOMATIC_REPEATS: u32 = 3;

/// The question of a checkpoint. Its texts are templates in a definition, and rendered in a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    Verify(Verify),
    Decision(Decision),
    Action(Action),
}

impl Question {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Verify(_) => "verify",
            Self::Decision(_) => "decision",
            Self::Action(_) => "action",
        }
    }

    /// The same question with its texts changed, except commands.
    pub fn map_texts(&self, change: &mut dyn FnMut(&str) -> String) -> Self {
        match self {
            Self::Verify(verify) => Self::Verify(Verify {
                built: change(&verify.built),
                steps: verify.steps.iter().map(|step| change(step)).collect(),
                ..verify.clone()
            }),
            Self::Decision(decision) => Self::Decision(Decision {
                question: change(&decision.question),
                context: decision.context.as_deref().map(&mut *change),
                options: decision
                    .options
                    .iter()
                    .map(|way| DecisionOption {
                        pros: way.pros.as_deref().map(&mut *change),
                        cons: way.cons.as_deref().map(&mut *change),
                        ..way.clone()
                    })
                    .collect(),
            }),
            Self::Action(action) => Self::Action(Action {
                automated: action.automated.as_deref().map(&mut *change),
                needed: change(&action.needed),
                instructions: action.instructions.as_deref().map(&mut *change),
                check: action.check.clone(),
            }),
        }
    }
}

/// A verification that something works as it should.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    pub built: String,
    /// How to verify it, in order.
    pub steps: Vec<String>,
    /// The tasks that are redone if issues are found.
    pub redo: Vec<TaskId>,
    /// How many times they are redone at most.
    pub rounds: u32,
}

/// A choice between options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub question: String,
    /// Why it matters.
    pub context: Option<String>,
    pub options: Vec<DecisionOption>,
}

/// An option of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionOption {
    pub id: OptionId,
    pub name: String,
    pub pros: Option<String>,
    pub cons: Option<String>,
}

/// Something that only a person can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The steps that were already automated.
    pub automated: Option<String>,
    /// The one thing that is needed.
    pub needed: String,
    pub instructions: Option<String>,
    pub check: Option<Check>,
}

/// A command that checks whether a person has completed the action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// A template in a definition.
    pub run: String,
    pub timeout: Option<Duration>,
    /// Shown to people instead of the command, if the command was built from their text.
    #[serde(default)]
    pub description: Option<String>,
}

impl Check {
    /// The text that people see.
    pub fn shown(&self) -> &str {
        self.description.as_deref().unwrap_or(&self.run)
    }
}

/// How a checkpoint waits for its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSettings {
    /// The answer with which the run continues immediately; a person may change it later. The run waits if absent.
    pub default: Option<OptionId>,
    /// How long it waits at most, and what happens then.
    pub deadline: Option<Deadline>,
    /// The interval of reminders.
    pub remind: Option<Duration>,
    /// Whether only a person's answer counts: no policy, no default, no preset answer.
    #[serde(default)]
    pub person_only: bool,
    /// The answer that policy gives, if it may. By default the first option that continues the run.
    #[serde(default)]
    pub proposed: Option<OptionId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub after: Duration,
    pub then: OnDeadline,
}

/// What happens when no one answered in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeadline {
    Answer(OptionId),
    /// It is escalated, to these people if any are named, and keeps waiting.
    Escalate(Option<String>),
    /// The run ends.
    Abort,
}

impl OnDeadline {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Escalate(_) => "escalate",
            Self::Abort => "abort",
        }
    }
}

/// Which questions may be answered without a person, and when verifications are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Plain checkpoints take their default, or else their first option that continues the run.
    pub checkpoint: Option<Automatic>,
    /// Verifications are approved.
    pub verify: Option<Automatic>,
    /// Decisions take their default, or else their first option.
    pub decision: Option<Automatic>,
    /// Whether verifications are asked together, at the end of their phase.
    pub collect_phase: bool,
}

impl Policy {
    /// When questions of a kind may be answered without a person; never if absent.
    pub fn rule(&self, kind: PolicyKind) -> Option<&Automatic> {
        match kind {
            PolicyKind::Checkpoint => self.checkpoint.as_ref(),
            PolicyKind::Verify => self.verify.as_ref(),
            PolicyKind::Decision => self.decision.as_ref(),
        }
    }
}

/// When a question may be answered without a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automatic {
    /// An additional condition.
    pub when: Option<Script>,
    /// The maximum number in a row; unlimited if absent.
    pub max_consecutive: Option<u32>,
}
