//! Who may start a run, outcomes that come too late, and what continues after a failure.

use super::*;
use crate::run::Status;
use crate::run::event::RefusedAttempt;

fn creating(presets: Vec<PresetAnswer>, actor: Actor) -> Result<(), Refusal> {
    let run = RunId::from("run00000");
    let created = Created::new(run, Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"));
    let create_it = Create { created, presets };
    create(&envelope(actor, 0, true), &create_it, Arc::new(workflow(vec![phase("one", vec![task("a", &[])])]))).map(|_| ())
}

#[test]
fn an_agent_may_start_a_run_but_not_preset_its_answers() {
    let agent = || Actor { credential: Credential::Agent, ..person() };
    let preset = || vec![PresetAnswer { selector: "one".into(), option: "go".into(), feedback: None }];
    assert_eq!(creating(Vec::new(), agent()), Ok(()));
    assert_eq!(creating(preset(), person()), Ok(()));
    assert!(matches!(creating(preset(), agent()), Err(Refusal::PersonRequired { .. })));
}

#[test]
fn the_condition_of_a_checkpoint_counts_only_for_the_execution_it_was_evaluated_for() {
    let conditional = Checkpoint { condition: condition(), ..checkpoint(vec![choice("Go", Action::Continue)]).unwrap() };
    let one = Phase { checkpoint: Some(conditional), ..phase("one", vec![task("a", &[])]) };
    let mut harness = Harness::new(workflow(vec![one]));
    harness.perform(&harness.effect_of("one/a"));
    let evaluated = |phase: &str, iteration| {
        let phase = PhaseId::from(phase);
        CommandKind::ConditionEvaluated { phase, iteration, outcome: ConditionOutcome::False }
    };
    for (phase, iteration) in [("two", 1), ("one", 2)] {
        assert_eq!(harness.outcome(evaluated(phase, iteration)), [], "{phase} {iteration}");
    }
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!(harness.outcome(evaluated("one", 1)), [], "the run has ended");
}

fn gated(change: impl FnOnce(&mut Phase)) -> Harness {
    let mut one = phase("one", vec![task("a", &[]), task("b", &[])]);
    one.gates = vec![Gate { task: Some(TaskId::from("a")), ..gate("lint") }];
    change(&mut one);
    Harness::new(workflow(vec![one]))
}

fn gate_ended(phase: &str, iteration: u32, attempt: u32, failure: Option<Failure>) -> CommandKind {
    CommandKind::GateEnded { phase: PhaseId::from(phase), iteration, gate: GateId::from("lint"), attempt, failure }
}

#[test]
fn a_late_gate_outcome_does_not_count_for_the_running_attempt() {
    let mut harness = gated(|_| {});
    assert_eq!(harness.outcome(gate_ended("one", 1, 0, None)), [], "it has not started");
    harness.perform(&harness.effect_of("one/a"));
    for (phase, iteration, attempt) in [("two", 1, 1), ("one", 2, 1), ("one", 1, 2)] {
        assert_eq!(harness.outcome(gate_ended(phase, iteration, attempt, None)), [], "{phase} {iteration} {attempt}");
    }
    assert!(!harness.outcome(gate_ended("one", 1, 1, None)).is_empty());
    assert_eq!(harness.outcome(gate_ended("one", 1, 1, Some(broken()))), [], "it has passed");
}

#[test]
fn fail_fast_ignores_a_failure_that_a_person_decides_about() {
    let runs = |harness: &Harness| harness.run.pending().iter().any(|effect| matches!(effect, Effect::Task { .. }));
    let mut harness = gated(|one| {
        one.fail_fast = true;
        one.tasks[0].on_fail = OnFail::Ask;
    });
    harness.fail("one/a");
    assert!(runs(&harness), "b continues");
    let mut harness = gated(|one| {
        one.fail_fast = true;
        one.tasks[0].continue_on_error = true;
    });
    harness.fail("one/a");
    assert!(runs(&harness), "b continues");
    let mut harness = gated(|one| {
        one.fail_fast = true;
        one.gates[0].on_fail = OnFail::Ask;
    });
    harness.perform(&harness.effect_of("one/a"));
    harness.outcome(gate_ended("one", 1, 1, Some(broken())));
    assert!(runs(&harness), "b continues");
}

#[test]
fn a_join_any_task_starts_after_the_first_need_and_is_skipped_when_all_fail() {
    let tolerated = |id: &str| Task { continue_on_error: true, ..task(id, &[]) };
    let any = |join| {
        Harness::new(workflow(vec![phase("one", vec![tolerated("a"), tolerated("b"), Task { join, ..task("c", &["a", "b"]) }])]))
    };
    let mut harness = any(Join::Any);
    harness.fail("one/a");
    assert!(!harness.started().contains(&"one/c".to_owned()), "a failed, and b is not done yet");
    harness.perform(&harness.effect_of("one/b"));
    assert_eq!(harness.started().last().unwrap(), "one/c");
    let mut harness = any(Join::Any);
    harness.perform(&harness.effect_of("one/b"));
    assert_eq!(harness.started().last().unwrap(), "one/c", "it does not wait for a");
    for (join, starts) in [(Join::Any, false), (Join::All, false), (Join::Done, true)] {
        let mut harness = any(join);
        harness.fail("one/a");
        harness.fail("one/b");
        harness.work();
        assert_eq!(harness.started().contains(&"one/c".to_owned()), starts, "{join:?}");
        assert_eq!(harness.run.status(), Status::Complete);
    }
    let free = Task { join: Join::Any, ..task("free", &[]) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![free])]));
    harness.work();
    assert_eq!(harness.started(), ["one/free"], "it needs nothing");
}

