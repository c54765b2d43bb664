//! Rework: which tasks depend on the work, what the question waits for, and which feedback the tasks get.

use super::questions::{decision, verify};
use super::*;
use crate::run::End;
use crate::run::event::AttemptReason;

fn feedback(harness: &Harness, task: &str) -> Option<String> {
    harness.run.task_run(&key("one", 1, task)).unwrap().feedback().map(str::to_owned)
}

fn after(harness: &Harness, task: &str) -> Vec<TaskId> {
    harness.run.task_run(&key("one", 1, task)).unwrap().exchange.as_ref().unwrap().after.clone()
}

#[test]
fn a_run_that_fails_because_of_issues_reports_the_number_of_rework_rounds() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("build", &[]), verify("look", "build", 1)])]));
    harness.work();
    harness.answer("issues", Some("too slow"));
    harness.work();
    harness.answer("issues", Some("too big"));
    let message = "one/look failed: a person found issues after the work was redone 1 time: too big";
    assert_eq!(harness.run.end, Some(End::Failed(message.into())));
}

#[test]
fn a_question_waits_for_all_dependents_of_the_redone_work() {
    let tasks = vec![task("build", &[]), task("pack", &["build"]), decision("mid", &["build"]), verify("look", "build", 3)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.work();
    harness.answer_task("one/mid", "sqlite", None);
    harness.answer_task("one/look", "issues", Some("too slow"));
    assert_eq!(after(&harness, "look"), ["build", "pack"].map(TaskId::from));
    harness.perform(&harness.effect_of("one/build"));
    let feedbacks = (feedback(&harness, "build"), feedback(&harness, "pack"), feedback(&harness, "mid"));
    assert_eq!(feedbacks, (Some("too slow".into()), Some("too slow".into()), None), "a question does not get the findings");
    harness.perform(&harness.effect_of("one/mid"));
    assert_eq!(harness.asked(), ["one/mid"], "pack is being redone");
    harness.work();
    assert_eq!(harness.asked(), ["one/look", "one/mid"]);
    assert_eq!(after(&harness, "look"), [], "it waits for nothing once it is asked");
}

#[test]
fn a_question_does_not_wait_for_work_that_had_not_started() {
    let tasks = vec![task("build", &[]), task("slow", &[]), task("late", &["build", "slow"]), verify("look", "build", 3)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.perform(&harness.effect_of("one/build"));
    harness.perform(&harness.effect_of("one/look"));
    harness.answer_task("one/look", "issues", Some("too slow"));
    harness.perform(&harness.effect_of("one/build"));
    harness.perform(&harness.effect_of("one/look"));
    assert_eq!(harness.asked(), ["one/look"]);
    harness.perform(&harness.effect_of("one/slow"));
    assert_eq!(feedback(&harness, "late"), None, "issues with earlier work are not about it");
}

#[test]
fn the_when_of_a_task_that_has_not_started_is_evaluated_again_after_rework() {
    let conditional = Task { when: condition(), ..task("cond", &["build"]) };
    let tasks = vec![task("build", &[]), verify("look", "build", 3), task("other", &[]), conditional];
    let mut harness = Harness::new(Workflow { max_parallel: Some(1), ..workflow(vec![phase("one", tasks)]) });
    harness.perform(&harness.effect_of("one/build"));
    let when = Effect::When { key: key("one", 1, "cond") };
    harness.perform(&when);
    harness.perform(&harness.effect_of("one/look"));
    assert_eq!(harness.run.pending(), [harness.effect_of("one/other")], "one task runs, and the condition was true");
    harness.answer_task("one/look", "issues", Some("too slow"));
    harness.perform(&harness.effect_of("one/other"));
    harness.perform(&harness.effect_of("one/build"));
    assert!(harness.run.pending().contains(&when));
    harness.work();
    let first = |event: &Event| matches!(event, Event::TaskStarted { key, attempt: 1, reason: AttemptReason::First, .. } if key.task.as_str() == "cond");
    assert!(harness.has(first), "it runs for the first time");
    assert_eq!(feedback(&harness, "cond"), None);
}

#[test]
fn an_interrupted_attempt_receives_the_issues_of_the_work_it_depends_on() {
    let tasks = vec![task("build", &[]), task("pack", &["build"]), verify("look", "build", 3)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.perform(&harness.effect_of("one/build"));
    harness.perform(&harness.effect_of("one/look"));
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    harness.record_answer("one/look", "issues", Some("too slow"));
    harness.take_over();
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    assert_eq!(feedback(&harness, "pack").as_deref(), Some("too slow"));
}
