//! Conflicts between members: positions, rounds of votes, scores, and how they are settled.

use super::Sender;
use crate::id::{ConflictId, HoldId, PhaseId};
use crate::spec::workflow::Team;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// How many rounds members vote before a person decides.
pub const MAX_ROUNDS: u32 = 3;

/// Two scores are too close to decide if they differ by no more than this share of the higher one.
const CLOSE: f64 = 0.1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conflict {
    pub id: ConflictId,
    pub topic: String,
    pub opened_by: Sender,
    pub participants: Vec<String>,
    pub domain: Option<String>,
    pub phase: Option<PhaseId>,
    pub at: Timestamp,
    /// Counted from 1.
    pub round: u32,
    pub votes: Vec<Vote>,
    /// The hold that asks a person.
    pub hold: Option<HoldId>,
    pub resolution: Option<Resolution>,
}

/// The position of a participant in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    pub by: String,
    pub round: u32,
    pub choice: String,
    pub rationale: String,
    pub evidence: Vec<String>,
    /// From 0 to 100.
    pub confidence: u32,
    /// How much the conflict is about the participant's domain, from 0 to 1.
    pub domain_relevance: f64,
    pub compromise: Compromise,
    pub veto: Option<Veto>,
    pub veto_reason: Option<String>,
    pub at: Timestamp,
    /// What the vote counts, computed from the team's settings when it was cast.
    pub score: f64,
}

/// A vote that is to be cast.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteDraft {
    pub choice: String,
    pub rationale: String,
    pub evidence: Vec<String>,
    pub confidence: u32,
    pub domain_relevance: f64,
    pub compromise: Compromise,
    pub veto: Option<Veto>,
    pub veto_reason: Option<String>,
}

/// Whether a participant accepts a choice that is not its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compromise {
    pub acceptable: bool,
    /// What would make another choice acceptable.
    pub conditions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Veto {
    /// The vetoing participant's choice wins.
    Critical,
    /// A person decides.
    High,
}

impl Veto {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "CRITICAL",
            Self::High => "HIGH",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    pub choice: String,
    pub by: ResolvedBy,
    pub reasoning: String,
    /// The score of every choice in the last round, highest first.
    pub scores: Vec<Score>,
    /// The votes of the participants who wanted another choice.
    pub dissent: Vec<Vote>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedBy {
    /// All participants voted for the same choice.
    Consensus,
    /// The highest score.
    Score,
    /// The CRITICAL veto of this participant.
    Veto(String),
    /// The answer to this hold.
    Person { hold: HoldId, name: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    pub choice: String,
    pub score: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictStatus {
    /// Participants vote.
    Voting,
    /// A person is asked.
    WithPerson,
    Resolved,
}

impl ConflictStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Voting => "voting",
            Self::WithPerson => "with_person",
            Self::Resolved => "resolved",
        }
    }
}

/// What follows from a round in which everyone voted.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundResult {
    Resolved { choice: String, by: ResolvedBy, reasoning: String },
    NextRound,
    AskPerson { reason: String },
}

impl Conflict {
    pub fn status(&self) -> ConflictStatus {
        match (&self.resolution, &self.hold) {
            (Some(_), _) => ConflictStatus::Resolved,
            (None, Some(_)) => ConflictStatus::WithPerson,
            (None, None) => ConflictStatus::Voting,
        }
    }

    pub fn is_in_progress(&self) -> bool {
        self.resolution.is_none()
    }

