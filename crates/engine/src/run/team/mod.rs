//! Agents that work together: their messages, their conflicts, and what the project learned.

mod conflicts;
mod knowledge;
mod members;
mod messages;
mod refusal;

pub use conflicts::{
    Compromise, Conflict, ConflictStatus, MAX_ROUNDS, Resolution, ResolvedBy, RoundResult, Score, Veto, Vote, VoteDraft,
};
pub use knowledge::{Knowledge, KnowledgeDraft, KnowledgeEntry, MAX_INJECTED, knowledge_id, select};
pub use members::{Member, MemberStatus};
pub use messages::{Delivery, MAX_HANDOFFS, MAX_MESSAGES, Message, MessageDraft, MessageKind, Priority};
pub use refusal::TeamRefusal;

use crate::digest::Digest;
use crate::hold::{HoldKind, HoldState};
use crate::id::{ConflictId, HoldId, KnowledgeId, MessageId, TaskKey};
use crate::run::agent::AgentReport;
use crate::run::event::Event;
use crate::run::state::Run;
use serde::{Deserialize, Serialize};

/// The messages, conflicts and knowledge of a run's agents. Few runs have any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TeamState {
    /// In the order in which they were sent.
    pub messages: Vec<Message>,
    pub conflicts: Vec<Conflict>,
    pub knowledge: Knowledge,
}

/// Who sent, voted or captured something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sender {
    /// The agent of a task, or the task itself where no agent does its work.
    Member {
        name: String,
        key: TaskKey,
        attempt: u32,
    },
    /// A person or a program outside every task.
    Outside {
        name: String,
    },
    Lockgate,
}

impl Sender {
    pub fn name(&self) -> &str {
        match self {
            Self::Member { name, .. } | Self::Outside { name } => name,
            Self::Lockgate => "lockgate",
        }
    }

    /// The name, if it is a member of the team.
    pub fn member(&self) -> Option<&str> {
        match self {
            Self::Member { name, .. } => Some(name),
            Self::Outside { .. } | Self::Lockgate => None,
        }
    }
}

/// The attempt from within which a command was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskAttempt {
    pub key: TaskKey,
    pub attempt: u32,
}

/// A command of a member of the team. The sender is never an argument: `from` is determined where the command enters.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamCommand {
    pub from: Option<TaskAttempt>,
    pub request: TeamRequest,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TeamRequest {
    Send(MessageDraft),
    Acknowledge(MessageId),
    OpenConflict {
        topic: String,
        participants: Vec<String>,
        /// Members with a boost in this domain count for more.
        domain: Option<String>,
    },
    Vote {
        conflict: ConflictId,
        vote: VoteDraft,
    },
    Capture(KnowledgeDraft),
    /// Knowledge was selected for the prompt of a task.
    Inject {
        key: TaskKey,
        entries: Vec<KnowledgeEntry>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamEvent {
    MessageSent(Message),
    /// Messages entered the prompt of an attempt.
    MessagesDelivered {
        key: TaskKey,
        attempt: u32,
        messages: Vec<MessageId>,
    },
    MessageAcknowledged {
        message: MessageId,
        /// The recipient.
        by: String,
    },
    /// An attempt ended, and another agent continues its task.
    HandedOff {
        key: TaskKey,
        attempt: u32,
        to: String,
        message: MessageId,
        agent: Option<Box<AgentReport>>,
    },
    ConflictOpened(Conflict),
    Voted {
        conflict: ConflictId,
        vote: Vote,
    },
    /// Everyone voted without agreement.
    RoundStarted {
        conflict: ConflictId,
        round: u32,
    },
    /// The members cannot settle the conflict, so a person is asked.
    ConflictEscalated {
        conflict: ConflictId,
        hold: HoldId,
        reason: String,
    },
    ConflictResolved {
        conflict: ConflictId,
        resolution: Resolution,
    },
    KnowledgeCaptured(KnowledgeEntry),
    /// Knowledge entered the prompt of a task. Its later attempts use the same selection.
    KnowledgeInjected {
        key: TaskKey,
        ids: Vec<KnowledgeId>,
        /// The entries that this run did not have yet.
        entries: Vec<KnowledgeEntry>,
    },
}

impl From<TeamEvent> for Event {
    fn from(event: TeamEvent) -> Self {
        Self::Team(Box::new(event))
    }
}

impl TeamState {
    pub fn message(&self, id: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.id.as_str() == id)
    }

    pub fn conflict(&self, id: &str) -> Option<&Conflict> {
        self.conflicts.iter().find(|conflict| conflict.id.as_str() == id)
    }

    pub(super) fn conflict_mut(&mut self, id: &ConflictId) -> Option<&mut Conflict> {
        self.conflicts.iter_mut().find(|conflict| conflict.id == *id)
    }

    /// The consequences of other events: the messages of a successful attempt are acknowledged, and a voided question is asked
    /// again.
    pub(super) fn happened(&mut self, event: &Event) {
        if let Event::TaskFinished { key, attempt, .. }
        | Event::TaskRepeated { key, attempt, .. }
        | Event::HandedOver { key, attempt, .. } = event
        {
            self.acknowledge_delivered(key, *attempt);
        }
        if let Event::HoldVoided { hold, .. } = event {
            self.conflicts.iter_mut().filter(|known| known.hold.as_ref() == Some(hold)).for_each(|known| known.hold = None);
        }
    }

    pub(super) fn acknowledge_delivered(&mut self, key: &TaskKey, attempt: u32) {
        for message in &mut self.messages {
            message.acknowledge_delivered(key, attempt);
        }
    }

    /// The digests of large payloads and contents.
    pub(in crate::run) fn stored_values(&self) -> impl Iterator<Item = Digest> + '_ {
        let payloads = self.messages.iter().filter_map(|message| message.payload.stored());
        payloads.chain(self.knowledge.stored_values())
    }

    /// The state with which a fork starts: the questions stay with its parent.
    pub(super) fn continued(mut self) -> Self {
        self.conflicts.iter_mut().for_each(|conflict| conflict.hold = None);
        self
    }
}

