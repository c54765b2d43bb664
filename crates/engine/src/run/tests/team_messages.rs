//! Messages between agents: who sends them, how they are delivered, handoffs and escalations.

use super::*;
use crate::hold::HoldKind;
use crate::id::MessageId;
use crate::run::event::AttemptReason;
use crate::run::team::{
    Message, MessageDraft, MessageKind, Priority, Sender, TaskAttempt, TeamCommand, TeamEvent, TeamRefusal, TeamRequest,
};

pub(super) fn agent_task(id: &str, agent: &str, needs: &[&str]) -> Task {
    let work = AgentWork { agent: Some(agent.into()), ..AgentWork::default() };
    Task { work: Work::Agent(Box::new(work)), on_interrupt: OnInterrupt::Rerun, ..task(id, needs) }
}

/// Two agents that work one after the other.
fn pair() -> Harness {
    Harness::new(workflow(vec![phase("one", vec![agent_task("plan", "ana", &[]), agent_task("build", "bob", &["plan"])])]))
}

pub(super) fn inside(task: &str) -> Actor {
    Actor { credential: Credential::Agent, inside_task: Some(task.into()), ..person() }
}

pub(super) fn draft(kind: MessageKind, to: Option<&str>) -> MessageDraft {
    MessageDraft {
        kind,
        to: to.map(Into::into),
        correlation: None,
        priority: Priority::Normal,
        summary: "look at this".into(),
        payload: StoredValue::Inline("{}".into()),
        options: Vec::new(),
    }
}

/// Sends a request from within the running attempt of a task of phase "one".
pub(super) fn ask_as(harness: &mut Harness, task: &str, request: TeamRequest) -> Result<Vec<Event>, Refusal> {
    let Effect::Task { key, attempt } = harness.effect_of(&format!("one/{task}")) else { unreachable!() };
    let command = TeamCommand { from: Some(TaskAttempt { key, attempt }), request };
    harness.tell(inside(&format!("one/{task}")), CommandKind::Team(Box::new(command)), false)
}

fn send_as(harness: &mut Harness, task: &str, draft: MessageDraft) -> Result<MessageId, Refusal> {
    let events = ask_as(harness, task, TeamRequest::Send(draft))?;
    Ok(sent(&events).expect("a message was sent").id.clone())
}

fn sent(events: &[Event]) -> Option<&Message> {
    events.iter().find_map(|event| match event {
        Event::Team(event) => match &**event {
            TeamEvent::MessageSent(message) => Some(message),
            _ => None,
        },
        _ => None,
    })
}

fn send_outside(harness: &mut Harness, draft: MessageDraft) -> Result<MessageId, Refusal> {
    let command = TeamCommand { from: None, request: TeamRequest::Send(draft) };
    let events = harness.tell(person(), CommandKind::Team(Box::new(command)), false)?;
    Ok(sent(&events).expect("a message was sent").id.clone())
}

fn finish(harness: &mut Harness, address: &str) {
    let effect = harness.effect_of(address);
    harness.perform(&effect);
}

fn delivered(harness: &Harness, task: &str, attempt: u32) -> Vec<MessageId> {
    let messages = harness.run.delivered_messages(&key("one", 1, task), attempt);
    messages.into_iter().map(|message| message.id.clone()).collect()
}

fn refused(result: Result<MessageId, Refusal>) -> TeamRefusal {
    match result.unwrap_err() {
        Refusal::Team(refusal) => refusal,
        other => panic!("{other}"),
    }
}

#[test]
fn a_message_names_the_agent_of_the_task_that_sent_it() {
    let mut harness = pair();
    let id = send_as(&mut harness, "plan", draft(MessageKind::Request, Some("bob"))).unwrap();
    let message = harness.run.team.as_ref().unwrap().message(id.as_str()).unwrap().clone();
    assert_eq!(message.from, Sender::Member { name: "ana".into(), key: key("one", 1, "plan"), attempt: 1 });
    assert_eq!(
        (message.to.as_deref(), message.phase.as_ref().map(PhaseId::as_str), message.attempt),
        (Some("bob"), Some("one"), 1)
    );
    let parts: Vec<&str> = id.as_str().split('-').collect();
    let at = message.at.as_millis().to_string();
    assert_eq!((parts[0], parts[1], parts[2].len(), parts.len()), ("MSG", at.as_str(), 8, 3));
    assert_eq!(harness.run.pending_messages(), [&id]);
    assert_eq!(harness.run.messages_awaiting_response(), [&id]);
}

