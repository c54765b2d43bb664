//! Who may start a run, what comes too late, and who goes on when something fails.

use super::*;
use crate::run::Status;
use crate::run::event::RefusedAttempt;

fn creating(presets: Vec<Preset>, actor: Actor) -> Result<(), Refusal> {
    let run = RunId::from("run00000");
    let created = Created::new(run, Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"));
    let create_it = Create { created, presets };
    create(&envelope(actor, 0, true), &create_it, Arc::new(workflow(vec![phase("one", vec![task("a", &[])])]))).map(|_| ())
}

#[test]
fn an_agent_may_start_a_run_but_not_answer_its_questions_in_advance() {
    let agent = || Actor { credential: Credential::Agent, ..person() };
    let preset = || vec![Preset { selector: "one".into(), option: "go".into(), feedback: None }];
    assert_eq!(creating(Vec::new(), agent()), Ok(()));
    assert_eq!(creating(preset(), person()), Ok(()));
    assert!(matches!(creating(preset(), agent()), Err(Refusal::NotAPerson { .. })));
}

#[test]
fn the_condition_of_a_checkpoint_counts_only_for_the_execution_it_was_evaluated_for() {
    let conditional = Checkpoint { condition: condition(), ..checkpoint(vec![choice("Go", Action::Continue)]).unwrap() };
    let one = Phase { checkpoint: Some(conditional), ..phase("one", vec![task("a", &[])]) };
    let mut bench = Bench::new(workflow(vec![one]));
    bench.perform(&bench.effect_of("one/a"));
    let evaluated = |phase: &str, iteration| {
        let phase = PhaseId::from(phase);
        CommandKind::ConditionEvaluated { phase, iteration, outcome: ConditionOutcome::False }
    };
    for (phase, iteration) in [("two", 1), ("one", 2)] {
        assert_eq!(bench.outcome(evaluated(phase, iteration)), [], "{phase} {iteration}");
    }
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!(bench.outcome(evaluated("one", 1)), [], "the run has ended");
}

fn gated(change: impl FnOnce(&mut Phase)) -> Bench {
    let mut one = phase("one", vec![task("a", &[]), task("b", &[])]);
    one.gates = vec![Gate { task: Some(TaskId::from("a")), ..gate("lint") }];
    change(&mut one);
    Bench::new(workflow(vec![one]))
}

fn gate_ended(phase: &str, iteration: u32, attempt: u32, failure: Option<Failure>) -> CommandKind {
    CommandKind::GateEnded { phase: PhaseId::from(phase), iteration, gate: GateId::from("lint"), attempt, failure }
}

#[test]
fn the_outcome_of_a_gate_counts_only_for_the_attempt_that_runs() {
    let mut bench = gated(|_| {});
    assert_eq!(bench.outcome(gate_ended("one", 1, 0, None)), [], "it has not started");
    bench.perform(&bench.effect_of("one/a"));
    for (phase, iteration, attempt) in [("two", 1, 1), ("one", 2, 1), ("one", 1, 2)] {
        assert_eq!(bench.outcome(gate_ended(phase, iteration, attempt, None)), [], "{phase} {iteration} {attempt}");
    }
    assert!(!bench.outcome(gate_ended("one", 1, 1, None)).is_empty());
    assert_eq!(bench.outcome(gate_ended("one", 1, 1, Some(broken()))), [], "it has passed");
}

#[test]
fn with_fail_fast_a_failure_that_a_person_decides_about_lets_the_others_work() {
    let runs = |bench: &Bench| bench.run.pending().iter().any(|effect| matches!(effect, Effect::Task { .. }));
    let mut bench = gated(|one| {
        one.fail_fast = true;
        one.tasks[0].on_fail = OnFail::Ask;
    });
    bench.fail("one/a");
    assert!(runs(&bench), "b works on");
    let mut bench = gated(|one| {
        one.fail_fast = true;
        one.tasks[0].continue_on_error = true;
    });
    bench.fail("one/a");
    assert!(runs(&bench), "b works on");
    let mut bench = gated(|one| {
        one.fail_fast = true;
        one.gates[0].on_fail = OnFail::Ask;
    });
    bench.perform(&bench.effect_of("one/a"));
    bench.outcome(gate_ended("one", 1, 1, Some(broken())));
    assert!(runs(&bench), "b works on");
}

#[test]
fn a_task_that_one_need_is_enough_for_starts_with_the_first_and_is_left_out_when_all_fail() {
    let tolerated = |id: &str| Task { continue_on_error: true, ..task(id, &[]) };
    let any = |join| {
        Bench::new(workflow(vec![phase("one", vec![tolerated("a"), tolerated("b"), Task { join, ..task("c", &["a", "b"]) }])]))
    };
    let mut bench = any(Join::Any);
    bench.fail("one/a");
    assert!(!bench.started().contains(&"one/c".to_owned()), "a failed, and b is not done yet");
    bench.perform(&bench.effect_of("one/b"));
    assert_eq!(bench.started().last().unwrap(), "one/c");
    let mut bench = any(Join::Any);
    bench.perform(&bench.effect_of("one/b"));
    assert_eq!(bench.started().last().unwrap(), "one/c", "it does not wait for a");
    for (join, starts) in [(Join::Any, false), (Join::All, false), (Join::Done, true)] {
        let mut bench = any(join);
        bench.fail("one/a");
        bench.fail("one/b");
        bench.work();
        assert_eq!(bench.started().contains(&"one/c".to_owned()), starts, "{join:?}");
        assert_eq!(bench.run.status(), Status::Complete);
    }
    let free = Task { join: Join::Any, ..task("free", &[]) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![free])]));
    bench.work();
    assert_eq!(bench.started(), ["one/free"], "it needs nothing");
}

