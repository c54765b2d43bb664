//! What people ask of single tasks and gates: another attempt, or to let it count as done.

use super::*;
use crate::hold::{HoldKind, HoldState};
use crate::id::StepKey;
use crate::run::Status;
use crate::run::event::AttemptReason;
use crate::run::state::StepStatus;
use std::time::Duration;

pub(super) fn retry(task: &str) -> CommandKind {
    CommandKind::RetryTask { step: StepKey::Task(key("one", 1, task)), cut_off: None }
}

pub(super) fn skip(task: &str) -> CommandKind {
    CommandKind::SkipTask { step: StepKey::Task(key("one", 1, task)), reason: "done by hand".into(), cut_off: None }
}

pub(super) fn the_gate(gate: &str) -> StepKey {
    StepKey::Gate { phase: PhaseId::from("one"), iteration: 1, gate: GateId::from(gate) }
}

pub(super) fn take_over(bench: &mut Bench) {
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
}

/// `a` and `b` side by side, `c` after `a`.
pub(super) fn three(change: impl FnOnce(&mut Phase)) -> Bench {
    let mut one = phase("one", vec![task("a", &[]), task("b", &[]), task("c", &["a"])]);
    change(&mut one);
    Bench::new(workflow(vec![one, phase("two", vec![task("later", &[])])]))
}

/// A run that failed because of `a`.
fn failed() -> Bench {
    let mut bench = three(|_| {});
    bench.fail("one/a");
    bench.work();
    assert_eq!(bench.run.status(), Status::Failed);
    bench
}

/// A run whose task `a` failed and is asked about.
fn asked() -> Bench {
    let mut bench = three(|one| one.tasks[0].on_fail = OnFail::Ask);
    bench.fail("one/a");
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
    bench
}

/// A run that failed at its gate `test`, which stands between two others.
pub(super) fn failed_gate(on_fail: OnFail) -> Bench {
    let mut bench = three(|one| {
        one.gates = vec![gate("lint"), Gate { on_fail, ..gate("test") }, gate("ship")];
    });
    for _ in 0..4 {
        bench.perform(&bench.run.pending()[0].clone());
    }
    let Some(Effect::Gate { phase, iteration, gate, attempt }) = bench.run.pending().into_iter().next() else { panic!() };
    assert_eq!(gate.as_str(), "test");
    bench.outcome(CommandKind::GateEnded { phase, iteration, gate, attempt, failure: Some(broken()) });
    bench
}

#[test]
fn a_retry_of_a_failed_run_clears_the_failure_and_starts_nothing_by_itself() {
    let mut bench = failed();
    let events = bench.tell(person(), retry("a"), false).unwrap();
    assert_eq!(events, [Event::RetryAsked { key: key("one", 1, "a") }]);
    assert_eq!(bench.run.status(), Status::Running);
    assert!(bench.run.pending().is_empty(), "nobody drives it");
    take_over(&mut bench);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a", "one/c", "two/later"]);
    assert!(bench.has(|event| matches!(event, Event::TaskStarted { attempt: 2, reason: AttemptReason::Retry, .. })));
}

#[test]
fn whoever_drives_sees_a_retry_when_it_looks() {
    let mut bench = three(|_| {});
    bench.fail("one/a");
    bench.tell(person(), retry("a"), false).unwrap();
    assert_eq!(bench.started(), ["one/a", "one/b"]);
    bench.outcome(CommandKind::Look);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a"]);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete, "the failure never ended the run");
}

#[test]
fn a_retry_has_all_its_attempts_again() {
    let mut bench = three(|one| one.tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) });
    let scheduled = |events: &[Event]| events.iter().any(|event| matches!(event, Event::RetryScheduled { .. }));
    assert!(scheduled(&bench.fail("one/a")));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let mut bench = three(|one| one.tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) });
    bench.fail("one/a");
    let wake = bench.run.pending().into_iter().find(|effect| matches!(effect, Effect::Wake { .. })).unwrap();
    bench.perform(&wake);
    assert!(!scheduled(&bench.fail("one/a")), "that was the last one");
    bench.tell(person(), retry("a"), true).unwrap();
    assert!(scheduled(&bench.fail("one/a")));
}

