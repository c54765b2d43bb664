//! Overrides by people for single tasks and gates: retry and skip.

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

pub(super) fn take_over(harness: &mut Harness) {
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
}

/// `a` and `b` in parallel, `c` after `a`.
pub(super) fn three(change: impl FnOnce(&mut Phase)) -> Harness {
    let mut one = phase("one", vec![task("a", &[]), task("b", &[]), task("c", &["a"])]);
    change(&mut one);
    Harness::new(workflow(vec![one, phase("two", vec![task("later", &[])])]))
}

/// A run that failed because of `a`.
fn failed() -> Harness {
    let mut harness = three(|_| {});
    harness.fail("one/a");
    harness.work();
    assert_eq!(harness.run.status(), Status::Failed);
    harness
}

/// A run whose task `a` failed and is asked about.
fn asked() -> Harness {
    let mut harness = three(|one| one.tasks[0].on_fail = OnFail::Ask);
    harness.fail("one/a");
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
    harness
}

/// A run that failed at its gate `test`, which is between two others.
pub(super) fn failed_gate(on_fail: OnFail) -> Harness {
    let mut harness = three(|one| {
        one.gates = vec![gate("lint"), Gate { on_fail, ..gate("test") }, gate("ship")];
    });
    for _ in 0..4 {
        harness.perform(&harness.run.pending()[0].clone());
    }
    let Some(Effect::Gate { phase, iteration, gate, attempt }) = harness.run.pending().into_iter().next() else { panic!() };
    assert_eq!(gate.as_str(), "test");
    harness.outcome(CommandKind::GateEnded { phase, iteration, gate, attempt, failure: Some(broken()) });
    harness
}

#[test]
fn a_retry_of_a_failed_run_clears_the_failure_and_starts_nothing_by_itself() {
    let mut harness = failed();
    let events = harness.tell(person(), retry("a"), false).unwrap();
    assert_eq!(events, [Event::RetryRequested { key: key("one", 1, "a") }]);
    assert_eq!(harness.run.status(), Status::Running);
    assert!(harness.run.pending().is_empty(), "it has no driver");
    take_over(&mut harness);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a", "one/c", "two/later"]);
    assert!(harness.has(|event| matches!(event, Event::TaskStarted { attempt: 2, reason: AttemptReason::Retry, .. })));
}

#[test]
fn the_driver_performs_a_retry_on_its_next_turn() {
    let mut harness = three(|_| {});
    harness.fail("one/a");
    harness.tell(person(), retry("a"), false).unwrap();
    assert_eq!(harness.started(), ["one/a", "one/b"]);
    harness.outcome(CommandKind::Advance);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a"]);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete, "the failure never ended the run");
}

#[test]
fn a_retry_resets_the_attempt_count() {
    let mut harness = three(|one| one.tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) });
    let scheduled = |events: &[Event]| events.iter().any(|event| matches!(event, Event::RetryScheduled { .. }));
    assert!(scheduled(&harness.fail("one/a")));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let mut harness = three(|one| one.tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) });
    harness.fail("one/a");
    let wake = harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Wake { .. })).unwrap();
    harness.perform(&wake);
    assert!(!scheduled(&harness.fail("one/a")), "that was the last one");
    harness.tell(person(), retry("a"), true).unwrap();
    assert!(scheduled(&harness.fail("one/a")));
}

#[test]
fn a_retry_does_not_wait_for_the_backoff_timer() {
    let mut harness = three(|one| one.tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(3600) });
    harness.fail("one/a");
    harness.run.seal(Vec::new());
    harness.tell(person(), retry("a"), true).unwrap();
    assert_eq!(harness.started().last().unwrap(), "one/a");
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.timers_removed.len(), 1, "its timer is gone");
}

