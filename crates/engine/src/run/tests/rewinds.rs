//! Going back to a snapshot: what counts again, what no longer counts, and what is never taken back.

use super::*;
use crate::hold::{HoldState, PresentedFile, Seen};
use crate::id::SnapshotId;
use crate::run::agent::{AgentReport, Usage};
use crate::run::budget::BudgetScope;
use crate::run::command::Rewind;
use crate::run::history::HistoryError;
use crate::run::state::{KnownSession, TaskState};
use crate::run::{Status, rewind_consequences};
use std::time::Duration;

fn three_phases() -> Workflow {
    let mut one = phase("one", vec![task("a", &[]), task("b", &["a"])]);
    one.checkpoint =
        checkpoint(vec![choice("Continue", Action::Continue), choice("Skip", Action::SkipPhases(vec![PhaseId::from("three")]))]);
    let mut two = phase("two", vec![task("c", &[])]);
    two.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    workflow(vec![one, two, phase("three", vec![task("d", &[])])])
}

fn snapshot() -> SnapshotId {
    SnapshotId::from("CP-one-20260101T000000Z-abc")
}

/// Adds the events so far to the history, so that the state has a version and a head.
fn commit(harness: &mut Harness) {
    let (from, all) = (harness.run.next_seq as usize - 1, harness.entries.clone());
    harness.run.seal(all[from..].to_vec());
}

/// The state as a snapshot contains it, and the number of its last event.
fn taken(harness: &mut Harness) -> (Run, u64) {
    commit(harness);
    (read_back(&harness.run), harness.run.next_seq - 1)
}

fn read_back(run: &Run) -> Run {
    let mut read = Run::from_bytes(&run.to_bytes()).unwrap();
    read.attach(run.workflow.clone()).unwrap();
    read
}

fn rewind_body((base, seq): &(Run, u64)) -> CommandKind {
    CommandKind::Rewind(Rewind::new(snapshot(), *seq, base.clone()).0)
}

fn rewind(harness: &mut Harness, to: &(Run, u64)) -> Vec<Event> {
    commit(harness);
    harness.tell(person(), rewind_body(to), false).unwrap()
}

fn refused(harness: &mut Harness, to: &(Run, u64)) -> Refusal {
    harness.tell(person(), rewind_body(to), false).unwrap_err()
}

fn resume(harness: &mut Harness) {
    harness.take_over();
    harness.work();
}

#[test]
fn work_that_finished_after_the_snapshot_runs_again_and_earlier_work_does_not() {
    let mut harness = Harness::new(three_phases());
    harness.perform(&harness.effect_of("one/a"));
    let earlier = taken(&mut harness);
    harness.work();
    harness.answer("Continue", None);
    harness.work();
    assert_eq!(harness.started(), ["one/a", "one/b", "two/c"]);
    let found = rewind_consequences(&harness.run, &earlier.0);
    assert_eq!(found.runs_again, ["one/b", "two/c"]);
    assert_eq!(found.phases, [PhaseId::from("one"), PhaseId::from("two")]);
    rewind(&mut harness, &earlier);
    resume(&mut harness);
    assert_eq!(harness.started(), ["one/a", "one/b", "two/c", "one/b"]);
}

#[test]
fn later_answers_no_longer_count_but_stay_in_the_list() {
    let mut harness = Harness::new(three_phases());
    let earlier = taken(&mut harness);
    harness.work();
    let hold = harness.hold().id.clone();
    harness.answer("Skip", None);
    assert_eq!(harness.run.skip_list, [PhaseId::from("three")]);
    let found = rewind_consequences(&harness.run, &earlier.0);
    assert_eq!(
        found.voided_answers.iter().map(|answer| (&answer.hold, answer.label.as_str())).collect::<Vec<_>>(),
        [(&hold, "Skip")]
    );
    rewind(&mut harness, &earlier);
    assert!(harness.run.decisions[0].void && harness.run.skip_list.is_empty());
    let late = CommandKind::Answer { hold: hold.clone(), revision: Some(1), option: "Continue".into(), feedback: None };
    let refusal = harness.tell(person(), late, false).unwrap_err();
    assert!(matches!(&refusal, Refusal::HoldVoided { reason, .. } if reason.contains("rewound")), "{refusal:?}");
    resume(&mut harness);
    assert_ne!(harness.hold().id, hold, "the question is asked again");
}

