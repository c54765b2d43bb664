//! Rework: what counts as built on the work, what the question waits for, and what those who do it again are told.

use super::questions::{decision, verify};
use super::*;
use crate::run::End;
use crate::run::event::AttemptReason;

fn feedback(bench: &Bench, task: &str) -> Option<String> {
    bench.run.task_run(&key("one", 1, task)).unwrap().feedback().map(str::to_owned)
}

fn after(bench: &Bench, task: &str) -> Vec<TaskId> {
    bench.run.task_run(&key("one", 1, task)).unwrap().exchange.as_ref().unwrap().after.clone()
}

#[test]
fn a_run_that_fails_over_issues_says_how_often_the_work_was_redone() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("build", &[]), verify("look", "build", 1)])]));
    bench.work();
    bench.answer("issues", Some("too slow"));
    bench.work();
    bench.answer("issues", Some("too big"));
    let message = "one/look failed: a person found issues after the work was done again 1 time: too big";
    assert_eq!(bench.run.end, Some(End::Failed(message.into())));
}

#[test]
fn a_question_waits_for_everything_that_was_built_on_the_work() {
    let tasks = vec![task("build", &[]), task("pack", &["build"]), decision("mid", &["build"]), verify("look", "build", 3)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.work();
    bench.answer_task("one/mid", "sqlite", None);
    bench.answer_task("one/look", "issues", Some("too slow"));
    assert_eq!(after(&bench, "look"), ["build", "pack"].map(TaskId::from));
    bench.perform(&bench.effect_of("one/build"));
    let told = (feedback(&bench, "build"), feedback(&bench, "pack"), feedback(&bench, "mid"));
    assert_eq!(told, (Some("too slow".into()), Some("too slow".into()), None), "a question is not told what was found");
    bench.perform(&bench.effect_of("one/mid"));
    assert_eq!(bench.asked(), ["one/mid"], "pack is being done again");
    bench.work();
    assert_eq!(bench.asked(), ["one/look", "one/mid"]);
    assert_eq!(after(&bench, "look"), [], "it waits for nothing once it is asked");
}

#[test]
fn a_question_does_not_wait_for_work_that_had_not_started() {
    let tasks = vec![task("build", &[]), task("slow", &[]), task("late", &["build", "slow"]), verify("look", "build", 3)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.perform(&bench.effect_of("one/build"));
    bench.perform(&bench.effect_of("one/look"));
    bench.answer_task("one/look", "issues", Some("too slow"));
    bench.perform(&bench.effect_of("one/build"));
    bench.perform(&bench.effect_of("one/look"));
    assert_eq!(bench.asked(), ["one/look"]);
    bench.perform(&bench.effect_of("one/slow"));
    assert_eq!(feedback(&bench, "late"), None, "issues with earlier work are not about it");
}

#[test]
fn the_when_of_a_task_that_has_not_started_is_evaluated_again_after_rework() {
    let conditional = Task { when: condition(), ..task("cond", &["build"]) };
    let tasks = vec![task("build", &[]), verify("look", "build", 3), task("other", &[]), conditional];
    let mut bench = Bench::new(Workflow { max_parallel: Some(1), ..workflow(vec![phase("one", tasks)]) });
    bench.perform(&bench.effect_of("one/build"));
    let when = Effect::When { key: key("one", 1, "cond") };
    bench.perform(&when);
    bench.perform(&bench.effect_of("one/look"));
    assert_eq!(bench.run.pending(), [bench.effect_of("one/other")], "one task runs, and the condition was true");
    bench.answer_task("one/look", "issues", Some("too slow"));
    bench.perform(&bench.effect_of("one/other"));
    bench.perform(&bench.effect_of("one/build"));
    assert!(bench.run.pending().contains(&when));
    bench.work();
    let first = |event: &Event| matches!(event, Event::TaskStarted { key, attempt: 1, reason: AttemptReason::First, .. } if key.task.as_str() == "cond");
    assert!(bench.has(first), "it is not done again, but for the first time");
    assert_eq!(feedback(&bench, "cond"), None);
}

#[test]
fn an_attempt_that_was_cut_off_is_told_what_was_found_with_the_work_it_builds_on() {
    let tasks = vec![task("build", &[]), task("pack", &["build"]), verify("look", "build", 3)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.perform(&bench.effect_of("one/build"));
    bench.perform(&bench.effect_of("one/look"));
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    bench.record_answer("one/look", "issues", Some("too slow"));
    bench.take_over();
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    assert_eq!(feedback(&bench, "pack").as_deref(), Some("too slow"));
}