#[test]
fn a_retry_voids_the_question_about_the_task() {
    let mut harness = asked();
    let hold = harness.hold().id.clone();
    harness.run.seal(Vec::new());
    harness.tell(person(), retry("a"), false).unwrap();
    assert!(harness.run.holds.is_empty());
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!((&rows.holds[0].hold, rows.holds[0].state), (&hold, HoldState::Void));
    assert!(rows.run.unwrap().status.is(Status::Running));
    let late = CommandKind::Answer { hold, revision: Some(1), option: "rerun".into(), feedback: None };
    assert!(matches!(harness.tell(person(), late, false), Err(Refusal::HoldVoided { .. })));
    harness.outcome(CommandKind::Advance);
    harness.fail("one/a");
    assert_eq!(harness.hold().kind, HoldKind::Failed, "the question can be asked again");
}

#[test]
fn retrying_one_of_several_tasks_asks_about_the_rest_again() {
    let mut harness = three(|one| one.tasks.iter_mut().for_each(|task| task.on_interrupt = OnInterrupt::Ask));
    take_over(&mut harness);
    let hold = harness.hold().id.clone();
    harness.tell(person(), retry("a"), false).unwrap();
    assert_ne!(harness.hold().id, hold);
    assert!(harness.hold().prompt.contains("one/b") && !harness.hold().prompt.contains("one/a"));
    harness.outcome(CommandKind::Advance);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a"]);
    assert_eq!(harness.run.open_holds().len(), 1);
    harness.tell(person(), skip("b"), true).unwrap();
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_earlier_answer_wins_over_a_retry_or_skip() {
    let mut harness = asked();
    let body = harness.answer_body("Count as done", None);
    harness.tell(person(), body, false).unwrap();
    let Err(Refusal::AnswerConflict { recorded, given, .. }) = harness.tell(person(), retry("a"), false) else { panic!() };
    assert_eq!((recorded.as_str(), given.as_str()), ("Count as done", "Run again"));
    assert!(matches!(harness.tell(person(), skip("a"), false), Err(Refusal::AlreadyAnswered { .. })));
    harness.outcome(CommandKind::Advance);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_unused_preset_answer_is_kept_for_the_next_question() {
    let mut one = phase("one", vec![task("a", &[])]);
    one.tasks[0].on_fail = OnFail::Ask;
    let preset = PresetAnswer { selector: "one/a".into(), option: "abort".into(), feedback: None };
    let mut harness = Harness::new(workflow(vec![one]));
    harness.fail("one/a");
    harness.tell(person(), retry("a"), false).unwrap();
    harness.tell(person(), CommandKind::PresetAnswers { presets: vec![preset] }, true).unwrap();
    assert_eq!(harness.run.presets.len(), 1);
    harness.fail("one/a");
    assert_eq!(harness.run.status(), Status::Aborted);
}

#[test]
fn a_skipped_task_counts_as_done_and_keeps_its_reason() {
    let mut harness = failed();
    let events = harness.tell(person(), skip("a"), false).unwrap();
    assert_eq!(events, [Event::TaskSkipped { key: key("one", 1, "a"), reason: "done by hand".into() }]);
    assert_eq!(harness.entries.last().unwrap().actor.as_ref().unwrap().name, "ada");
    assert_eq!(harness.run.status(), Status::Running, "the failure no longer counts");
    take_over(&mut harness);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/c", "two/later"]);
}

#[test]
fn a_run_stays_failed_while_another_failure_remains() {
    let mut harness = three(|_| {});
    harness.fail("one/a");
    harness.fail("one/b");
    assert_eq!(harness.run.status(), Status::Failed);
    harness.tell(person(), skip("c"), false).unwrap();
    assert_eq!(harness.run.status(), Status::Failed, "the failed task was not skipped");
    harness.tell(person(), skip("a"), false).unwrap();
    assert_eq!(harness.run.end, Some(crate::run::End::Failed("one/b failed: it broke".into())));
    harness.tell(person(), skip("b"), false).unwrap();
    assert_eq!(harness.run.status(), Status::Running);
}

#[test]
fn resuming_runs_retried_and_other_failed_tasks() {
    let mut harness = three(|one| one.tasks[1].on_interrupt = OnInterrupt::Fail);
    harness.fail("one/a");
    take_over(&mut harness);
    assert_eq!(harness.run.status(), Status::Failed, "b was interrupted, and that counts as a failure");
    let was_started = harness.started();
    let retried = harness.tell(person(), retry("b"), false);
    assert!(retried.is_ok(), "{retried:?}");
    take_over(&mut harness);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(was_started, ["one/a", "one/b"]);
}

#[test]
fn retrying_one_of_two_failed_tasks_leaves_the_run_failed() {
    let mut harness = three(|_| {});
    harness.fail("one/a");
    harness.fail("one/b");
    harness.tell(person(), retry("a"), false).unwrap();
    assert_eq!(harness.run.end, Some(crate::run::End::Failed("one/b failed: it broke".into())));
    take_over(&mut harness);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a", "one/b", "one/c", "two/later"]);
}

#[test]
fn tasks_stopped_because_of_a_failure_are_not_failures() {
    let mut harness = three(|one| one.fail_fast = true);
    harness.fail("one/a");
    harness.tell(person(), skip("a"), false).unwrap();
    assert_eq!(harness.run.status(), Status::Running);
    take_over(&mut harness);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/b", "one/c", "two/later"]);
}

#[test]
fn a_task_that_has_not_started_can_be_skipped_but_not_retried() {
    let mut harness = three(|_| {});
    assert!(matches!(harness.tell(person(), retry("c"), true), Err(Refusal::NotStarted { .. })));
    harness.tell(person(), skip("c"), true).unwrap();
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "two/later"]);
}

