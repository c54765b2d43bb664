//! The loop over phases: order, skip list, repetition, gates, conditions, context.

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
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    assert_eq!(harness.started(), ["one/a"]);
    harness.perform(&harness.run.pending()[0].clone());
    assert_eq!(harness.started(), ["one/a", "one/b", "one/c"]);
    harness.perform(&harness.run.pending()[0].clone());
    assert_eq!(harness.started().len(), 3, "d needs c too");
    harness.work();
    assert_eq!(harness.started().last().unwrap(), "one/d");
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn max_parallel_limits_concurrent_tasks() {
    let mut definition = workflow(vec![phase("one", (0..5).map(|n| task(&format!("t{n}"), &[])).collect())]);
    definition.max_parallel = Some(2);
    let mut harness = Harness::new(definition);
    while harness.run.status() == Status::Running {
        assert!(harness.run.pending().len() <= 2);
        harness.perform(&harness.run.pending()[0].clone());
    }
    assert_eq!(harness.started().len(), 5);
}

#[test]
fn a_skipped_phase_does_not_run_and_repeating_it_removes_it_from_the_skip_list() {
    let mut harness = Harness::new(two_phases());
    harness.work();
    harness.answer("Skip", Some("not needed"));
    harness.work();
    assert_eq!(harness.started(), ["plan/draft", "ship/send"]);
    let context = harness.run.full_context(&|_| None);
    assert_eq!(context["skip_phases"], serde_json::json!(["build"]));
    assert_eq!(context["checkpoints"][0]["skipped"], serde_json::json!(["build"]));
    harness.answer("Build after all", None);
    harness.work();
    assert_eq!(harness.started()[2..], ["build/make", "ship/send"]);
    assert!(harness.run.skip_list.is_empty());
}

#[test]
fn a_repeat_increments_the_iteration_and_carries_feedback() {
    let mut harness = Harness::new(two_phases());
    harness.work();
    harness.answer("Redo", Some("shorter"));
    let phase = harness.run.current.as_ref().unwrap();
    assert_eq!((phase.iteration, phase.feedback.as_deref()), (2, Some("shorter")));
    let view = harness.run.phase_view(&harness.run.workflow.phases[0]);
    assert_eq!(view["feedback"], "shorter");
    let context = harness.run.full_context(&|_| None);
    assert_eq!(context["phases"]["iteration_counts"]["plan"], 2);
    let record = &context["checkpoints"][0];
    assert_eq!((&record["decision"], &record["target"]), (&"repeat_phase".into(), &"plan".into()));
    assert_eq!(record["by"]["name"], "ada");
    assert!(record.get("skipped").is_none(), "absent keys are left out");
}

#[test]
fn abort_ends_the_run_and_starts_nothing() {
    let mut harness = Harness::new(two_phases());
    harness.work();
    harness.answer("Abort", None);
    assert_eq!(harness.run.status(), Status::Aborted);
    assert!(harness.run.pending().is_empty());
    assert_eq!(harness.started(), ["plan/draft"]);
}

#[test]
fn a_checkpoint_with_a_false_condition_is_skipped() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut harness = Harness::new(definition);
    harness.perform(&harness.run.pending()[0].clone());
    let outcome = ConditionOutcome::False;
    harness.outcome(CommandKind::ConditionEvaluated { phase: PhaseId::from("plan"), iteration: 1, outcome });
    assert!(harness.run.holds.is_empty());
    assert_eq!(harness.started().last().unwrap(), "build/make");
}

#[test]
fn a_late_presentation_does_not_open_a_checkpoint_with_a_false_condition() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut harness = Harness::new(definition);
    harness.perform(&harness.run.pending()[0].clone());
    let (phase, outcome) = (PhaseId::from("plan"), ConditionOutcome::False);
    let evaluated = CommandKind::ConditionEvaluated { phase: phase.clone(), iteration: 1, outcome };
    harness.tell(Actor::driver(), evaluated, false).unwrap();
    assert_eq!(harness.run.pending(), []);
    let shown = CommandKind::Shown { phase, iteration: 1, shown: Box::default() };
    assert_eq!(harness.tell(Actor::driver(), shown, false), Ok(Vec::new()));
    harness.outcome(CommandKind::Advance);
    assert!(harness.run.holds.is_empty());
    assert_eq!(harness.started().last().unwrap(), "build/make");
}

#[test]
fn a_condition_that_errors_shows_the_checkpoint_with_the_error() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut harness = Harness::new(definition.clone());
    harness.perform(&harness.run.pending()[0].clone());
    let body = || CommandKind::ConditionEvaluated {
        phase: PhaseId::from("plan"),
        iteration: 1,
        outcome: ConditionOutcome::Error("x is not defined".into()),
    };
    harness.outcome(body());
    harness.work();
    assert!(harness.hold().notes[0].contains("x is not defined"));
    assert!(harness.run.warnings[0].contains("x is not defined"));

    definition.phases[0].checkpoint.as_mut().unwrap().on_condition_error = OnConditionError::Skip;
    let mut harness = Harness::new(definition);
    harness.perform(&harness.run.pending()[0].clone());
    harness.outcome(body());
    assert!(harness.run.holds.is_empty(), "the checkpoint is skipped");
    assert!(harness.run.warnings[0].contains("x is not defined"), "and says so");
}

#[test]
fn gates_run_in_order_after_the_tasks_and_before_the_checkpoint() {
    let mut definition = two_phases();
    definition.phases[0].gates = vec![gate("lint"), gate("test")];
    let mut harness = Harness::new(definition);
    harness.work();
    let gates: Vec<String> = harness
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
fn a_decision_record_has_the_key_order_of_the_reference_format() {
    let mut definition = two_phases();
    definition.phases[0].checkpoint.as_mut().unwrap().condition = condition();
    let mut harness = Harness::new(definition);
    harness.work();
    harness.answer("Continue", Some(""));
    let place = |test: &dyn Fn(&Event) -> bool| harness.entries.iter().position(|entry| test(&entry.event)).unwrap();
    let evaluated = place(&|event| matches!(event, Event::ConditionEvaluated { .. }));
    let opened = place(&|event| matches!(event, Event::HoldOpened(_)));
    let answered = place(&|event| matches!(event, Event::Answered { .. }));
    let completed = place(&|event| matches!(event, Event::PhaseCompleted { .. }));
    assert!(evaluated < opened && opened < answered && answered < completed);
    let context = harness.run.full_context(&|_| None);
    assert_eq!(context["checkpoints"][0]["feedback"], "", "feedback may be empty");
}

#[test]
fn the_context_has_the_parts_of_the_reference_format() {
    let harness = Harness::new(two_phases());
    let context = harness.run.full_context(&|_| None);
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
