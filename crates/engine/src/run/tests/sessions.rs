//! Sessions: which one an agent works in, and what the run records about it. Budgets: which question a task waits for.

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

fn end(harness: &mut Harness, address: &str, outcome: TaskOutcome, report: AgentReport) {
    let Effect::Task { key, attempt } = harness.effect_of(address) else { panic!("no task runs") };
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: Some(Box::new(report)), commit: None });
}

fn well() -> TaskOutcome {
    TaskOutcome::Finished { result: None, outputs: Vec::new() }
}

/// The sessions of all attempts: the id if an earlier one is resumed.
fn sessions(harness: &Harness) -> Vec<Option<String>> {
    let started = harness.entries.iter().filter_map(|entry| match &entry.event {
        Event::TaskStarted { session: Some(session), .. } => Some(session.resume.then(|| session.id.clone())),
        _ => None,
    });
    started.collect()
}

#[test]
fn an_attempt_stopped_by_its_budget_resumes_its_session_and_a_failed_one_does_not() {
    let retry = Retry { attempts: 2, ..Retry::default() };
    let budget = Budget { max_time: Some(std::time::Duration::from_millis(1000)), ..Budget::default() };
    let first = Task { budget, ..agent_task("a", &[], Session::Fresh) };
    let second = Task { retry, ..agent_task("b", &["a"], Session::Fresh) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![first, second])]));
    let cut = Failure { kind: FailureKind::Budget, message: "too long".into(), tail: String::new() };
    end(&mut harness, "one/a", TaskOutcome::Failed(cut), report("cut-off"));
    harness.answer("raise-budget", None);
    end(&mut harness, "one/a", well(), report("cut-off"));
    end(&mut harness, "one/b", TaskOutcome::Failed(broken()), report("failed"));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(sessions(&harness), [None, Some("cut-off".into()), None, None]);
}

#[test]
fn a_resumed_session_keeps_its_recorded_usage() {
    let tasks = vec![agent_task("z", &[], Session::Fresh), agent_task("a", &["z"], Session::Same)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let asked = harness.run.sessions.by_task["one/z"].id.clone();
    assert_eq!(harness.run.session_known(&asked), None, "the agent has not confirmed it");
    let first = AgentReport { dir: Some("web".into()), session_usage: Some(USED), ..report("named-by-it") };
    end(&mut harness, "one/z", well(), first);
    assert_eq!(harness.run.session_known("another"), None);
    let known = &harness.run.sessions.by_task["one/a"];
    assert_eq!((known.id.as_str(), known.dir.as_deref(), known.usage), ("named-by-it", Some("web"), Some(USED)));
    assert_eq!(harness.run.session_known("named-by-it"), Some(known));
}

#[test]
fn each_fan_out_item_has_a_session_and_the_fan_out_has_none() {
    let each = Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel: None });
    let mut harness =
        Harness::new(workflow(vec![phase("one", vec![Task { for_each: each, ..agent_task("e", &[], Session::Fresh) }])]));
    assert!(sessions(&harness).is_empty());
    let item = |name: &str| crate::run::command::Item { key: name.into(), value: StoredValue::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y")]);
    harness.outcome(CommandKind::TaskEnded { key: key("one", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
    assert_eq!(sessions(&harness), [None, None]);
}

#[test]
fn a_task_that_reaches_an_exhausted_budget_later_waits_for_the_same_answer() {
    let asks = Task { on_fail: OnFail::Ask, ..task("asks", &[]) };
    let tasks = vec![
        asks,
        agent_task("a", &[], Session::Fresh),
        agent_task("b", &["a"], Session::Fresh),
        task("slow", &[]),
        agent_task("c", &["slow"], Session::Fresh),
    ];
    let budget = Budget { max_cost_micros: Some(10), ..Budget::default() };
    let mut harness = Harness::new(Workflow { budget, ..workflow(vec![phase("one", tasks)]) });
    harness.fail("one/asks");
    end(&mut harness, "one/a", well(), report("s"));
    let kinds = |harness: &Harness| harness.run.open_holds().iter().map(|hold| hold.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&harness), [HoldKind::Failed, HoldKind::Budget], "no other question replaces the one about the budget");
    harness.perform(&harness.effect_of("one/slow"));
    assert_eq!(kinds(&harness).len(), 2, "it is asked once");
    harness.answer_task("one/b", "raise-budget", None);
    assert_eq!(harness.started()[3..], ["one/b", "one/c"]);
}
