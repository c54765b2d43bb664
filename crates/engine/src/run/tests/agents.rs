//! Agents: usage, sessions, and replies to scripts.

use super::*;
use crate::run::Status;
use crate::run::agent::{AgentReport, Usage};
use crate::run::budget::BudgetScope;
use crate::run::event::Requester;

fn agent_task(id: &str, needs: &[&str], session: Session) -> Task {
    let work = AgentWork { agent: Some("coder".into()), session, ..AgentWork::default() };
    let needs = needs.iter().map(|need| TaskId::from(*need)).collect();
    Task { needs, ..Task::new(TaskId::from(id), Work::Agent(Box::new(work))) }
}

fn report(cost: Option<u64>, session: &str) -> Option<Box<AgentReport>> {
    let usage = Usage { cost_micros: cost, input_tokens: Some(1), output_tokens: Some(1) };
    Some(Box::new(AgentReport { agent: "coder".into(), session: Some(session.into()), usage, asks: 1, ..AgentReport::default() }))
}

fn end(harness: &mut Harness, outcome: TaskOutcome, agent: Option<Box<AgentReport>>) {
    let Some(Effect::Task { key, attempt }) = harness.run.pending().into_iter().next() else { panic!("no task runs") };
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent, commit: None });
}

fn well() -> TaskOutcome {
    TaskOutcome::Finished { result: None, outputs: Vec::new() }
}

#[test]
fn an_exhausted_budget_asks_once_for_all_waiting_tasks_and_releases_them_together() {
    let tasks = vec![
        agent_task("a", &[], Session::Fresh),
        agent_task("b", &["a"], Session::Fresh),
        agent_task("c", &["a"], Session::Fresh),
    ];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.budget = Budget { max_cost_micros: Some(10), ..Budget::default() };
    let mut harness = Harness::new(definition);
    end(&mut harness, well(), report(Some(10), "s"));
    assert_eq!(harness.run.status(), Status::Waiting);
    assert_eq!(harness.hold().scope.addresses(), ["one/b", "one/c"]);
    assert_eq!(harness.hold().notes, ["$0.00 of $0.00 spent"]);
    harness.answer("raise-budget", None);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/c"]);
    end(&mut harness, well(), report(Some(1), "s"));
    end(&mut harness, well(), report(Some(100), "s"));
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.run.spent(&BudgetScope::Run).cost_micros, 111);
}

#[test]
fn unknown_usage_such_as_of_an_interrupted_attempt_is_asked_about() {
    let tasks = vec![agent_task("a", &[], Session::Fresh)];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.phases[0].tasks[0].budget = Budget { max_cost_micros: Some(1_000), ..Budget::default() };
    definition.phases[0].tasks[0].on_interrupt = OnInterrupt::Rerun;
    let mut harness = Harness::new(definition);
    harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("other"), detached: false }, true).unwrap();
    assert_eq!(harness.hold().notes, ["the cost of one attempt is unknown"]);
    harness.answer("Count as done", None);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_attempt_stopped_by_its_budget_is_not_a_failure() {
    let mut definition = workflow(vec![phase("one", vec![agent_task("a", &[], Session::Fresh)])]);
    definition.phases[0].tasks[0].budget = Budget { max_time: Some(std::time::Duration::from_millis(1)), ..Budget::default() };
    let mut harness = Harness::new(definition);
    let cut = Failure { kind: FailureKind::Budget, message: "too long".into(), tail: String::new() };
    end(&mut harness, TaskOutcome::Failed(cut), report(Some(0), "s"));
    assert!(!harness.has(|event| matches!(event, Event::TaskFailed { .. })));
    assert_eq!(harness.hold().kind, crate::hold::HoldKind::Budget);
}

#[test]
fn a_session_is_new_shared_with_the_agent_or_resumed_from_the_previous_attempt() {
    let tasks = vec![
        agent_task("a", &[], Session::Fresh),
        agent_task("b", &["a"], Session::Same),
        Task { retry: Retry { attempts: 2, ..Retry::default() }, ..agent_task("c", &["b"], Session::Resume) },
    ];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    end(&mut harness, well(), report(Some(1), "named-by-it"));
    end(&mut harness, well(), report(Some(1), "second"));
    end(&mut harness, TaskOutcome::Failed(broken()), report(Some(1), "third"));
    harness.work();
    let sessions: Vec<(String, bool)> = harness
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::TaskStarted { session: Some(session), .. } => Some((session.id.clone(), session.resume)),
            _ => None,
        })
        .collect();
    assert!(!sessions[0].1 && sessions[0].0.len() == 36, "{sessions:?}");
    assert_eq!(sessions[1], ("named-by-it".into(), true));
    assert!(!sessions[2].1, "it had no attempt before");
    assert_eq!(sessions[3], ("third".into(), true));
}

#[test]
fn a_script_is_reevaluated_with_agent_replies_and_a_crash_repeats_only_unanswered_queries() {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    let main = Task::new(TaskId::from("main"), Work::Script(script));
    let mut harness = Harness::new(workflow(vec![phase("one", vec![main])]));
    let asks = |text: &str| TaskOutcome::QueriesAgent(StoredValue::Inline(format!("\"{text}\"")));
    end(&mut harness, asks("first"), None);
    let requester = Requester::Task(key("one", 1, "main"));
    assert_eq!(harness.run.pending(), [Effect::QueryAgent { requester: requester.clone(), number: 1 }]);
    harness.perform(&Effect::QueryAgent { requester: requester.clone(), number: 1 });
    end(&mut harness, asks("second"), None);
    harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("other"), detached: false }, true).unwrap();
    let known: Vec<bool> = harness.run.current.as_ref().unwrap().agent_queries.iter().map(|query| query.text.is_some()).collect();
    assert_eq!(known, [true], "answered queries are kept, and the others are repeated");
    end(&mut harness, asks("second"), None);
    harness.perform(&Effect::QueryAgent { requester: requester.clone(), number: 2 });
    end(&mut harness, well(), None);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_failed_agent_query_fails_its_task() {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![Task::new(TaskId::from("main"), Work::Script(script))])]));
    end(&mut harness, TaskOutcome::QueriesAgent(StoredValue::Inline("\"x\"".into())), None);
    let requester = Requester::Task(key("one", 1, "main"));
    harness.outcome(CommandKind::AgentQueryAnswered { requester, text: Err(broken()), agent: None });
    assert_eq!(harness.run.status(), Status::Failed);
}

