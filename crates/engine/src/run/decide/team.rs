//! Requests of the members of a team: messages, acknowledgements, captured and injected knowledge.

use super::conflicts;
use crate::hold::{Choice, HoldKind, Scope, escalation_options};
use crate::id::{HoldId, IdSource, MessageId, TaskKey};
use crate::run::command::Envelope;
use crate::run::event::{Event, HoldOpened};
use crate::run::refusal::Refusal;
use crate::run::state::{End, Run, TaskState};
use crate::run::team::{
    KnowledgeDraft, KnowledgeEntry, MAX_HANDOFFS, MAX_MESSAGES, Message, MessageDraft, MessageKind, Priority, Sender,
    TaskAttempt, TeamCommand, TeamEvent, TeamRefusal, TeamRequest,
};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;

pub(super) fn team_command(run: &Run, envelope: &Envelope, command: &TeamCommand) -> Result<Vec<Event>, Refusal> {
    let mut ids = IdSource::new(envelope.seed);
    if let TeamRequest::Inject { key, entries } = &command.request {
        return Ok(inject(run, key, entries));
    }
    match &run.end {
        Some(end @ (End::Complete | End::Aborted | End::Cancelled)) => return Err(Refusal::Ended { status: end.status() }),
        Some(End::Failed(_)) | None => {}
    }
    let from = sender(run, envelope, command.from.as_ref())?;
    match &command.request {
        TeamRequest::Send(draft) => send(run, from, draft, envelope.at, &mut ids),
        TeamRequest::Acknowledge(message) => acknowledge(run, &from, message),
        TeamRequest::OpenConflict { topic, participants, domain } => {
            conflicts::open(run, from, (topic, participants, domain.as_deref()), envelope.at)
        }
        TeamRequest::Vote { conflict, vote } => conflicts::vote(run, from, conflict, vote, envelope.at, &mut ids),
        TeamRequest::Capture(draft) => capture(run, from, draft, envelope.at),
        TeamRequest::Inject { key, entries } => Ok(inject(run, key, entries)),
    }
}

/// The sender of a command: the member of the running attempt that it came from, or the caller outside every task.
fn sender(run: &Run, envelope: &Envelope, from: Option<&TaskAttempt>) -> Result<Sender, TeamRefusal> {
    let actor = envelope.caller.actor();
    match (from, &actor.inside_task) {
        (None, None) => Ok(Sender::Outside { name: actor.name.clone() }),
        (Some(TaskAttempt { key, attempt }), Some(_)) => {
            let task = run.task_run(key).filter(|task| task.state == TaskState::Running && task.attempts == *attempt);
            task.ok_or(TeamRefusal::SenderNotRunning)?;
            Ok(Sender::Member { name: run.member_name(key), key: key.clone(), attempt: *attempt })
        }
        (None, Some(_)) | (Some(_), None) => Err(TeamRefusal::SenderNotRunning),
    }
}

pub(super) fn known(run: &Run, name: &str) -> Result<String, TeamRefusal> {
    let members = run.known_members();
    match members.iter().find(|member| *member == name) {
        Some(member) => Ok(member.clone()),
        None => Err(TeamRefusal::MemberNotFound { name: name.to_owned(), members }),
    }
}

fn send(run: &Run, from: Sender, draft: &MessageDraft, at: Timestamp, ids: &mut IdSource) -> Result<Vec<Event>, Refusal> {
    let kept = run.team.as_ref().map_or(0, |team| team.messages.len());
    if kept >= MAX_MESSAGES {
        return Err(TeamRefusal::TooManyMessages(kept).into());
    }
    let (to, recipients) = match draft.kind {
        MessageKind::Request => addressed(run, &from, draft)?,
        MessageKind::Response => responding(run, &from, draft)?,
        MessageKind::Handoff => {
            may_hand_off(run, &from)?;
            addressed(run, &from, draft)?
        }
        MessageKind::Escalate => {
            from.member().ok_or(TeamRefusal::TaskRequired { what: "escalate to a person" })?;
            (None, Vec::new())
        }
        MessageKind::Broadcast => (None, everyone_else(run, &from, draft)?),
        MessageKind::Vote => return Err(TeamRefusal::VoteOutsideConflict.into()),
    };
    let mut message = message(run, from, draft, at, ids);
    (message.to, message.recipients) = (to, recipients);
    if draft.kind != MessageKind::Escalate {
        return Ok(vec![TeamEvent::MessageSent(message).into()]);
    }
    let hold = HoldId::new(ids.next_id());
    message.hold = Some(hold.clone());
    let asked = escalation(&message, hold, &draft.options);
    Ok(vec![TeamEvent::MessageSent(message).into(), asked])
}

