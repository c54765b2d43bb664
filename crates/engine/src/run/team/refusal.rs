//! Requests of members that the rules of a team do not allow.

use crate::id::{ConflictId, MessageId};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TeamRefusal {
    /// The sender belongs to a task, but not to a running attempt of this run.
    #[error("the sender is not a running task of this run")]
    SenderNotRunning,
    #[error("only a task of the run may {what}")]
    TaskRequired { what: &'static str },
    /// An attempt without an agent has nothing to hand off.
    #[error("{address} is not the work of an agent, so it cannot be handed off")]
    AgentRequired { address: String },
    #[error("there is no member {name:?} in the team of this run")]
    MemberNotFound { name: String, members: Vec<String> },
    #[error("a {kind} message must name its recipient")]
    RecipientRequired { kind: &'static str },
    #[error("a BROADCAST message goes to every member and names no recipient")]
    RecipientNotAllowed,
    #[error("{name} cannot send a {kind} message to itself")]
    ToItself { name: String, kind: &'static str },
    #[error("a RESPONSE message must name the message that it responds to")]
    CorrelationRequired,
    #[error("there is no message {0} in this run")]
    MessageNotFound(MessageId),
    #[error("message {message} is addressed to {}, not to {name}", listed(.recipients))]
    NotRecipient { message: MessageId, name: String, recipients: Vec<String> },
    #[error("votes are cast in a conflict, not sent as messages")]
    VoteOutsideConflict,
    #[error("the run already has {0} messages, which is the limit")]
    TooManyMessages(usize),
    #[error("{address} was handed off {times} times, which is the limit")]
    TooManyHandoffs { address: String, times: usize },
    #[error("this attempt of {address} was already handed off to {to}")]
    AlreadyHandedOff { address: String, to: String },
    #[error("a conflict needs a topic")]
    TopicRequired,
    #[error("a conflict needs at least two participants")]
    TooFewParticipants,
    #[error("there is no conflict {0} in this run")]
    ConflictNotFound(ConflictId),
    #[error("conflict {0} is already resolved")]
    ConflictResolved(ConflictId),
    #[error("a person decides conflict {0} now")]
    ConflictWithPerson(ConflictId),
    #[error("{name} does not take part in conflict {conflict}")]
    NotParticipant { conflict: ConflictId, name: String },
    #[error("{name} has already voted in round {round} of conflict {conflict}")]
    VotedAlready { conflict: ConflictId, name: String, round: u32 },
    #[error("{what} must be {expected}")]
    OutOfRange { what: &'static str, expected: &'static str },
    #[error("a vote must name a choice")]
    ChoiceRequired,
    #[error("the settings of the team do not allow {name} to veto")]
    VetoNotAllowed { name: String },
    #[error("a veto needs a reason")]
    VetoReasonRequired,
    #[error("{0:?} is not a valid type of knowledge: use lower-case letters, digits, `-` and `_`")]
    InvalidKnowledgeType(String),
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "no member".to_owned() } else { names.join(", ") }
}