#[test]
fn a_gate_can_be_retried_or_waived() {
    let mut harness = failed_gate(OnFail::Fail);
    assert_eq!(harness.run.status(), Status::Failed);
    harness.tell(person(), CommandKind::RetryTask { step: the_gate("test"), cut_off: None }, false).unwrap();
    assert_eq!((harness.run.status(), harness.run.pending()), (Status::Running, Vec::new()));
    harness.outcome(CommandKind::Advance);
    assert!(matches!(&harness.run.pending()[..], [Effect::Gate { gate, attempt: 2, .. }] if gate.as_str() == "test"));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);

    let mut harness = failed_gate(OnFail::Ask);
    assert_eq!(harness.run.status(), Status::Waiting);
    let body = |gate: &str| CommandKind::SkipTask { step: the_gate(gate), reason: " flaky ".into(), cut_off: None };
    harness.tell(person(), body("test"), true).unwrap();
    assert!(harness.run.holds.is_empty());
    assert!(harness.has(|event| matches!(event, Event::GateWaived { reason: Some(reason), .. } if reason == "flaky")));
    assert!(matches!(harness.tell(person(), body("lint"), true), Err(Refusal::StepDone { state: StepStatus::Passed, .. })));
    assert!(matches!(harness.tell(person(), body("test"), true), Err(Refusal::StepDone { state: StepStatus::Waived, .. })));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);

    let mut harness = failed_gate(OnFail::Fail);
    harness.tell(person(), body("ship"), false).unwrap();
    assert_eq!(harness.run.status(), Status::Failed, "the gate that failed was not waived");
}

#[test]
fn a_running_task_can_be_neither_retried_nor_skipped() {
    let mut harness = three(|_| {});
    assert!(matches!(harness.tell(person(), retry("a"), true), Err(Refusal::StepRunning { .. })));
    assert!(matches!(harness.tell(person(), skip("a"), true), Err(Refusal::StepRunning { .. })));
    assert_eq!(harness.run.pending().len(), 2);
}

#[test]
fn an_attempt_whose_driver_died_counts_as_interrupted() {
    let mut harness = three(|one| one.tasks[0].on_interrupt = OnInterrupt::Ask);
    let body = |attempt| CommandKind::RetryTask { step: StepKey::Task(key("one", 1, "a")), cut_off: Some(attempt) };
    assert!(matches!(harness.tell(person(), body(2), false), Err(Refusal::StepRunning { .. })), "that is another attempt");
    let events = harness.tell(person(), body(1), false).unwrap();
    assert!(matches!(&events[..], [Event::TaskInterrupted { attempt: 1, .. }, Event::RetryRequested { .. }]), "{events:?}");
    take_over(&mut harness);
    assert!(harness.run.holds.is_empty(), "a person has already decided about it");
    assert!(harness.has(|event| matches!(event, Event::TaskStarted { attempt: 2, reason: AttemptReason::Interrupted, .. })));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_finished_task_can_be_neither_retried_nor_skipped() {
    let mut harness = three(|one| one.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]));
    harness.work();
    for body in [retry("a"), skip("a")] {
        let Err(Refusal::StepDone { state, .. }) = harness.tell(person(), body, true) else { panic!() };
        assert_eq!(state, StepStatus::Done);
    }
    assert_eq!(harness.run.status(), Status::Waiting, "the checkpoint still asks");
}

