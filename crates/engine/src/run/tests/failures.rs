//! Failures: retries, the effect on other tasks, and the options of a person.

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
    let mut harness = Harness::new(with(|_| {}));
    harness.fail("one/a");
    assert_eq!(harness.run.status(), Status::Running, "b is still running");
    harness.work();
    assert_eq!(harness.run.status(), Status::Failed);
    assert_eq!(harness.started(), ["one/a", "one/b"], "c needs a");
}

#[test]
fn fail_fast_stops_the_other_tasks() {
    let mut definition = with(|_| {});
    definition.phases[0].fail_fast = true;
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    assert_eq!(harness.run.status(), Status::Failed);
    assert!(harness.run.pending().is_empty(), "running effects that are not pending are stopped");
}

#[test]
fn resuming_a_failed_run_retries_only_failed_tasks() {
    let mut harness = Harness::new(with(|_| {}));
    harness.fail("one/a");
    harness.work();
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a", "one/c"]);
}

#[test]
fn a_retry_waits_for_its_timer_and_doubles_the_backoff() {
    let retry = Retry { attempts: 3, backoff: Duration::from_secs(10) };
    let mut harness = Harness::new(with(|task| task.retry = retry));
    let wait = |harness: &mut Harness| {
        let events = harness.fail("one/a");
        let due = events.iter().find_map(|event| match event {
            Event::RetryScheduled { due, .. } => Some(*due),
            _ => None,
        });
        due.map(|due| due.as_millis() - harness.now)
    };
    assert_eq!(wait(&mut harness), Some(10_000));
    harness.outcome(CommandKind::Advance);
    assert_eq!(harness.started().len(), 2, "too early: a and b only");
    harness.wake("a");
    assert_eq!(harness.started().last().unwrap(), "one/a");
    assert_eq!(wait(&mut harness), Some(20_000));
    harness.wake("a");
    assert_eq!(wait(&mut harness), None, "three attempts in all");
    harness.work();
    assert_eq!(harness.run.status(), Status::Failed);
}

fn with_retry(attempts: u32) -> Workflow {
    with(|task| task.retry = Retry { attempts, backoff: Duration::from_secs(10) })
}

