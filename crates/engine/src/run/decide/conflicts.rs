//! Conflicts between members: opening, voting, and what follows from a round.

use super::team::{ask, known, message, notice};
use crate::digest::Digest;
use crate::hold::{Hold, HoldKind, conflict_options};
use crate::id::{ConflictId, HoldId, IdSource};
use crate::run::event::Event;
use crate::run::refusal::Refusal;
use crate::run::state::Run;
use crate::run::team::{
    Conflict, ConflictStatus, Message, MessageDraft, MessageKind, Priority, Resolution, ResolvedBy, RoundResult, Sender,
    TeamEvent, TeamRefusal, Vote, VoteDraft,
};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde_json::json;

/// How many hexadecimal digits of the hash an id has.
const HASH_DIGITS: usize = 8;

pub(super) fn open(
    run: &Run,
    from: Sender,
    (topic, participants, domain): (&str, &[String], Option<&str>),
    at: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let topic = topic.trim();
    if topic.is_empty() {
        return Err(TeamRefusal::TopicRequired.into());
    }
    let mut all: Vec<String> = from.member().map(str::to_owned).into_iter().collect();
    for name in participants {
        let name = known(run, name)?;
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if all.len() < 2 {
        return Err(TeamRefusal::TooFewParticipants.into());
    }
    let number = run.team.as_ref().map_or(0, |team| team.conflicts.len());
    let hash = Digest::of(format!("{}\n{number}\n{topic}\n{}", run.id, all.join("\n")).as_bytes()).to_string();
    Ok(vec![
        TeamEvent::ConflictOpened(Conflict {
            id: ConflictId::new(format!("CONF-{}-{}", at.as_millis(), &hash[..HASH_DIGITS])),
            topic: topic.to_owned(),
            opened_by: from,
            participants: all,
            domain: domain.map(str::to_owned),
            phase: run.current.as_ref().map(|phase| phase.id.clone()),
            at,
            round: 1,
            votes: Vec::new(),
            hold: None,
            resolution: None,
        })
        .into(),
    ])
}

pub(super) fn vote(
    run: &Run,
    from: Sender,
    id: &ConflictId,
    draft: &VoteDraft,
    at: Timestamp,
    ids: &mut IdSource,
) -> Result<Vec<Event>, Refusal> {
    let name = from.member().ok_or(TeamRefusal::TaskRequired { what: "vote" })?.to_owned();
    let conflict = run.team.as_ref().and_then(|team| team.conflict(id.as_str()));
    let conflict = conflict.ok_or_else(|| TeamRefusal::ConflictNotFound(id.clone()))?;
    may_vote(conflict, &name)?;
    is_valid(run, &name, draft)?;
    let score = draft.score(&name, conflict.domain.as_deref(), run.workflow.team.as_deref());
    let vote = cast(name, conflict.round, draft, score, at);
    let mut events = vec![
        TeamEvent::Voted { conflict: id.clone(), vote: vote.clone() }.into(),
        TeamEvent::MessageSent(vote_message(run, from, conflict, &vote, at, ids)).into(),
    ];
    let mut after = conflict.clone();
    after.votes.push(vote);
    events.extend(after.round_result().map(|result| follows(run, &after, result, at, ids)).into_iter().flatten());
    Ok(events)
}

fn may_vote(conflict: &Conflict, name: &str) -> Result<(), TeamRefusal> {
    let id = conflict.id.clone();
    match conflict.status() {
        ConflictStatus::Voting => {}
        ConflictStatus::WithPerson => return Err(TeamRefusal::ConflictWithPerson(id)),
        ConflictStatus::Resolved => return Err(TeamRefusal::ConflictResolved(id)),
    }
    if !conflict.participants.iter().any(|participant| participant == name) {
        return Err(TeamRefusal::NotParticipant { conflict: id, name: name.to_owned() });
    }
    match conflict.current_votes().any(|vote| vote.by == name) {
        true => Err(TeamRefusal::VotedAlready { conflict: id, name: name.to_owned(), round: conflict.round }),
        false => Ok(()),
    }
}

fn is_valid(run: &Run, name: &str, draft: &VoteDraft) -> Result<(), TeamRefusal> {
    if draft.choice.trim().is_empty() {
        return Err(TeamRefusal::ChoiceRequired);
    }
    if draft.confidence > 100 {
        return Err(TeamRefusal::OutOfRange { what: "the confidence", expected: "a whole number from 0 to 100" });
    }
    if !(0.0..=1.0).contains(&draft.domain_relevance) {
        return Err(TeamRefusal::OutOfRange { what: "the domain relevance", expected: "a number from 0 to 1" });
    }
    if draft.veto.is_some() {
        let setting = run.workflow.team.as_ref().and_then(|team| team.members.get(name));
        if setting.is_some_and(|setting| !setting.veto) {
            return Err(TeamRefusal::VetoNotAllowed { name: name.to_owned() });
        }
        if draft.veto_reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
            return Err(TeamRefusal::VetoReasonRequired);
        }
    }
    Ok(())
}

