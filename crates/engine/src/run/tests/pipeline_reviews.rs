//! Pipelines: reviews and the gates they add, notes, and gates of an imported file.

use super::pipelines::{file, import_into, imported, pipeline, review, said};
use super::*;
use crate::run::Status;
use crate::run::pipeline::{Fix, Imported, Lifecycle, Notes, Review, Verdict};

fn reviewed() -> Workflow {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    definition
}

fn pipeline_command(harness: &mut Harness, pipeline_command: PipelineCommand) -> Vec<Event> {
    harness.tell(person(), CommandKind::Pipeline(Box::new(pipeline_command)), true).unwrap()
}

fn asking(verdict: Verdict, gates: Vec<Gate>) -> Review {
    Review { gates, ..review(verdict) }
}

#[test]
fn a_later_review_may_name_a_gate_again_and_add_others() {
    let mut harness = Harness::new(reviewed());
    file(&mut harness, asking(Verdict::DoNotShip, vec![gate("rls")])).unwrap();
    let other = Gate { run: "false".into(), ..gate("rls") };
    let refused = file(&mut harness, asking(Verdict::ShipWithGates, vec![other])).unwrap_err();
    assert_eq!(refused, Refusal::GateKnown { gate: GateId::from("rls") }, "a gate name is unique");
    let twice = file(&mut harness, asking(Verdict::ShipWithGates, vec![gate("audit"), gate("audit")])).unwrap_err();
    assert_eq!(twice, Refusal::GateKnown { gate: GateId::from("audit") });
    file(&mut harness, asking(Verdict::ShipWithGates, vec![gate("rls"), gate("audit")])).unwrap();
    let last = harness.run.workflow.phases[1].clone();
    let added: Vec<&str> = harness.run.added_gates(&last).iter().map(|gate| gate.id.as_str()).collect();
    assert_eq!(added, ["rls", "audit"]);
    for name in ["rls", "audit", "tests"] {
        assert_eq!(harness.run.gate_of(&last, name).map(|gate| gate.id.as_str()), Some(name));
    }
    assert!(harness.run.gate_of(&last, "nowhere").is_none());
}

#[test]
fn a_review_may_not_add_a_gate_that_exists_by_id_or_title() {
    let mut definition = reviewed();
    definition.phases[1].gates.push(Gate { title: Some("lint (WS2)".into()), ..gate("gate-7") });
    let mut harness = Harness::new(definition);
    for name in ["gate-7", "lint", "schema", "tests"] {
        let refused = file(&mut harness, asking(Verdict::ShipWithGates, vec![gate(name)])).unwrap_err();
        assert_eq!(refused, Refusal::GateKnown { gate: GateId::from(name) });
    }
}

