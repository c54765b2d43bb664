//! Recovering a run from a snapshot: nothing runs twice without a person saying so.

use super::*;
use crate::hold::{HoldKind, HoldState};
use crate::id::SnapshotId;
use crate::run::event::RecoveredFrom;
use crate::run::history::HistoryError;
use crate::run::state::{End, TaskState};
use crate::run::{Recovered, Status, recover};
use std::time::Duration;

fn two_phases() -> Workflow {
    let again = |id: &str, needs: &[&str]| Task { on_interrupt: OnInterrupt::Rerun, ..task(id, needs) };
    let mut one = phase("one", vec![again("a", &[]), again("b", &[]), again("c", &["a", "b"])]);
    one.checkpoint =
        checkpoint(vec![choice("Continue", Action::Continue), choice("Redo", Action::RepeatPhase(PhaseId::from("one")))]);
    workflow(vec![one, phase("two", vec![task("d", &[])])])
}

fn snapshot() -> SnapshotId {
    SnapshotId::from("CP-one-20260101T000000Z-abc")
}

fn recovered_run(lost: &Harness) -> Recovered {
    let mut base = lost.run.clone();
    base.seal(lost.entries.clone());
    let seq = base.next_seq - 1;
    recover(&envelope(person(), lost.now + 1000, false), &base, snapshot(), seq, DriverId::from("driver-9")).unwrap()
}

fn recovered(lost: &Harness) -> Harness {
    let Recovered { run, entries, .. } = recovered_run(lost);
    Harness { run, entries, now: lost.now + 2000 }
}

fn started(harness: &Harness) -> Vec<String> {
    harness.started()
}

#[test]
fn a_recovered_run_keeps_its_identity_and_its_work() {
    let mut lost = Harness::new(two_phases());
    lost.work();
    let Recovered { mut run, entries, state } = recovered_run(&lost);
    assert_eq!((&run.id, run.started_at, &run.output_dir), (&lost.run.id, lost.run.started_at, &lost.run.output_dir));
    assert_eq!((run.driver.as_str(), run.detached, run.version), ("driver-9", false, 0));
    assert_eq!(
        (run.holds.keys().collect::<Vec<_>>(), run.hold_states()),
        (lost.run.holds.keys().collect(), vec![HoldState::Open])
    );
    let from = run.recovered.clone().unwrap();
    assert_eq!((from.seq, from.state, from.snapshot.clone()), (lost.entries.len() as u64, state.0, snapshot()));
    let (commit, sealed, rows) = run.seal(entries);
    assert_eq!((sealed.version, commit.first_seq), (1, from.seq + 1), "events are numbered on");
    assert_eq!(rows.holds.iter().map(|row| row.state).collect::<Vec<_>>(), [HoldState::Open]);
    assert!(rows.run.is_some_and(|row| row.run == lost.run.id));
    assert!(rows.referenced_values.contains(&state.0) && rows.referenced_values.contains(&run.definition));
}

impl Run {
    fn hold_states(&self) -> Vec<HoldState> {
        self.holds.values().map(|hold| hold.state).collect()
    }
}

#[test]
fn the_timers_of_a_recovered_run_are_set_again() {
    let mut definition = two_phases();
    let deadline = Deadline { after: Duration::from_secs(600), then: OnDeadline::Abort };
    definition.phases[0]
        .tasks
        .push(Task { retry: Retry { attempts: 2, backoff: Duration::from_secs(60) }, ..task("flaky", &[]) });
    let waits = WaitSettings { deadline: Some(deadline), remind: Some(Duration::from_secs(20)), ..WaitSettings::default() };
    let question = Checkpoint { waits, ..checkpoint(vec![choice("Yes", Action::Continue)]).unwrap() };
    definition.phases[0].tasks.push(Task::new(TaskId::from("ask"), Work::Checkpoint(Box::new(question))));
    let mut lost = Harness::new(definition);
    lost.fail("one/flaky");
    let asked = lost.effect_of("one/ask");
    let Effect::Task { key, attempt } = asked else { panic!("{asked:?}") };
    let outcome = TaskOutcome::Asks(Box::default());
    lost.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
    let mut recovered = recovered(&lost);
    let (_, _, rows) = recovered.run.seal(recovered.entries.clone());
    let mut kinds: Vec<&str> = rows.timers.iter().map(|row| row.kind.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["deadline", "remind", "retry"]);
}