#[test]
fn a_retry_does_not_wait_for_the_moment_of_the_next_try() {
    let mut bench = three(|one| one.tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(3600) });
    bench.fail("one/a");
    bench.run.seal(Vec::new());
    bench.tell(person(), retry("a"), true).unwrap();
    assert_eq!(bench.started().last().unwrap(), "one/a");
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.timers_gone.len(), 1, "its timer is gone");
}

#[test]
fn a_retry_takes_back_the_question_about_the_task() {
    let mut bench = asked();
    let hold = bench.hold().id.clone();
    bench.run.seal(Vec::new());
    bench.tell(person(), retry("a"), false).unwrap();
    assert!(bench.run.holds.is_empty());
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!((&rows.holds[0].hold, rows.holds[0].state), (&hold, HoldState::Void));
    assert!(rows.run.unwrap().status.is(Status::Running));
    let late = CommandKind::Answer { hold, revision: Some(1), option: "rerun".into(), feedback: None };
    assert!(matches!(bench.tell(person(), late, false), Err(Refusal::HoldVoided { .. })));
    bench.outcome(CommandKind::Look);
    bench.fail("one/a");
    assert_eq!(bench.hold().kind, HoldKind::Failed, "it can be asked about again");
}

#[test]
fn a_question_about_several_is_asked_anew_about_the_others() {
    let mut bench = three(|one| one.tasks.iter_mut().for_each(|task| task.on_interrupt = OnInterrupt::Ask));
    take_over(&mut bench);
    let hold = bench.hold().id.clone();
    bench.tell(person(), retry("a"), false).unwrap();
    assert_ne!(bench.hold().id, hold);
    assert!(bench.hold().prompt.contains("one/b") && !bench.hold().prompt.contains("one/a"));
    bench.outcome(CommandKind::Look);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a"]);
    assert_eq!(bench.run.open_holds().len(), 1);
    bench.tell(person(), skip("b"), true).unwrap();
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_answer_that_was_there_first_stands() {
    let mut bench = asked();
    let body = bench.answer_body("Count as done", None);
    bench.tell(person(), body, false).unwrap();
    let Err(Refusal::AnswerConflicts { recorded, given, .. }) = bench.tell(person(), retry("a"), false) else { panic!() };
    assert_eq!((recorded.as_str(), given.as_str()), ("Count as done", "Run again"));
    assert!(matches!(bench.tell(person(), skip("a"), false), Err(Refusal::AlreadyAnswered { .. })));
    bench.outcome(CommandKind::Look);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_answer_in_advance_is_kept_for_the_next_question() {
    let mut one = phase("one", vec![task("a", &[])]);
    one.tasks[0].on_fail = OnFail::Ask;
    let preset = Preset { selector: "one/a".into(), option: "abort".into(), feedback: None };
    let mut bench = Bench::new(workflow(vec![one]));
    bench.fail("one/a");
    bench.tell(person(), retry("a"), false).unwrap();
    bench.tell(person(), CommandKind::GivePresets { presets: vec![preset] }, true).unwrap();
    assert_eq!(bench.run.presets.len(), 1);
    bench.fail("one/a");
    assert_eq!(bench.run.status(), Status::Aborted);
}

#[test]
fn a_skipped_task_counts_as_done_and_says_why() {
    let mut bench = failed();
    let events = bench.tell(person(), skip("a"), false).unwrap();
    assert_eq!(events, [Event::TaskSkipped { key: key("one", 1, "a"), reason: "done by hand".into() }]);
    assert_eq!(bench.entries.last().unwrap().actor.as_ref().unwrap().name, "ada");
    assert_eq!(bench.run.status(), Status::Running, "the failure no longer counts");
    take_over(&mut bench);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/c", "two/later"]);
}

#[test]
fn a_run_stays_failed_while_another_failure_remains() {
    let mut bench = three(|_| {});
    bench.fail("one/a");
    bench.fail("one/b");
    assert_eq!(bench.run.status(), Status::Failed);
    bench.tell(person(), skip("c"), false).unwrap();
    assert_eq!(bench.run.status(), Status::Failed, "what failed was not skipped");
    bench.tell(person(), skip("a"), false).unwrap();
    assert_eq!(bench.run.end, Some(crate::run::End::Failed("one/b failed: it broke".into())));
    bench.tell(person(), skip("b"), false).unwrap();
    assert_eq!(bench.run.status(), Status::Running);
}

#[test]
fn resuming_tries_what_was_retried_and_what_else_failed() {
    let mut bench = three(|one| one.tasks[1].on_interrupt = OnInterrupt::Fail);
    bench.fail("one/a");
    take_over(&mut bench);
    assert_eq!(bench.run.status(), Status::Failed, "b was cut off, and that counts as failure");
    let was_started = bench.started();
    let retried = bench.tell(person(), retry("b"), false);
    assert!(retried.is_ok(), "{retried:?}");
    take_over(&mut bench);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(was_started, ["one/a", "one/b"]);
}

#[test]
fn a_retry_of_one_of_two_failures_leaves_the_run_failed_over_the_other() {
    let mut bench = three(|_| {});
    bench.fail("one/a");
    bench.fail("one/b");
    bench.tell(person(), retry("a"), false).unwrap();
    assert_eq!(bench.run.end, Some(crate::run::End::Failed("one/b failed: it broke".into())));
    take_over(&mut bench);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a", "one/b", "one/c", "two/later"]);
}

#[test]
fn what_was_ended_because_of_a_failure_is_no_failure_of_its_own() {
    let mut bench = three(|one| one.fail_fast = true);
    bench.fail("one/a");
    bench.tell(person(), skip("a"), false).unwrap();
    assert_eq!(bench.run.status(), Status::Running);
    take_over(&mut bench);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/b", "one/c", "two/later"]);
}

#[test]
fn a_task_that_has_not_started_can_be_skipped_but_not_retried() {
    let mut bench = three(|_| {});
    assert!(matches!(bench.tell(person(), retry("c"), true), Err(Refusal::NotStarted { .. })));
    bench.tell(person(), skip("c"), true).unwrap();
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "two/later"]);
}

