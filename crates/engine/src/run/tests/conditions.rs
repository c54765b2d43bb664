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

fn state(bench: &Bench, task: &str) -> TaskState {
    bench.run.task_run(&key("one", 1, task)).unwrap().state.clone()
}

#[test]
fn a_task_runs_only_if_its_when_is_true() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![conditional("a", &[]), conditional("b", &[])])]));
    assert!(bench.started().is_empty());
    bench.outcome(evaluated("a", ConditionOutcome::True));
    assert_eq!(bench.started(), ["one/a"]);
    bench.outcome(evaluated("b", ConditionOutcome::False));
    let left_out = TaskState::LeftOut { reason: "its `when` is false".into(), failed: false };
    assert_eq!(state(&bench, "b"), left_out);
    bench.work();
    assert_eq!((bench.run.status(), bench.started()), (Status::Complete, vec!["one/a".to_owned()]));
}

#[test]
fn a_when_that_cannot_be_evaluated_fails_its_task() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![conditional("a", &[])])]));
    let events = bench.outcome(evaluated("a", ConditionOutcome::Error("x is not defined".into())));
    let failed = |event: &Event| {
        matches!(event, Event::TaskFailed { failure, attempt: 0, .. }
            if failure.kind == FailureKind::Condition && failure.message == "its `when` could not be evaluated: x is not defined")
    };
    assert!(events.iter().any(failed), "{events:?}");
    assert_eq!(bench.run.status(), Status::Failed);
}

#[test]
fn a_result_of_a_when_is_ignored_where_it_is_not_asked_for() {
    let tasks = vec![task("busy", &[]), conditional("free", &[]), conditional("later", &["busy"])];
    let mut bench = Bench::new(Workflow { max_parallel: Some(1), ..workflow(vec![phase("one", tasks)]) });
    assert_eq!(bench.run.pending().iter().filter(|effect| matches!(effect, Effect::When { .. })).count(), 1);
    assert_eq!(bench.outcome(evaluated("later", ConditionOutcome::True)), [], "what it needs is not done");
    assert_eq!(bench.outcome(evaluated("nowhere", ConditionOutcome::True)), []);
    bench.outcome(evaluated("free", ConditionOutcome::True));
    assert_eq!(bench.outcome(evaluated("free", ConditionOutcome::False)), [], "it was decided, and waits for room");
    bench.perform(&bench.effect_of("one/busy"));
    assert_eq!(bench.outcome(evaluated("free", ConditionOutcome::False)), [], "it runs");
    bench.work();
    assert_eq!(bench.started(), ["one/busy", "one/free", "one/later"]);
}

#[test]
fn the_when_of_a_list_is_evaluated_for_each_item() {
    let each = Some(ForEach { over: Over::List(Vec::new()), max_parallel: None });
    let mut bench = Bench::new(workflow(vec![phase("one", vec![Task { for_each: each, ..conditional("e", &[]) }])]));
    assert_eq!(bench.started(), ["one/e"], "the list itself has no condition");
    let item = |name: &str| crate::run::command::Item { key: name.into(), value: Datum::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y")]);
    bench.outcome(CommandKind::TaskEnded { key: key("one", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
    let of = |name: &str| TaskKey { item: Some(name.into()), ..key("one", 1, "e") };
    assert_eq!(bench.run.pending(), ["x", "y"].map(|name| Effect::When { key: of(name) }));
    bench.outcome(CommandKind::WhenEvaluated { key: of("x"), outcome: ConditionOutcome::False });
    bench.work();
    assert_eq!((bench.started(), bench.run.status()), (vec!["one/e".to_owned(), "one/e[y]".to_owned()], Status::Complete));
}

#[test]
fn a_task_that_needs_any_of_several_starts_with_the_first_and_is_left_out_without_one() {
    let tolerant = |id: &str| Task { continue_on_error: true, ..task(id, &[]) };
    let any = |id: &str, needs: &[&str]| Task { join: Join::Any, ..task(id, needs) };
    let tasks = || vec![tolerant("a"), tolerant("b"), any("first", &["a", "b"]), any("alone", &[])];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks())]));
    assert_eq!(bench.started(), ["one/a", "one/b", "one/alone"], "a task without needs has nothing to wait for");
    bench.fail("one/a");
    assert!(!bench.started().contains(&"one/first".to_owned()));
    bench.perform(&bench.effect_of("one/b"));
    assert_eq!(bench.started().last().unwrap(), "one/first");
    let mut neither = Bench::new(workflow(vec![phase("one", tasks())]));
    neither.fail("one/a");
    neither.fail("one/b");
    let reason = "it needs a, b, which did not succeed".to_owned();
    assert_eq!(state(&neither, "first"), TaskState::LeftOut { reason, failed: true });
    neither.work();
    assert_eq!(neither.run.status(), Status::Complete);
}

#[test]
fn a_task_that_needs_others_only_to_have_ended_runs_although_they_failed() {
    let tolerant = Task { continue_on_error: true, ..task("a", &[]) };
    let after = Task { join: Join::Done, ..task("after", &["a"]) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![tolerant, after, task("other", &["a"])])]));
    bench.fail("one/a");
    assert_eq!(bench.started(), ["one/a", "one/after"]);
    assert!(matches!(state(&bench, "other"), TaskState::LeftOut { failed: true, .. }));
}