#[test]
fn a_list_says_how_many_of_its_items_failed() {
    let over = Over::List(Vec::new());
    let for_each = Some(ForEach { over, max_parallel: None });
    let each = Task { for_each, continue_on_error: true, ..task("each", &[]) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![each, task("other", &[])])]));
    let Effect::Task { key, attempt } = bench.effect_of("one/each") else { unreachable!() };
    let item = |key: &str| crate::run::command::Item { key: key.into(), value: Datum::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item("x"), item("y"), item("z")]);
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
    bench.fail("one/each[x]");
    bench.perform(&bench.effect_of("one/each[y]"));
    bench.fail("one/each[z]");
    let is_meant =
        |event: &Event| matches!(event, Event::TaskFailed { failure, .. } if failure.message == "2 of its 3 tasks failed");
    assert!(bench.has(is_meant));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let not_done: Vec<&str> = bench.run.not_done[&PhaseId::from("one")].iter().map(|ended| ended.task.as_str()).collect();
    assert_eq!(not_done, ["each"], "its items are part of it");
}

#[test]
fn many_refused_attempts_are_told_with_their_number() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let mut refuse = |number| {
        let refused = RefusedAttempt { number, ..RefusedAttempt::new("answer", None, "no".into()) };
        let events = bench.tell(person(), CommandKind::RecordRefusal(refused), false).unwrap();
        let Some(Event::AttemptRefused(refused)) = events.first() else { panic!("it is recorded") };
        (refused.number, bench.run.warnings.iter().filter(|warning| warning.starts_with("at least")).count())
    };
    assert_eq!(refuse(1), (1, 0));
    assert_eq!(refuse(1), (2, 0), "the run knows of one before");
    assert_eq!(refuse(100), (100, 0));
    assert_eq!(refuse(128), (128, 1));
}

#[test]
fn what_was_changed_is_refused_when_it_moves_what_is_done_behind_what_runs() {
    let of = |ids: &[&str]| workflow(ids.iter().map(|id| phase(id, vec![task("a", &[])])).collect());
    let mut bench = Bench::new(of(&["one", "two"]));
    bench.perform(&bench.effect_of("one/a"));
    let accept = |now: Workflow| CommandKind::AcceptDefinition {
        definition: Digest::of(b"changed"),
        workflow: Arc::new(now),
        files: Vec::new(),
    };
    let refused = bench.tell(person(), accept(of(&["two", "one"])), false);
    assert!(matches!(refused, Err(Refusal::PhaseMoved { phase }) if phase.as_str() == "one"));
    bench.tell(person(), accept(of(&["zero", "one", "two"])), false).unwrap();
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}
