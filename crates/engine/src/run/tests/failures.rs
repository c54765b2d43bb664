//! Failures: retries, what becomes of the others, what a person may say.

use super::*;
use crate::run::Status;
use std::time::Duration;

fn with(change: impl FnOnce(&mut Task)) -> Workflow {
    let mut first = task("a", &[]);
    change(&mut first);
    workflow(vec![phase("one", vec![first, task("b", &[]), task("c", &["a"])])])
}

#[test]
fn a_failed_task_fails_the_run_after_the_others_have_finished() {
    let mut bench = Bench::new(with(|_| {}));
    bench.fail("one/a");
    assert_eq!(bench.run.status(), Status::Running, "b is still under way");
    bench.work();
    assert_eq!(bench.run.status(), Status::Failed);
    assert_eq!(bench.started(), ["one/a", "one/b"], "c needs a");
}

#[test]
fn with_fail_fast_the_others_are_ended() {
    let mut definition = with(|_| {});
    definition.phases[0].fail_fast = true;
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    assert_eq!(bench.run.status(), Status::Failed);
    assert!(bench.run.pending().is_empty(), "what is under way and not pending is ended");
}

#[test]
fn resuming_a_failed_run_tries_only_what_failed() {
    let mut bench = Bench::new(with(|_| {}));
    bench.fail("one/a");
    bench.work();
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a", "one/c"]);
}

#[test]
fn a_retry_waits_for_its_moment_and_doubles_the_wait() {
    let retry = Retry { attempts: 3, backoff: Duration::from_secs(10) };
    let mut bench = Bench::new(with(|task| task.retry = retry));
    let wait = |bench: &mut Bench| {
        let events = bench.fail("one/a");
        let due = events.iter().find_map(|event| match event {
            Event::RetryScheduled { due, .. } => Some(*due),
            _ => None,
        });
        due.map(|due| due.as_millis() - bench.now)
    };
    assert_eq!(wait(&mut bench), Some(10_000));
    bench.outcome(CommandKind::Look);
    assert_eq!(bench.started().len(), 2, "too early: a and b only");
    bench.wake("a");
    assert_eq!(bench.started().last().unwrap(), "one/a");
    assert_eq!(wait(&mut bench), Some(20_000));
    bench.wake("a");
    assert_eq!(wait(&mut bench), None, "three tries in all");
    bench.work();
    assert_eq!(bench.run.status(), Status::Failed);
}

fn with_retry(attempts: u32) -> Workflow {
    with(|task| task.retry = Retry { attempts, backoff: Duration::from_secs(10) })
}