#[test]
fn tasks_that_ran_in_the_snapshot_are_interrupted_whatever_their_setting() {
    for on_interrupt in [OnInterrupt::Rerun, OnInterrupt::Ask, OnInterrupt::Fail] {
        let mut definition = two_phases();
        definition.phases[0].tasks.iter_mut().for_each(|task| task.on_interrupt = on_interrupt);
        let mut harness = recovered(&Harness::new(definition));
        assert!(harness.run.pending().is_empty(), "recovering does not drive");
        harness.take_over();
        assert_eq!((harness.hold().kind, harness.asked()), (HoldKind::Interrupted, vec!["one/a".to_owned(), "one/b".to_owned()]));
        assert!(harness.hold().prompt.contains("may already have run"), "{}", harness.hold().prompt);
        assert_eq!(started(&harness), Vec::<String>::new());
    }
}

#[test]
fn one_hold_asks_about_all_tasks_that_become_ready_together() {
    let mut definition = two_phases();
    definition.max_parallel = Some(1);
    let mut lost = Harness::new(definition);
    lost.run.current = None;
    let mut harness = recovered(&lost);
    harness.take_over();
    assert_eq!(harness.asked(), ["one/a", "one/b"], "whatever the capacity");
    assert_eq!(harness.run.status(), Status::Waiting);
    assert_eq!(harness.take_over().len(), 1, "taking over again does not ask twice");
}