#[test]
fn a_review_is_refused_once_the_pipeline_has_started() {
    let mut definition = pipeline();
    definition.finalization = Some(Finalization { template: "done".into(), output: "final.md".into() });
    let mut harness = Harness::new(definition.clone());
    assert_eq!(file(&mut harness, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewTooLate);
    let asks_for_review = |definition: &Workflow| {
        let mut now = definition.clone();
        now.pipeline.as_mut().unwrap().review = true;
        CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() }
    };
    harness.tell(person(), asks_for_review(&definition), true).unwrap();
    assert!(!harness.run.waits_for_review(), "its first phase runs");
    harness.work();
    harness.answer("Continue", None);
    while harness.run.pending() != [Effect::Finalize] {
        harness.perform(&harness.run.pending()[0].clone());
    }
    harness.outcome(CommandKind::Finalized { made: Err(no_space()) });
    assert!(!harness.run.waits_for_review(), "all its phases are done");
    assert_eq!(file(&mut harness, review(Verdict::DoNotShip)).unwrap_err(), Refusal::ReviewTooLate);
    harness.take_over();
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_empty_note_is_refused() {
    let mut harness = Harness::new(pipeline());
    assert_eq!(pipeline_command(&mut harness, PipelineCommand::Note(Notes::default())), []);
    let fix = |file: &str| Fix { file: file.into(), change: "x".into() };
    let notes = [
        Notes { eslint_fixes: vec![fix("a.ts")], ..Notes::default() },
        Notes { cleanup_done: vec!["tidied".into()], ..Notes::default() },
        Notes { key_fixes: vec![fix("b.ts")], ..Notes::default() },
    ];
    for note in notes {
        assert_eq!(pipeline_command(&mut harness, PipelineCommand::Note(note)).len(), 1);
    }
    let known = harness.run.pipeline.as_ref().unwrap().notes.clone();
    assert_eq!(
        known,
        Notes { eslint_fixes: vec![fix("a.ts")], cleanup_done: vec!["tidied".into()], key_fixes: vec![fix("b.ts")] }
    );
}

#[test]
fn artifacts_count_once_and_only_for_a_finished_workstream() {
    let mut harness = Harness::new(pipeline());
    let found = |path: &str| {
        let (key, paths) = (key("phase-1", 1, "WS1"), vec![path.to_owned()]);
        PipelineCommand::ArtifactsFound { key, paths, missing: Vec::new() }
    };
    assert_eq!(pipeline_command(&mut harness, found("early.sql")), []);
    harness.perform(&harness.effect_of("phase-1/WS1"));
    assert_eq!(pipeline_command(&mut harness, found("a.sql")).len(), 1);
    assert_eq!(pipeline_command(&mut harness, found("late.sql")), []);
    harness.work();
    assert_eq!(said(&harness).artifacts, [("WS1".to_owned(), vec!["a.sql".to_owned()])]);
}

#[test]
fn an_imported_phase_is_complete_only_if_all_its_gates_had_passed() {
    let resumed = |definition: Workflow, passed: &[&str]| {
        let gates_passed = passed.iter().map(|gate| (*gate).to_owned()).collect();
        let mut harness =
            import_into(definition, Imported { gates_passed, gates_pending: Vec::new(), ..imported(Lifecycle::Paused) });
        harness.take_over();
        harness.work();
        harness
    };
    let passed =
        |harness: &Harness, id: &str| harness.has(|event| matches!(event, Event::GatePassed { gate, .. } if gate.as_str() == id));
    let harness = resumed(pipeline(), &["schema"]);
    assert_eq!((passed(&harness, "schema"), harness.run.status()), (false, Status::Complete));
    let harness = resumed(pipeline(), &[]);
    assert!(passed(&harness, "schema"), "its work is done, and its gate has not passed");
    assert_eq!(harness.run.current.as_ref().unwrap().id.as_str(), "phase-1", "a person must approve");
    let manual_gates = |phase: &str| {
        let mut definition = pipeline();
        definition.pipeline.as_mut().unwrap().manual_gates =
            vec![ManualGate { title: "audit".into(), phase: PhaseId::from(phase), criteria: None, convention: None, task: None }];
        definition
    };
    let harness = resumed(manual_gates("phase-1"), &["schema"]);
    assert_eq!(harness.run.current.as_ref().unwrap().id.as_str(), "phase-1", "a person has not audited it");
    let harness = resumed(manual_gates("phase-1"), &["schema", "audit"]);
    assert_eq!(harness.run.status(), Status::Complete);
    let harness = resumed(manual_gates("phase-2"), &["schema"]);
    assert!(harness.run.completed.contains(&PhaseId::from("phase-1")), "the audit is for another phase");
}

#[test]
fn an_imported_gate_of_a_phase_without_workstreams_passed_only_if_nothing_was_pending() {
    let ids = |names: &[&str]| names.iter().map(|name| TaskId::from(*name)).collect::<Vec<_>>();
    let passed = |in_progress: &[&str], pending: &[&str]| {
        let (in_progress, pending) = (ids(in_progress), ids(pending));
        let harness = import_into(pipeline(), Imported { in_progress, pending, ..imported(Lifecycle::Paused) });
        harness.run.pipeline.as_ref().unwrap().had_passed("schema", None, &[])
    };
    assert!(passed(&[], &[]));
    assert!(!passed(&["WS2"], &[]));
    assert!(!passed(&[], &["WS2"]));
}

#[test]
fn a_fork_of_an_imported_pipeline_starts_unpaused_and_ignores_parent_artifacts() {
    let mut parent = import_into(pipeline(), imported(Lifecycle::Paused)).run;
    parent.pipeline.as_mut().unwrap().artifacts_unchecked.insert(key("phase-1", 1, "WS1"));
    assert!(parent.waits_for_resume());
    let at = Timestamp::from_millis(5000);
    let forked = parent.pipeline.clone().unwrap().continued(at);
    assert!(forked.artifacts_unchecked.is_empty() && forked.moved && !forked.resting);
    assert_eq!((forked.changed_at, &forked.artifacts), (at, &parent.pipeline.as_ref().unwrap().artifacts));
}
