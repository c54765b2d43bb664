//! The questions that a checkpoint can put, by their kind; how long it waits; and who may answer in a person's place.

use super::Script;
use crate::hold::PolicyKind;
use crate::id::{OptionId, TaskId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often work is done again because of issues, unless a checkpoint says otherwise.
pub const DEFAULT_ROUNDS: u32 = 3;

/// How often a phase is repeated without a person, because of failures or by an automatic answer, before a person is asked.
pub const MAX_AUTOMATIC_REPEATS: u32 = 3;

/// What a checkpoint asks: all texts are templates in a definition, and filled in where it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Whether something works as it should.
    Verify(Verify),
    /// Which way to go.
    Decision(Decision),
    /// To do what no program can do.
    Action(Action),
}

impl Question {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Verify(_) => "verify",
            Self::Decision(_) => "decision",
            Self::Action(_) => "action",
        }
    }

    /// The same question with its texts changed, commands left out.
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

/// Whether something works as it should.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    pub built: String,
    /// How to find out, in order.
    pub steps: Vec<String>,
    /// The tasks that are done again, with the issues at hand.
    pub redo: Vec<TaskId>,
    /// How often they are, at most.
    pub rounds: u32,
}

/// Which way to go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What is to be decided.
    pub question: String,
    /// Why it matters.
    pub context: Option<String>,
    /// The ways there are.
    pub options: Vec<DecisionOption>,
}

/// A way to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionOption {
    /// What an answer names.
    pub id: OptionId,
    pub name: String,
    /// What speaks for it.
    pub pros: Option<String>,
    /// What speaks against it.
    pub cons: Option<String>,
}

/// Something that only a person can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// What was done without people.
    pub automated: Option<String>,
    /// The one thing that is needed.
    pub needed: String,
    /// How to do it.
    pub instructions: Option<String>,
    /// What finds out whether it was done.
    pub check: Option<Check>,
}

/// A command that finds out whether a person did what was needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The shell command; a template in a definition.
    pub run: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// What people are shown instead of the command, where that is made of what they wrote.
    #[serde(default)]
    pub told: Option<String>,
}

impl Check {
    /// What people are shown.
    pub fn shown(&self) -> &str {
        self.told.as_deref().unwrap_or(&self.run)
    }
}

/// How a checkpoint waits for its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSettings {
    /// The answer with which the run goes on at once; a person may change it later. The run waits when absent.
    pub default: Option<OptionId>,
    /// How long it waits at most, and what happens then.
    pub deadline: Option<Deadline>,
    /// How often people are reminded.
    pub remind: Option<Duration>,
    /// Whether nothing but a person's answer counts: no policy, no default, no answer in advance.
    #[serde(default)]
    pub person_only: bool,
    /// The answer that policy gives where it may; the first that goes on when absent.
    #[serde(default)]
    pub proposed: Option<OptionId>,
}

/// How long a question waits, and what happens then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    pub after: Duration,
    pub then: OnDeadline,
}

/// What happens when nobody has answered in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeadline {
    /// This is the answer.
    Answer(OptionId),
    /// It is told louder, to these people where any are named, and goes on waiting.
    Escalate(Option<String>),
    /// The run ends.
    Abort,
}

impl OnDeadline {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Escalate(_) => "escalate",
            Self::Abort => "abort",
        }
    }
}

/// Which questions may be answered without a person, and when verifications are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Plain checkpoints take their default, or else their first option that goes on.
    pub checkpoint: Option<Automatic>,
    /// Verifications are approved.
    pub verify: Option<Automatic>,
    /// Decisions take their default, or else their first option.
    pub decision: Option<Automatic>,
    /// Whether verifications are asked for together, at the end of their phase.
    pub collect_phase: bool,
}

impl Policy {
    /// When questions of a kind may be answered without a person; never when absent.
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
    /// Only where this is true.
    pub when: Option<Script>,
    /// At most so often in a row; without end when absent.
    pub max_consecutive: Option<u32>,
}
