//! Taking over a run: interrupted attempts are found and handled as the workflow says.

use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::event::RefusedAttempt;

fn three(policies: [OnInterrupt; 3]) -> Workflow {
    let tasks =
        policies.into_iter().enumerate().map(|(index, on_interrupt)| Task { on_interrupt, ..task(&format!("t{index}"), &[]) });
    workflow(vec![phase("one", tasks.collect())])
}

fn take_over(harness: &mut Harness) {
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
}

#[test]
fn interrupted_tasks_rerun_and_finished_ones_do_not() {
    let mut harness = Harness::new(three([OnInterrupt::Rerun; 3]));
    harness.perform(&harness.run.pending()[0].clone());
    take_over(&mut harness);
    assert_eq!(harness.started(), ["one/t0", "one/t1", "one/t2", "one/t1", "one/t2"]);
    let reasons = harness.entries.iter().filter(|entry| {
        matches!(entry.event, Event::TaskStarted { reason: crate::run::event::AttemptReason::Interrupted, attempt: 2, .. })
    });
    assert_eq!(reasons.count(), 2);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_detached_run_requests_a_driver_while_it_can_continue() {
    let mut first = phase("one", vec![Task { on_interrupt: OnInterrupt::Rerun, ..task("a", &[]) }]);
    first.checkpoint = checkpoint(vec![choice("Continue", crate::hold::Action::Continue)]);
    let mut harness = Harness::new(workflow(vec![first, phase("two", vec![task("b", &[])])]));
    let entries = harness.entries.clone();
    let (_, _, rows) = harness.run.seal(entries);
    assert!(rows.timers.is_empty(), "it is not detached: {rows:?}");

    let taken =
        harness.tell(Actor::driver(), CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: true }, false);
    assert!(taken.is_ok());
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.timers.iter().map(|row| (row.kind.as_str(), row.due.as_millis())).collect::<Vec<_>>(), [("drive", 0)]);
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert!(rows.timers.is_empty() && rows.timers_removed.is_empty(), "nothing has changed: {rows:?}");

    harness.outcome(CommandKind::Advance);
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.timers_removed.iter().map(|timer| timer.as_str()).collect::<Vec<_>>(), ["drive"]);

    let body = harness.answer_body("Continue", None);
    harness.tell(person(), body, false).unwrap();
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.timers.len(), 1, "it can continue: {rows:?}");
    take_over(&mut harness);
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.timers_removed.len(), 1, "the new driver keeps it: {rows:?}");
}

#[test]
fn one_hold_asks_about_all_tasks_interrupted_together() {
    let mut harness = Harness::new(three([OnInterrupt::Ask; 3]));
    harness.perform(&harness.run.pending()[0].clone());
    take_over(&mut harness);
    let hold = harness.hold();
    assert_eq!(hold.kind, HoldKind::Interrupted);
    assert!(hold.prompt.contains("one/t1") && hold.prompt.contains("one/t2") && !hold.prompt.contains("one/t0"));
    assert_eq!(harness.run.status(), Status::Waiting);
    take_over(&mut harness);
    assert_eq!(harness.run.open_holds().len(), 1, "taking over again does not ask twice");
    harness.answer("rerun", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_interruption_can_count_as_a_failure() {
    let mut harness = Harness::new(three([OnInterrupt::Fail, OnInterrupt::Rerun, OnInterrupt::Rerun]));
    take_over(&mut harness);
    harness.work();
    assert_eq!(harness.run.status(), Status::Failed);
}

#[test]
fn an_interruption_spends_no_attempt() {
    let mut definition = three([OnInterrupt::Rerun; 3]);
    definition.phases[0].tasks[0].retry.attempts = 2;
    let mut harness = Harness::new(definition);
    take_over(&mut harness);
    take_over(&mut harness);
    let events = harness.fail("one/t0");
    assert!(events.iter().any(|event| matches!(event, Event::RetryScheduled { .. })));
}

#[test]
fn after_a_signal_nothing_starts_until_a_resume() {
    let mut harness = Harness::new(three([OnInterrupt::Rerun; 3]));
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(harness.run.pending().is_empty());
    let interrupted = harness.entries.iter().filter(|entry| matches!(entry.event, Event::TaskInterrupted { .. }));
    assert_eq!(interrupted.count(), 3);
    assert_eq!(harness.started().len(), 3);
    take_over(&mut harness);
    assert_eq!(harness.started().len(), 6);
}

#[test]
fn a_task_in_backoff_is_not_interrupted() {
    let mut definition = three([OnInterrupt::Ask; 3]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: std::time::Duration::from_secs(60) };
    let mut harness = Harness::new(definition);
    harness.fail("one/t0");
    take_over(&mut harness);
    assert!(!harness.hold().prompt.contains("one/t0"));
    assert!(harness.run.pending().iter().any(|effect| matches!(effect, Effect::Wake { .. })));
}

#[test]
fn an_attempt_to_decide_from_inside_a_task_is_an_event_and_a_warning() {
    let mut harness = Harness::new(three([OnInterrupt::Rerun; 3]));
    let refused = RefusedAttempt::new("answer", None, "inside".into());
    let inside = Actor { inside_task: Some("one/t0".into()), credential: Credential::Agent, ..person() };
    harness.tell(inside, CommandKind::RecordRefusal(refused), false).unwrap();
    assert!(harness.has(|event| matches!(event, Event::AttemptRefused(_))));
    assert!(harness.run.warnings[0].contains("one/t0"));
}

#[test]
fn endless_refused_attempts_do_not_fill_the_history() {
    let mut harness = Harness::new(three([OnInterrupt::Rerun; 3]));
    let inside = Actor { inside_task: Some("one/t0".into()), credential: Credential::Agent, ..person() };
    for number in 1..=1000 {
        let refused = RefusedAttempt { number, ..RefusedAttempt::new("answer", None, "inside".into()) };
        harness.tell(inside.clone(), CommandKind::RecordRefusal(refused), false).unwrap();
    }
    let recorded = harness.entries.iter().filter_map(|entry| match &entry.event {
        Event::AttemptRefused(refused) => Some(refused.number),
        _ => None,
    });
    let expected: Vec<u32> = (1..=100).chain([128, 256, 512]).collect();
    assert_eq!(recorded.collect::<Vec<u32>>(), expected);
    assert_eq!(harness.run.refused_attempts, 512);
}

#[test]
fn refused_attempts_are_counted_from_the_recorded_total() {
    let mut harness = Harness::new(three([OnInterrupt::Rerun; 3]));
    for expected in 1..=3 {
        harness.tell(person(), CommandKind::RecordRefusal(RefusedAttempt::new("answer", None, "no".into())), false).unwrap();
        assert_eq!(harness.run.refused_attempts, expected);
    }
    let late = RefusedAttempt { number: 130, ..RefusedAttempt::new("answer", None, "no".into()) };
    harness.tell(person(), CommandKind::RecordRefusal(late), false).unwrap();
    assert_eq!(harness.run.refused_attempts, 130, "even if attempt 128 was not recorded");
}

#[test]
fn on_interrupt_fail_also_applies_after_a_signal() {
    let mut definition = three([OnInterrupt::Fail, OnInterrupt::Rerun, OnInterrupt::Rerun]);
    definition.phases[0].tasks[0].on_fail = OnFail::Ask;
    let mut harness = Harness::new(definition);
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    take_over(&mut harness);
    assert_eq!(harness.hold().kind, HoldKind::Failed, "a person is asked instead of running it again");
}
