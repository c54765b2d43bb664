//! `fail_fast` and `on_fail`: what a failure stops, and which failure counts.

use super::*;
use crate::run::Status;

fn end_gate(harness: &mut Harness, iteration: u32, name: &str, attempt: u32, failure: Option<Failure>) -> Vec<Event> {
    harness.outcome(CommandKind::GateEnded { phase: PhaseId::from("one"), iteration, gate: GateId::from(name), attempt, failure })
}

fn stopped(harness: &Harness) -> bool {
    harness.has(|event| matches!(event, Event::TaskStopped { .. }))
}

/// A gate of a task.
fn of(id: &str, task: &str, on_fail: OnFail) -> Gate {
    Gate { task: Some(TaskId::from(task)), on_fail, ..gate(id) }
}

#[test]
fn fail_fast_ignores_a_tolerated_failure() {
    let asking = Task { on_fail: OnFail::Ask, ..task("a", &[]) };
    let tolerant = Task { continue_on_error: true, ..task("a", &[]) };
    for first in [asking, tolerant] {
        let fast = Phase { fail_fast: true, ..phase("one", vec![first, task("b", &[])]) };
        let mut harness = Harness::new(workflow(vec![fast]));
        harness.fail("one/a");
        assert!(!stopped(&harness));
        assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "b"), attempt: 1 }]);
    }
}

#[test]
fn fail_fast_ignores_a_gate_that_asks() {
    let tasks = vec![task("a", &[]), task("b", &[])];
    let fast = Phase { fail_fast: true, gates: vec![of("lint", "a", OnFail::Ask)], ..phase("one", tasks) };
    let mut harness = Harness::new(workflow(vec![fast]));
    harness.perform(&harness.effect_of("one/a"));
    end_gate(&mut harness, 1, "lint", 1, Some(broken()));
    assert!(!stopped(&harness));
    assert_eq!(harness.run.open_holds().len(), 1);
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "b"), attempt: 1 }]);
}

#[test]
fn a_gate_outcome_counts_only_for_the_running_attempt() {
    let tasks = vec![task("a", &[]), task("b", &[])];
    let gates = vec![of("lint", "a", OnFail::Repeat), of("size", "b", OnFail::Fail)];
    let mut harness = Harness::new(workflow(vec![Phase { gates, ..phase("one", tasks) }]));
    harness.perform(&harness.effect_of("one/a"));
    assert_eq!(end_gate(&mut harness, 1, "size", 1, None), [], "it has not started");
    assert_eq!(end_gate(&mut harness, 1, "lint", 2, None), [], "another attempt");
    assert_eq!(end_gate(&mut harness, 2, "lint", 1, None), [], "another execution");
    end_gate(&mut harness, 1, "lint", 1, Some(broken()));
    let failure = harness.run.current.as_ref().unwrap().gates[0].state.failure();
    assert_eq!(failure, Some(&broken()));
    assert_eq!(end_gate(&mut harness, 1, "lint", 1, None), [], "it has failed");
    harness.perform(&harness.effect_of("one/b"));
    end_gate(&mut harness, 1, "size", 1, None);
    assert_eq!(harness.run.iteration_counts["one"], 2);
    harness.perform(&harness.effect_of("one/a"));
    assert_eq!(end_gate(&mut harness, 1, "lint", 1, None), [], "of the execution before");
    assert_eq!(end_gate(&mut harness, 2, "lint", 1, None).len(), 1);
}

#[test]
fn a_failure_that_ends_the_run_outranks_one_that_repeats_the_phase() {
    let failing = |id: &str, on_fail| Task { on_fail, ..task(id, &[]) };
    for on_fail in [[OnFail::Fail, OnFail::Repeat], [OnFail::Repeat, OnFail::Fail]] {
        let tasks = vec![failing("a", on_fail[0]), failing("b", on_fail[1])];
        let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
        harness.fail("one/a");
        harness.fail("one/b");
        assert_eq!(harness.run.status(), Status::Failed, "{on_fail:?}");

        let gates = vec![of("lint", "a", on_fail[0]), of("size", "b", on_fail[1])];
        let tasks = vec![task("a", &[]), task("b", &[])];
        let mut harness = Harness::new(workflow(vec![Phase { gates, ..phase("one", tasks) }]));
        harness.perform(&harness.effect_of("one/a"));
        harness.perform(&harness.effect_of("one/b"));
        end_gate(&mut harness, 1, "lint", 1, Some(broken()));
        end_gate(&mut harness, 1, "size", 1, Some(broken()));
        assert_eq!(harness.run.status(), Status::Failed, "{on_fail:?}");
    }
    let mut repeating =
        Harness::new(workflow(vec![phase("one", vec![failing("a", OnFail::Repeat), failing("b", OnFail::Repeat)])]));
    repeating.fail("one/a");
    repeating.fail("one/b");
    assert_eq!(repeating.run.iteration_counts["one"], 2);
}

#[test]
fn an_interruption_counts_once_and_only_while_the_run_is_active() {
    let interrupt = || CommandKind::Interrupt { signal: "SIGINT".into() };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    assert_eq!(harness.outcome(interrupt()).len(), 2);
    assert_eq!(harness.outcome(interrupt()), [], "it is already stopping");
    harness.take_over();
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.outcome(interrupt()), [], "it has ended");
}