impl Run {
    /// The team's state for writing, created if absent.
    pub(super) fn team_mut(&mut self) -> &mut TeamState {
        self.team.get_or_insert_default()
    }

    /// Whether the phase may not end yet, because a person is asked about a message or a conflict, or will be.
    pub(super) fn team_is_unsettled(&self) -> bool {
        let Some(team) = &self.team else { return false };
        self.team_asks() || team.conflicts.iter().any(Conflict::is_in_progress)
    }

    /// Whether a person is asked about a message or a conflict.
    pub(super) fn team_asks(&self) -> bool {
        let asks = |kind| matches!(kind, HoldKind::Escalation | HoldKind::Conflict);
        let unsettled = |state| matches!(state, HoldState::Open | HoldState::Checking);
        self.team.is_some() && self.holds.values().any(|hold| asks(hold.kind) && unsettled(hold.state))
    }

    /// Messages that a recipient has not acknowledged yet.
    pub fn pending_messages(&self) -> Vec<&MessageId> {
        self.team_messages().filter(|message| message.is_pending()).map(|message| &message.id).collect()
    }

    /// Requests and escalations that no one responded to yet.
    pub fn messages_awaiting_response(&self) -> Vec<&MessageId> {
        let responded = |id: &MessageId| self.team_messages().any(|other| other.responds_to(id));
        let asks = |message: &&Message| matches!(message.kind, MessageKind::Request | MessageKind::Escalate);
        self.team_messages().filter(asks).map(|message| &message.id).filter(|id| !responded(id)).collect()
    }

    pub fn conflicts_in_progress(&self) -> Vec<&ConflictId> {
        let conflicts = self.team.iter().flat_map(|team| &team.conflicts);
        conflicts.filter(|conflict| conflict.is_in_progress()).map(|conflict| &conflict.id).collect()
    }

    /// The knowledge that entered a prompt of this run.
    pub fn injected_knowledge(&self) -> Vec<&KnowledgeId> {
        self.team.as_ref().map(|team| team.knowledge.injected_ids()).unwrap_or_default()
    }

    /// The knowledge that this run captured.
    pub fn captured_knowledge(&self) -> Vec<&KnowledgeId> {
        self.team.iter().flat_map(|team| &team.knowledge.captured).map(|entry| &entry.id).collect()
    }

    /// The captured knowledge that is not among the entries of the project yet.
    pub fn pending_captures(&self, known: impl Fn(&KnowledgeId) -> bool) -> Vec<&KnowledgeEntry> {
        self.team.iter().flat_map(|team| &team.knowledge.captured).filter(|entry| !known(&entry.id)).collect()
    }

    fn team_messages(&self) -> impl Iterator<Item = &Message> {
        self.team.iter().flat_map(|team| &team.messages)
    }
}
