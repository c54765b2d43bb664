//! Agents: what they use, which session they work in, what they say to scripts.

use super::*;
use crate::run::Status;
use crate::run::agent::{AgentReport, Usage};
use crate::run::budget::BudgetScope;
use crate::run::event::Thinker;

fn agent_task(id: &str, needs: &[&str], session: Session) -> Task {
    let work = AgentWork { agent: Some("coder".into()), session, ..AgentWork::default() };
    let needs = needs.iter().map(|need| TaskId::from(*need)).collect();
    Task { needs, ..Task::new(TaskId::from(id), Work::Agent(Box::new(work))) }
}

fn report(cost: Option<u64>, session: &str) -> Option<Box<AgentReport>> {
    let usage = Usage { cost_micros: cost, input_tokens: Some(1), output_tokens: Some(1) };
    Some(Box::new(AgentReport { agent: "coder".into(), session: Some(session.into()), usage, asks: 1, ..AgentReport::default() }))
}

fn end(bench: &mut Bench, outcome: TaskOutcome, agent: Option<Box<AgentReport>>) {
    let Some(Effect::Task { key, attempt }) = bench.run.pending().into_iter().next() else { panic!("no task runs") };
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent, commit: None });
}

fn well() -> TaskOutcome {
    TaskOutcome::Finished { result: None, outputs: Vec::new() }
}

#[test]
fn a_used_up_budget_asks_once_for_all_that_wait_for_it_and_lets_them_go_on_together() {
    let tasks = vec![
        agent_task("a", &[], Session::Fresh),
        agent_task("b", &["a"], Session::Fresh),
        agent_task("c", &["a"], Session::Fresh),
    ];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.budget = Budget { max_cost_micros: Some(10), ..Budget::default() };
    let mut bench = Bench::new(definition);
    end(&mut bench, well(), report(Some(10), "s"));
    assert_eq!(bench.run.status(), Status::Waiting);
    assert_eq!(bench.hold().scope.addresses(), ["one/b", "one/c"]);
    assert_eq!(bench.hold().notes, ["$0.00 of $0.00 are spent"]);
    bench.answer("go-on", None);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/c"]);
    end(&mut bench, well(), report(Some(1), "s"));
    end(&mut bench, well(), report(Some(100), "s"));
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.run.spent(&BudgetScope::Run).cost_micros, 111);
}

#[test]
fn what_nobody_said_was_used_is_asked_about_and_a_cut_off_attempt_is_such() {
    let tasks = vec![agent_task("a", &[], Session::Fresh)];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.phases[0].tasks[0].budget = Budget { max_cost_micros: Some(1_000), ..Budget::default() };
    definition.phases[0].tasks[0].on_interrupt = OnInterrupt::Rerun;
    let mut bench = Bench::new(definition);
    bench.tell(person(), CommandKind::TakeOver { driver: DriverId::from("other"), detached: false }, true).unwrap();
    assert_eq!(bench.hold().notes, ["the cost of one attempt is not known"]);
    bench.answer("Count as done", None);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_attempt_that_its_budget_cut_off_is_no_failure() {
    let mut definition = workflow(vec![phase("one", vec![agent_task("a", &[], Session::Fresh)])]);
    definition.phases[0].tasks[0].budget = Budget { max_time: Some(std::time::Duration::from_millis(1)), ..Budget::default() };
    let mut bench = Bench::new(definition);
    let cut = Failure { kind: FailureKind::Budget, message: "too long".into(), tail: String::new() };
    end(&mut bench, TaskOutcome::Failed(cut), report(Some(0), "s"));
    assert!(!bench.has(|event| matches!(event, Event::TaskFailed { .. })));
    assert_eq!(bench.hold().kind, crate::hold::HoldKind::Budget);
}

#[test]
fn sessions_are_fresh_the_same_as_the_agents_last_or_those_of_the_attempt_before() {
    let tasks = vec![
        agent_task("a", &[], Session::Fresh),
        agent_task("b", &["a"], Session::Same),
        Task { retry: Retry { attempts: 2, ..Retry::default() }, ..agent_task("c", &["b"], Session::Resume) },
    ];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    end(&mut bench, well(), report(Some(1), "named-by-it"));
    end(&mut bench, well(), report(Some(1), "second"));
    end(&mut bench, TaskOutcome::Failed(broken()), report(Some(1), "third"));
    bench.work();
    let sessions: Vec<(String, bool)> = bench
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
fn a_script_that_asks_is_evaluated_again_with_the_answer_and_a_crash_asks_only_what_was_not_answered() {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    let main = Task::new(TaskId::from("main"), Work::Script(script));
    let mut bench = Bench::new(workflow(vec![phase("one", vec![main])]));
    let asks = |text: &str| TaskOutcome::Thinks(Datum::Inline(format!("\"{text}\"")));
    end(&mut bench, asks("first"), None);
    let thinker = Thinker::Task(key("one", 1, "main"));
    assert_eq!(bench.run.pending(), [Effect::Think { thinker: thinker.clone(), number: 1 }]);
    bench.perform(&Effect::Think { thinker: thinker.clone(), number: 1 });
    end(&mut bench, asks("second"), None);
    bench.tell(person(), CommandKind::TakeOver { driver: DriverId::from("other"), detached: false }, true).unwrap();
    let known: Vec<bool> = bench.run.current.as_ref().unwrap().thoughts.iter().map(|thought| thought.text.is_some()).collect();
    assert_eq!(known, [true], "what was answered is known, what was not is asked again");
    end(&mut bench, asks("second"), None);
    bench.perform(&Effect::Think { thinker: thinker.clone(), number: 2 });
    end(&mut bench, well(), None);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_thought_that_fails_fails_the_task_that_wanted_it() {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![Task::new(TaskId::from("main"), Work::Script(script))])]));
    end(&mut bench, TaskOutcome::Thinks(Datum::Inline("\"x\"".into())), None);
    let thinker = Thinker::Task(key("one", 1, "main"));
    bench.outcome(CommandKind::Thought { thinker, text: Err(broken()), agent: None });
    assert_eq!(bench.run.status(), Status::Failed);
}

