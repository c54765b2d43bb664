//! What people ask of single gates, and which question goes with what they moved.

use super::people::{failed_gate, retry, take_over, the_gate, three};
use super::*;
use crate::id::StepKey;

fn again(step: StepKey, cut_off: Option<u32>) -> CommandKind {
    CommandKind::RetryTask { step, cut_off }
}

/// A run whose gate `test` runs.
fn at_a_gate() -> Bench {
    let mut bench = three(|one| one.gates = vec![gate("test")]);
    for _ in 0..3 {
        bench.perform(&bench.run.pending()[0].clone());
    }
    assert!(matches!(&bench.run.pending()[..], [Effect::Gate { attempt: 1, .. }]));
    bench
}

#[test]
fn a_gate_of_another_phase_or_execution_is_not_moved() {
    let mut bench = failed_gate(OnFail::Ask);
    for (phase, iteration) in [("two", 1), ("one", 2), ("two", 2)] {
        let step = StepKey::Gate { phase: PhaseId::from(phase), iteration, gate: GateId::from("test") };
        let refused = bench.tell(person(), again(step, None), true);
        assert!(matches!(refused, Err(Refusal::NotUnderWay { .. })), "{phase} {iteration}: {refused:?}");
    }
}

#[test]
fn a_gate_that_never_ran_is_not_retried_and_one_that_waits_for_its_retry_is_left_alone() {
    let mut bench = failed_gate(OnFail::Fail);
    assert!(matches!(bench.tell(person(), again(the_gate("ship"), None), false), Err(Refusal::NotStarted { .. })));
    bench.tell(person(), again(the_gate("test"), None), false).unwrap();
    assert!(matches!(bench.tell(person(), again(the_gate("test"), None), false), Err(Refusal::AlreadyAsked { .. })));
}

#[test]
fn a_gate_that_runs_is_left_alone_unless_its_driver_is_gone() {
    let mut bench = at_a_gate();
    for cut_off in [None, Some(2)] {
        let refused = bench.tell(person(), again(the_gate("test"), cut_off), false);
        assert!(matches!(refused, Err(Refusal::StepRunning { .. })), "{cut_off:?}: {refused:?}");
    }
    bench.tell(person(), again(the_gate("test"), Some(1)), false).unwrap();

    let mut bench = at_a_gate();
    bench.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() });
    bench.tell(person(), again(the_gate("test"), None), false).unwrap();
}

#[test]
fn a_retry_of_the_only_task_that_is_asked_about_opens_no_further_question() {
    let mut bench = three(|one| one.tasks[0].on_interrupt = OnInterrupt::Ask);
    take_over(&mut bench);
    assert_eq!(bench.asked(), ["one/a"]);
    assert_eq!(bench.hold().prompt, "one/a was cut off before it finished. What shall become of it?");
    let events = bench.tell(person(), retry("a"), false).unwrap();
    assert!(matches!(&events[..], [Event::HoldVoided { .. }, Event::RetryAsked { .. }]), "{events:?}");
}

#[test]
fn a_gate_that_is_asked_about_runs_again_when_its_task_is_done_again() {
    let gated = |id: &str| Gate { task: Some(TaskId::from(id)), on_fail: OnFail::Ask, ..gate("lint") };
    let mut look = super::questions::verify("look", "make", 3);
    look.needs = vec![TaskId::from("draft")];
    let tasks = vec![task("draft", &[]), task("docs", &[]), task("make", &[]), look, task("other", &["make"])];
    let mut bench = Bench::new(workflow(vec![Phase { gates: vec![gated("make")], ..phase("one", tasks) }]));
    while let Some(effect) = bench.run.pending().into_iter().find(|effect| !matches!(effect, Effect::Gate { .. })) {
        bench.perform(&effect);
    }
    let lint = |attempt, failure| {
        let (phase, gate) = (PhaseId::from("one"), GateId::from("lint"));
        CommandKind::GateEnded { phase, iteration: 1, gate, attempt, failure }
    };
    bench.outcome(lint(1, Some(broken())));
    assert_eq!(bench.asked(), ["one/lint", "one/look"]);
    bench.answer_task("one/look", "issues", Some("wrong colour"));
    assert!(bench.run.open_holds().is_empty(), "what the gate found is about work that is done again");
    bench.perform(&bench.effect_of("one/make"));
    assert!(bench.run.pending().iter().any(|effect| matches!(effect, Effect::Gate { attempt: 2, .. })));
    bench.outcome(lint(2, None));
    bench.work();
    bench.answer("approved", None);
    bench.work();
    assert_eq!(bench.run.status(), crate::run::Status::Complete);
}

#[test]
fn a_gate_that_looks_at_work_which_is_to_be_done_again_is_ended() {
    let mut look = super::questions::verify("look", "make", 3);
    look.needs = vec![TaskId::from("draft")];
    let tasks = vec![task("draft", &[]), task("make", &[]), look, task("slow", &[])];
    let lint = Gate { task: Some(TaskId::from("make")), ..gate("lint") };
    let one = Phase { gates: vec![lint], ..phase("one", tasks) };
    let mut bench = Bench::new(Workflow { max_parallel: Some(1), ..workflow(vec![one]) });
    for address in ["one/draft", "one/make", "one/look"] {
        bench.perform(&bench.effect_of(address));
    }
    let checks = |bench: &Bench| bench.run.pending().iter().any(|effect| matches!(effect, Effect::Gate { .. }));
    assert!(checks(&bench), "the gate of `make` runs while `slow` takes the only place");
    bench.answer_task("one/look", "issues", Some("wrong colour"));
    assert!(!checks(&bench), "it would find out something about work that no longer counts");
}

#[test]
fn a_gate_that_ends_after_its_run_has_stopped_or_ended_changes_nothing() {
    let ended = || {
        let (phase, gate) = (PhaseId::from("one"), GateId::from("test"));
        CommandKind::GateEnded { phase, iteration: 1, gate, attempt: 1, failure: None }
    };
    let mut bench = at_a_gate();
    bench.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() });
    assert_eq!(bench.outcome(ended()), []);
    assert_eq!(bench.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() }), [], "it is being stopped already");
    let mut bench = at_a_gate();
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!(bench.outcome(ended()), []);
    assert_eq!(bench.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() }), []);
}