fn cast(by: String, round: u32, draft: &VoteDraft, score: f64, at: Timestamp) -> Vote {
    let VoteDraft { choice, rationale, evidence, confidence, domain_relevance, compromise, veto, veto_reason } = draft.clone();
    let choice = choice.trim().to_owned();
    Vote { by, round, choice, rationale, evidence, confidence, domain_relevance, compromise, veto, veto_reason, at, score }
}

/// The record of a vote among the messages. No one has to acknowledge it: prompts show the positions of a conflict.
fn vote_message(run: &Run, from: Sender, conflict: &Conflict, vote: &Vote, at: Timestamp, ids: &mut IdSource) -> Message {
    let payload = json!({"conflict_id": conflict.id, "round": vote.round, "choice": vote.choice});
    let draft = MessageDraft {
        kind: MessageKind::Vote,
        to: None,
        correlation: None,
        priority: Priority::Normal,
        summary: format!("votes for {:?} in {}", vote.choice, conflict.id),
        payload: StoredValue::Inline(payload.to_string()),
        options: Vec::new(),
    };
    message(run, from, &draft, at, ids)
}

fn follows(run: &Run, conflict: &Conflict, result: RoundResult, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    match result {
        RoundResult::NextRound => {
            vec![TeamEvent::RoundStarted { conflict: conflict.id.clone(), round: conflict.round + 1 }.into()]
        }
        RoundResult::AskPerson { reason } => ask_person(conflict, reason, ids).into(),
        RoundResult::Resolved { choice, by, reasoning } => resolved(run, conflict, (choice, by, reasoning), at, ids).into(),
    }
}

/// Asks a person to choose between the positions.
fn ask_person(conflict: &Conflict, reason: String, ids: &mut IdSource) -> [Event; 2] {
    let hold = HoldId::new(ids.next_id());
    let positions = conflict.positions().into_iter().map(|vote| {
        let why = if vote.rationale.is_empty() { String::new() } else { format!(": {}", vote.rationale) };
        format!("{} (confidence {} %) wants {:?}{why}", vote.by, vote.confidence, vote.choice)
    });
    let notes = std::iter::once(reason.clone()).chain(positions).collect();
    let choices: Vec<String> = conflict.scores().into_iter().map(|score| score.choice).collect();
    let prompt = format!("{} disagree: {}", conflict.participants.join(", "), conflict.topic);
    let asked = ask(HoldKind::Conflict, hold.clone(), prompt, notes, conflict_options(&choices));
    [TeamEvent::ConflictEscalated { conflict: conflict.id.clone(), hold, reason }.into(), asked]
}

/// The conflict is over, and its participants are told.
fn resolved(
    run: &Run,
    conflict: &Conflict,
    (choice, by, reasoning): (String, ResolvedBy, String),
    at: Timestamp,
    ids: &mut IdSource,
) -> [Event; 2] {
    let summary = format!("conflict {} is resolved: {choice}", conflict.id);
    let payload = json!({"conflict_id": conflict.id, "topic": conflict.topic, "choice": choice, "reasoning": reasoning});
    let payload = StoredValue::Inline(payload.to_string());
    let dissent = conflict.dissent(&choice);
    let resolution = Resolution { choice, by, reasoning, scores: conflict.scores(), dissent, at };
    let told = notice(run, conflict.participants.clone(), (summary, payload), at, ids);
    [TeamEvent::ConflictResolved { conflict: conflict.id.clone(), resolution }.into(), told]
}

/// A person answered the question about a conflict.
pub(in crate::run) fn conflict_answered(run: &Run, hold: &Hold, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let asked = run.team.iter().flat_map(|team| &team.conflicts).find(|conflict| conflict.hold.as_ref() == Some(&hold.id));
    let (Some(conflict), Some(answer)) = (asked, hold.answers.last()) else { return Vec::new() };
    let Some(choice) = hold.choice(&answer.option) else { return Vec::new() };
    let words = answer.feedback.as_deref().map(str::trim).filter(|words| !words.is_empty()).map(str::to_owned);
    let (chosen, reasoning) = match (words, choice.requires_feedback) {
        (Some(words), true) => (words, "a person decided in words".to_owned()),
        (words, _) => (choice.label.clone(), words.unwrap_or_else(|| "a person decided".to_owned())),
    };
    let by = ResolvedBy::Person { hold: hold.id.clone(), name: answer.actor.name.clone() };
    resolved(run, conflict, (chosen, by, reasoning), at, ids).into()
}

/// No task is left that could vote, so a person decides the next conflict that is still open.
pub(in crate::run) fn ask_about_open_conflict(run: &Run, ids: &mut IdSource) -> Vec<Event> {
    let conflicts = run.team.iter().flat_map(|team| &team.conflicts);
    let mut open = conflicts.filter(|conflict| conflict.status() == ConflictStatus::Voting);
    let reason = "the tasks of the phase ended before the participants agreed".to_owned();
    open.next().map(|conflict| ask_person(conflict, reason, ids).into()).unwrap_or_default()
}
