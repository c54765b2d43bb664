//! Gates that belong to a task: they run when it is done, in parallel with other tasks, and its dependents wait for them.

use super::*;
use crate::run::Status;

/// Two parallel tasks, a third that needs the first, and a gate of the first.
fn gated() -> Workflow {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[]), task("b", &[]), task("c", &["a"])])]);
    definition.phases[0].gates = vec![Gate { task: Some(TaskId::from("a")), ..gate("lint") }, gate("all")];
    definition
}

fn finish(harness: &mut Harness, address: &str) {
    let pending = harness.run.pending();
    let found = pending.into_iter().find(|effect| matches!(effect, Effect::Task { key, .. } if key.address() == address));
    harness.perform(&found.expect("the task is running"));
}

fn running_gates(harness: &Harness) -> Vec<String> {
    let gates = harness.run.pending().into_iter().filter_map(|effect| match effect {
        Effect::Gate { gate, .. } => Some(gate.to_string()),
        _ => None,
    });
    gates.collect()
}

fn end_gate(harness: &mut Harness, name: &str, attempt: u32, failure: Option<Failure>) -> Vec<Event> {
    harness.outcome(CommandKind::GateEnded {
        phase: PhaseId::from("one"),
        iteration: 1,
        gate: GateId::from(name),
        attempt,
        failure,
    })
}

#[test]
fn a_task_gate_runs_alongside_other_tasks_and_blocks_dependents() {
    let mut harness = Harness::new(gated());
    finish(&mut harness, "one/a");
    assert_eq!(running_gates(&harness), ["lint"], "b still runs");
    assert_eq!(harness.started(), ["one/a", "one/b"], "c waits for the gate of a");
    end_gate(&mut harness, "lint", 1, None);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/c"]);
    finish(&mut harness, "one/c");
    assert!(running_gates(&harness).is_empty(), "the gate of the phase waits for all tasks");
    finish(&mut harness, "one/b");
    assert_eq!(running_gates(&harness), ["all"]);
    end_gate(&mut harness, "all", 1, None);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_failed_task_gate_lets_other_tasks_finish_and_only_it_reruns() {
    let mut harness = Harness::new(gated());
    finish(&mut harness, "one/a");
    end_gate(&mut harness, "lint", 1, Some(broken()));
    assert_eq!(harness.run.status(), Status::Running, "b is still running");
    finish(&mut harness, "one/b");
    assert_eq!(harness.run.status(), Status::Failed);
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(running_gates(&harness), ["lint"]);
    assert_eq!(harness.started(), ["one/a", "one/b"], "completed tasks stay completed");
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/c"]);
}

#[test]
fn a_task_that_finishes_while_the_phase_drains_is_still_checked_by_its_gate() {
    let mut definition = gated();
    definition.phases[0].gates[0].task = Some(TaskId::from("b"));
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    finish(&mut harness, "one/b");
    assert_eq!(running_gates(&harness), ["lint"]);
    assert_eq!(harness.run.status(), Status::Running);
    end_gate(&mut harness, "lint", 1, None);
    assert_eq!(harness.run.status(), Status::Failed);
}

#[test]
fn with_fail_fast_a_failed_task_gate_stops_running_tasks() {
    let mut definition = gated();
    definition.phases[0].fail_fast = true;
    let mut harness = Harness::new(definition);
    finish(&mut harness, "one/a");
    let events = end_gate(&mut harness, "lint", 1, Some(broken()));
    assert!(events.iter().any(|event| matches!(event, Event::TaskStopped { key, .. } if key.address() == "one/b")));
    assert_eq!(harness.run.status(), Status::Failed);
}

#[test]
fn a_task_gate_that_asks_does_not_stop_the_rest_of_the_phase() {
    let mut definition = gated();
    definition.phases[0].gates[0].on_fail = OnFail::Ask;
    let mut harness = Harness::new(definition);
    finish(&mut harness, "one/a");
    end_gate(&mut harness, "lint", 1, Some(broken()));
    assert_eq!(harness.run.status(), Status::Running, "b is still running");
    finish(&mut harness, "one/b");
    assert_eq!(harness.run.status(), Status::Waiting);
    harness.answer("Count as done", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started().last().unwrap(), "one/c");
}

#[test]
fn a_materialized_state_knows_which_gates_can_start() {
    let mut harness = Harness::new(gated());
    finish(&mut harness, "one/a");
    let mut read = Run::from_bytes(&harness.run.to_bytes()).unwrap();
    read.attach(harness.run.workflow.clone()).unwrap();
    assert_eq!(read.pending(), harness.run.pending());
    assert_eq!(read.current, harness.run.current);
}

#[test]
fn findings_of_a_phase_gate_can_be_sent_back_to_its_tasks() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gates = vec![Gate { on_fail: OnFail::Ask, ..gate("lint") }];
    let mut harness = Harness::new(definition);
    finish(&mut harness, "one/a");
    end_gate(&mut harness, "lint", 1, Some(broken()));
    let hold = harness.run.open_holds()[0].clone();
    let labels: Vec<&str> = hold.options.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["Run again", "Count as done", "Abort", "Run the phase again with its findings"]);
    harness.answer("repeat", Some("mind the names"));
    let phase = harness.run.current.as_ref().unwrap();
    assert_eq!((phase.iteration, phase.tasks[0].attempts), (2, 1));
    assert_eq!(phase.feedback.as_deref(), Some("one/lint failed: it broke\nline\nmind the names"));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn findings_of_a_task_gate_do_not_redo_other_tasks() {
    let mut definition = gated();
    definition.phases[0].gates[0].on_fail = OnFail::Ask;
    let mut harness = Harness::new(definition);
    finish(&mut harness, "one/a");
    end_gate(&mut harness, "lint", 1, Some(broken()));
    assert!(harness.run.open_holds()[0].options.iter().all(|choice| choice.id.as_str() != "repeat"));
}