#[test]
fn a_person_is_asked_about_every_later_task_too() {
    let mut harness = recovered(&Harness::new(two_phases()));
    harness.take_over();
    harness.answer("rerun", None);
    harness.work();
    assert_eq!(started(&harness), ["one/a", "one/b"]);
    assert_eq!(harness.asked(), ["one/c"], "a task that becomes ready later");
    harness.answer("count-as-done", None);
    harness.work();
    harness.answer("Redo", None);
    assert_eq!(harness.asked(), ["one/a", "one/b"], "a later iteration");
    harness.answer("rerun", None);
    harness.work();
    harness.answer("rerun", None);
    harness.work();
    harness.answer("Continue", None);
    assert_eq!(harness.asked(), ["two/d"], "a later phase");
    harness.answer("rerun", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(started(&harness), ["one/a", "one/b", "one/a", "one/b", "one/c", "two/d"]);
}

#[test]
fn a_person_can_let_the_rest_run_without_being_asked() {
    let mut harness = recovered(&Harness::new(two_phases()));
    harness.take_over();
    harness.answer("rerun-rest", None);
    assert!(!harness.run.unverified);
    harness.work();
    harness.answer("Continue", None);
    harness.work();
    assert_eq!(started(&harness), ["one/a", "one/b", "one/c", "two/d"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn only_a_recovered_run_offers_to_trust_the_rest() {
    let mut definition = two_phases();
    definition.phases[0].tasks.iter_mut().for_each(|task| task.on_interrupt = OnInterrupt::Ask);
    let mut harness = Harness::new(definition);
    harness.take_over();
    assert!(harness.hold().option("rerun-rest").is_none());
    assert!(harness.hold().prompt.contains("interrupted"));
}

#[test]
fn a_confirmed_task_is_retried_without_being_asked_about_again() {
    let mut definition = two_phases();
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(1) };
    let mut harness = recovered(&Harness::new(definition));
    harness.take_over();
    harness.answer("rerun", None);
    harness.fail("one/a");
    harness.work();
    assert_eq!(started(&harness), ["one/a", "one/b", "one/a"]);
    harness.answer("rerun", None);
    harness.take_over();
    assert_eq!(
        harness.effect_of("one/c"),
        Effect::Task { key: key("one", 1, "c"), attempt: 2 },
        "it is interrupted like any other"
    );
}

#[test]
fn retrying_a_task_by_hand_confirms_it() {
    let mut harness = recovered(&Harness::new(two_phases()));
    harness.take_over();
    let step = crate::id::StepKey::Task(key("one", 1, "a"));
    harness.tell(person(), CommandKind::RetryTask { step, cut_off: None }, true).unwrap();
    assert_eq!((started(&harness), harness.asked()), (vec!["one/a".to_owned()], vec!["one/b".to_owned()]));
    assert!(harness.hold().option("rerun-rest").is_some());
}

#[test]
fn a_task_that_may_have_run_costs_nothing() {
    let mut harness = recovered(&Harness::new(two_phases()));
    harness.take_over();
    assert!(harness.run.spent.is_empty());
}

#[test]
fn a_backoff_ends_with_a_question() {
    let mut definition = two_phases();
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(60) };
    let mut lost = Harness::new(definition);
    lost.fail("one/a");
    let mut harness = recovered(&lost);
    harness.take_over();
    assert_eq!(harness.asked(), ["one/b"]);
    harness.work();
    assert_eq!(harness.asked(), ["one/a", "one/b"]);
    assert_eq!(started(&harness), Vec::<String>::new());
}

#[test]
fn gates_run_again() {
    let mut definition = two_phases();
    definition.phases[0].gates = vec![gate("tests")];
    let mut lost = Harness::new(definition);
    while !lost.has(|event| matches!(event, Event::GateStarted { .. })) {
        lost.perform(&lost.run.pending()[0].clone());
    }
    let mut harness = recovered(&lost);
    harness.take_over();
    harness.work();
    assert!(harness.has(|event| matches!(event, Event::GatePassed { .. })));
    assert_eq!(harness.hold().kind, HoldKind::Checkpoint);
}

#[test]
fn an_answer_that_had_not_taken_effect_is_asked_for_again() {
    let mut lost = Harness::new(two_phases());
    lost.work();
    let body = lost.answer_body("Continue", None);
    lost.tell(person(), body, false).unwrap();
    let mut harness = recovered(&lost);
    let hold = harness.hold().clone();
    assert_eq!((hold.revision, hold.answers.len()), (2, 0));
    assert!(hold.notes[0].contains("recovered"), "{:?}", hold.notes);
    harness.take_over();
    assert!(harness.run.completed.is_empty());
    harness.answer("Continue", None);
    assert_eq!(harness.run.completed, [PhaseId::from("one")]);
}

#[test]
fn an_ended_run_is_recovered_as_ended() {
    let mut lost = Harness::new(two_phases());
    lost.tell(person(), CommandKind::Cancel { reason: None }, false).unwrap();
    assert_eq!(recovered(&lost).run.end, Some(End::Cancelled));
    let mut failed = Harness::new(two_phases());
    failed.fail("one/a");
    failed.perform(&failed.effect_of("one/b"));
    let mut harness = recovered(&failed);
    assert_eq!(harness.run.status(), Status::Failed);
    harness.take_over();
    assert_eq!(harness.asked(), ["one/a"], "resuming it asks before it retries");
}

#[test]
fn only_a_person_may_recover_a_run() {
    let lost = Harness::new(two_phases());
    for actor in [Actor { credential: Credential::Agent, ..person() }, Actor::driver()] {
        let refused = recover(&envelope(actor, 1, false), &lost.run, snapshot(), 1, DriverId::from("d")).unwrap_err();
        assert!(refused.concerns_caller(), "{refused:?}");
    }
}

#[test]
fn a_replayed_recovery_needs_the_state_and_then_is_the_same_run() {
    let mut lost = Harness::new(two_phases());
    lost.work();
    let Recovered { mut run, entries, state: (digest, bytes) } = recovered_run(&lost);
    let (_, sealed, rows) = run.seal(entries);
    assert_eq!(Run::first(&sealed, run.workflow.clone()).unwrap_err(), HistoryError::StateNeeded(digest));
    let mut base = Run::from_bytes(&bytes).unwrap();
    base.attach(run.workflow.clone()).unwrap();
    let (replayed, replayed_rows) = Run::first_from(&sealed, run.workflow.clone(), Some(base)).unwrap();
    assert_eq!((replayed, replayed_rows), (run, rows));
}

#[test]
fn a_recovered_run_goes_back_only_to_snapshots_that_it_comes_from() {
    use crate::run::command::Rewind;
    let lost = Harness::new(two_phases());
    let mut harness = recovered(&lost);
    harness.run.seal(harness.entries.clone());
    let rewind = |base: &Run, seq: u64| CommandKind::Rewind(Rewind::new(snapshot(), seq, base.clone()).0);
    let RecoveredFrom { seq, .. } = **harness.run.recovered.as_ref().unwrap();
    let mut base = lost.run.clone();
    base.seal(lost.entries.clone());
    for _ in 0..5 {
        harness.take_over();
    }
    let new = harness.entries[1..].to_vec();
    harness.run.seal(new);
    assert!(matches!(harness.tell(person(), rewind(&base, seq + 1), false), Err(Refusal::SnapshotOfOtherHistory { .. })));
    harness.tell(person(), rewind(&base, seq), false).unwrap();
    assert!(harness.run.unverified, "it stays unknown what happened after the snapshot");
    harness.take_over();
    assert_eq!(harness.asked(), ["one/a", "one/b"]);
}

#[test]
fn a_task_state_of_a_recovered_run_survives_its_stored_form() {
    let mut harness = recovered(&Harness::new(two_phases()));
    harness.take_over();
    harness.answer("rerun", None);
    let mut read = Run::from_bytes(&harness.run.to_bytes()).unwrap();
    read.attach(harness.run.workflow.clone()).unwrap();
    assert!(read.unverified && read.task_run(&key("one", 1, "a")).is_some_and(|task| task.confirmed));
    assert_eq!(read.task_run(&key("one", 1, "a")).unwrap().state, TaskState::Running);
}