#[test]
fn a_repeated_retry_or_skip_is_reported_and_changes_nothing() {
    let mut harness = failed();
    harness.tell(person(), retry("a"), false).unwrap();
    assert!(matches!(harness.tell(person(), retry("a"), false), Err(Refusal::RetryPending { .. })));
    harness.tell(person(), skip("a"), false).unwrap();
    assert!(matches!(harness.tell(person(), skip("a"), false), Err(Refusal::StepDone { state: StepStatus::Skipped, .. })));
    assert!(matches!(harness.tell(person(), retry("a"), false), Err(Refusal::StepDone { state: StepStatus::Skipped, .. })));
}

#[test]
fn only_steps_of_the_current_phase_can_be_retried_or_skipped() {
    let mut harness = failed();
    let other = |key: TaskKey| CommandKind::RetryTask { step: StepKey::Task(key), cut_off: None };
    for key in [key("two", 1, "later"), key("one", 2, "a"), key("one", 1, "nobody")] {
        let Err(Refusal::NotInCurrentPhase { current, .. }) = harness.tell(person(), other(key), true) else { panic!() };
        assert_eq!(current, Some(PhaseId::from("one")));
    }
    let gate = CommandKind::SkipTask { step: the_gate("nothing"), reason: "x".into(), cut_off: None };
    assert!(matches!(harness.tell(person(), gate, true), Err(Refusal::NotInCurrentPhase { .. })));
}

#[test]
fn steps_of_an_ended_run_can_be_neither_retried_nor_skipped() {
    let mut harness = failed();
    harness.tell(person(), CommandKind::Cancel { reason: None }, false).unwrap();
    for body in [retry("a"), skip("a")] {
        assert!(matches!(harness.tell(person(), body, false), Err(Refusal::Ended { status: Status::Cancelled })));
    }
}

#[test]
fn skipping_requires_a_reason() {
    let mut harness = failed();
    let body = CommandKind::SkipTask { step: StepKey::Task(key("one", 1, "a")), reason: " \n".into(), cut_off: None };
    assert!(matches!(harness.tell(person(), body, true), Err(Refusal::ReasonRequired { .. })));
}

#[test]
fn only_a_person_outside_any_task_and_at_a_terminal_may_retry_or_skip() {
    let mut harness = failed();
    for body in [retry("a"), skip("a")] {
        let agent = Actor { credential: Credential::Agent, ..person() };
        assert!(matches!(harness.tell(agent, body.clone(), true), Err(Refusal::PersonRequired { .. })));
        let inside = Actor { inside_task: Some("one/b".into()), ..person() };
        assert!(matches!(harness.tell(inside, body.clone(), true), Err(Refusal::InsideTask { .. })));
        let script = Actor { terminal: false, ..person() };
        assert!(matches!(harness.tell(script, body, true), Err(Refusal::TerminalRequired { .. })));
    }
    assert_eq!(harness.run.status(), Status::Failed);
}

#[test]
fn a_stored_waiver_without_a_reason_still_loads() {
    let stored = rmp_serde::to_vec(&BTreeMap::from([("gate_waived", ("one", 1, "lint"))])).unwrap();
    let read: Event = rmp_serde::from_slice(&stored).unwrap();
    let (phase, gate) = (PhaseId::from("one"), GateId::from("lint"));
    assert_eq!(read, Event::GateWaived { phase, iteration: 1, gate, reason: None });
}