#[test]
fn a_sender_that_is_not_a_running_attempt_of_the_run_is_refused() {
    let mut harness = pair();
    let mut send = |from: Option<TaskAttempt>, actor: Actor| {
        let command = TeamCommand { from, request: TeamRequest::Send(draft(MessageKind::Broadcast, None)) };
        harness.tell(actor, CommandKind::Team(Box::new(command)), false).unwrap_err()
    };
    let attempt = |task: &str, attempt: u32| Some(TaskAttempt { key: key("one", 1, task), attempt });
    let refused = Refusal::Team(TeamRefusal::SenderNotRunning);
    assert_eq!(send(attempt("build", 1), inside("one/build")), refused, "it has not started");
    assert_eq!(send(attempt("plan", 2), inside("one/plan")), refused, "another attempt is running");
    assert_eq!(send(None, inside("elsewhere")), refused, "its task is not known");
    assert_eq!(send(attempt("plan", 1), person()), refused, "a person does not send as an agent");
}

#[test]
fn a_person_outside_is_recorded_as_such() {
    let mut harness = pair();
    let id = send_outside(&mut harness, draft(MessageKind::Request, Some("bob"))).unwrap();
    let message = harness.run.team.as_ref().unwrap().message(id.as_str()).unwrap();
    assert_eq!(message.from, Sender::Outside { name: "ada".into() });
    assert_eq!(
        refused(send_outside(&mut harness, draft(MessageKind::Escalate, None))),
        TeamRefusal::TaskRequired { what: "escalate to a person" }
    );
    assert!(matches!(
        refused(send_outside(&mut harness, draft(MessageKind::Handoff, Some("bob")))),
        TeamRefusal::TaskRequired { .. }
    ));
}

#[test]
fn messages_without_a_proper_recipient_are_refused() {
    let mut harness = pair();
    let mut send = |draft: MessageDraft| refused(send_as(&mut harness, "plan", draft));
    assert!(matches!(send(draft(MessageKind::Request, None)), TeamRefusal::RecipientRequired { kind: "REQUEST" }));
    assert!(
        matches!(send(draft(MessageKind::Request, Some("bod"))), TeamRefusal::MemberNotFound { members, .. } if members == ["ana", "bob"])
    );
    assert!(matches!(send(draft(MessageKind::Request, Some("ana"))), TeamRefusal::ToItself { .. }));
    assert_eq!(send(draft(MessageKind::Broadcast, Some("bob"))), TeamRefusal::RecipientNotAllowed);
    assert_eq!(send(draft(MessageKind::Response, Some("bob"))), TeamRefusal::CorrelationRequired);
    assert_eq!(send(draft(MessageKind::Vote, None)), TeamRefusal::VoteOutsideConflict);
}

#[test]
fn an_unacknowledged_message_enters_the_next_prompt_and_a_successful_attempt_acknowledges_it() {
    let mut harness = pair();
    let id = send_as(&mut harness, "plan", draft(MessageKind::Request, Some("bob"))).unwrap();
    finish(&mut harness, "one/plan");
    assert_eq!(delivered(&harness, "build", 1), std::slice::from_ref(&id));
    assert_eq!(harness.run.pending_messages(), [&id], "delivered is not acknowledged");
    finish(&mut harness, "one/build");
    assert!(harness.run.pending_messages().is_empty());
    assert_eq!(harness.run.messages_awaiting_response(), [&id], "no one responded");
}