#[test]
fn a_gate_is_tried_again_or_waived() {
    let mut bench = failed_gate(OnFail::Fail);
    assert_eq!(bench.run.status(), Status::Failed);
    bench.tell(person(), CommandKind::RetryTask { step: the_gate("test"), cut_off: None }, false).unwrap();
    assert_eq!((bench.run.status(), bench.run.pending()), (Status::Running, Vec::new()));
    bench.outcome(CommandKind::Look);
    assert!(matches!(&bench.run.pending()[..], [Effect::Gate { gate, attempt: 2, .. }] if gate.as_str() == "test"));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);

    let mut bench = failed_gate(OnFail::Ask);
    assert_eq!(bench.run.status(), Status::Waiting);
    let body = |gate: &str| CommandKind::SkipTask { step: the_gate(gate), reason: " flaky ".into(), cut_off: None };
    bench.tell(person(), body("test"), true).unwrap();
    assert!(bench.run.holds.is_empty());
    assert!(bench.has(|event| matches!(event, Event::GateWaived { reason: Some(reason), .. } if reason == "flaky")));
    assert!(matches!(bench.tell(person(), body("lint"), true), Err(Refusal::StepDone { state: StepStatus::Passed, .. })));
    assert!(matches!(bench.tell(person(), body("test"), true), Err(Refusal::StepDone { state: StepStatus::Waived, .. })));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);

    let mut bench = failed_gate(OnFail::Fail);
    bench.tell(person(), body("ship"), false).unwrap();
    assert_eq!(bench.run.status(), Status::Failed, "the gate that failed was not waived");
}

#[test]
fn what_runs_is_left_alone() {
    let mut bench = three(|_| {});
    assert!(matches!(bench.tell(person(), retry("a"), true), Err(Refusal::StepRunning { .. })));
    assert!(matches!(bench.tell(person(), skip("a"), true), Err(Refusal::StepRunning { .. })));
    assert_eq!(bench.run.pending().len(), 2);
}