#[test]
fn only_the_next_attempt_resumes_a_reported_session() {
    let work = Task { on_interrupt: OnInterrupt::Rerun, ..agent_task("a", &[], Session::Resume) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![work])]));
    let cut_off = |harness: &mut Harness| {
        let take_over = CommandKind::TakeOver { driver: DriverId::from("other"), detached: false };
        harness.tell(person(), take_over, true).unwrap();
        harness.run.task_run(&key("one", 1, "a")).unwrap().session.clone().unwrap()
    };
    for attempt in [2, 3] {
        let session = cut_off(&mut harness);
        assert!(harness.run.session_known(&session.id).is_none(), "no agent reported it before attempt {attempt}");
    }
    let named = |attempt, session: &str| CommandKind::SessionNamed {
        key: key("one", 1, "a"),
        attempt,
        session: session.into(),
        dir: Some("sub".into()),
    };
    assert_eq!(harness.outcome(named(2, "s-late")), [], "that attempt is over");
    assert_eq!(harness.outcome(named(3, "s-1")).len(), 1);
    assert_eq!(harness.outcome(named(3, "s-1")), [], "it is known");
    let resumed = cut_off(&mut harness);
    assert_eq!((resumed.id.as_str(), resumed.resume), ("s-1", true));
    assert!(harness.run.session_known("s-1").is_some_and(|known| known.dir.as_deref() == Some("sub")));
}

#[test]
fn an_attempt_stopped_by_its_budget_continues_in_its_session() {
    let mut definition = workflow(vec![phase("one", vec![agent_task("a", &[], Session::Fresh)])]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, ..Retry::default() };
    definition.phases[0].tasks[0].budget = Budget { max_time: Some(std::time::Duration::from_secs(1)), ..Budget::default() };
    let mut harness = Harness::new(definition);
    let cut = Failure { kind: FailureKind::Budget, message: "too long".into(), tail: String::new() };
    let mut said = report(Some(0), "first").unwrap();
    said.dir = Some("work".into());
    end(&mut harness, TaskOutcome::Failed(cut), Some(said));
    let session = |harness: &Harness| {
        let run = harness.run.task_run(&key("one", 1, "a")).unwrap();
        run.session.as_ref().map(|session| (session.id.clone(), session.resume)).unwrap()
    };
    harness.answer("raise-budget", None);
    assert_eq!(session(&harness), ("first".to_owned(), true));
    let known = harness.run.session_known("first").expect("the agent named it");
    assert_eq!(known.dir.as_deref(), Some("work"), "the record of a session is kept when it is resumed");
    harness.run.sessions.by_task.values_mut().for_each(|known| known.confirmed = false);
    harness.run.sessions.by_agent.clear();
    assert_eq!(harness.run.session_known("first"), None, "an agent was only asked to use this id");
    assert_eq!(harness.run.session_known("other"), None);
    end(&mut harness, TaskOutcome::Failed(broken()), report(Some(0), "first"));
    harness.answer("raise-budget", None);
    assert!(!session(&harness).1, "a retry starts a new session");
}

#[test]
fn tasks_that_share_a_session_see_its_total_usage() {
    let tasks =
        vec![agent_task("a", &[], Session::Same), agent_task("b", &["a"], Session::Same), agent_task("c", &["b"], Session::Same)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    for (number, used) in [(1, 100), (2, 200)] {
        let mut said = report(Some(1), "shared").unwrap();
        said.session_usage = Some(Usage { cost_micros: None, input_tokens: Some(used), output_tokens: Some(1) });
        end(&mut harness, well(), Some(said));
        let known = harness.run.session_known("shared").and_then(|known| known.usage?.input_tokens);
        assert_eq!(known, Some(used), "after task {number}");
    }
}

#[test]
fn a_replacement_agent_uses_its_own_sessions() {
    let tasks = vec![agent_task("a", &[], Session::Same), agent_task("b", &["a"], Session::Same)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    end(&mut harness, TaskOutcome::Failed(broken()), report(Some(1), "of-the-first"));
    let change = || CommandKind::ChangeAgent { agent: "other".into() };
    let agent = Actor { credential: crate::run::command::Credential::Agent, ..person() };
    assert!(matches!(harness.tell(agent, change(), false), Err(Refusal::PersonRequired { .. })));
    assert_eq!(harness.tell(person(), change(), false).unwrap(), [Event::AgentChanged { agent: "other".into() }]);
    assert_eq!(harness.tell(person(), change(), false).unwrap(), [], "it already works");
    assert_eq!(harness.run.agent.as_deref(), Some("other"));
    harness.take_over();
    let session = |harness: &Harness, task: &str| harness.run.task_run(&key("one", 1, task)).unwrap().session.clone().unwrap();
    assert!(!session(&harness, "a").resume, "no session of another program is resumed");
    let mut said = report(Some(1), "of-the-second").unwrap();
    said.agent = "other".into();
    end(&mut harness, well(), Some(said));
    assert_eq!(session(&harness, "b"), crate::run::event::SessionStart { id: "of-the-second".into(), resume: true });
}