#[test]
fn a_backoff_that_ends_while_there_is_no_room_waits_for_room() {
    let mut definition = with_retry(2);
    definition.max_parallel = Some(1);
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    assert_eq!(bench.started(), ["one/a", "one/b"]);
    assert_eq!(bench.wake("a"), [Event::RetryDue { key: key("one", 1, "a") }]);
    assert!(!bench.run.pending().iter().any(|effect| matches!(effect, Effect::Wake { .. })), "nothing is left to wait for");
    bench.work();
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a", "one/c"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_backoff_of_an_item_that_ends_while_its_list_has_no_room_waits_for_room() {
    let mut each = task("each", &[]);
    each.retry = Retry { attempts: 2, backoff: Duration::from_secs(10) };
    each.for_each = Some(ForEach { over: Over::List(Vec::new()), max_parallel: Some(1) });
    let mut bench = Bench::new(workflow(vec![phase("one", vec![each])]));
    let item = |name: &str| crate::run::command::Item { key: name.into(), value: Datum::Inline(format!("\"{name}\"")) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y")]);
    bench.outcome(CommandKind::TaskEnded { key: key("one", 1, "each"), attempt: 1, outcome, agent: None, commit: None });
    bench.fail("one/each[x]");
    assert_eq!(bench.started(), ["one/each", "one/each[x]", "one/each[y]"]);
    bench.wake("each");
    assert_eq!(bench.started().len(), 3);
    bench.work();
    assert_eq!(bench.started()[3..], ["one/each[x]"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_backoff_that_ends_while_the_phase_drains_starts_nothing_and_resuming_retries() {
    let tasks = vec![task("a", &[]), task("b", &[]), task("slow", &[])];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) };
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    bench.fail("one/b");
    assert_eq!(bench.run.status(), Status::Running, "slow is still running");
    bench.wake("a");
    bench.work();
    assert_eq!(bench.run.status(), Status::Failed);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/slow"]);
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(bench.started()[3..], ["one/a", "one/b"], "nothing waits for a backoff that is over");
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_run_that_fails_during_a_backoff_continues_it_when_resumed() {
    let tasks = vec![task("a", &[]), task("b", &[])];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) };
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    bench.fail("one/b");
    assert_eq!(bench.run.status(), Status::Failed, "the backoff of a does not keep a failed run alive");
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(bench.started()[2..], ["one/b"]);
    bench.wake("a");
    assert_eq!(bench.started()[3..], ["one/a"]);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_backoff_ends_although_the_wall_clock_was_set_back() {
    let mut bench = Bench::new(with_retry(2));
    bench.fail("one/a");
    let wake = bench.run.pending().into_iter().find_map(|effect| match effect {
        Effect::Wake { timer, longest, .. } => Some((timer, longest)),
        _ => None,
    });
    let (timer, longest) = wake.expect("the backoff is waited for");
    assert_eq!(longest, Some(Duration::from_secs(10)));
    bench.now -= 3_600_000;
    bench.outcome(CommandKind::TimerDue { timer });
    assert_eq!(bench.started().last().unwrap(), "one/a");
}

#[test]
fn a_task_that_leaves_its_backoff_leaves_no_timer_behind() {
    let mut bench = Bench::new(with_retry(2));
    bench.fail("one/a");
    bench.run.seal(Vec::new());
    bench.wake("a");
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.timers_gone.len(), 1);
}

#[test]
fn on_fail_ask_lets_a_person_decide_while_others_go_on() {
    let mut bench = Bench::new(with(|task| task.on_fail = OnFail::Ask));
    bench.fail("one/a");
    assert_eq!(bench.run.status(), Status::Running, "b runs on");
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
    assert!(bench.hold().notes[0].contains("it broke"));
    bench.answer("Run again", None);
    bench.fail("one/a");
    bench.answer("Count as done", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert!(bench.has(|event| matches!(event, Event::TaskSkipped { .. })));
    assert_eq!(bench.run.full_context(&|_| None)["checkpoints"], serde_json::json!([]), "that was no checkpoint");
}

#[test]
fn on_fail_repeat_runs_the_phase_again_a_few_times_then_asks() {
    let mut bench = Bench::new(with(|task| task.on_fail = OnFail::Repeat));
    for iteration in 1..=3 {
        assert_eq!(bench.run.iteration_counts["one"], iteration);
        bench.fail("one/a");
        bench.perform(&bench.run.pending()[0].clone());
    }
    let phase = bench.run.current.as_ref().unwrap();
    assert!(phase.feedback.as_deref().unwrap().contains("it broke"), "the failure is told to the repeated tasks");
    bench.fail("one/a");
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
    bench.answer("Abort", None);
    assert_eq!(bench.run.status(), Status::Aborted);
}

#[test]
fn a_failed_gate_fails_the_run_and_only_it_runs_again() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gates = vec![gate("lint"), gate("test")];
    let mut bench = Bench::new(definition);
    bench.perform(&bench.run.pending()[0].clone());
    bench.perform(&bench.run.pending()[0].clone());
    let ended = |attempt: u32, failure| CommandKind::GateEnded {
        phase: PhaseId::from("one"),
        iteration: 1,
        gate: GateId::from("test"),
        attempt,
        failure,
    };
    bench.outcome(ended(1, Some(broken())));
    assert_eq!(bench.run.status(), Status::Failed);
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    let pending = bench.run.pending();
    assert!(matches!(&pending[..], [Effect::Gate { gate, attempt: 2, .. }] if gate.as_str() == "test"), "{pending:?}");
    bench.outcome(ended(2, None));
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_outcome_of_an_attempt_that_is_over_changes_nothing() {
    let mut bench = Bench::new(with(|_| {}));
    let late = CommandKind::TaskEnded {
        key: key("one", 1, "a"),
        attempt: 1,
        outcome: TaskOutcome::Finished { result: None, outputs: Vec::new() },
        agent: None,
        commit: None,
    };
    assert!(!bench.outcome(late.clone()).is_empty());
    assert!(bench.outcome(late).is_empty());
    let other = CommandKind::TaskEnded {
        key: key("one", 7, "a"),
        attempt: 1,
        outcome: TaskOutcome::Failed(broken()),
        agent: None,
        commit: None,
    };
    assert!(bench.outcome(other).is_empty());
}

#[test]
fn cancelling_ends_the_run_for_good() {
    let mut bench = Bench::new(with(|_| {}));
    bench.tell(person(), CommandKind::Cancel { reason: Some("enough".into()) }, false).unwrap();
    assert_eq!(bench.run.status(), Status::Cancelled);
    assert!(bench.run.pending().is_empty());
    let again = bench.tell(person(), CommandKind::Cancel { reason: None }, false);
    assert!(matches!(again, Err(Refusal::Ended { status: Status::Cancelled })));
    let resumed =
        bench.tell(Actor::driver(), CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false }, true);
    assert!(matches!(resumed, Err(Refusal::Ended { .. })));
}

#[test]
fn what_fail_fast_ended_is_no_failure_of_its_own() {
    let mut definition = with(|task| task.on_fail = OnFail::Repeat);
    definition.phases[0].fail_fast = true;
    definition.phases[0].tasks[1].on_fail = OnFail::Ask;
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    assert!(bench.run.holds.is_empty(), "nobody is asked about b");
    assert_eq!(bench.run.iteration_counts["one"], 2, "the phase runs again, as a says");

    let mut definition = with(|_| {});
    definition.phases[0].fail_fast = true;
    definition.phases[0].tasks[1].on_fail = OnFail::Ask;
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    assert_eq!(bench.run.status(), Status::Failed);
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a", "one/b", "one/c"]);
}

#[test]
fn what_waits_for_its_next_try_takes_no_place() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[]), task("b", &[]), task("c", &[])])]);
    definition.max_parallel = Some(1);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(60) };
    let mut bench = Bench::new(definition);
    bench.fail("one/a");
    assert_eq!(bench.started(), ["one/a", "one/b"]);
    bench.now += 100_000;
    bench.perform(&bench.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { .. })).unwrap());
    assert_eq!(bench.started(), ["one/a", "one/b", "one/a"], "it is due, and one may run");
}