#[test]
fn a_task_whose_backoff_ended_waits_for_a_parallel_slot() {
    let mut definition = with_retry(2);
    definition.max_parallel = Some(1);
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    assert_eq!(harness.started(), ["one/a", "one/b"]);
    assert_eq!(harness.wake("a"), [Event::RetryDue { key: key("one", 1, "a") }]);
    assert!(!harness.run.pending().iter().any(|effect| matches!(effect, Effect::Wake { .. })), "there is no timer left");
    harness.work();
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a", "one/c"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_item_whose_backoff_ended_waits_for_a_slot_of_its_fan_out() {
    let mut each = task("each", &[]);
    each.retry = Retry { attempts: 2, backoff: Duration::from_secs(10) };
    each.for_each = Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel: Some(1) });
    let mut harness = Harness::new(workflow(vec![phase("one", vec![each])]));
    let item = |name: &str| crate::run::command::Item { key: name.into(), value: StoredValue::Inline(format!("\"{name}\"")) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y")]);
    harness.outcome(CommandKind::TaskEnded { key: key("one", 1, "each"), attempt: 1, outcome, agent: None, commit: None });
    harness.fail("one/each[x]");
    assert_eq!(harness.started(), ["one/each", "one/each[x]", "one/each[y]"]);
    harness.wake("each");
    assert_eq!(harness.started().len(), 3);
    harness.work();
    assert_eq!(harness.started()[3..], ["one/each[x]"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_backoff_that_ends_while_the_phase_drains_starts_nothing_and_resuming_retries() {
    let tasks = vec![task("a", &[]), task("b", &[]), task("slow", &[])];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) };
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    harness.fail("one/b");
    assert_eq!(harness.run.status(), Status::Running, "slow is still running");
    harness.wake("a");
    harness.work();
    assert_eq!(harness.run.status(), Status::Failed);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/slow"]);
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(harness.started()[3..], ["one/a", "one/b"], "nothing waits for a backoff that is over");
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_run_that_fails_during_a_backoff_continues_it_when_resumed() {
    let tasks = vec![task("a", &[]), task("b", &[])];
    let mut definition = workflow(vec![phase("one", tasks)]);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(10) };
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    harness.fail("one/b");
    assert_eq!(harness.run.status(), Status::Failed, "the backoff of a does not keep a failed run alive");
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(harness.started()[2..], ["one/b"]);
    harness.wake("a");
    assert_eq!(harness.started()[3..], ["one/a"]);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_backoff_ends_even_if_the_wall_clock_was_set_back() {
    let mut harness = Harness::new(with_retry(2));
    harness.fail("one/a");
    let wake = harness.run.pending().into_iter().find_map(|effect| match effect {
        Effect::Wake { timer, longest, .. } => Some((timer, longest)),
        _ => None,
    });
    let (timer, longest) = wake.expect("the backoff has a timer");
    assert_eq!(longest, Some(Duration::from_secs(10)));
    harness.now -= 3_600_000;
    harness.outcome(CommandKind::TimerDue { timer });
    assert_eq!(harness.started().last().unwrap(), "one/a");
}

#[test]
fn a_task_that_leaves_its_backoff_leaves_no_timer_behind() {
    let mut harness = Harness::new(with_retry(2));
    harness.fail("one/a");
    harness.run.seal(Vec::new());
    harness.wake("a");
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.timers_removed.len(), 1);
}

#[test]
fn on_fail_ask_lets_a_person_decide_while_other_tasks_continue() {
    let mut harness = Harness::new(with(|task| task.on_fail = OnFail::Ask));
    harness.fail("one/a");
    assert_eq!(harness.run.status(), Status::Running, "b runs on");
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
    assert!(harness.hold().notes[0].contains("it broke"));
    harness.answer("Run again", None);
    harness.fail("one/a");
    harness.answer("Count as done", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert!(harness.has(|event| matches!(event, Event::TaskSkipped { .. })));
    assert_eq!(harness.run.full_context(&|_| None)["checkpoints"], serde_json::json!([]), "it was not a checkpoint");
}

#[test]
fn on_fail_repeat_repeats_the_phase_up_to_its_limit_then_asks() {
    let mut harness = Harness::new(with(|task| task.on_fail = OnFail::Repeat));
    for iteration in 1..=3 {
        assert_eq!(harness.run.iteration_counts["one"], iteration);
        harness.fail("one/a");
        harness.perform(&harness.run.pending()[0].clone());
    }
    let phase = harness.run.current.as_ref().unwrap();
    assert!(phase.feedback.as_deref().unwrap().contains("it broke"), "the repeated tasks get the failure as feedback");
    harness.fail("one/a");
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
    harness.answer("Abort", None);
    assert_eq!(harness.run.status(), Status::Aborted);
}

#[test]
fn a_failed_gate_fails_the_run_and_only_that_gate_reruns() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[])])]);
    definition.phases[0].gates = vec![gate("lint"), gate("test")];
    let mut harness = Harness::new(definition);
    harness.perform(&harness.run.pending()[0].clone());
    harness.perform(&harness.run.pending()[0].clone());
    let ended = |attempt: u32, failure| CommandKind::GateEnded {
        phase: PhaseId::from("one"),
        iteration: 1,
        gate: GateId::from("test"),
        attempt,
        failure,
    };
    harness.outcome(ended(1, Some(broken())));
    assert_eq!(harness.run.status(), Status::Failed);
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    let pending = harness.run.pending();
    assert!(matches!(&pending[..], [Effect::Gate { gate, attempt: 2, .. }] if gate.as_str() == "test"), "{pending:?}");
    harness.outcome(ended(2, None));
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_outcome_of_an_ended_attempt_changes_nothing() {
    let mut harness = Harness::new(with(|_| {}));
    let late = CommandKind::TaskEnded {
        key: key("one", 1, "a"),
        attempt: 1,
        outcome: TaskOutcome::Finished { result: None, outputs: Vec::new() },
        agent: None,
        commit: None,
    };
    assert!(!harness.outcome(late.clone()).is_empty());
    assert!(harness.outcome(late).is_empty());
    let other = CommandKind::TaskEnded {
        key: key("one", 7, "a"),
        attempt: 1,
        outcome: TaskOutcome::Failed(broken()),
        agent: None,
        commit: None,
    };
    assert!(harness.outcome(other).is_empty());
}