#[test]
fn holds_that_opened_later_are_voided_with_their_timers() {
    let mut definition = three_phases();
    let deadline = Deadline { after: Duration::from_secs(60), then: OnDeadline::Abort };
    let waits = WaitSettings { deadline: Some(deadline), remind: Some(Duration::from_secs(20)), ..WaitSettings::default() };
    definition.phases[0].checkpoint.as_mut().unwrap().waits = waits;
    let mut harness = Harness::new(definition);
    let earlier = taken(&mut harness);
    harness.work();
    let hold = harness.hold().clone();
    let found = rewind_consequences(&harness.run, &earlier.0);
    assert_eq!(found.voided_holds, std::slice::from_ref(&hold.id));
    rewind(&mut harness, &earlier);
    assert!(harness.run.holds.is_empty());
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.holds.iter().map(|row| (&row.hold, row.state)).collect::<Vec<_>>(), [(&hold.id, HoldState::Void)]);
    let timers = [hold.terms.deadline.unwrap().timer, hold.terms.remind.unwrap().timer];
    assert!(timers.iter().all(|timer| rows.timers_removed.contains(timer)), "{rows:?}");
    assert!(rows.timers.is_empty());
}

#[test]
fn an_open_hold_is_open_again_and_no_earlier_answer_fits_it() {
    let mut definition = three_phases();
    let deadline = Deadline { after: Duration::from_secs(60), then: OnDeadline::Abort };
    definition.phases[0].checkpoint.as_mut().unwrap().waits =
        WaitSettings { deadline: Some(deadline), remind: Some(Duration::from_secs(20)), ..WaitSettings::default() };
    let mut harness = Harness::new(definition);
    harness.work();
    let hold = harness.hold().clone();
    let earlier = taken(&mut harness);
    harness.answer("Continue", None);
    harness.work();
    assert_eq!(rewind_consequences(&harness.run, &earlier.0).asked_again, std::slice::from_ref(&hold.id));
    rewind(&mut harness, &earlier);
    let now = harness.hold().clone();
    assert_eq!((&now.id, now.revision, now.state), (&hold.id, 2, HoldState::Open));
    let (_, _, rows) = harness.run.seal(Vec::new());
    let row = rows.holds.iter().find(|row| row.hold == hold.id).unwrap();
    assert_eq!((row.state, row.revision), (HoldState::Open, 2));
    let due: Vec<i64> = rows.timers.iter().map(|row| row.due.as_millis() - harness.now).collect();
    assert_eq!(due, [60_000, 20_000], "it gets as much time as before");
    let stale = CommandKind::Answer { hold: hold.id.clone(), revision: Some(1), option: "Continue".into(), feedback: None };
    assert!(matches!(harness.tell(person(), stale, false), Err(Refusal::StaleRevision { given: 1, current: 2, .. })));
    harness.answer("Continue", None);
    resume(&mut harness);
    assert_eq!(harness.run.completed, [PhaseId::from("one")]);
}

#[test]
fn a_hold_that_was_voided_since_is_open_again_with_a_higher_revision() {
    let mut harness = Harness::new(three_phases());
    harness.work();
    let earlier = taken(&mut harness);
    harness.tell(person(), CommandKind::Cancel { reason: None }, false).unwrap();
    let hold = earlier.0.open_holds()[0].id.clone();
    rewind(&mut harness, &earlier);
    assert_eq!((harness.hold().id.clone(), harness.hold().revision), (hold, 2));
    assert_eq!(harness.run.status(), Status::Waiting, "the run is no longer cancelled");
}