/// A message without recipients.
pub(super) fn message(run: &Run, from: Sender, draft: &MessageDraft, at: Timestamp, ids: &mut IdSource) -> Message {
    let attempt = match &from {
        Sender::Member { attempt, .. } => *attempt,
        Sender::Outside { .. } | Sender::Lockgate => 0,
    };
    Message {
        id: MessageId::new(format!("MSG-{}-{}", at.as_millis(), ids.next_hex())),
        kind: draft.kind,
        from,
        to: None,
        correlation: draft.correlation.clone(),
        priority: draft.priority,
        summary: draft.summary.clone(),
        payload: draft.payload.clone(),
        phase: run.current.as_ref().map(|phase| phase.id.clone()),
        attempt,
        at,
        recipients: Vec::new(),
        acknowledged_by: Vec::new(),
        deliveries: Vec::new(),
        hold: None,
    }
}

/// The named recipient of a message.
fn addressed(run: &Run, from: &Sender, draft: &MessageDraft) -> Result<(Option<String>, Vec<String>), TeamRefusal> {
    let kind = draft.kind.as_str();
    let named = draft.to.as_deref().ok_or(TeamRefusal::RecipientRequired { kind })?;
    let to = known(run, named)?;
    if from.member() == Some(to.as_str()) {
        return Err(TeamRefusal::ToItself { name: to, kind });
    }
    Ok((Some(to.clone()), vec![to]))
}

/// A response goes back to the sender, and only a recipient or a person may give it.
fn responding(run: &Run, from: &Sender, draft: &MessageDraft) -> Result<(Option<String>, Vec<String>), TeamRefusal> {
    let id = draft.correlation.as_ref().ok_or(TeamRefusal::CorrelationRequired)?;
    let asked = find(run, id)?;
    if let Some(name) = from.member()
        && !asked.recipients.iter().any(|recipient| recipient == name)
    {
        return Err(not_recipient(asked, name));
    }
    let to = asked.from.name().to_owned();
    let recipients = asked.from.member().map(str::to_owned).into_iter().collect();
    Ok((Some(to), recipients))
}

fn everyone_else(run: &Run, from: &Sender, draft: &MessageDraft) -> Result<Vec<String>, TeamRefusal> {
    if draft.to.is_some() {
        return Err(TeamRefusal::RecipientNotAllowed);
    }
    let members = run.team_members().into_iter().map(|member| member.agent);
    Ok(members.filter(|name| from.member() != Some(name.as_str())).collect())
}

fn may_hand_off(run: &Run, from: &Sender) -> Result<(), TeamRefusal> {
    let Sender::Member { key, attempt, .. } = from else { return Err(TeamRefusal::TaskRequired { what: "hand off its work" }) };
    let address = key.address();
    if run.agent_of(key).is_none() {
        return Err(TeamRefusal::AgentRequired { address });
    }
    if let Some(handoff) = run.handoff_of(key, *attempt) {
        return Err(TeamRefusal::AlreadyHandedOff { address, to: handoff.to.clone().unwrap_or_default() });
    }
    match run.handoffs(key).count() {
        times if times >= MAX_HANDOFFS => Err(TeamRefusal::TooManyHandoffs { address, times }),
        _ => Ok(()),
    }
}

/// Asks a person for an agent. The answer goes back as a message.
fn escalation(message: &Message, hold: HoldId, options: &[String]) -> Event {
    let prompt = format!("{} asks a person: {}", message.from.name(), message.summary);
    let notes = match &message.payload {
        StoredValue::Inline(json) if json != "null" => vec![json.clone()],
        StoredValue::Inline(_) | StoredValue::Stored { .. } => Vec::new(),
    };
    ask(HoldKind::Escalation, hold, prompt, notes, escalation_options(options))
}

/// A question of the team. It is not about one task, because tasks continue to work while it waits.
pub(super) fn ask(kind: HoldKind, hold: HoldId, prompt: String, notes: Vec<String>, options: Vec<Choice>) -> Event {
    Event::HoldOpened(Box::new(HoldOpened {
        hold,
        kind,
        scope: Scope::Run,
        prompt,
        files: Vec::new(),
        options,
        notes,
        blocking: true,
        quorum: 1,
        question: None,
        terms: Default::default(),
        previous: None,
        diff: None,
    }))
}

