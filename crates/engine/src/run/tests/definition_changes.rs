//! Changed definitions: which questions stay open, which work is kept, and which changes are refused.

use super::questions::{verify, with_waits};
use super::*;
use crate::hold::{HoldKind, verify_options};
use crate::run::Status;
use std::time::Duration;

fn accept(now: Workflow) -> CommandKind {
    CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() }
}

fn gap_check() -> Option<GapCheck> {
    Some(GapCheck {
        criteria: Vec::new(),
        script: None,
        on_failure: GapAction::Escalate,
        additional: Vec::new(),
        max_iterations: 3,
        message: None,
    })
}

#[test]
fn a_definition_that_moves_a_finished_phase_after_the_current_one_is_refused() {
    let phases = |order: [&str; 3]| workflow(order.map(|id| phase(id, vec![task("a", &[])])).into());
    let mut harness = Harness::new(phases(["one", "two", "three"]));
    harness.perform(&harness.effect_of("one/a"));
    let refused = harness.tell(person(), accept(phases(["two", "one", "three"])), true);
    assert_eq!(refused, Err(Refusal::PhaseMoved { phase: PhaseId::from("one") }));
    harness.tell(person(), accept(phases(["one", "two", "four"])), true).unwrap();
    harness.work();
    assert_eq!(harness.started(), ["one/a", "two/a", "four/a"]);
}

/// A run that asks a person about gaps.
fn asked_about_gaps() -> (Harness, Workflow) {
    let definition = workflow(vec![Phase { gap_check: gap_check(), ..phase("one", vec![task("a", &[])]) }]);
    let mut harness = Harness::new(definition.clone());
    harness.perform(&harness.effect_of("one/a"));
    let gaps = vec!["a gap".into()];
    let found = GapsFound::Gaps { status: "incomplete".into(), gaps, action: None, agents: Vec::new(), message: None };
    harness.outcome(CommandKind::GapsChecked { phase: PhaseId::from("one"), iteration: 1, round: 1, found });
    assert_eq!(harness.hold().kind, HoldKind::Gaps);
    (harness, definition)
}

#[test]
fn a_question_about_gaps_stays_open_while_the_definition_checks_gaps() {
    let (mut harness, mut definition) = asked_about_gaps();
    let before = harness.hold().id.clone();
    definition.description = Some("reworded".into());
    harness.tell(person(), accept(definition.clone()), true).unwrap();
    assert_eq!(harness.hold().id, before);
    assert!(harness.run.pending().is_empty(), "they are not checked again");
    definition.phases[0].gap_check = None;
    let events = harness.tell(person(), accept(definition), true).unwrap();
    let reason = "the changed definition has no gap check here".to_owned();
    assert_eq!(events[0], Event::HoldVoided { hold: before, reason });
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn passed_steps_stay_passed_when_the_definition_changes() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gap_check = gap_check();
    definition.phases[0].gates = vec![gate("lint"), gate("tests")];
    definition.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut harness = Harness::new(definition.clone());
    harness.work();
    let before = harness.hold().id.clone();
    definition.phases[0].gates.swap(0, 1);
    definition.phases.push(phase("two", vec![task("b", &[])]));
    harness.tell(person(), accept(definition), true).unwrap();
    assert_eq!((harness.hold().id.clone(), harness.run.pending()), (before, Vec::new()));
    harness.answer("Continue", None);
    harness.work();
    assert_eq!((harness.run.gap_checks.len(), harness.started()), (1, vec!["one/a".to_owned(), "two/b".to_owned()]));
    let passed = harness.entries.iter().filter(|entry| matches!(entry.event, Event::GatePassed { .. })).count();
    assert_eq!(passed, 2);
}

#[test]
fn gates_keep_their_states_when_the_definition_reorders_them_and_adds_one() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gates = vec![gate("lint"), Gate { on_fail: OnFail::Ask, ..gate("tests") }];
    let mut harness = Harness::new(definition.clone());
    harness.perform(&harness.effect_of("one/a"));
    harness.perform(&harness.run.pending()[0].clone());
    let (phase, failing) = (PhaseId::from("one"), GateId::from("tests"));
    harness.outcome(CommandKind::GateEnded { phase, iteration: 1, gate: failing, attempt: 1, failure: Some(broken()) });
    let before = harness.hold().id.clone();
    definition.phases[0].gates.swap(0, 1);
    definition.phases[0].gates.push(gate("size"));
    harness.tell(person(), accept(definition), true).unwrap();
    assert_eq!(harness.hold().id, before, "the gate is still declared");
    harness.answer("rerun", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let started: Vec<(String, u32)> = harness
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::GateStarted { gate, attempt, .. } => Some((gate.to_string(), *attempt)),
            _ => None,
        })
        .collect();
    let expected = [("lint", 1), ("tests", 1), ("tests", 2), ("size", 1)];
    assert_eq!(started, expected.map(|(gate, attempt)| (gate.to_owned(), attempt)));
}

#[test]
fn a_question_about_a_failure_stays_open_when_the_task_is_reworded() {
    let asking = |prompt: &str| {
        let waits = WaitSettings { remind: Some(Duration::from_secs(prompt.len() as u64)), ..WaitSettings::default() };
        Task { on_fail: OnFail::Ask, ..with_waits(verify("look", "make", 1), waits) }
    };
    let definition = |asks: Task| workflow(vec![phase("one", vec![task("make", &[]), asks])]);
    let mut harness = Harness::new(definition(asking("a")));
    harness.work();
    harness.answer("issues", Some("first"));
    harness.work();
    harness.answer("issues", Some("second"));
    assert_eq!(harness.hold().kind, HoldKind::Failed);
    let before = harness.hold().id.clone();
    harness.tell(person(), accept(definition(asking("ab"))), true).unwrap();
    assert_eq!(harness.hold().id, before);
    let mut task_failed = Harness::new(workflow(vec![phase("one", vec![Task { on_fail: OnFail::Ask, ..task("a", &[]) }])]));
    task_failed.fail("one/a");
    let mut now = (*task_failed.run.workflow).clone();
    now.phases[0].tasks[0].name = Some("other".into());
    let before = task_failed.hold().id.clone();
    task_failed.tell(person(), accept(now), true).unwrap();
    assert_eq!(task_failed.hold().id, before);
}

#[test]
fn a_reworded_checkpoint_is_asked_again_while_the_run_is_driven() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut harness = Harness::new(definition.clone());
    harness.work();
    let before = harness.hold().id.clone();
    definition.phases[0].checkpoint.as_mut().unwrap().prompt = "Ship it?".into();
    harness.tell(person(), accept(definition), true).unwrap();
    harness.work();
    assert_ne!(harness.hold().id, before);
    harness.answer("Continue", None);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn reordering_awaited_rework_after_its_question_does_not_block_the_question() {
    let mut asks = verify("look", "build", 3);
    if let Work::Checkpoint(checkpoint) = &mut asks.work {
        checkpoint.options = verify_options(Action::Redo(vec![TaskId::from("build"), TaskId::from("docs")]), None);
    }
    let definition = |docs: Task| {
        let tasks = vec![task("build", &[]), docs, asks.clone()];
        Workflow { max_parallel: Some(1), ..workflow(vec![phase("one", tasks)]) }
    };
    let mut harness = Harness::new(definition(task("docs", &[])));
    harness.work();
    harness.answer_task("one/look", "issues", Some("both"));
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    harness.tell(person(), accept(definition(task("docs", &["look"]))), true).unwrap();
    harness.perform(&harness.effect_of("one/build"));
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    harness.answer_task("one/look", "approved", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started()[3..], ["one/build", "one/look", "one/docs"]);
}