#[test]
fn a_session_that_its_agent_named_is_resumed_by_the_next_attempt_and_no_other() {
    let work = Task { on_interrupt: OnInterrupt::Rerun, ..agent_task("a", &[], Session::Resume) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![work])]));
    let cut_off = |bench: &mut Bench| {
        let take_over = CommandKind::TakeOver { driver: DriverId::from("other"), detached: false };
        bench.tell(person(), take_over, true).unwrap();
        bench.run.task_run(&key("one", 1, "a")).unwrap().session.clone().unwrap()
    };
    for attempt in [2, 3] {
        let session = cut_off(&mut bench);
        assert!(bench.run.session_known(&session.id).is_none(), "nobody named it before attempt {attempt}");
    }
    let named = |attempt, session: &str| CommandKind::SessionNamed {
        key: key("one", 1, "a"),
        attempt,
        session: session.into(),
        dir: Some("sub".into()),
    };
    assert_eq!(bench.outcome(named(2, "s-late")), [], "that attempt is over");
    assert_eq!(bench.outcome(named(3, "s-1")).len(), 1);
    assert_eq!(bench.outcome(named(3, "s-1")), [], "it is known");
    let resumed = cut_off(&mut bench);
    assert_eq!((resumed.id.as_str(), resumed.resume), ("s-1", true));
    assert!(bench.run.session_known("s-1").is_some_and(|known| known.dir.as_deref() == Some("sub")));
}

#[test]
fn what_a_budget_cut_off_continues_in_its_session() {
    let mut definition = workflow(vec![phase("one", vec![agent_task("a", &[], Session::Fresh)])]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, ..Retry::default() };
    definition.phases[0].tasks[0].budget = Budget { max_time: Some(std::time::Duration::from_secs(1)), ..Budget::default() };
    let mut bench = Bench::new(definition);
    let cut = Failure { kind: FailureKind::Budget, message: "too long".into(), tail: String::new() };
    let mut said = report(Some(0), "first").unwrap();
    said.dir = Some("work".into());
    end(&mut bench, TaskOutcome::Failed(cut), Some(said));
    let session = |bench: &Bench| {
        let run = bench.run.task_run(&key("one", 1, "a")).unwrap();
        run.session.as_ref().map(|session| (session.id.clone(), session.resume)).unwrap()
    };
    bench.answer("go-on", None);
    assert_eq!(session(&bench), ("first".to_owned(), true));
    let known = bench.run.session_known("first").expect("the agent named it");
    assert_eq!(known.dir.as_deref(), Some("work"), "what is known of a session is kept when it is resumed");
    bench.run.sessions.by_task.values_mut().for_each(|known| known.confirmed = false);
    bench.run.sessions.by_agent.clear();
    assert_eq!(bench.run.session_known("first"), None, "an agent was only asked to use this id");
    assert_eq!(bench.run.session_known("other"), None);
    end(&mut bench, TaskOutcome::Failed(broken()), report(Some(0), "first"));
    bench.answer("go-on", None);
    assert!(!session(&bench).1, "a retry starts afresh");
}

#[test]
fn what_a_session_used_in_all_is_known_to_every_task_that_shares_it() {
    let tasks =
        vec![agent_task("a", &[], Session::Same), agent_task("b", &["a"], Session::Same), agent_task("c", &["b"], Session::Same)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    for (number, used) in [(1, 100), (2, 200)] {
        let mut said = report(Some(1), "shared").unwrap();
        said.session_usage = Some(Usage { cost_micros: None, input_tokens: Some(used), output_tokens: Some(1) });
        end(&mut bench, well(), Some(said));
        let known = bench.run.session_known("shared").and_then(|known| known.usage?.input_tokens);
        assert_eq!(known, Some(used), "after task {number}");
    }
}

#[test]
fn another_agent_works_from_now_on_in_sessions_of_its_own() {
    let tasks = vec![agent_task("a", &[], Session::Same), agent_task("b", &["a"], Session::Same)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    end(&mut bench, TaskOutcome::Failed(broken()), report(Some(1), "of-the-first"));
    let change = || CommandKind::ChangeAgent { agent: "other".into() };
    let agent = Actor { credential: crate::run::command::Credential::Agent, ..person() };
    assert!(matches!(bench.tell(agent, change(), false), Err(Refusal::NotAPerson { .. })));
    assert_eq!(bench.tell(person(), change(), false).unwrap(), [Event::AgentChanged { agent: "other".into() }]);
    assert_eq!(bench.tell(person(), change(), false).unwrap(), [], "it works already");
    assert_eq!(bench.run.agent.as_deref(), Some("other"));
    bench.take_over();
    let session = |bench: &Bench, task: &str| bench.run.task_run(&key("one", 1, task)).unwrap().session.clone().unwrap();
    assert!(!session(&bench, "a").resume, "no session of another program is resumed");
    let mut said = report(Some(1), "of-the-second").unwrap();
    said.agent = "other".into();
    end(&mut bench, well(), Some(said));
    assert_eq!(session(&bench, "b"), crate::run::event::SessionStart { id: "of-the-second".into(), resume: true });
}
