//! `when` and `join`: which tasks start, and which are left out.

use super::*;
use crate::run::Status;
use crate::run::state::TaskState;

fn conditional(id: &str, needs: &[&str]) -> Task {
    Task { when: condition(), ..task(id, needs) }
}

fn evaluated(task: &str, outcome: ConditionOutcome) -> CommandKind {
    CommandKind::WhenEvaluated { key: key("one", 1, task), outcome }
}

fn state(harness: &Harness, task: &str) -> TaskState {
    harness.run.task_run(&key("one", 1, task)).unwrap().state.clone()
}

#[test]
fn a_task_runs_only_if_its_when_is_true() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![conditional("a", &[]), conditional("b", &[])])]));
    assert!(harness.started().is_empty());
    harness.outcome(evaluated("a", ConditionOutcome::True));
    assert_eq!(harness.started(), ["one/a"]);
    harness.outcome(evaluated("b", ConditionOutcome::False));
    let omitted = TaskState::Omitted { reason: "its `when` is false".into(), failed: false };
    assert_eq!(state(&harness, "b"), omitted);
    harness.work();
    assert_eq!((harness.run.status(), harness.started()), (Status::Complete, vec!["one/a".to_owned()]));
}

#[test]
fn a_when_that_cannot_be_evaluated_fails_its_task() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![conditional("a", &[])])]));
    let events = harness.outcome(evaluated("a", ConditionOutcome::Error("x is not defined".into())));
    let failed = |event: &Event| {
        matches!(event, Event::TaskFailed { failure, attempt: 0, .. }
            if failure.kind == FailureKind::Condition && failure.message == "its `when` could not be evaluated: x is not defined")
    };
    assert!(events.iter().any(failed), "{events:?}");
    assert_eq!(harness.run.status(), Status::Failed);
}

#[test]
fn an_unexpected_when_result_is_ignored() {
    let tasks = vec![task("busy", &[]), conditional("free", &[]), conditional("later", &["busy"])];
    let mut harness = Harness::new(Workflow { max_parallel: Some(1), ..workflow(vec![phase("one", tasks)]) });
    assert_eq!(harness.run.pending().iter().filter(|effect| matches!(effect, Effect::When { .. })).count(), 1);
    assert_eq!(harness.outcome(evaluated("later", ConditionOutcome::True)), [], "its dependency is not done");
    assert_eq!(harness.outcome(evaluated("nowhere", ConditionOutcome::True)), []);
    harness.outcome(evaluated("free", ConditionOutcome::True));
    assert_eq!(harness.outcome(evaluated("free", ConditionOutcome::False)), [], "it was admitted, and waits for capacity");
    harness.perform(&harness.effect_of("one/busy"));
    assert_eq!(harness.outcome(evaluated("free", ConditionOutcome::False)), [], "it runs");
    harness.work();
    assert_eq!(harness.started(), ["one/busy", "one/free", "one/later"]);
}

#[test]
fn the_when_of_a_fan_out_is_evaluated_for_each_item() {
    let each = Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel: None });
    let mut harness = Harness::new(workflow(vec![phase("one", vec![Task { for_each: each, ..conditional("e", &[]) }])]));
    assert_eq!(harness.started(), ["one/e"], "the list itself has no condition");
    let item = |name: &str| crate::run::command::Item { key: name.into(), value: StoredValue::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y")]);
    harness.outcome(CommandKind::TaskEnded { key: key("one", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
    let of = |name: &str| TaskKey { item: Some(name.into()), ..key("one", 1, "e") };
    assert_eq!(harness.run.pending(), ["x", "y"].map(|name| Effect::When { key: of(name) }));
    harness.outcome(CommandKind::WhenEvaluated { key: of("x"), outcome: ConditionOutcome::False });
    harness.work();
    assert_eq!((harness.started(), harness.run.status()), (vec!["one/e".to_owned(), "one/e[y]".to_owned()], Status::Complete));
}

#[test]
fn a_join_any_task_starts_after_the_first_need_and_is_skipped_without_one() {
    let tolerant = |id: &str| Task { continue_on_error: true, ..task(id, &[]) };
    let any = |id: &str, needs: &[&str]| Task { join: Join::Any, ..task(id, needs) };
    let tasks = || vec![tolerant("a"), tolerant("b"), any("first", &["a", "b"]), any("alone", &[])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks())]));
    assert_eq!(harness.started(), ["one/a", "one/b", "one/alone"], "a task without dependencies has nothing to wait for");
    harness.fail("one/a");
    assert!(!harness.started().contains(&"one/first".to_owned()));
    harness.perform(&harness.effect_of("one/b"));
    assert_eq!(harness.started().last().unwrap(), "one/first");
    let mut neither = Harness::new(workflow(vec![phase("one", tasks())]));
    neither.fail("one/a");
    neither.fail("one/b");
    let reason = "it depends on a, b, which did not succeed".to_owned();
    assert_eq!(state(&neither, "first"), TaskState::Omitted { reason, failed: true });
    neither.work();
    assert_eq!(neither.run.status(), Status::Complete);
}

#[test]
fn a_join_done_task_runs_after_failed_needs() {
    let tolerant = Task { continue_on_error: true, ..task("a", &[]) };
    let after = Task { join: Join::Done, ..task("after", &["a"]) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![tolerant, after, task("other", &["a"])])]));
    harness.fail("one/a");
    assert_eq!(harness.started(), ["one/a", "one/after"]);
    assert!(matches!(state(&harness, "other"), TaskState::Omitted { failed: true, .. }));
}
