//! The loop of phases: order, skip list, repeat, gates, conditions, context.

use super::*;
use crate::run::Status;

fn two_phases() -> Workflow {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![
        choice("Continue", Action::Continue),
        choice("Redo", Action::RepeatPhase(PhaseId::from("plan"))),
        choice("Skip", Action::SkipPhases(vec![PhaseId::from("build")])),
        choice("Abort", Action::Abort),
    ]);
    let mut last = phase("ship", vec![task("send", &[])]);
    last.checkpoint = checkpoint(vec![
        choice("Continue", Action::Continue),
        choice("Build after all", Action::RepeatPhase(PhaseId::from("build"))),
    ]);
    workflow(vec![first, phase("build", vec![task("make", &[])]), last])
}

#[test]
fn tasks_start_when_their_needs_are_done_and_not_before() {
    let tasks = vec![task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["b", "c"])];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    assert_eq!(bench.started(), ["one/a"]);
    bench.perform(&bench.run.pending()[0].clone());
    assert_eq!(bench.started(), ["one/a", "one/b", "one/c"]);
    bench.perform(&bench.run.pending()[0].clone());
    assert_eq!(bench.started().len(), 3, "d needs c too");
    bench.work();
    assert_eq!(bench.started().last().unwrap(), "one/d");
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn no_more_tasks_run_at_once_than_max_parallel_allows() {
    let mut definition = workflow(vec![phase("one", (0..5).map(|n| task(&format!("t{n}"), &[])).collect())]);
    definition.max_parallel = Some(2);
    let mut bench = Bench::new(definition);
    while bench.run.status() == Status::Running {
        assert!(bench.run.pending().len() <= 2);
        bench.perform(&bench.run.pending()[0].clone());
    }
    assert_eq!(bench.started().len(), 5);
}

#[test]
fn a_skipped_phase_is_passed_over_and_repeating_it_takes_it_off_the_list() {
    let mut bench = Bench::new(two_phases());
    bench.work();
    bench.answer("Skip", Some("not needed"));
    bench.work();
    assert_eq!(bench.started(), ["plan/draft", "ship/send"]);
    let context = bench.run.full_context(&|_| None);
    assert_eq!(context["skip_phases"], serde_json::json!(["build"]));
    assert_eq!(context["checkpoints"][0]["skipped"], serde_json::json!(["build"]));
    bench.answer("Build after all", None);
    bench.work();
    assert_eq!(bench.started()[2..], ["build/make", "ship/send"]);
    assert!(bench.run.skip_list.is_empty());
}

#[test]
fn a_repeat_counts_up_and_brings_its_feedback() {
    let mut bench = Bench::new(two_phases());
    bench.work();
    bench.answer("Redo", Some("shorter"));
    let phase = bench.run.current.as_ref().unwrap();
    assert_eq!((phase.iteration, phase.feedback.as_deref()), (2, Some("shorter")));
    let view = bench.run.phase_view(&bench.run.workflow.phases[0]);
    assert_eq!(view["feedback"], "shorter");
    let context = bench.run.full_context(&|_| None);
    assert_eq!(context["phases"]["iteration_counts"]["plan"], 2);
    let record = &context["checkpoints"][0];
    assert_eq!((&record["decision"], &record["target"]), (&"repeat_phase".into(), &"plan".into()));
    assert_eq!(record["by"]["name"], "ada");
    assert!(record.get("skipped").is_none(), "absent things are absent");
}

#[test]
fn abort_ends_the_run_and_nothing_follows() {
    let mut bench = Bench::new(two_phases());
    bench.work();
    bench.answer("Abort", None);
    assert_eq!(bench.run.status(), Status::Aborted);
    assert!(bench.run.pending().is_empty());
    assert_eq!(bench.started(), ["plan/draft"]);
}

#[test]
fn a_checkpoint_whose_condition_is_false_is_passed_over() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut bench = Bench::new(definition);
    bench.perform(&bench.run.pending()[0].clone());
    let outcome = ConditionOutcome::False;
    bench.outcome(CommandKind::ConditionEvaluated { phase: PhaseId::from("plan"), iteration: 1, outcome });
    assert!(bench.run.holds.is_empty());
    assert_eq!(bench.started().last().unwrap(), "build/make");
}

