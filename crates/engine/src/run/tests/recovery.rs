//! Taking over: what was cut off is found, and dealt with as the workflow says.

use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::event::RefusedAttempt;

fn three(policies: [OnInterrupt; 3]) -> Workflow {
    let tasks =
        policies.into_iter().enumerate().map(|(index, on_interrupt)| Task { on_interrupt, ..task(&format!("t{index}"), &[]) });
    workflow(vec![phase("one", tasks.collect())])
}

fn take_over(bench: &mut Bench) {
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
}

#[test]
fn what_may_run_again_does_and_what_finished_does_not() {
    let mut bench = Bench::new(three([OnInterrupt::Rerun; 3]));
    bench.perform(&bench.run.pending()[0].clone());
    take_over(&mut bench);
    assert_eq!(bench.started(), ["one/t0", "one/t1", "one/t2", "one/t1", "one/t2"]);
    let reasons = bench.entries.iter().filter(|entry| {
        matches!(entry.event, Event::TaskStarted { reason: crate::run::event::AttemptReason::Interrupted, attempt: 2, .. })
    });
    assert_eq!(reasons.count(), 2);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_detached_run_asks_for_a_driver_for_as_long_as_it_could_go_on() {
    let mut first = phase("one", vec![Task { on_interrupt: OnInterrupt::Rerun, ..task("a", &[]) }]);
    first.checkpoint = checkpoint(vec![choice("Continue", crate::hold::Action::Continue)]);
    let mut bench = Bench::new(workflow(vec![first, phase("two", vec![task("b", &[])])]));
    let entries = bench.entries.clone();
    let (_, _, rows) = bench.run.seal(entries);
    assert!(rows.timers.is_empty(), "it is not detached: {rows:?}");

    let taken = bench.tell(Actor::driver(), CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: true }, false);
    assert!(taken.is_ok());
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.timers.iter().map(|row| (row.kind.as_str(), row.due.as_millis())).collect::<Vec<_>>(), [("drive", 0)]);
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert!(rows.timers.is_empty() && rows.timers_gone.is_empty(), "nothing has changed: {rows:?}");

    bench.outcome(CommandKind::Look);
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.timers_gone.iter().map(|timer| timer.as_str()).collect::<Vec<_>>(), ["drive"]);

    let body = bench.answer_body("Continue", None);
    bench.tell(person(), body, false).unwrap();
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.timers.len(), 1, "it can go on: {rows:?}");
    take_over(&mut bench);
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.timers_gone.len(), 1, "whoever took it over keeps it: {rows:?}");
}

#[test]
fn one_hold_asks_for_all_that_were_cut_off_together() {
    let mut bench = Bench::new(three([OnInterrupt::Ask; 3]));
    bench.perform(&bench.run.pending()[0].clone());
    take_over(&mut bench);
    let hold = bench.hold();
    assert_eq!(hold.kind, HoldKind::Interrupted);
    assert!(hold.prompt.contains("one/t1") && hold.prompt.contains("one/t2") && !hold.prompt.contains("one/t0"));
    assert_eq!(bench.run.status(), Status::Waiting);
    take_over(&mut bench);
    assert_eq!(bench.run.open_holds().len(), 1, "taking over again does not ask twice");
    bench.answer("rerun", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_interruption_can_count_as_failure() {
    let mut bench = Bench::new(three([OnInterrupt::Fail, OnInterrupt::Rerun, OnInterrupt::Rerun]));
    take_over(&mut bench);
    bench.work();
    assert_eq!(bench.run.status(), Status::Failed);
}

#[test]
fn being_interrupted_spends_no_attempt() {
    let mut definition = three([OnInterrupt::Rerun; 3]);
    definition.phases[0].tasks[0].retry.attempts = 2;
    let mut bench = Bench::new(definition);
    take_over(&mut bench);
    take_over(&mut bench);
    let events = bench.fail("one/t0");
    assert!(events.iter().any(|event| matches!(event, Event::RetryScheduled { .. })));
}

#[test]
fn after_a_signal_nothing_starts_until_somebody_resumes() {
    let mut bench = Bench::new(three([OnInterrupt::Rerun; 3]));
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(bench.run.pending().is_empty());
    let interrupted = bench.entries.iter().filter(|entry| matches!(entry.event, Event::TaskInterrupted { .. }));
    assert_eq!(interrupted.count(), 3);
    assert_eq!(bench.started().len(), 3);
    take_over(&mut bench);
    assert_eq!(bench.started().len(), 6);
}

#[test]
fn a_task_that_waits_for_its_next_try_is_not_cut_off() {
    let mut definition = three([OnInterrupt::Ask; 3]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: std::time::Duration::from_secs(60) };
    let mut bench = Bench::new(definition);
    bench.fail("one/t0");
    take_over(&mut bench);
    assert!(!bench.hold().prompt.contains("one/t0"));
    assert!(bench.run.pending().iter().any(|effect| matches!(effect, Effect::Wake { .. })));
}

#[test]
fn an_attempt_to_decide_from_inside_a_task_is_an_event_and_a_warning() {
    let mut bench = Bench::new(three([OnInterrupt::Rerun; 3]));
    let refused = RefusedAttempt::new("answer", None, "inside".into());
    let inside = Actor { inside_task: Some("one/t0".into()), credential: Credential::Agent, ..person() };
    bench.tell(inside, CommandKind::RecordRefusal(refused), false).unwrap();
    assert!(bench.has(|event| matches!(event, Event::AttemptRefused(_))));
    assert!(bench.run.warnings[0].contains("one/t0"));
}

#[test]
fn endless_attempts_are_counted_without_filling_the_history() {
    let mut bench = Bench::new(three([OnInterrupt::Rerun; 3]));
    let inside = Actor { inside_task: Some("one/t0".into()), credential: Credential::Agent, ..person() };
    for number in 1..=1000 {
        let refused = RefusedAttempt { number, ..RefusedAttempt::new("answer", None, "inside".into()) };
        bench.tell(inside.clone(), CommandKind::RecordRefusal(refused), false).unwrap();
    }
    let recorded = bench.entries.iter().filter_map(|entry| match &entry.event {
        Event::AttemptRefused(refused) => Some(refused.number),
        _ => None,
    });
    let expected: Vec<u32> = (1..=100).chain([128, 256, 512]).collect();
    assert_eq!(recorded.collect::<Vec<u32>>(), expected);
    assert_eq!(bench.run.refused_attempts, 512);
}

#[test]
fn a_refused_attempt_counts_on_from_what_is_recorded_whatever_number_it_has() {
    let mut bench = Bench::new(three([OnInterrupt::Rerun; 3]));
    for expected in 1..=3 {
        bench.tell(person(), CommandKind::RecordRefusal(RefusedAttempt::new("answer", None, "no".into())), false).unwrap();
        assert_eq!(bench.run.refused_attempts, expected);
    }
    let late = RefusedAttempt { number: 130, ..RefusedAttempt::new("answer", None, "no".into()) };
    bench.tell(person(), CommandKind::RecordRefusal(late), false).unwrap();
    assert_eq!(bench.run.refused_attempts, 130, "also where the attempt with the number 128 got lost");
}

#[test]
fn what_counts_as_failed_when_cut_off_does_so_after_a_signal_too() {
    let mut definition = three([OnInterrupt::Fail, OnInterrupt::Rerun, OnInterrupt::Rerun]);
    definition.phases[0].tasks[0].on_fail = OnFail::Ask;
    let mut bench = Bench::new(definition);
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    take_over(&mut bench);
    assert_eq!(bench.hold().kind, HoldKind::Failed, "a person is asked, and it does not just run again");
}
