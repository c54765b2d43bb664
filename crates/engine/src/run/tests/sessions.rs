//! Sessions: which one an agent works in, and what is known of it. Budgets: which question a task waits for.

use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::agent::{AgentReport, Usage};

fn agent_task(id: &str, needs: &[&str], session: Session) -> Task {
    let work = AgentWork { agent: Some("coder".into()), session, ..AgentWork::default() };
    let needs = needs.iter().map(|need| TaskId::from(*need)).collect();
    Task { needs, ..Task::new(TaskId::from(id), Work::Agent(Box::new(work))) }
}

const USED: Usage = Usage { cost_micros: Some(10), input_tokens: Some(1), output_tokens: Some(1) };

fn report(session: &str) -> AgentReport {
    AgentReport { agent: "coder".into(), session: Some(session.into()), usage: USED, asks: 1, ..AgentReport::default() }
}

fn end(bench: &mut Bench, address: &str, outcome: TaskOutcome, report: AgentReport) {
    let Effect::Task { key, attempt } = bench.effect_of(address) else { panic!("no task runs") };
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: Some(Box::new(report)), commit: None });
}

fn well() -> TaskOutcome {
    TaskOutcome::Finished { result: None, outputs: Vec::new() }
}

/// The sessions of all attempts: the id where an earlier one is resumed.
fn sessions(bench: &Bench) -> Vec<Option<String>> {
    let started = bench.entries.iter().filter_map(|entry| match &entry.event {
        Event::TaskStarted { session: Some(session), .. } => Some(session.resume.then(|| session.id.clone())),
        _ => None,
    });
    started.collect()
}

#[test]
fn an_attempt_that_its_budget_cut_off_resumes_its_session_and_a_failed_one_does_not() {
    let retry = Retry { attempts: 2, ..Retry::default() };
    let budget = Budget { max_time: Some(std::time::Duration::from_millis(1000)), ..Budget::default() };
    let first = Task { budget, ..agent_task("a", &[], Session::Fresh) };
    let second = Task { retry, ..agent_task("b", &["a"], Session::Fresh) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![first, second])]));
    let cut = Failure { kind: FailureKind::Budget, message: "too long".into(), tail: String::new() };
    end(&mut bench, "one/a", TaskOutcome::Failed(cut), report("cut-off"));
    bench.answer("go-on", None);
    end(&mut bench, "one/a", well(), report("cut-off"));
    end(&mut bench, "one/b", TaskOutcome::Failed(broken()), report("failed"));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(sessions(&bench), [None, Some("cut-off".into()), None, None]);
}

#[test]
fn a_resumed_session_keeps_what_is_known_of_it() {
    let tasks = vec![agent_task("z", &[], Session::Fresh), agent_task("a", &["z"], Session::Same)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    let asked = bench.run.sessions.by_task["one/z"].id.clone();
    assert_eq!(bench.run.session_known(&asked), None, "the agent has not confirmed it");
    let first = AgentReport { dir: Some("web".into()), session_usage: Some(USED), ..report("named-by-it") };
    end(&mut bench, "one/z", well(), first);
    assert_eq!(bench.run.session_known("another"), None);
    let known = &bench.run.sessions.by_task["one/a"];
    assert_eq!((known.id.as_str(), known.dir.as_deref(), known.usage), ("named-by-it", Some("web"), Some(USED)));
    assert_eq!(bench.run.session_known("named-by-it"), Some(known));
}

#[test]
fn each_item_of_a_list_has_a_session_and_the_list_itself_has_none() {
    let each = Some(ForEach { over: Over::List(Vec::new()), max_parallel: None });
    let mut bench =
        Bench::new(workflow(vec![phase("one", vec![Task { for_each: each, ..agent_task("e", &[], Session::Fresh) }])]));
    assert!(sessions(&bench).is_empty());
    let item = |name: &str| crate::run::command::Item { key: name.into(), value: Datum::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y")]);
    bench.outcome(CommandKind::TaskEnded { key: key("one", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
    assert_eq!(sessions(&bench), [None, None]);
}

#[test]
fn a_task_that_meets_a_used_up_budget_later_waits_for_the_same_answer() {
    let asks = Task { on_fail: OnFail::Ask, ..task("asks", &[]) };
    let tasks = vec![
        asks,
        agent_task("a", &[], Session::Fresh),
        agent_task("b", &["a"], Session::Fresh),
        task("slow", &[]),
        agent_task("c", &["slow"], Session::Fresh),
    ];
    let budget = Budget { max_cost_micros: Some(10), ..Budget::default() };
    let mut bench = Bench::new(Workflow { budget, ..workflow(vec![phase("one", tasks)]) });
    bench.fail("one/asks");
    end(&mut bench, "one/a", well(), report("s"));
    let kinds = |bench: &Bench| bench.run.open_holds().iter().map(|hold| hold.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&bench), [HoldKind::Failed, HoldKind::Budget], "no other question stands in for that about the budget");
    bench.perform(&bench.effect_of("one/slow"));
    assert_eq!(kinds(&bench).len(), 2, "it is asked once");
    bench.answer_task("one/b", "go-on", None);
    assert_eq!(bench.started()[3..], ["one/b", "one/c"]);
}
