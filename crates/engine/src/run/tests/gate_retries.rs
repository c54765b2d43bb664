//! Retrying and skipping gates, and which questions that voids.

use super::overrides::{failed_gate, retry, take_over, the_gate, three};
use super::*;
use crate::id::StepKey;

fn again(step: StepKey, cut_off: Option<u32>) -> CommandKind {
    CommandKind::RetryTask { step, cut_off }
}

/// A run whose gate `test` runs.
fn at_a_gate() -> Harness {
    let mut harness = three(|one| one.gates = vec![gate("test")]);
    for _ in 0..3 {
        harness.perform(&harness.run.pending()[0].clone());
    }
    assert!(matches!(&harness.run.pending()[..], [Effect::Gate { attempt: 1, .. }]));
    harness
}

#[test]
fn a_gate_of_another_phase_or_execution_cannot_be_retried_or_waived() {
    let mut harness = failed_gate(OnFail::Ask);
    for (phase, iteration) in [("two", 1), ("one", 2), ("two", 2)] {
        let step = StepKey::Gate { phase: PhaseId::from(phase), iteration, gate: GateId::from("test") };
        let refused = harness.tell(person(), again(step, None), true);
        assert!(matches!(refused, Err(Refusal::NotInCurrentPhase { .. })), "{phase} {iteration}: {refused:?}");
    }
}

#[test]
fn a_gate_that_never_ran_or_already_waits_for_its_retry_is_not_retried() {
    let mut harness = failed_gate(OnFail::Fail);
    assert!(matches!(harness.tell(person(), again(the_gate("ship"), None), false), Err(Refusal::NotStarted { .. })));
    harness.tell(person(), again(the_gate("test"), None), false).unwrap();
    assert!(matches!(harness.tell(person(), again(the_gate("test"), None), false), Err(Refusal::RetryPending { .. })));
}

#[test]
fn a_running_gate_is_not_retried_unless_its_driver_died() {
    let mut harness = at_a_gate();
    for cut_off in [None, Some(2)] {
        let refused = harness.tell(person(), again(the_gate("test"), cut_off), false);
        assert!(matches!(refused, Err(Refusal::StepRunning { .. })), "{cut_off:?}: {refused:?}");
    }
    harness.tell(person(), again(the_gate("test"), Some(1)), false).unwrap();

    let mut harness = at_a_gate();
    harness.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() });
    harness.tell(person(), again(the_gate("test"), None), false).unwrap();
}

#[test]
fn retrying_the_only_task_of_a_question_opens_no_new_question() {
    let mut harness = three(|one| one.tasks[0].on_interrupt = OnInterrupt::Ask);
    take_over(&mut harness);
    assert_eq!(harness.asked(), ["one/a"]);
    assert_eq!(harness.hold().prompt, "one/a was interrupted before it finished. What should happen to it?");
    let events = harness.tell(person(), retry("a"), false).unwrap();
    assert!(matches!(&events[..], [Event::HoldVoided { .. }, Event::RetryRequested { .. }]), "{events:?}");
}

#[test]
fn a_gate_with_an_open_question_reruns_after_its_task_is_redone() {
    let gated = |id: &str| Gate { task: Some(TaskId::from(id)), on_fail: OnFail::Ask, ..gate("lint") };
    let mut look = super::questions::verify("look", "make", 3);
    look.needs = vec![TaskId::from("draft")];
    let tasks = vec![task("draft", &[]), task("docs", &[]), task("make", &[]), look, task("other", &["make"])];
    let mut harness = Harness::new(workflow(vec![Phase { gates: vec![gated("make")], ..phase("one", tasks) }]));
    while let Some(effect) = harness.run.pending().into_iter().find(|effect| !matches!(effect, Effect::Gate { .. })) {
        harness.perform(&effect);
    }
    let lint = |attempt, failure| {
        let (phase, gate) = (PhaseId::from("one"), GateId::from("lint"));
        CommandKind::GateEnded { phase, iteration: 1, gate, attempt, failure }
    };
    harness.outcome(lint(1, Some(broken())));
    assert_eq!(harness.asked(), ["one/lint", "one/look"]);
    harness.answer_task("one/look", "issues", Some("wrong colour"));
    assert!(harness.run.open_holds().is_empty(), "the gate's finding is about work that is being redone");
    harness.perform(&harness.effect_of("one/make"));
    assert!(harness.run.pending().iter().any(|effect| matches!(effect, Effect::Gate { attempt: 2, .. })));
    harness.outcome(lint(2, None));
    harness.work();
    harness.answer("approved", None);
    harness.work();
    assert_eq!(harness.run.status(), crate::run::Status::Complete);
}

#[test]
fn a_gate_is_stopped_when_the_work_it_checks_will_be_redone() {
    let mut look = super::questions::verify("look", "make", 3);
    look.needs = vec![TaskId::from("draft")];
    let tasks = vec![task("draft", &[]), task("make", &[]), look, task("slow", &[])];
    let lint = Gate { task: Some(TaskId::from("make")), ..gate("lint") };
    let one = Phase { gates: vec![lint], ..phase("one", tasks) };
    let mut harness = Harness::new(Workflow { max_parallel: Some(1), ..workflow(vec![one]) });
    for address in ["one/draft", "one/make", "one/look"] {
        harness.perform(&harness.effect_of(address));
    }
    let checks = |harness: &Harness| harness.run.pending().iter().any(|effect| matches!(effect, Effect::Gate { .. }));
    assert!(checks(&harness), "the gate of `make` runs while `slow` takes the only slot");
    harness.answer_task("one/look", "issues", Some("wrong colour"));
    assert!(!checks(&harness), "its result would be about work that no longer counts");
}

#[test]
fn a_gate_outcome_after_the_run_stopped_or_ended_changes_nothing() {
    let ended = || {
        let (phase, gate) = (PhaseId::from("one"), GateId::from("test"));
        CommandKind::GateEnded { phase, iteration: 1, gate, attempt: 1, failure: None }
    };
    let mut harness = at_a_gate();
    harness.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() });
    assert_eq!(harness.outcome(ended()), []);
    assert_eq!(harness.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() }), [], "it is already being stopped");
    let mut harness = at_a_gate();
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!(harness.outcome(ended()), []);
    assert_eq!(harness.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() }), []);
}