#[test]
fn cancelling_ends_the_run_permanently() {
    let mut harness = Harness::new(with(|_| {}));
    harness.tell(person(), CommandKind::Cancel { reason: Some("enough".into()) }, false).unwrap();
    assert_eq!(harness.run.status(), Status::Cancelled);
    assert!(harness.run.pending().is_empty());
    let again = harness.tell(person(), CommandKind::Cancel { reason: None }, false);
    assert!(matches!(again, Err(Refusal::Ended { status: Status::Cancelled })));
    let resumed =
        harness.tell(Actor::driver(), CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false }, true);
    assert!(matches!(resumed, Err(Refusal::Ended { .. })));
}

#[test]
fn tasks_stopped_by_fail_fast_do_not_count_as_failed() {
    let mut definition = with(|task| task.on_fail = OnFail::Repeat);
    definition.phases[0].fail_fast = true;
    definition.phases[0].tasks[1].on_fail = OnFail::Ask;
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    assert!(harness.run.holds.is_empty(), "no one is asked about b");
    assert_eq!(harness.run.iteration_counts["one"], 2, "the phase runs again, as a says");

    let mut definition = with(|_| {});
    definition.phases[0].fail_fast = true;
    definition.phases[0].tasks[1].on_fail = OnFail::Ask;
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    assert_eq!(harness.run.status(), Status::Failed);
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a", "one/b", "one/c"]);
}

#[test]
fn a_task_in_backoff_takes_no_parallel_slot() {
    let mut definition = workflow(vec![phase("one", vec![task("a", &[]), task("b", &[]), task("c", &[])])]);
    definition.max_parallel = Some(1);
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(60) };
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    assert_eq!(harness.started(), ["one/a", "one/b"]);
    harness.now += 100_000;
    harness.perform(&harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { .. })).unwrap());
    assert_eq!(harness.started(), ["one/a", "one/b", "one/a"], "it is due, and there is capacity for one");
}

#[test]
fn rerunning_interrupted_tasks_respects_max_parallel() {
    let asking = |id: &str| Task { on_interrupt: OnInterrupt::Ask, ..task(id, &[]) };
    let mut definition = workflow(vec![phase("one", vec![asking("a"), asking("b")])]);
    definition.max_parallel = Some(2);
    let mut harness = Harness::new(definition);
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    Arc::make_mut(&mut harness.run.workflow).max_parallel = Some(1);
    harness.answer("rerun", None);
    assert_eq!(harness.run.pending().len(), 1);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn no_timer_is_left_when_a_run_ends() {
    let retry = Retry { attempts: 2, backoff: Duration::from_secs(60) };
    let mut harness = Harness::new(with(|task| task.retry = retry));
    harness.fail("one/a");
    let (_, _, rows) = harness.run.seal(harness.entries.clone());
    assert_eq!(rows.timers.len(), 1);
    harness.tell(person(), CommandKind::Cancel { reason: None }, false).unwrap();
    let last = vec![harness.entries.last().unwrap().clone()];
    let (_, _, rows) = harness.run.seal(last);
    assert_eq!(rows.timers_removed.len(), 1);
}

#[test]
fn a_result_of_an_earlier_execution_is_not_reused() {
    let mut first = phase("one", vec![task("a", &[])]);
    first.checkpoint = checkpoint(vec![choice("Redo", Action::RepeatPhase(PhaseId::from("one")))]);
    let mut harness = Harness::new(workflow(vec![first]));
    let finished = |iteration, result: Option<&str>| CommandKind::TaskEnded {
        key: key("one", iteration, "a"),
        attempt: 1,
        outcome: TaskOutcome::Finished {
            result: result.map(|text| crate::stored_value::StoredValue::Inline(text.into())),
            outputs: Vec::new(),
        },
        agent: None,
        commit: None,
    };
    harness.outcome(finished(1, Some("7")));
    assert_eq!(harness.run.full_context(&|_| None)["outputs"]["one"]["a"], 7);
    harness.work();
    harness.answer("Redo", None);
    harness.outcome(finished(2, None));
    assert_eq!(harness.run.full_context(&|_| None)["outputs"]["one"].get("a"), None);
}