#[test]
fn an_answer_that_counted_before_the_snapshot_still_counts() {
    let mut harness = Harness::new(three_phases());
    harness.work();
    let body = harness.answer_body("Continue", None);
    harness.tell(person(), body, false).unwrap();
    let earlier = taken(&mut harness);
    resume(&mut harness);
    rewind(&mut harness, &earlier);
    let hold = harness.run.holds.values().next().unwrap();
    assert_eq!((hold.state, hold.revision), (HoldState::Checking, 2));
    resume(&mut harness);
    assert_eq!(harness.run.completed, [PhaseId::from("one")]);
    assert_eq!(harness.run.decisions.iter().map(|decision| decision.void).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_phase_in_progress_gets_a_new_iteration() {
    let mut harness = Harness::new(three_phases());
    harness.perform(&harness.effect_of("one/a"));
    let earlier = taken(&mut harness);
    let late = harness.effect_of("one/b");
    harness.work();
    rewind(&mut harness, &earlier);
    let phase = harness.run.current.as_ref().unwrap();
    assert_eq!((phase.iteration, &phase.tasks[0].state, &phase.tasks[1].state), (2, &TaskState::Done, &TaskState::Waiting));
    harness.take_over();
    assert_eq!(harness.effect_of("one/b"), Effect::Task { key: key("one", 2, "b"), attempt: 2 });
    let Effect::Task { key, attempt } = late else { panic!("{late:?}") };
    let outcome = TaskOutcome::Finished { result: None, outputs: Vec::new() };
    let ended = CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None };
    assert_eq!(harness.outcome(ended), [], "an outcome of the earlier execution is too late");
    rewind(&mut harness, &earlier);
    assert_eq!(harness.run.iteration_counts[&PhaseId::from("one")], 3, "iteration numbers are never used twice");
}

#[test]
fn a_question_about_a_task_follows_its_new_iteration() {
    let mut definition = three_phases();
    definition.phases[0].tasks[0].on_fail = OnFail::Ask;
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    let earlier = taken(&mut harness);
    harness.answer("rerun", None);
    harness.work();
    rewind(&mut harness, &earlier);
    assert_eq!(harness.hold().notes, ["it broke", "line"], "the failure is shown, and nothing else becomes feedback");
    assert_eq!(harness.hold().scope, crate::hold::Scope::Tasks(vec![key("one", 2, "a")]));
    harness.take_over();
    harness.answer("count-as-done", None);
    assert_eq!(harness.run.task_run(&key("one", 2, "a")).unwrap().state, TaskState::Skipped);
}

#[test]
fn tasks_that_ran_or_backed_off_in_the_snapshot_wait() {
    let mut definition = three_phases();
    definition.phases[0].tasks[1] = Task { on_interrupt: OnInterrupt::Ask, ..task("b", &[]) };
    definition.phases[0].tasks[0].retry = Retry { attempts: 2, backoff: Duration::from_secs(60) };
    let mut harness = Harness::new(definition);
    harness.fail("one/a");
    let earlier = taken(&mut harness);
    let timer = harness.run.task_run(&key("one", 1, "a")).unwrap().state.next_try().unwrap().0.clone();
    rewind(&mut harness, &earlier);
    let states: Vec<_> = harness.run.current.as_ref().unwrap().tasks.iter().map(|task| task.state.clone()).collect();
    assert_eq!(states, [TaskState::Waiting, TaskState::Waiting]);
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert!(rows.timers_removed.contains(&timer));
    harness.take_over();
    assert!(harness.run.holds.is_empty(), "a person has just said that they run again");
    assert_eq!(harness.run.pending().len(), 2);
}

#[test]
fn usage_stays_spent_and_a_raised_budget_is_no_longer_raised() {
    let mut harness = Harness::new(three_phases());
    let known = |tokens: u64| KnownSession {
        id: "s".into(),
        dir: None,
        confirmed: true,
        usage: Some(Usage { input_tokens: Some(tokens), ..Usage::default() }),
    };
    harness.run.sessions.by_agent.insert("claude".into(), known(1));
    let earlier = taken(&mut harness);
    let report = AgentReport { usage: Usage { cost_micros: Some(5), ..Usage::default() }, ..AgentReport::default() };
    harness.run.spend(&PhaseId::from("one"), &TaskId::from("a"), &report, 7);
    harness.run.spent_mut(&BudgetScope::Run).raise();
    harness.run.sessions.by_agent.insert("claude".into(), known(9));
    rewind(&mut harness, &earlier);
    let spent = harness.run.spent(&BudgetScope::Run);
    assert_eq!((spent.cost_micros, spent.time_ms, spent.raised, spent.accepted_unknown), (5, 7, 0, 0));
    assert_eq!(harness.run.sessions.by_agent["claude"], known(9), "what a session used is not counted twice");
}

#[test]
fn a_preset_answer_that_was_used_stays_used() {
    let given = |selector: &str| PresetAnswer { selector: selector.into(), option: "Continue".into(), feedback: None };
    let mut harness = Harness::with_presets(three_phases(), vec![given("one"), given("two")]);
    harness.perform(&harness.effect_of("one/a"));
    let earlier = taken(&mut harness);
    assert_eq!(earlier.0.presets.len(), 2);
    harness.perform(&harness.effect_of("one/b"));
    harness.perform(&harness.run.pending()[0].clone());
    assert_eq!(harness.run.presets.len(), 1);
    rewind(&mut harness, &earlier);
    assert_eq!(harness.run.presets.len(), 1);
    resume(&mut harness);
    assert_eq!(harness.hold().scope.phase(), Some(&PhaseId::from("one")), "a person is asked instead");
}

#[test]
fn records_that_only_grow_are_kept() {
    let mut harness = Harness::new(three_phases());
    let earlier = taken(&mut harness);
    harness.run.warnings.push("careful".into());
    harness.run.refused_attempts = 3;
    harness.take_over();
    rewind(&mut harness, &earlier);
    assert_eq!((harness.run.warnings.as_slice(), harness.run.refused_attempts), (&["careful".to_owned()][..], 3));
    assert_eq!((harness.run.driver.as_str(), harness.run.started_at), ("d2", earlier.0.started_at));
    assert!(harness.run.version > earlier.0.version && harness.run.next_seq > earlier.0.next_seq);
}

#[test]
fn a_complete_and_a_failed_run_can_go_back() {
    let mut harness = Harness::new(three_phases());
    let earlier = taken(&mut harness);
    harness.fail("one/a");
    assert_eq!(harness.run.status(), Status::Failed);
    let failed = taken(&mut harness);
    rewind(&mut harness, &earlier);
    assert_eq!(harness.run.end, None);
    for _ in 0..2 {
        resume(&mut harness);
        harness.answer("Continue", None);
    }
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    rewind(&mut harness, &failed);
    assert_eq!((harness.run.status(), harness.run.completed.len()), (Status::Running, 0));
    resume(&mut harness);
    assert_eq!(harness.asked(), Vec::<String>::new());
    assert_eq!(harness.hold().scope.phase(), Some(&PhaseId::from("one")), "what failed in the snapshot is retried");
}

#[test]
fn going_back_twice_restores_the_answers_of_each_snapshot() {
    let mut harness = Harness::new(three_phases());
    let start = taken(&mut harness);
    harness.work();
    harness.answer("Skip", None);
    let skipping = taken(&mut harness);
    rewind(&mut harness, &start);
    resume(&mut harness);
    harness.answer("Continue", None);
    rewind(&mut harness, &skipping);
    assert_eq!(harness.run.decisions.iter().map(|decision| decision.void).collect::<Vec<_>>(), [false, true]);
    assert_eq!(harness.run.skip_list, [PhaseId::from("three")]);
    let first = harness.run.decisions[0].hold.clone();
    let again = CommandKind::Answer { hold: first, revision: Some(1), option: "Skip".into(), feedback: None };
    assert!(matches!(harness.tell(person(), again, false), Err(Refusal::AlreadyAnswered { .. })));
}

#[test]
fn the_definition_of_the_snapshot_counts_again() {
    let mut harness = Harness::new(three_phases());
    let earlier = taken(&mut harness);
    let mut changed = three_phases();
    changed.phases[2].tasks.push(task("e", &[]));
    let (definition, workflow) = (Digest::of(b"changed"), Arc::new(changed));
    harness.tell(person(), CommandKind::AcceptDefinition { definition, workflow, files: Vec::new() }, false).unwrap();
    let events = rewind(&mut harness, &earlier);
    let rewound = events.iter().find_map(|event| if let Event::Rewound(rewound) = event { Some(rewound) } else { None });
    assert_eq!(rewound.unwrap().definition, Some(earlier.0.definition));
    assert_eq!((harness.run.definition, &*harness.run.workflow), (earlier.0.definition, &three_phases()));
}

#[test]
fn only_a_person_may_go_back() {
    let mut harness = Harness::new(three_phases());
    let earlier = taken(&mut harness);
    let agent = Actor { credential: Credential::Agent, ..person() };
    let inside = Actor { inside_task: Some("one/a".into()), ..person() };
    for actor in [agent, inside, Actor::driver()] {
        assert!(harness.tell(actor, rewind_body(&earlier), false).unwrap_err().concerns_caller());
    }
}

#[test]
fn a_snapshot_of_another_run_or_history_is_refused() {
    let mut harness = Harness::new(three_phases());
    let (base, seq) = taken(&mut harness);
    harness.work();
    commit(&mut harness);
    let other = Run { id: RunId::from("run00009"), ..base.clone() };
    assert!(matches!(refused(&mut harness, &(other, seq)), Refusal::SnapshotOfOtherRun { .. }));
    let wrong = [
        (base.clone(), harness.run.next_seq),
        (Run { version: harness.run.version + 1, ..base.clone() }, seq),
        (Run { version: harness.run.version, ..base.clone() }, seq),
        (Run { next_seq: seq + 2, ..base.clone() }, seq),
        (Run { started_at: Timestamp::from_millis(1), ..base.clone() }, seq),
        (Run { kind: crate::run::event::RunKind::Plan, ..base.clone() }, seq),
    ];
    for (index, other) in wrong.iter().enumerate() {
        assert!(matches!(refused(&mut harness, other), Refusal::SnapshotOfOtherHistory { .. }), "{index}");
    }
}

#[test]
fn a_replayed_rewind_needs_the_state_and_then_is_the_same_run() {
    let mut harness = Harness::new(three_phases());
    harness.work();
    let earlier = taken(&mut harness);
    harness.answer("Continue", None);
    commit(&mut harness);
    let mut replayed = read_back(&harness.run);
    let (rewind, (digest, bytes)) = Rewind::new(snapshot(), earlier.1, earlier.0.clone());
    let before = harness.entries.len();
    harness.tell(person(), CommandKind::Rewind(rewind), false).unwrap();
    let (_, sealed, rows) = harness.run.seal(harness.entries[before..].to_vec());
    assert!(rows.referenced_values.contains(&digest), "the store keeps the state");
    assert_eq!(replayed.apply_commit(&sealed), Err(HistoryError::StateNeeded(digest)));
    let mut base = Run::from_bytes(&bytes).unwrap();
    base.attach(earlier.0.workflow.clone()).unwrap();
    replayed.offer_state(digest, base);
    assert_eq!(replayed.apply_commit(&sealed).unwrap(), rows);
    assert_eq!(replayed, harness.run);
}

#[test]
fn a_deadline_that_ends_the_run_in_the_same_commit_does_not_close_the_reopened_hold() {
    let mut definition = three_phases();
    let deadline = Deadline { after: Duration::from_secs(60), then: OnDeadline::Abort };
    definition.phases[0].checkpoint.as_mut().unwrap().waits =
        WaitSettings { deadline: Some(deadline), ..WaitSettings::default() };
    let mut harness = Harness::new(definition);
    harness.work();
    let earlier = taken(&mut harness);
    harness.now += 100_000;
    let events = rewind(&mut harness, &earlier);
    assert!(events.iter().any(|event| matches!(event, Event::Aborted { .. })));
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert!(!rows.holds.is_empty() && rows.holds.iter().all(|row| row.state == HoldState::Open), "{rows:?}");
    assert_eq!(rows.timers.len(), 1);
}

/// Every state between two events, also within a commit, can be continued to the end.
#[test]
fn every_state_of_a_history_can_be_continued() {
    let mut definition = three_phases();
    definition.phases[1].gates = vec![gate("tests")];
    definition.phases[2].tasks.push(Task { on_fail: OnFail::Ask, ..task("e", &[]) });
    let mut harness = Harness::new(definition);
    harness.work();
    let shown = vec![PresentedFile::new("x", Seen::Absent)];
    let hold = harness.hold().id.clone();
    harness.run.holds.get_mut(&hold).unwrap().files = shown;
    harness.answer("Continue", None);
    harness.work();
    harness.answer("Continue", None);
    harness.fail("three/e");
    harness.answer("rerun", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    commit(&mut harness);
    let Event::Created(created) = &harness.entries[0].event else { panic!("it starts with its creation") };
    let mut base = Run::start(created, harness.run.workflow.clone(), harness.entries[0].at);
    for (seq, entry) in (2..).zip(harness.entries[1..].to_vec()) {
        base.apply(&entry).unwrap();
        let mut harness = Harness { run: harness.run.clone(), entries: harness.entries.clone(), now: harness.now };
        rewind(&mut harness, &(read_back(&base), seq));
        harness.take_over();
        for _ in 0..10 {
            harness.work();
            if let Some(hold) = harness.run.open_holds().first() {
                let option = hold.options[0].id.to_string();
                harness.answer(&option, None);
            }
        }
        assert_eq!(harness.run.status(), Status::Complete, "after {:?}", entry.event);
        let started = harness.started();
        for address in ["one/a", "one/b", "two/c", "three/d", "three/e"] {
            assert!(started.iter().any(|known| known == address), "after {:?}: {started:?}", entry.event);
        }
    }
}
