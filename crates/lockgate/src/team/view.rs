//! Messages and conflicts as JSON.

use lockgate_engine::id::{ConflictId, HoldId, MessageId, PhaseId};
use lockgate_engine::run::team::{Conflict, Message, Resolution, ResolvedBy, Score, Sender, Vote};
use lockgate_engine::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageView {
    /// `MSG-…`
    pub id: MessageId,
    /// `REQUEST`, `RESPONSE`, `HANDOFF`, `ESCALATE`, `BROADCAST` or `VOTE`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The agent or task that sent it, or the person outside.
    pub from: String,
    /// The address of the task that sent it, if a task did.
    pub task: Option<String>,
    /// The named recipient.
    pub to: Option<String>,
    /// The message that it responds to.
    pub correlation_id: Option<MessageId>,
    /// `CRITICAL`, `HIGH`, `NORMAL` or `LOW`.
    pub priority: &'static str,
    /// One line.
    pub summary: String,
    /// JSON.
    pub payload: Value,
    /// The phase in which it was sent.
    pub phase: Option<PhaseId>,
    /// The attempt of the task that sent it; zero if no task did.
    pub attempt: u32,
    /// When it was sent.
    pub timestamp: Timestamp,
    /// The members who must acknowledge it.
    pub recipients: Vec<String>,
    /// The members who have.
    pub acknowledged_by: Vec<String>,
    /// Whether a member has not acknowledged it yet.
    pub pending: bool,
    /// The hold of an escalation.
    pub hold: Option<HoldId>,
}

impl MessageView {
    pub(super) fn new(message: &Message, payload: Value) -> Self {
        let task = match &message.from {
            Sender::Member { key, .. } => Some(key.address()),
            Sender::Outside { .. } | Sender::Lockgate => None,
        };
        Self {
            id: message.id.clone(),
            kind: message.kind.as_str(),
            from: message.from.name().to_owned(),
            task,
            to: message.to.clone(),
            correlation_id: message.correlation.clone(),
            priority: message.priority.as_str(),
            summary: message.summary.clone(),
            payload,
            phase: message.phase.clone(),
            attempt: message.attempt,
            timestamp: message.at,
            recipients: message.recipients.clone(),
            acknowledged_by: message.acknowledged_by.clone(),
            pending: message.is_pending(),
            hold: message.hold.clone(),
        }
    }
}

/// A conflict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConflictView {
    /// `CONF-…`
    pub id: ConflictId,
    /// What the participants disagree about.
    pub topic: String,
    /// `voting`, `with_person` or `resolved`.
    pub status: &'static str,
    /// Who opened it.
    pub opened_by: String,
    /// The participants.
    pub participants: Vec<String>,
    /// The domain.
    pub domain: Option<String>,
    /// When it was opened.
    pub timestamp: Timestamp,
    /// The current round, counted from 1.
    pub round: u32,
    /// The participants who have not voted in this round.
    pub missing: Vec<String>,
    /// The last vote of every participant.
    pub positions: Vec<VoteView>,
    /// The hold that asks a person.
    pub hold: Option<HoldId>,
    /// How it was resolved.
    pub resolution: Option<ResolutionView>,
}

/// The position of a participant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VoteView {
    /// The participant.
    pub agent: String,
    /// The round of the vote.
    pub round: u32,
    /// What the participant wants.
    pub choice: String,
    /// Why.
    pub rationale: String,
    /// What supports it.
    pub evidence: Vec<String>,
    /// From 0 to 100.
    pub confidence: u32,
    /// From 0 to 1.
    pub domain_relevance: f64,
    /// Whether another choice is acceptable.
    pub compromise: bool,
    /// What would make another choice acceptable.
    pub conditions: Vec<String>,
    /// `CRITICAL` or `HIGH`.
    pub veto: Option<&'static str>,
    /// Why it vetoes.
    pub veto_reason: Option<String>,
    /// What the vote counts.
    pub score: f64,
}

/// How a conflict was resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolutionView {
    /// The winning choice.
    pub choice: String,
    /// `consensus`, `score`, `veto` or `person`.
    pub by: &'static str,
    /// The participant with the veto, or the person.
    pub decided_by: Option<String>,
    /// Why.
    pub reasoning: String,
    /// The scores of the choices, highest first.
    pub scores: Vec<Score>,
    /// The positions that lost.
    pub dissent: Vec<VoteView>,
    /// When.
    pub timestamp: Timestamp,
}

impl ConflictView {
    pub(super) fn of(conflict: &Conflict) -> Self {
        Self {
            id: conflict.id.clone(),
            topic: conflict.topic.clone(),
            status: conflict.status().as_str(),
            opened_by: conflict.opened_by.name().to_owned(),
            participants: conflict.participants.clone(),
            domain: conflict.domain.clone(),
            timestamp: conflict.at,
            round: conflict.round,
            missing: conflict.missing().into_iter().filter(|_| conflict.is_in_progress()).map(str::to_owned).collect(),
            positions: conflict.positions().into_iter().map(VoteView::of).collect(),
            hold: conflict.hold.clone(),
            resolution: conflict.resolution.as_ref().map(ResolutionView::of),
        }
    }
}

impl VoteView {
    fn of(vote: &Vote) -> Self {
        Self {
            agent: vote.by.clone(),
            round: vote.round,
            choice: vote.choice.clone(),
            rationale: vote.rationale.clone(),
            evidence: vote.evidence.clone(),
            confidence: vote.confidence,
            domain_relevance: vote.domain_relevance,
            compromise: vote.compromise.acceptable,
            conditions: vote.compromise.conditions.clone(),
            veto: vote.veto.map(|veto| veto.as_str()),
            veto_reason: vote.veto_reason.clone(),
            score: vote.score,
        }
    }
}

impl ResolutionView {
    fn of(resolution: &Resolution) -> Self {
        let (by, decided_by) = match &resolution.by {
            ResolvedBy::Consensus => ("consensus", None),
            ResolvedBy::Score => ("score", None),
            ResolvedBy::Veto(member) => ("veto", Some(member.clone())),
            ResolvedBy::Person { name, .. } => ("person", Some(name.clone())),
        };
        Self {
            choice: resolution.choice.clone(),
            by,
            decided_by,
            reasoning: resolution.reasoning.clone(),
            scores: resolution.scores.clone(),
            dissent: resolution.dissent.iter().map(VoteView::of).collect(),
            timestamp: resolution.at,
        }
    }
}
