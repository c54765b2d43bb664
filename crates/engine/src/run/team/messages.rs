//! Messages between the members of a team.

use super::Sender;
use crate::id::{HoldId, MessageId, PhaseId, TaskKey};
use crate::run::state::{Run, TaskState};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// How many messages a run keeps, so that agents that answer each other forever cannot fill its history.
pub const MAX_MESSAGES: usize = 1000;

/// How many times one execution of a task may be handed off, because an attempt after a handoff costs no retry.
pub const MAX_HANDOFFS: usize = 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub kind: MessageKind,
    pub from: Sender,
    /// The named recipient. Absent if the message goes to everyone or to a person.
    pub to: Option<String>,
    /// The message that this one responds to.
    pub correlation: Option<MessageId>,
    pub priority: Priority,
    /// One line for lists and logs.
    pub summary: String,
    /// JSON.
    pub payload: StoredValue,
    /// The phase in which it was sent.
    pub phase: Option<PhaseId>,
    /// The attempt of the task that sent it; zero if no task did.
    pub attempt: u32,
    pub at: Timestamp,
    /// The members who must acknowledge it.
    pub recipients: Vec<String>,
    pub acknowledged_by: Vec<String>,
    pub deliveries: Vec<Delivery>,
    /// The hold that an escalation opened.
    pub hold: Option<HoldId>,
}

/// A message that was part of the prompt of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub to: String,
    pub key: TaskKey,
    pub attempt: u32,
}

/// A message that is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageDraft {
    pub kind: MessageKind,
    pub to: Option<String>,
    pub correlation: Option<MessageId>,
    pub priority: Priority,
    pub summary: String,
    pub payload: StoredValue,
    /// For an escalation: the answers that a person can choose from.
    pub options: Vec<String>,
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }
    };
}

named! {
    /// The type of a message.
    MessageKind {
        Request = "REQUEST",
        Response = "RESPONSE",
        /// Another agent continues the sender's task.
        Handoff = "HANDOFF",
        /// A person is asked.
        Escalate = "ESCALATE",
        Broadcast = "BROADCAST",
        /// A vote in a conflict, which is recorded by voting.
        Vote = "VOTE",
    }
}

named! {
    Priority {
        Critical = "CRITICAL",
        High = "HIGH",
        Normal = "NORMAL",
        Low = "LOW",
    }
}

impl Message {
    /// Whether a recipient has not acknowledged it yet.
    pub fn is_pending(&self) -> bool {
        self.recipients.iter().any(|member| self.is_pending_for(member))
    }

    pub fn is_pending_for(&self, member: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == member);
        named(&self.recipients) && !named(&self.acknowledged_by)
    }

    pub fn responds_to(&self, id: &MessageId) -> bool {
        self.kind == MessageKind::Response && self.correlation.as_ref() == Some(id)
    }

    pub(in crate::run) fn acknowledge(&mut self, member: &str) {
        if self.is_pending_for(member) {
            self.acknowledged_by.push(member.to_owned());
        }
    }

    pub(super) fn acknowledge_delivered(&mut self, key: &TaskKey, attempt: u32) {
        let delivered = |delivery: &&Delivery| delivery.key == *key && delivery.attempt == attempt;
        let to: Vec<String> = self.deliveries.iter().filter(delivered).map(|delivery| delivery.to.clone()).collect();
        to.iter().for_each(|member| self.acknowledge(member));
    }

    fn is_delivered_to(&self, key: &TaskKey, attempt: u32) -> bool {
        self.deliveries.iter().any(|delivery| delivery.key == *key && delivery.attempt == attempt)
    }
}

impl Run {
    /// The messages that the next prompt of a member includes: those that it has not acknowledged, except those that another
    /// running attempt of it already has.
    pub(in crate::run) fn messages_to_deliver(&self, member: &str) -> Vec<MessageId> {
        let Some(team) = &self.team else { return Vec::new() };
        let is_running = |delivery: &Delivery| {
            let task = self.task_run(&delivery.key).filter(|task| task.state == TaskState::Running);
            delivery.to == member && task.is_some_and(|task| task.attempts == delivery.attempt)
        };
        let pending = team.messages.iter().filter(|message| message.is_pending_for(member));
        pending.filter(|message| !message.deliveries.iter().any(is_running)).map(|message| message.id.clone()).collect()
    }

    /// The messages that the prompt of an attempt includes.
    pub fn delivered_messages(&self, key: &TaskKey, attempt: u32) -> Vec<&Message> {
        let messages = self.team.iter().flat_map(|team| &team.messages);
        messages.filter(|message| message.is_delivered_to(key, attempt)).collect()
    }

    /// The handoff that an attempt of a task asked for.
    pub(in crate::run) fn handoff_of(&self, key: &TaskKey, attempt: u32) -> Option<&Message> {
        self.handoffs(key).find(|message| message.attempt == attempt)
    }

    pub(in crate::run) fn handoffs<'r, 'k>(&'r self, key: &'k TaskKey) -> impl Iterator<Item = &'r Message> + use<'r, 'k> {
        let messages = self.team.iter().flat_map(|team| &team.messages);
        let of_key = move |message: &&Message| matches!(&message.from, Sender::Member { key: from, .. } if from == key);
        messages.filter(|message| message.kind == MessageKind::Handoff).filter(of_key)
    }
}