#[test]
fn asking_for_more_than_may_run_at_once_keeps_to_the_limit() {
    let asking = |id: &str| Task { on_interrupt: OnInterrupt::Ask, ..task(id, &[]) };
    let mut definition = workflow(vec![phase("one", vec![asking("a"), asking("b")])]);
    definition.max_parallel = Some(2);
    let mut bench = Bench::new(definition);
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    Arc::make_mut(&mut bench.run.workflow).max_parallel = Some(1);
    bench.answer("rerun", None);
    assert_eq!(bench.run.pending().len(), 1);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn no_timer_is_left_when_a_run_ends() {
    let retry = Retry { attempts: 2, backoff: Duration::from_secs(60) };
    let mut bench = Bench::new(with(|task| task.retry = retry));
    bench.fail("one/a");
    let (_, _, rows) = bench.run.seal(bench.entries.clone());
    assert_eq!(rows.timers.len(), 1);
    bench.tell(person(), CommandKind::Cancel { reason: None }, false).unwrap();
    let last = vec![bench.entries.last().unwrap().clone()];
    let (_, _, rows) = bench.run.seal(last);
    assert_eq!(rows.timers_gone.len(), 1);
}

#[test]
fn a_result_of_an_earlier_execution_is_not_this_ones() {
    let mut first = phase("one", vec![task("a", &[])]);
    first.checkpoint = checkpoint(vec![choice("Redo", Action::RepeatPhase(PhaseId::from("one")))]);
    let mut bench = Bench::new(workflow(vec![first]));
    let finished = |iteration, result: Option<&str>| CommandKind::TaskEnded {
        key: key("one", iteration, "a"),
        attempt: 1,
        outcome: TaskOutcome::Finished {
            result: result.map(|text| crate::datum::Datum::Inline(text.into())),
            outputs: Vec::new(),
        },
        agent: None,
        commit: None,
    };
    bench.outcome(finished(1, Some("7")));
    assert_eq!(bench.run.full_context(&|_| None)["outputs"]["one"]["a"], 7);
    bench.work();
    bench.answer("Redo", None);
    bench.outcome(finished(2, None));
    assert_eq!(bench.run.full_context(&|_| None)["outputs"]["one"].get("a"), None);
}
