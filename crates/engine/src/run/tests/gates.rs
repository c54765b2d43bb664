//! Gates that belong to a task: they run when it is done, beside other tasks, and whoever needs the task waits for them.

use super::*;
use crate::run::Status;

/// Two tasks side by side, a third that needs the first, and a gate of the first.
fn gated() -> Workflow {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[]), task("b", &[]), task("c", &["a"])])]);
    definition.phases[0].gates = vec![Gate { task: Some(TaskId::from("a")), ..gate("lint") }, gate("all")];
    definition
}

fn finish(bench: &mut Bench, address: &str) {
    let pending = bench.run.pending();
    let found = pending.into_iter().find(|effect| matches!(effect, Effect::Task { key, .. } if key.address() == address));
    bench.perform(&found.expect("the task is under way"));
}

fn gates_under_way(bench: &Bench) -> Vec<String> {
    let gates = bench.run.pending().into_iter().filter_map(|effect| match effect {
        Effect::Gate { gate, .. } => Some(gate.to_string()),
        _ => None,
    });
    gates.collect()
}

fn end_gate(bench: &mut Bench, name: &str, attempt: u32, failure: Option<Failure>) -> Vec<Event> {
    bench.outcome(CommandKind::GateEnded {
        phase: PhaseId::from("one"),
        iteration: 1,
        gate: GateId::from(name),
        attempt,
        failure,
    })
}

#[test]
fn a_gate_of_a_task_runs_beside_other_tasks_and_those_that_need_it_wait() {
    let mut bench = Bench::new(gated());
    finish(&mut bench, "one/a");
    assert_eq!(gates_under_way(&bench), ["lint"], "b still runs");
    assert_eq!(bench.started(), ["one/a", "one/b"], "c waits for the gate of a");
    end_gate(&mut bench, "lint", 1, None);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/c"]);
    finish(&mut bench, "one/c");
    assert!(gates_under_way(&bench).is_empty(), "the gate of the phase waits for all tasks");
    finish(&mut bench, "one/b");
    assert_eq!(gates_under_way(&bench), ["all"]);
    end_gate(&mut bench, "all", 1, None);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_failed_gate_of_a_task_lets_the_others_finish_and_runs_again_alone() {
    let mut bench = Bench::new(gated());
    finish(&mut bench, "one/a");
    end_gate(&mut bench, "lint", 1, Some(broken()));
    assert_eq!(bench.run.status(), Status::Running, "b is still under way");
    finish(&mut bench, "one/b");
    assert_eq!(bench.run.status(), Status::Failed);
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(gates_under_way(&bench), ["lint"]);
    assert_eq!(bench.started(), ["one/a", "one/b"], "what is done stays done");
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/c"]);
}

#[test]
fn what_finishes_while_the_others_end_is_still_checked() {
    let mut definition = gated();
    definition.phases[0].gates[0].task = Some(TaskId::from("b"));
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    finish(&mut bench, "one/b");
    assert_eq!(gates_under_way(&bench), ["lint"]);
    assert_eq!(bench.run.status(), Status::Running);
    end_gate(&mut bench, "lint", 1, None);
    assert_eq!(bench.run.status(), Status::Failed);
}

#[test]
fn with_fail_fast_a_failed_gate_of_a_task_ends_the_tasks_under_way() {
    let mut definition = gated();
    definition.phases[0].fail_fast = true;
    let mut bench = Bench::new(definition);
    finish(&mut bench, "one/a");
    let events = end_gate(&mut bench, "lint", 1, Some(broken()));
    assert!(events.iter().any(|event| matches!(event, Event::TaskStopped { key, .. } if key.address() == "one/b")));
    assert_eq!(bench.run.status(), Status::Failed);
}

#[test]
fn a_gate_of_a_task_that_asks_leaves_the_rest_of_the_phase_at_work() {
    let mut definition = gated();
    definition.phases[0].gates[0].on_fail = OnFail::Ask;
    let mut bench = Bench::new(definition);
    finish(&mut bench, "one/a");
    end_gate(&mut bench, "lint", 1, Some(broken()));
    assert_eq!(bench.run.status(), Status::Running, "b is still under way");
    finish(&mut bench, "one/b");
    assert_eq!(bench.run.status(), Status::Waiting);
    bench.answer("Count as done", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started().last().unwrap(), "one/c");
}

#[test]
fn a_folded_state_knows_which_gates_can_start() {
    let mut bench = Bench::new(gated());
    finish(&mut bench, "one/a");
    let mut read = Run::from_bytes(&bench.run.to_bytes()).unwrap();
    read.attach(bench.run.workflow.clone()).unwrap();
    assert_eq!(read.pending(), bench.run.pending());
    assert_eq!(read.current, bench.run.current);
}

#[test]
fn what_a_gate_of_the_phase_found_can_go_back_to_those_who_did_the_work() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gates = vec![Gate { on_fail: OnFail::Ask, ..gate("lint") }];
    let mut bench = Bench::new(definition);
    finish(&mut bench, "one/a");
    end_gate(&mut bench, "lint", 1, Some(broken()));
    let hold = bench.run.open_holds()[0].clone();
    let labels: Vec<&str> = hold.options.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["Run again", "Count as done", "Abort", "Run the phase again with what it found"]);
    bench.answer("repeat", Some("mind the names"));
    let phase = bench.run.current.as_ref().unwrap();
    assert_eq!((phase.iteration, phase.tasks[0].attempts), (2, 1));
    assert_eq!(phase.feedback.as_deref(), Some("one/lint failed: it broke\nline\nmind the names"));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn what_a_gate_of_a_task_found_does_not_undo_the_other_tasks() {
    let mut definition = gated();
    definition.phases[0].gates[0].on_fail = OnFail::Ask;
    let mut bench = Bench::new(definition);
    finish(&mut bench, "one/a");
    end_gate(&mut bench, "lint", 1, Some(broken()));
    assert!(bench.run.open_holds()[0].options.iter().all(|choice| choice.id.as_str() != "repeat"));
}
