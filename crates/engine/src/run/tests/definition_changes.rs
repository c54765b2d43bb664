//! Changed definitions: which questions stay open, what is not done again, and which changes are refused.

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
fn a_definition_that_puts_a_finished_phase_behind_the_current_one_is_refused() {
    let phases = |order: [&str; 3]| workflow(order.map(|id| phase(id, vec![task("a", &[])])).into());
    let mut bench = Bench::new(phases(["one", "two", "three"]));
    bench.perform(&bench.effect_of("one/a"));
    let refused = bench.tell(person(), accept(phases(["two", "one", "three"])), true);
    assert_eq!(refused, Err(Refusal::PhaseMoved { phase: PhaseId::from("one") }));
    bench.tell(person(), accept(phases(["one", "two", "four"])), true).unwrap();
    bench.work();
    assert_eq!(bench.started(), ["one/a", "two/a", "four/a"]);
}

/// A run that asks a person about gaps.
fn asked_about_gaps() -> (Bench, Workflow) {
    let definition = workflow(vec![Phase { gap_check: gap_check(), ..phase("one", vec![task("a", &[])]) }]);
    let mut bench = Bench::new(definition.clone());
    bench.perform(&bench.effect_of("one/a"));
    let gaps = vec!["a gap".into()];
    let found = GapsFound::Gaps { status: "incomplete".into(), gaps, action: None, agents: Vec::new(), message: None };
    bench.outcome(CommandKind::GapsChecked { phase: PhaseId::from("one"), iteration: 1, round: 1, found });
    assert_eq!(bench.hold().kind, HoldKind::Gaps);
    (bench, definition)
}

#[test]
fn a_question_about_gaps_stays_open_for_as_long_as_they_are_checked() {
    let (mut bench, mut definition) = asked_about_gaps();
    let before = bench.hold().id.clone();
    definition.description = Some("reworded".into());
    bench.tell(person(), accept(definition.clone()), true).unwrap();
    assert_eq!(bench.hold().id, before);
    assert!(bench.run.pending().is_empty(), "they are not checked again");
    definition.phases[0].gap_check = None;
    let events = bench.tell(person(), accept(definition), true).unwrap();
    let reason = "the changed definition has no gap check here".to_owned();
    assert_eq!(events[0], Event::HoldVoided { hold: before, reason });
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn what_a_phase_has_passed_stays_passed_when_its_definition_changes() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gap_check = gap_check();
    definition.phases[0].gates = vec![gate("lint"), gate("tests")];
    definition.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut bench = Bench::new(definition.clone());
    bench.work();
    let before = bench.hold().id.clone();
    definition.phases[0].gates.swap(0, 1);
    definition.phases.push(phase("two", vec![task("b", &[])]));
    bench.tell(person(), accept(definition), true).unwrap();
    assert_eq!((bench.hold().id.clone(), bench.run.pending()), (before, Vec::new()));
    bench.answer("Continue", None);
    bench.work();
    assert_eq!((bench.run.gap_checks.len(), bench.started()), (1, vec!["one/a".to_owned(), "two/b".to_owned()]));
    let passed = bench.entries.iter().filter(|entry| matches!(entry.event, Event::GatePassed { .. })).count();
    assert_eq!(passed, 2);
}

#[test]
fn gates_keep_their_states_when_the_definition_reorders_them_and_adds_one() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gates = vec![gate("lint"), Gate { on_fail: OnFail::Ask, ..gate("tests") }];
    let mut bench = Bench::new(definition.clone());
    bench.perform(&bench.effect_of("one/a"));
    bench.perform(&bench.run.pending()[0].clone());
    let (phase, failing) = (PhaseId::from("one"), GateId::from("tests"));
    bench.outcome(CommandKind::GateEnded { phase, iteration: 1, gate: failing, attempt: 1, failure: Some(broken()) });
    let before = bench.hold().id.clone();
    definition.phases[0].gates.swap(0, 1);
    definition.phases[0].gates.push(gate("size"));
    bench.tell(person(), accept(definition), true).unwrap();
    assert_eq!(bench.hold().id, before, "the gate is still declared");
    bench.answer("rerun", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let started: Vec<(String, u32)> = bench
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
fn a_question_about_a_failure_stays_open_although_the_task_is_reworded() {
    let asking = |prompt: &str| {
        let waits = Waits { remind: Some(Duration::from_secs(prompt.len() as u64)), ..Waits::default() };
        Task { on_fail: OnFail::Ask, ..with_waits(verify("look", "make", 1), waits) }
    };
    let definition = |asks: Task| workflow(vec![phase("one", vec![task("make", &[]), asks])]);
    let mut bench = Bench::new(definition(asking("a")));
    bench.work();
    bench.answer("issues", Some("first"));
    bench.work();
    bench.answer("issues", Some("second"));
    assert_eq!(bench.hold().kind, HoldKind::Failed);
    let before = bench.hold().id.clone();
    bench.tell(person(), accept(definition(asking("ab"))), true).unwrap();
    assert_eq!(bench.hold().id, before);
    let mut task_failed = Bench::new(workflow(vec![phase("one", vec![Task { on_fail: OnFail::Ask, ..task("a", &[]) }])]));
    task_failed.fail("one/a");
    let mut now = (*task_failed.run.workflow).clone();
    now.phases[0].tasks[0].name = Some("other".into());
    let before = task_failed.hold().id.clone();
    task_failed.tell(person(), accept(now), true).unwrap();
    assert_eq!(task_failed.hold().id, before);
}

#[test]
fn a_reworded_checkpoint_is_asked_anew_while_the_run_is_driven() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut bench = Bench::new(definition.clone());
    bench.work();
    let before = bench.hold().id.clone();
    definition.phases[0].checkpoint.as_mut().unwrap().prompt = "Ship it?".into();
    bench.tell(person(), accept(definition), true).unwrap();
    bench.work();
    assert_ne!(bench.hold().id, before);
    bench.answer("Continue", None);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_definition_that_turns_awaited_rework_into_later_work_does_not_block_the_question() {
    let mut asks = verify("look", "build", 3);
    if let Work::Checkpoint(checkpoint) = &mut asks.work {
        checkpoint.options = verify_options(Action::Redo(vec![TaskId::from("build"), TaskId::from("docs")]), None);
    }
    let definition = |docs: Task| {
        let tasks = vec![task("build", &[]), docs, asks.clone()];
        Workflow { max_parallel: Some(1), ..workflow(vec![phase("one", tasks)]) }
    };
    let mut bench = Bench::new(definition(task("docs", &[])));
    bench.work();
    bench.answer_task("one/look", "issues", Some("both"));
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    bench.tell(person(), accept(definition(task("docs", &["look"]))), true).unwrap();
    bench.perform(&bench.effect_of("one/build"));
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    bench.answer_task("one/look", "approved", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started()[3..], ["one/build", "one/look", "one/docs"]);
}