    /// The votes of the current round.
    pub fn current_votes(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|vote| vote.round == self.round)
    }

    /// The participants who have not voted in the current round.
    pub fn missing(&self) -> Vec<&str> {
        let voted = |name: &str| self.current_votes().any(|vote| vote.by == name);
        self.participants.iter().map(String::as_str).filter(|name| !voted(name)).collect()
    }

    /// The last vote of every participant.
    pub fn positions(&self) -> Vec<&Vote> {
        self.participants.iter().filter_map(|name| self.votes.iter().rfind(|vote| vote.by == *name)).collect()
    }

    /// The choices of the last positions with their scores, highest first; equal ones by name.
    pub fn scores(&self) -> Vec<Score> {
        let mut scores: Vec<Score> = Vec::new();
        for vote in self.positions() {
            match scores.iter_mut().find(|known| same(&known.choice, &vote.choice)) {
                Some(known) => known.score += vote.score,
                None => scores.push(Score { choice: vote.choice.clone(), score: vote.score }),
            }
        }
        scores.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.choice.cmp(&other.choice)));
        scores
    }

    /// The positions that differ from a choice.
    pub fn dissent(&self, choice: &str) -> Vec<Vote> {
        self.positions().into_iter().filter(|vote| !same(&vote.choice, choice)).cloned().collect()
    }

    /// What follows from the current round, once everyone has voted in it.
    pub fn round_result(&self) -> Option<RoundResult> {
        if !self.missing().is_empty() {
            return None;
        }
        Some(self.by_veto().or_else(|| self.by_votes()).unwrap_or(match self.round < MAX_ROUNDS {
            true => RoundResult::NextRound,
            false => RoundResult::AskPerson { reason: format!("the participants did not agree in {MAX_ROUNDS} rounds") },
        }))
    }

    fn by_veto(&self) -> Option<RoundResult> {
        let of = |severity: Veto| self.current_votes().filter(move |vote| vote.veto == Some(severity));
        let critical: Vec<&Vote> = of(Veto::Critical).collect();
        if let Some((first, others)) = critical.split_first() {
            if others.iter().any(|other| !same(&other.choice, &first.choice)) {
                return Some(RoundResult::AskPerson { reason: "CRITICAL vetoes contradict each other".to_owned() });
            }
            let reasoning = first.veto_reason.clone().unwrap_or_default();
            let by = ResolvedBy::Veto(first.by.clone());
            return Some(RoundResult::Resolved { choice: first.choice.clone(), by, reasoning });
        }
        let high = of(Veto::High).next()?;
        let reason = format!("{} vetoed: {}", high.by, high.veto_reason.as_deref().unwrap_or_default());
        Some(RoundResult::AskPerson { reason })
    }

    fn by_votes(&self) -> Option<RoundResult> {
        let scores = self.scores();
        let best = scores.first()?;
        let Some(second) = scores.get(1) else {
            let (choice, reasoning) = (best.choice.clone(), "all participants agree".to_owned());
            return Some(RoundResult::Resolved { choice, by: ResolvedBy::Consensus, reasoning });
        };
        // Participants who insist on their choice get another round.
        if self.dissent(&best.choice).iter().any(|vote| !vote.compromise.acceptable) {
            return None;
        }
        if best.score - second.score <= best.score * CLOSE {
            let (one, other) = (&best.choice, &second.choice);
            let reason =
                format!("the scores are within 10 %: {one:?} has {:.3} and {other:?} has {:.3}", best.score, second.score);
            return Some(RoundResult::AskPerson { reason });
        }
        let reasoning = format!("its score is {:.3}, and the next one is {:.3}", best.score, second.score);
        Some(RoundResult::Resolved { choice: best.choice.clone(), by: ResolvedBy::Score, reasoning })
    }
}

impl VoteDraft {
    /// What a vote counts: (weight + domain boost) × confidence × domain relevance.
    pub fn score(&self, member: &str, domain: Option<&str>, team: Option<&Team>) -> f64 {
        let setting = team.and_then(|team| team.members.get(member));
        let weight = setting.map_or(1.0, |setting| setting.weight);
        let boost = setting.zip(domain).and_then(|(setting, domain)| setting.domains.get(domain)).copied().unwrap_or(0.0);
        (weight + boost) * (f64::from(self.confidence) / 100.0) * self.domain_relevance
    }
}

/// Choices are compared without regard to case and surrounding space.
fn same(one: &str, other: &str) -> bool {
    one.trim().to_lowercase() == other.trim().to_lowercase()
}