fn find<'a>(run: &'a Run, id: &MessageId) -> Result<&'a Message, TeamRefusal> {
    let found = run.team.as_ref().and_then(|team| team.message(id.as_str()));
    found.ok_or_else(|| TeamRefusal::MessageNotFound(id.clone()))
}

fn not_recipient(message: &Message, name: &str) -> TeamRefusal {
    let recipients = message.recipients.clone();
    TeamRefusal::NotRecipient { message: message.id.clone(), name: name.to_owned(), recipients }
}

fn acknowledge(run: &Run, from: &Sender, id: &MessageId) -> Result<Vec<Event>, Refusal> {
    let message = find(run, id)?;
    let name = from.name();
    if from.member().is_none() || !message.recipients.iter().any(|recipient| recipient == name) {
        return Err(not_recipient(message, name).into());
    }
    // Acknowledging twice changes nothing.
    let pending = message.is_pending_for(name);
    let event = || TeamEvent::MessageAcknowledged { message: id.clone(), by: name.to_owned() }.into();
    Ok(pending.then(event).into_iter().collect())
}

fn capture(run: &Run, from: Sender, draft: &KnowledgeDraft, at: Timestamp) -> Result<Vec<Event>, Refusal> {
    let valid = |kind: &str| {
        let allowed = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || "-_".contains(character);
        !kind.is_empty() && kind.chars().all(allowed)
    };
    if !valid(&draft.kind) {
        return Err(TeamRefusal::InvalidKnowledgeType(draft.kind.clone()).into());
    }
    // The same knowledge is captured once.
    if run.captured_knowledge().contains(&&draft.id) {
        return Ok(Vec::new());
    }
    let KnowledgeDraft { id, kind, content, tags } = draft.clone();
    Ok(vec![TeamEvent::KnowledgeCaptured(KnowledgeEntry { id, kind, content, tags, by: from, at }).into()])
}

/// Records the selection for a task, unless an earlier attempt has one.
fn inject(run: &Run, key: &TaskKey, entries: &[KnowledgeEntry]) -> Vec<Event> {
    let knowledge = run.team.as_ref().map(|team| &team.knowledge);
    if knowledge.is_some_and(|known| known.selections.contains_key(&key.address())) || run.end.is_some() {
        return Vec::new();
    }
    let has = |entry: &&KnowledgeEntry| knowledge.is_some_and(|known| known.injected.iter().any(|other| other.id == entry.id));
    let new = entries.iter().filter(|entry| !has(entry)).cloned().collect();
    let ids = entries.iter().map(|entry| entry.id.clone()).collect();
    vec![TeamEvent::KnowledgeInjected { key: key.clone(), ids, entries: new }.into()]
}

/// A message of Lockgate itself to some members.
pub(super) fn notice(
    run: &Run,
    recipients: Vec<String>,
    (summary, payload): (String, StoredValue),
    at: Timestamp,
    ids: &mut IdSource,
) -> Event {
    let (kind, priority) = (MessageKind::Broadcast, Priority::Normal);
    let draft = MessageDraft { kind, to: None, correlation: None, priority, summary, payload, options: Vec::new() };
    let message = Message { recipients, ..message(run, Sender::Lockgate, &draft, at, ids) };
    TeamEvent::MessageSent(message).into()
}

/// A person answered an escalation: the answer goes back to the agent that asked.
pub(in crate::run) fn escalation_answered(
    run: &Run,
    hold: &crate::hold::Hold,
    at: Timestamp,
    ids: &mut IdSource,
) -> Option<Event> {
    let (answer, team) = (hold.answers.last()?, run.team.as_ref()?);
    let asked = team.messages.iter().find(|message| message.hold.as_ref() == Some(&hold.id))?;
    let choice = hold.choice(&answer.option)?;
    let words = answer.feedback.as_deref().map(str::trim).filter(|words| !words.is_empty());
    let summary = match (words, choice.requires_feedback) {
        (Some(words), true) => words.to_owned(),
        (Some(words), false) => format!("{} ({words})", choice.label),
        (None, _) => choice.label.clone(),
    };
    let draft = MessageDraft {
        kind: MessageKind::Response,
        to: None,
        correlation: Some(asked.id.clone()),
        priority: asked.priority,
        summary,
        payload: crate::run::apply::said(hold, answer),
        options: Vec::new(),
    };
    let from = Sender::Outside { name: answer.actor.name.clone() };
    let response = Message {
        to: Some(asked.from.name().to_owned()),
        recipients: asked.from.member().map(str::to_owned).into_iter().collect(),
        ..message(run, from, &draft, at, ids)
    };
    Some(TeamEvent::MessageSent(response).into())
}
