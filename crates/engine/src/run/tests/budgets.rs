//! Budgets: when a person is asked, and how much an agent may still use.

use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::agent::{AgentReport, Usage};
use std::time::Duration;

fn agent_task(id: &str, needs: &[&str]) -> Task {
    let needs = needs.iter().map(|need| TaskId::from(*need)).collect();
    Task { needs, ..Task::new(TaskId::from(id), Work::Agent(Box::default())) }
}

/// One phase with three agents, one after the other.
fn agents() -> Workflow {
    workflow(vec![phase("one", vec![agent_task("a", &[]), agent_task("b", &["a"]), agent_task("c", &["b"])])])
}

fn used(cost: Option<u64>, tokens: Option<u64>) -> Usage {
    Usage { cost_micros: cost, input_tokens: tokens, output_tokens: Some(0) }
}

/// Ends the running agent successfully after this many milliseconds.
fn end(harness: &mut Harness, usage: Usage, milliseconds: i64) {
    let Some(Effect::Task { key, attempt }) = harness.run.pending().into_iter().next() else { panic!("no task runs") };
    // Every command advances the clock of this harness by a second.
    harness.now += milliseconds - 1000;
    let agent = Some(Box::new(AgentReport { usage, asks: 1, ..AgentReport::default() }));
    let outcome = TaskOutcome::Finished { result: None, outputs: Vec::new() };
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent, commit: None });
}

#[test]
fn a_token_budget_allows_work_until_all_tokens_are_used() {
    let mut harness = Harness::new(Workflow { budget: Budget { max_tokens: Some(4), ..Budget::default() }, ..agents() });
    end(&mut harness, used(None, Some(3)), 1000);
    assert_eq!(harness.run.status(), Status::Running, "one token is left, and nothing limits the cost");
    end(&mut harness, used(None, Some(1)), 1000);
    assert_eq!(harness.hold().kind, HoldKind::Budget);
    assert_eq!(harness.hold().notes, ["4 of 4 tokens used"]);
    let prompt = "The budget of this run does not allow more work. Raise it by the same amount, so that one/c can continue?";
    assert_eq!(harness.hold().prompt, prompt);
}

#[test]
fn unknown_token_usage_is_asked_about_once() {
    let mut harness = Harness::new(Workflow { budget: Budget { max_tokens: Some(4), ..Budget::default() }, ..agents() });
    end(&mut harness, used(Some(1), None), 1000);
    assert_eq!(harness.hold().notes, ["the number of tokens of one attempt is unknown"]);
    harness.answer("raise-budget", None);
    end(&mut harness, used(Some(1), Some(1)), 1000);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/c"], "a person accepted the attempt whose usage is unknown");
}

#[test]
fn several_attempts_of_unknown_cost_are_counted() {
    let mut harness = Harness::new(Workflow { budget: Budget { max_cost_micros: Some(9), ..Budget::default() }, ..agents() });
    end(&mut harness, used(None, Some(1)), 1000);
    harness.answer("raise-budget", None);
    end(&mut harness, used(None, Some(1)), 1000);
    assert_eq!(harness.hold().notes, ["the cost of 2 attempts is unknown"]);
}

#[test]
fn a_time_budget_is_shown_in_minutes() {
    let mut asked = agents();
    asked.phases[0].budget = Budget { max_time: Some(Duration::from_secs(90)), ..Budget::default() };
    let mut harness = Harness::new(asked);
    end(&mut harness, used(None, None), 89_999);
    assert_eq!(harness.run.status(), Status::Running, "a millisecond is left");
    end(&mut harness, used(None, None), 10_001);
    assert_eq!(harness.hold().notes, ["agents worked 1.67 of 1.5 minutes"]);
    assert!(harness.hold().prompt.starts_with("The budget of phase one does not allow more work"), "{}", harness.hold().prompt);
}

#[test]
fn the_smallest_remaining_budget_limits_an_agent() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let mut limited = agents();
    limited.budget = Budget { max_cost_micros: Some(100), max_time: seconds(60), ..Budget::default() };
    limited.phases[0].tasks[1].budget = Budget { max_cost_micros: Some(30), max_time: seconds(30), ..Budget::default() };
    let mut harness = Harness::new(limited.clone());
    let one = PhaseId::from("one");
    let left = |harness: &Harness, index: usize| {
        let task = &harness.run.workflow.phases[0].tasks[index];
        (harness.run.cost_left(&one, task), harness.run.time_left(&one, task))
    };
    assert_eq!(left(&harness, 0), (Some(100), seconds(60)));
    assert_eq!(left(&harness, 1), (Some(30), seconds(30)));
    end(&mut harness, used(Some(80), None), 40_000);
    assert_eq!(left(&harness, 1), (Some(20), seconds(20)), "the run has less left than the task alone");
    assert_eq!(left(&Harness::new(agents()), 0), (None, None), "nothing is limited");
}

/// An agent and this many others that wait for it, all under a budget that the first one uses up.
fn used_up_for(waiting: usize) -> Harness {
    let mut tasks = vec![agent_task("a", &[])];
    tasks.extend((1..=waiting).map(|number| agent_task(&format!("w{number}"), &["a"])));
    let budget = Budget { max_cost_micros: Some(10), ..Budget::default() };
    let mut harness = Harness::new(Workflow { budget, ..workflow(vec![phase("one", tasks)]) });
    end(&mut harness, used(Some(10), None), 1000);
    harness
}

#[test]
fn a_budget_question_names_eight_tasks_and_counts_the_rest() {
    let names = "one/w1, one/w2, one/w3, one/w4, one/w5, one/w6, one/w7, one/w8";
    let asks = |harness: &Harness| harness.hold().prompt.split_once("so that ").unwrap().1.to_owned();
    assert_eq!(asks(&used_up_for(8)), format!("{names} can continue?"));
    assert_eq!(asks(&used_up_for(9)), format!("{names}, 1 more can continue?"));
}

#[test]
fn skipping_one_of_several_tasks_without_budget_asks_about_the_rest_again() {
    let mut harness = used_up_for(2);
    let step = crate::id::StepKey::Task(key("one", 1, "w1"));
    harness.tell(person(), CommandKind::SkipTask { step, reason: "not needed".into(), cut_off: None }, true).unwrap();
    assert_eq!((harness.hold().kind, harness.asked()), (HoldKind::Budget, vec!["one/w2".to_owned()]));
    harness.answer("raise-budget", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/w2"]);
}

#[test]
fn counting_as_done_applies_to_every_task_waiting_for_the_budget() {
    let tasks = vec![agent_task("a", &[]), task("x", &[]), agent_task("b", &["a"]), agent_task("late", &["x"])];
    let budget = Budget { max_cost_micros: Some(10), ..Budget::default() };
    let mut harness = Harness::new(Workflow { budget, ..workflow(vec![phase("one", tasks)]) });
    end(&mut harness, used(Some(10), None), 1000);
    harness.perform(&harness.effect_of("one/x"));
    assert_eq!(harness.asked(), ["one/b"], "the question was there before `late` came to wait for its answer");
    let events = harness.answer("count-as-done", None);
    let skipped: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::TaskSkipped { key, .. } => Some(key.address()),
            _ => None,
        })
        .collect();
    assert_eq!(skipped, ["one/b", "one/late"], "each of them once");
    assert_eq!(harness.run.status(), Status::Complete);
}