#[test]
fn a_fan_out_reports_how_many_items_failed() {
    let over = ItemSource::List(Vec::new());
    let for_each = Some(ForEach { over, max_parallel: None });
    let each = Task { for_each, continue_on_error: true, ..task("each", &[]) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![each, task("other", &[])])]));
    let Effect::Task { key, attempt } = harness.effect_of("one/each") else { unreachable!() };
    let item = |key: &str| crate::run::command::Item { key: key.into(), value: StoredValue::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y"), item("z")]);
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
    harness.fail("one/each[x]");
    harness.perform(&harness.effect_of("one/each[y]"));
    harness.fail("one/each[z]");
    let is_meant =
        |event: &Event| matches!(event, Event::TaskFailed { failure, .. } if failure.message == "2 of its 3 tasks failed");
    assert!(harness.has(is_meant));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let not_done: Vec<&str> = harness.run.not_done[&PhaseId::from("one")].iter().map(|ended| ended.task.as_str()).collect();
    assert_eq!(not_done, ["each"], "its items are part of it");
}

#[test]
fn many_refused_attempts_are_reported_with_their_count() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let mut refuse = |number| {
        let refused = RefusedAttempt { number, ..RefusedAttempt::new("answer", None, "no".into()) };
        let events = harness.tell(person(), CommandKind::RecordRefusal(refused), false).unwrap();
        let Some(Event::AttemptRefused(refused)) = events.first() else { panic!("it is recorded") };
        (refused.number, harness.run.warnings.iter().filter(|warning| warning.starts_with("at least")).count())
    };
    assert_eq!(refuse(1), (1, 0));
    assert_eq!(refuse(1), (2, 0), "the run knows of one before");
    assert_eq!(refuse(100), (100, 0));
    assert_eq!(refuse(128), (128, 1));
}

#[test]
fn a_definition_that_moves_finished_work_after_running_work_is_refused() {
    let of = |ids: &[&str]| workflow(ids.iter().map(|id| phase(id, vec![task("a", &[])])).collect());
    let mut harness = Harness::new(of(&["one", "two"]));
    harness.perform(&harness.effect_of("one/a"));
    let accept = |now: Workflow| CommandKind::AcceptDefinition {
        definition: Digest::of(b"changed"),
        workflow: Arc::new(now),
        files: Vec::new(),
    };
    let refused = harness.tell(person(), accept(of(&["two", "one"])), false);
    assert!(matches!(refused, Err(Refusal::PhaseMoved { phase }) if phase.as_str() == "one"));
    harness.tell(person(), accept(of(&["zero", "one", "two"])), false).unwrap();
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}