#[test]
fn a_checkpoint_that_is_to_be_passed_over_is_not_shown_before_it_is() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut bench = Bench::new(definition);
    bench.perform(&bench.run.pending()[0].clone());
    let (phase, outcome) = (PhaseId::from("plan"), ConditionOutcome::False);
    let evaluated = CommandKind::ConditionEvaluated { phase: phase.clone(), iteration: 1, outcome };
    bench.tell(Actor::driver(), evaluated, false).unwrap();
    assert_eq!(bench.run.pending(), []);
    let shown = CommandKind::Shown { phase, iteration: 1, shown: Box::default() };
    assert_eq!(bench.tell(Actor::driver(), shown, false), Ok(Vec::new()));
    bench.outcome(CommandKind::Look);
    assert!(bench.run.holds.is_empty());
    assert_eq!(bench.started().last().unwrap(), "build/make");
}

#[test]
fn a_condition_that_errors_shows_the_checkpoint_with_the_error() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut bench = Bench::new(definition.clone());
    bench.perform(&bench.run.pending()[0].clone());
    let body = || CommandKind::ConditionEvaluated {
        phase: PhaseId::from("plan"),
        iteration: 1,
        outcome: ConditionOutcome::Error("x is not defined".into()),
    };
    bench.outcome(body());
    bench.work();
    assert!(bench.hold().notes[0].contains("x is not defined"));
    assert!(bench.run.warnings[0].contains("x is not defined"));

    definition.phases[0].checkpoint.as_mut().unwrap().on_condition_error = OnConditionError::Skip;
    let mut bench = Bench::new(definition);
    bench.perform(&bench.run.pending()[0].clone());
    bench.outcome(body());
    assert!(bench.run.holds.is_empty(), "skip passes the checkpoint over");
    assert!(bench.run.warnings[0].contains("x is not defined"), "and says so");
}

#[test]
fn gates_run_in_order_after_the_tasks_and_before_the_checkpoint() {
    let mut definition = two_phases();
    definition.phases[0].gates = vec![gate("lint"), gate("test")];
    let mut bench = Bench::new(definition);
    bench.work();
    let gates: Vec<String> = bench
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::GateStarted { gate, .. } => Some(gate.to_string()),
            Event::HoldOpened(_) => Some("hold".into()),
            Event::TaskFinished { .. } => Some("task".into()),
            _ => None,
        })
        .collect();
    assert_eq!(gates, ["task", "lint", "test", "hold"]);
}

#[test]
fn the_record_of_a_decision_comes_in_the_order_of_the_source() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut bench = Bench::new(definition);
    bench.work();
    bench.answer("Continue", Some(""));
    let place = |test: &dyn Fn(&Event) -> bool| bench.entries.iter().position(|entry| test(&entry.event)).unwrap();
    let evaluated = place(&|event| matches!(event, Event::ConditionEvaluated { .. }));
    let opened = place(&|event| matches!(event, Event::HoldOpened(_)));
    let answered = place(&|event| matches!(event, Event::Answered { .. }));
    let completed = place(&|event| matches!(event, Event::PhaseCompleted { .. }));
    assert!(evaluated < opened && opened < answered && answered < completed);
    let context = bench.run.full_context(&|_| None);
    assert_eq!(context["checkpoints"][0]["feedback"], "", "feedback may be empty");
}

#[test]
fn the_context_has_the_parts_that_the_source_names() {
    let bench = Bench::new(two_phases());
    let context = bench.run.full_context(&|_| None);
    assert_eq!(context["workflow"]["execution_mode"], "strict");
    assert_eq!(context["feature"], serde_json::json!({"name": "login", "flags": ["backend"]}));
    assert_eq!(context["phases"]["current"], "plan");
    assert_eq!(context["subagents_spawned"], 1);
    for list in ["deliverables", "checkpoints", "skip_phases", "gap_checks"] {
        assert_eq!(context[list], serde_json::json!([]), "{list}");
    }
    for map in ["outputs", "vars"] {
        assert_eq!(context[map], serde_json::json!({}), "{map}");
    }
}