#[test]
fn a_message_is_delivered_again_after_a_failed_or_interrupted_attempt() {
    let mut build = agent_task("build", "bob", &["plan"]);
    build.retry = Retry { attempts: 3, backoff: std::time::Duration::from_secs(1) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![agent_task("plan", "ana", &[]), build])]));
    let id = send_as(&mut harness, "plan", draft(MessageKind::Broadcast, None)).unwrap();
    finish(&mut harness, "one/plan");
    harness.fail("one/build");
    harness.wake("build");
    assert_eq!(delivered(&harness, "build", 2), std::slice::from_ref(&id));
    harness.take_over();
    assert_eq!(delivered(&harness, "build", 3), std::slice::from_ref(&id), "the second attempt was interrupted");
    finish(&mut harness, "one/build");
    assert!(harness.run.pending_messages().is_empty());
}

#[test]
fn an_acknowledged_message_is_not_delivered() {
    let tasks = vec![agent_task("plan", "ana", &[]), agent_task("read", "bob", &[]), agent_task("build", "bob", &["plan"])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let id = send_as(&mut harness, "plan", draft(MessageKind::Request, Some("bob"))).unwrap();
    let wrong = ask_as(&mut harness, "plan", TeamRequest::Acknowledge(id.clone())).unwrap_err();
    assert!(matches!(wrong, Refusal::Team(TeamRefusal::NotRecipient { .. })));
    assert_eq!(ask_as(&mut harness, "read", TeamRequest::Acknowledge(id.clone())).unwrap().len(), 1);
    assert!(ask_as(&mut harness, "read", TeamRequest::Acknowledge(id)).unwrap().is_empty(), "twice changes nothing");
    finish(&mut harness, "one/plan");
    assert!(delivered(&harness, "build", 1).is_empty());
}

#[test]
fn a_message_is_not_given_to_two_running_attempts_of_an_agent() {
    let tasks = vec![agent_task("plan", "ana", &[]), agent_task("build", "bob", &["plan"]), agent_task("test", "bob", &["plan"])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let id = send_as(&mut harness, "plan", draft(MessageKind::Request, Some("bob"))).unwrap();
    let effect = harness.effect_of("one/plan");
    harness.perform(&effect);
    let both = [delivered(&harness, "build", 1), delivered(&harness, "test", 1)].concat();
    assert_eq!(both, [id]);
}

#[test]
fn a_response_goes_back_to_the_sender_and_acknowledges_the_request() {
    let tasks = vec![agent_task("plan", "ana", &[]), agent_task("read", "bob", &[])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let asked = send_as(&mut harness, "plan", draft(MessageKind::Request, Some("bob"))).unwrap();
    let response = MessageDraft { correlation: Some(asked.clone()), ..draft(MessageKind::Response, None) };
    assert!(matches!(refused(send_as(&mut harness, "plan", response.clone())), TeamRefusal::NotRecipient { .. }));
    let answer = send_as(&mut harness, "read", response).unwrap();
    assert!(harness.run.messages_awaiting_response().is_empty());
    assert_eq!(harness.run.pending_messages(), [&answer], "the request is acknowledged, the response is not");
    assert_eq!(harness.run.team.as_ref().unwrap().message(answer.as_str()).unwrap().to.as_deref(), Some("ana"));
}

#[test]
fn a_handoff_starts_an_attempt_with_the_named_agent_that_costs_no_retry() {
    let mut harness = pair();
    let id = send_as(&mut harness, "plan", draft(MessageKind::Handoff, Some("bob"))).unwrap();
    let again = refused(send_as(&mut harness, "plan", draft(MessageKind::Handoff, Some("bob"))));
    assert!(matches!(again, TeamRefusal::AlreadyHandedOff { .. }));
    // Whatever its sender does next, a failure included, the other agent continues.
    let events = harness.fail("one/plan");
    assert!(!events.iter().any(|event| matches!(event, Event::TaskFailed { .. })), "{events:?}");
    let plan = harness.run.task_run(&key("one", 1, "plan")).unwrap();
    assert_eq!((plan.attempts, plan.failures), (2, 0));
    assert_eq!(harness.run.agent_of(&key("one", 1, "plan")), Some("bob"));
    assert_eq!(delivered(&harness, "plan", 2), [id], "the handoff itself is in the prompt");
    assert!(harness.has(|event| matches!(event, Event::TaskStarted { reason: AttemptReason::Handoff, attempt: 2, .. })));
    finish(&mut harness, "one/plan");
    assert!(harness.has(|event| matches!(event, Event::TaskFinished { key, attempt: 2, .. } if key.task.as_str() == "plan")));
}

#[test]
fn a_handoff_needs_an_agent_and_has_a_limit() {
    let command = Task { work: Work::Run("true".into()), ..task("shell", &[]) };
    let mut harness = Harness::new(workflow(vec![phase(
        "one",
        vec![command, agent_task("plan", "ana", &[]), agent_task("b", "bob", &["plan"])],
    )]));
    let refusal = refused(send_as(&mut harness, "shell", draft(MessageKind::Handoff, Some("bob"))));
    assert_eq!(refusal, TeamRefusal::AgentRequired { address: "one/shell".into() });
    for turn in 0..crate::run::team::MAX_HANDOFFS {
        let to = if turn % 2 == 0 { "bob" } else { "ana" };
        send_as(&mut harness, "plan", draft(MessageKind::Handoff, Some(to))).unwrap();
        finish(&mut harness, "one/plan");
    }
    let refusal = refused(send_as(&mut harness, "plan", draft(MessageKind::Handoff, Some("bob"))));
    assert!(matches!(refusal, TeamRefusal::TooManyHandoffs { .. }));
}

#[test]
fn an_escalation_opens_a_hold_and_the_answer_comes_back_as_a_response() {
    let mut harness = pair();
    let options = vec!["Keep it".to_owned(), "stop".to_owned()];
    let id = send_as(&mut harness, "plan", MessageDraft { options, ..draft(MessageKind::Escalate, None) }).unwrap();
    assert_eq!(harness.hold().kind, HoldKind::Escalation);
    assert_eq!(harness.hold().prompt, "ana asks a person: look at this");
    assert_eq!(harness.run.messages_awaiting_response(), [&id]);
    let by_agent = harness.answer_body("option-1", None);
    let refusal = harness.tell(inside("one/plan"), by_agent, false).unwrap_err();
    assert!(matches!(refusal, Refusal::InsideTask { .. }));
    // The word that stops a run still does, although an agent offers it.
    assert_eq!(harness.hold().option("stop").unwrap().action, Action::Abort);
    finish(&mut harness, "one/plan");
    finish(&mut harness, "one/build");
    assert_eq!(harness.run.status(), crate::run::Status::Waiting, "the phase does not end before the answer");
    harness.answer("Keep it", Some("for now"));
    assert!(harness.run.messages_awaiting_response().is_empty());
    let team = harness.run.team.as_ref().unwrap();
    let response = team.messages.iter().find(|message| message.responds_to(&id)).unwrap();
    assert_eq!((response.from.name(), response.to.as_deref()), ("ada", Some("ana")));
    assert_eq!(response.summary, "Keep it (for now)");
    assert_eq!(harness.run.status(), crate::run::Status::Complete);
}

#[test]
fn a_run_without_a_team_stores_no_team() {
    let mut harness = pair();
    harness.work();
    assert_eq!(harness.run.team, None);
}

#[test]
fn the_team_shows_roles_status_and_tasks_of_its_members() {
    use crate::run::team::MemberStatus::{Active, Idle};
    let mut harness = pair();
    let members: Vec<_> =
        harness.run.team_members().into_iter().map(|m| (m.agent, m.status, m.completed.len(), m.pending.len())).collect();
    assert_eq!(members, [("ana".to_owned(), Active, 0, 1), ("bob".to_owned(), Idle, 0, 1)]);
    finish(&mut harness, "one/plan");
    let members = harness.run.team_members();
    assert_eq!(members[0].completed, ["one/plan"]);
    assert_eq!((members[0].status.as_str(), members[1].status.as_str()), ("done", "active"));
    harness.work();
    assert_eq!(harness.run.team_members()[1].completed, ["one/build"]);
}
