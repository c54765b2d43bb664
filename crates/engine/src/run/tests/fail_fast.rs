//! `fail_fast` and `on_fail`: what a failure ends, and which failure decides.

use super::*;
use crate::run::Status;

fn end_gate(bench: &mut Bench, iteration: u32, name: &str, attempt: u32, failure: Option<Failure>) -> Vec<Event> {
    bench.outcome(CommandKind::GateEnded { phase: PhaseId::from("one"), iteration, gate: GateId::from(name), attempt, failure })
}

fn stopped(bench: &Bench) -> bool {
    bench.has(|event| matches!(event, Event::TaskStopped { .. }))
}

/// A gate of a task.
fn of(id: &str, task: &str, on_fail: OnFail) -> Gate {
    Gate { task: Some(TaskId::from(task)), on_fail, ..gate(id) }
}

#[test]
fn with_fail_fast_a_failure_that_the_run_survives_leaves_the_others_at_work() {
    let asking = Task { on_fail: OnFail::Ask, ..task("a", &[]) };
    let tolerant = Task { continue_on_error: true, ..task("a", &[]) };
    for first in [asking, tolerant] {
        let fast = Phase { fail_fast: true, ..phase("one", vec![first, task("b", &[])]) };
        let mut bench = Bench::new(workflow(vec![fast]));
        bench.fail("one/a");
        assert!(!stopped(&bench));
        assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "b"), attempt: 1 }]);
    }
}

#[test]
fn with_fail_fast_a_gate_that_asks_leaves_the_others_at_work() {
    let tasks = vec![task("a", &[]), task("b", &[])];
    let fast = Phase { fail_fast: true, gates: vec![of("lint", "a", OnFail::Ask)], ..phase("one", tasks) };
    let mut bench = Bench::new(workflow(vec![fast]));
    bench.perform(&bench.effect_of("one/a"));
    end_gate(&mut bench, 1, "lint", 1, Some(broken()));
    assert!(!stopped(&bench));
    assert_eq!(bench.run.open_holds().len(), 1);
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "b"), attempt: 1 }]);
}

#[test]
fn the_end_of_a_gate_counts_only_for_the_attempt_that_runs() {
    let tasks = vec![task("a", &[]), task("b", &[])];
    let gates = vec![of("lint", "a", OnFail::Repeat), of("size", "b", OnFail::Fail)];
    let mut bench = Bench::new(workflow(vec![Phase { gates, ..phase("one", tasks) }]));
    bench.perform(&bench.effect_of("one/a"));
    assert_eq!(end_gate(&mut bench, 1, "size", 1, None), [], "it has not started");
    assert_eq!(end_gate(&mut bench, 1, "lint", 2, None), [], "another attempt");
    assert_eq!(end_gate(&mut bench, 2, "lint", 1, None), [], "another execution");
    end_gate(&mut bench, 1, "lint", 1, Some(broken()));
    let failure = bench.run.current.as_ref().unwrap().gates[0].state.failure();
    assert_eq!(failure, Some(&broken()));
    assert_eq!(end_gate(&mut bench, 1, "lint", 1, None), [], "it has failed");
    bench.perform(&bench.effect_of("one/b"));
    end_gate(&mut bench, 1, "size", 1, None);
    assert_eq!(bench.run.iteration_counts["one"], 2);
    bench.perform(&bench.effect_of("one/a"));
    assert_eq!(end_gate(&mut bench, 1, "lint", 1, None), [], "of the execution before");
    assert_eq!(end_gate(&mut bench, 2, "lint", 1, None).len(), 1);
}

#[test]
fn a_failure_that_ends_the_run_decides_over_one_that_repeats_the_phase() {
    let failing = |id: &str, on_fail| Task { on_fail, ..task(id, &[]) };
    for on_fail in [[OnFail::Fail, OnFail::Repeat], [OnFail::Repeat, OnFail::Fail]] {
        let tasks = vec![failing("a", on_fail[0]), failing("b", on_fail[1])];
        let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
        bench.fail("one/a");
        bench.fail("one/b");
        assert_eq!(bench.run.status(), Status::Failed, "{on_fail:?}");

        let gates = vec![of("lint", "a", on_fail[0]), of("size", "b", on_fail[1])];
        let tasks = vec![task("a", &[]), task("b", &[])];
        let mut bench = Bench::new(workflow(vec![Phase { gates, ..phase("one", tasks) }]));
        bench.perform(&bench.effect_of("one/a"));
        bench.perform(&bench.effect_of("one/b"));
        end_gate(&mut bench, 1, "lint", 1, Some(broken()));
        end_gate(&mut bench, 1, "size", 1, Some(broken()));
        assert_eq!(bench.run.status(), Status::Failed, "{on_fail:?}");
    }
    let mut repeating =
        Bench::new(workflow(vec![phase("one", vec![failing("a", OnFail::Repeat), failing("b", OnFail::Repeat)])]));
    repeating.fail("one/a");
    repeating.fail("one/b");
    assert_eq!(repeating.run.iteration_counts["one"], 2);
}

#[test]
fn an_interruption_counts_once_and_only_while_the_run_goes_on() {
    let interrupt = || CommandKind::Interrupt { signal: "SIGINT".into() };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    assert_eq!(bench.outcome(interrupt()).len(), 2);
    assert_eq!(bench.outcome(interrupt()), [], "it is stopping already");
    bench.take_over();
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.outcome(interrupt()), [], "it has ended");
}