#[test]
fn an_attempt_whose_driver_died_was_cut_off() {
    let mut bench = three(|one| one.tasks[0].on_interrupt = OnInterrupt::Ask);
    let body = |attempt| CommandKind::RetryTask { step: StepKey::Task(key("one", 1, "a")), cut_off: Some(attempt) };
    assert!(matches!(bench.tell(person(), body(2), false), Err(Refusal::StepRunning { .. })), "that is another attempt");
    let events = bench.tell(person(), body(1), false).unwrap();
    assert!(matches!(&events[..], [Event::TaskInterrupted { attempt: 1, .. }, Event::RetryAsked { .. }]), "{events:?}");
    take_over(&mut bench);
    assert!(bench.run.holds.is_empty(), "a person has said already what becomes of it");
    assert!(bench.has(|event| matches!(event, Event::TaskStarted { attempt: 2, reason: AttemptReason::Interrupted, .. })));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn what_is_done_stays_done() {
    let mut bench = three(|one| one.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]));
    bench.work();
    for body in [retry("a"), skip("a")] {
        let Err(Refusal::StepDone { state, .. }) = bench.tell(person(), body, true) else { panic!() };
        assert_eq!(state, StepStatus::Done);
    }
    assert_eq!(bench.run.status(), Status::Waiting, "the checkpoint still asks");
}

#[test]
fn asking_twice_is_told_and_changes_nothing() {
    let mut bench = failed();
    bench.tell(person(), retry("a"), false).unwrap();
    assert!(matches!(bench.tell(person(), retry("a"), false), Err(Refusal::AlreadyAsked { .. })));
    bench.tell(person(), skip("a"), false).unwrap();
    assert!(matches!(bench.tell(person(), skip("a"), false), Err(Refusal::StepDone { state: StepStatus::Skipped, .. })));
    assert!(matches!(bench.tell(person(), retry("a"), false), Err(Refusal::StepDone { state: StepStatus::Skipped, .. })));
}

#[test]
fn only_the_phase_under_way_can_be_moved() {
    let mut bench = failed();
    let other = |key: TaskKey| CommandKind::RetryTask { step: StepKey::Task(key), cut_off: None };
    for key in [key("two", 1, "later"), key("one", 2, "a"), key("one", 1, "nobody")] {
        let Err(Refusal::NotUnderWay { current, .. }) = bench.tell(person(), other(key), true) else { panic!() };
        assert_eq!(current, Some(PhaseId::from("one")));
    }
    let gate = CommandKind::SkipTask { step: the_gate("nothing"), reason: "x".into(), cut_off: None };
    assert!(matches!(bench.tell(person(), gate, true), Err(Refusal::NotUnderWay { .. })));
}

#[test]
fn a_run_that_has_ended_for_good_is_not_moved() {
    let mut bench = failed();
    bench.tell(person(), CommandKind::Cancel { reason: None }, false).unwrap();
    for body in [retry("a"), skip("a")] {
        assert!(matches!(bench.tell(person(), body, false), Err(Refusal::Ended { status: Status::Cancelled })));
    }
}

#[test]
fn a_reason_is_needed_to_skip() {
    let mut bench = failed();
    let body = CommandKind::SkipTask { step: StepKey::Task(key("one", 1, "a")), reason: " \n".into(), cut_off: None };
    assert!(matches!(bench.tell(person(), body, true), Err(Refusal::NoReason { .. })));
}

#[test]
fn only_a_person_outside_any_task_and_at_a_terminal_may_retry_or_skip() {
    let mut bench = failed();
    for body in [retry("a"), skip("a")] {
        let agent = Actor { credential: Credential::Agent, ..person() };
        assert!(matches!(bench.tell(agent, body.clone(), true), Err(Refusal::NotAPerson { .. })));
        let inside = Actor { inside_task: Some("one/b".into()), ..person() };
        assert!(matches!(bench.tell(inside, body.clone(), true), Err(Refusal::InsideTask { .. })));
        let script = Actor { terminal: false, ..person() };
        assert!(matches!(bench.tell(script, body, true), Err(Refusal::NoTerminal { .. })));
    }
    assert_eq!(bench.run.status(), Status::Failed);
}

#[test]
fn a_waiver_that_was_stored_without_a_reason_is_read() {
    let stored = rmp_serde::to_vec(&BTreeMap::from([("gate_waived", ("one", 1, "lint"))])).unwrap();
    let read: Event = rmp_serde::from_slice(&stored).unwrap();
    let (phase, gate) = (PhaseId::from("one"), GateId::from("lint"));
    assert_eq!(read, Event::GateWaived { phase, iteration: 1, gate, reason: None });
}
