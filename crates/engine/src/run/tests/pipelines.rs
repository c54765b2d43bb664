//! Pipelines: progress, reviews, and work done before the import.

use super::*;
use crate::run::event::FrozenFile;
use crate::run::pipeline::{
    Fix, Imported, Lifecycle, Notes, PipelineEvent, PipelineFailure, PipelineProgress, PipelineRun, Review, Verdict,
};
use crate::run::{Status, pipeline::FileError};

/// Two phases: WS1 with a gate of its own; WS2 and WS3 in parallel, and a gate of the phase.
pub(super) fn pipeline() -> Workflow {
    let own = Gate { task: Some(TaskId::from("WS1")), title: Some("schema (WS1)".into()), ..gate("schema") };
    let one = Phase {
        gates: vec![own],
        checkpoint: checkpoint(vec![choice("Continue", Action::Continue), choice("Abort", Action::Abort)]),
        ..phase("phase-1", vec![task("WS1", &[])])
    };
    let two = Phase { gates: vec![gate("tests")], ..phase("phase-2", vec![task("WS2", &[]), task("WS3", &[])]) };
    let said = |name: &str, workstreams: &[&str], gates: &[&str]| PipelinePhase {
        name: name.into(),
        workstreams: workstreams.iter().map(|id| TaskId::from(*id)).collect(),
        gates: gates.iter().map(|id| GateId::from(*id)).collect(),
    };
    let workstream = |id: &str| Workstream {
        id: TaskId::from(id),
        name: format!("{id} layer"),
        executor: None,
        outputs: vec![Output { said: "a.sql".into(), path: Some("a.sql".into()) }],
        gates: Vec::new(),
    };
    Workflow {
        pipeline: Some(Box::new(Pipeline {
            prd: "PRD-009".into(),
            title: "Cashier Workflows".into(),
            phases: vec![said("Database", &["WS1"], &["schema"]), said("Services", &["WS2", "WS3"], &["tests"])],
            workstreams: ["WS1", "WS2", "WS3"].map(workstream).into(),
            ..Pipeline::default()
        })),
        ..workflow(vec![one, two])
    }
}

pub(super) fn said(harness: &Harness) -> PipelineProgress {
    harness.run.pipeline_progress().expect("it is a pipeline")
}

fn known(harness: &Harness) -> &PipelineRun {
    harness.run.pipeline.as_deref().expect("it is a pipeline")
}

/// Status, current phase and the three lists.
fn lists(harness: &Harness) -> (&'static str, u32, String, String, String) {
    let said = said(harness);
    (said.status.as_str(), said.current_phase, said.completed.join(" "), said.in_progress.join(" "), said.pending.join(" "))
}

fn expected(
    status: &'static str,
    phase: u32,
    completed: &str,
    in_progress: &str,
    pending: &str,
) -> (&'static str, u32, String, String, String) {
    (status, phase, completed.into(), in_progress.into(), pending.into())
}

fn next(harness: &mut Harness) -> Vec<Event> {
    let effect = harness.run.pending().into_iter().next().expect("something is running");
    harness.perform(&effect)
}

fn looks(harness: &mut Harness) {
    while let Some(effect) = harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Artifacts { .. })) {
        harness.perform(&effect);
    }
}

pub(super) fn review(verdict: Verdict) -> Review {
    let gates = if verdict == Verdict::ShipWithGates { vec![gate("rls")] } else { Vec::new() };
    Review { verdict, p0: 1, p1: 2, attempt: 0, findings: None, override_reason: Some("we must".into()), gates }
}

pub(super) fn file(harness: &mut Harness, review: Review) -> Result<Vec<Event>, Refusal> {
    harness.tell(person(), CommandKind::Pipeline(Box::new(PipelineCommand::Review(review))), true)
}

#[test]
fn pipeline_progress_reflects_every_run_status() {
    let mut harness = Harness::new(pipeline());
    assert_eq!(lists(&harness), expected("in_progress", 1, "", "WS1", "WS2 WS3"));
    next(&mut harness);
    looks(&mut harness);
    assert_eq!(lists(&harness), expected("in_progress", 1, "", "WS1", "WS2 WS3"), "its gate runs");
    assert_eq!(said(&harness).gates_pending, ["schema (WS1)", "tests"]);
    harness.work();
    assert_eq!(lists(&harness), expected("paused", 1, "WS1", "", "WS2 WS3"), "a person must approve");
    assert_eq!(said(&harness).gates_passed, ["schema (WS1)"]);
    harness.answer("Continue", None);
    assert_eq!(lists(&harness), expected("in_progress", 2, "WS1", "WS2 WS3", ""));
    next(&mut harness);
    looks(&mut harness);
    assert_eq!(lists(&harness), expected("in_progress", 2, "WS1", "WS2 WS3", ""), "the gate of the phase has not ended");
    harness.work();
    assert_eq!(lists(&harness), expected("complete", 2, "WS1 WS2 WS3", "", ""));
    assert_eq!(
        (said(&harness).gates_passed, said(&harness).gates_pending),
        (vec!["schema (WS1)".into(), "tests".into()], vec![])
    );
}

#[test]
fn artifacts_come_from_completed_workstreams() {
    let mut harness = Harness::new(pipeline());
    next(&mut harness);
    let key = key("phase-1", 1, "WS1");
    assert!(harness.run.pending().contains(&Effect::Artifacts { key: key.clone() }));
    let (paths, missing) = (vec!["a.sql".into()], vec!["b.sql".into()]);
    harness.outcome(CommandKind::Pipeline(Box::new(PipelineCommand::ArtifactsFound { key, paths, missing })));
    assert_eq!(harness.run.warnings, ["WS1 did not produce the required artifacts: b.sql"]);
    assert!(said(&harness).artifacts.is_empty(), "its gate has not passed");
    harness.work();
    assert_eq!(said(&harness).artifacts, [("WS1".to_owned(), vec!["a.sql".to_owned()])]);
}

#[test]
fn a_run_ends_only_after_its_workstream_artifacts_were_collected() {
    let finish = |harness: &mut Harness, name: &str, outcome: TaskOutcome| {
        let key = key("phase-2", 1, name);
        harness.outcome(CommandKind::TaskEnded { key, attempt: 1, outcome, agent: None, commit: None });
    };
    let done = || TaskOutcome::Finished { result: None, outputs: Vec::new() };
    let failure = Failure { kind: FailureKind::Exit(2), message: "it broke".into(), tail: String::new() };
    for (first, ends) in [(done(), Status::Complete), (TaskOutcome::Failed(failure), Status::Failed)] {
        let mut definition = pipeline();
        definition.phases[1].gates.clear();
        definition.pipeline.as_mut().unwrap().phases[1].gates.clear();
        let mut harness = Harness::new(definition);
        harness.work();
        harness.answer("Continue", None);
        finish(&mut harness, "WS3", first);
        finish(&mut harness, "WS2", done());
        assert_eq!(harness.run.status(), Status::Running, "no one has looked yet");
        while let Some(Effect::Artifacts { key }) = harness.run.pending().into_iter().next() {
            let paths = vec![format!("{}.sql", key.task)];
            harness.outcome(CommandKind::Pipeline(Box::new(PipelineCommand::ArtifactsFound { key, paths, missing: Vec::new() })));
        }
        assert_eq!(harness.run.status(), ends);
        assert!(said(&harness).artifacts.contains(&("WS2".to_owned(), vec!["WS2.sql".to_owned()])), "{ends:?}");
    }
}

#[test]
fn a_failure_names_the_workstream_and_keeps_its_output() {
    let mut harness = Harness::new(pipeline());
    harness.work();
    harness.answer("Continue", None);
    let tail = "/project/src/a.ts(45,7): error TS2339: Property 'x' does not exist";
    let failure = Failure { kind: FailureKind::Exit(2), message: "it ended with exit code 2".into(), tail: tail.into() };
    let (key, outcome) = (key("phase-2", 1, "WS3"), TaskOutcome::Failed(failure));
    harness.outcome(CommandKind::TaskEnded { key, attempt: 1, outcome, agent: None, commit: None });
    assert_eq!(said(&harness).status, Lifecycle::InProgress, "WS2 is running");
    harness.work();
    assert_eq!(lists(&harness), expected("failed", 2, "WS1 WS2", "", "WS3"));
    let failure = PipelineFailure { workstream: "WS3".into(), message: "it ended with exit code 2", output: tail };
    assert_eq!(harness.run.pipeline_failure(), Some(failure));
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(lists(&harness), expected("in_progress", 2, "WS1 WS2", "WS3", ""), "completed workstreams stay completed");
}

/// Fails the gate of the second phase, once.
fn fail_the_gate(harness: &mut Harness) {
    let failure = Failure { kind: FailureKind::Exit(1), message: "no".into(), tail: String::new() };
    while let Some(effect) = harness.run.pending().into_iter().next() {
        match effect {
            Effect::Gate { phase, iteration, gate, attempt } => {
                harness.outcome(CommandKind::GateEnded { phase, iteration, gate, attempt, failure: Some(failure) });
                return;
            }
            other => drop(harness.perform(&other)),
        }
    }
}

#[test]
fn retrying_a_gate_never_removes_completed_workstreams() {
    let mut harness = Harness::new(pipeline());
    harness.work();
    harness.answer("Continue", None);
    fail_the_gate(&mut harness);
    assert_eq!(lists(&harness), expected("failed", 2, "WS1", "", "WS2 WS3"), "their gate has not passed");
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(lists(&harness), expected("in_progress", 2, "WS1", "WS2 WS3", ""));
    harness.work();
    assert_eq!(lists(&harness), expected("complete", 2, "WS1 WS2 WS3", "", ""));
}

#[test]
fn a_person_may_resume_an_aborted_or_cancelled_pipeline() {
    let take_over = || CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false };
    let mut harness = Harness::new(pipeline());
    harness.work();
    harness.answer("Abort", None);
    let agent = Actor { credential: Credential::Agent, ..person() };
    assert!(matches!(harness.tell(agent, take_over(), true), Err(Refusal::PersonRequired { .. })));
    let inside = Actor { inside_task: Some("phase-1/WS1".into()), ..person() };
    assert!(matches!(harness.tell(inside, take_over(), true), Err(Refusal::InsideTask { .. })));
    harness.tell(person(), take_over(), true).unwrap();
    harness.work();
    assert_eq!(lists(&harness), expected("paused", 1, "WS1", "", "WS2 WS3"), "the same question is asked again");
    assert_eq!((harness.run.status(), harness.started().len()), (Status::Waiting, 1));
    harness.answer("Continue", None);
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!(harness.run.status(), Status::Cancelled);
    harness.tell(person(), take_over(), true).unwrap();
    while harness.run.status() == Status::Waiting {
        harness.answer("rerun", None);
    }
    harness.work();
    assert_eq!(lists(&harness), expected("complete", 2, "WS1 WS2 WS3", "", ""));
    let mut other = Harness::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    other.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(matches!(other.tell(person(), take_over(), true), Err(Refusal::Ended { status: Status::Cancelled })));
}

#[test]
fn an_imported_pipeline_waits_until_a_person_resumes_it() {
    for status in [Lifecycle::Initialized, Lifecycle::InProgress, Lifecycle::Paused] {
        let mut harness = import_of(imported(status));
        assert_eq!((harness.run.status(), said(&harness).status), (Status::Waiting, status));
        harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: true }, false).unwrap();
        assert_eq!(harness.run.status(), Status::Running, "{status:?}");
    }
}

#[test]
fn only_a_person_resumes_an_imported_pipeline_that_waits_or_was_interrupted() {
    let agent = || Actor { credential: Credential::Agent, ..person() };
    let inside = || Actor { inside_task: Some("phase-1/WS1".into()), ..person() };
    let resumed = |status: Lifecycle, actor: Actor| {
        let take_over = CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false };
        import_of(imported(status)).tell(actor, take_over, true)
    };
    for status in [Lifecycle::Paused, Lifecycle::InProgress] {
        assert!(matches!(resumed(status, agent()), Err(Refusal::PersonRequired { .. })), "{status:?}");
        assert!(matches!(resumed(status, inside()), Err(Refusal::InsideTask { .. })), "{status:?}");
        assert!(resumed(status, person()).is_ok(), "{status:?}");
    }
    assert!(matches!(resumed(Lifecycle::Failed, inside()), Err(Refusal::InsideTask { .. })));
    assert!(resumed(Lifecycle::Failed, agent()).is_ok(), "anyone outside of tasks retries what failed");
    assert!(resumed(Lifecycle::Initialized, inside()).is_ok(), "it starts as any workflow does");
}

#[test]
fn an_imported_gate_listed_as_passed_and_pending_counts_as_pending() {
    let both = vec!["schema (WS1)".to_owned()];
    let harness = import_of(Imported { gates_passed: both.clone(), gates_pending: both, ..imported(Lifecycle::Paused) });
    let known = harness.run.pipeline.as_ref().unwrap();
    assert!(!known.had_passed("schema (WS1)", Some(&TaskId::from("WS1")), &[TaskId::from("WS1")]));
}

#[test]
fn a_third_review_may_block_what_an_earlier_one_permitted() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut harness = Harness::new(definition);
    harness.tell(person(), CommandKind::Interrupt { signal: "SIGINT".into() }, true).unwrap();
    file(&mut harness, review(Verdict::DoNotShip)).unwrap();
    file(&mut harness, review(Verdict::Ship)).unwrap();
    file(&mut harness, review(Verdict::DoNotShip)).unwrap();
    let filed = known(&harness).review.clone().unwrap();
    assert_eq!((filed.verdict, filed.attempt), (Verdict::DoNotShip, 2), "the format allows two attempts");
    assert_eq!(file(&mut harness, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
    assert_eq!(file(&mut harness, review(Verdict::DoNotShip)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
}

#[test]
fn interrupted_cancelled_and_aborted_pipelines_count_as_paused() {
    let stopped = |body: CommandKind| {
        let mut harness = Harness::new(pipeline());
        harness.tell(person(), body, true).unwrap();
        lists(&harness)
    };
    let paused = expected("paused", 1, "", "", "WS1 WS2 WS3");
    assert_eq!(stopped(CommandKind::Interrupt { signal: "SIGINT".into() }), paused);
    assert_eq!(stopped(CommandKind::Cancel { reason: None }), paused);
    let mut harness = Harness::new(pipeline());
    harness.work();
    harness.answer("Abort", None);
    assert_eq!(lists(&harness), expected("paused", 1, "WS1", "", "WS2 WS3"));
}

#[test]
fn nothing_starts_before_a_review_permits_it() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut harness = Harness::new(definition);
    assert_eq!((harness.run.status(), harness.started().len()), (Status::Waiting, 0));
    assert_eq!(lists(&harness), expected("initialized", 0, "", "", "WS1 WS2 WS3"));
    file(&mut harness, review(Verdict::DoNotShip)).unwrap();
    assert_eq!(harness.run.status(), Status::Failed);
    assert_eq!(lists(&harness), expected("initialized", 0, "", "", "WS1 WS2 WS3"));
    let take_over = CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false };
    assert_eq!(harness.tell(person(), take_over, true).unwrap_err(), Refusal::NotReviewed);
    file(&mut harness, review(Verdict::Ship)).unwrap();
    assert_eq!((known(&harness).review.as_ref().unwrap().attempt, harness.started()), (2, vec!["phase-1/WS1".to_owned()]));
    assert_eq!(file(&mut harness, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewTooLate);
}

#[test]
fn after_two_reviews_only_a_person_with_a_reason_can_override() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut harness = Harness::new(definition);
    file(&mut harness, review(Verdict::DoNotShip)).unwrap();
    file(&mut harness, review(Verdict::DoNotShip)).unwrap();
    assert_eq!(file(&mut harness, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
    let silent = Review { override_reason: Some("  ".into()), ..review(Verdict::Overridden) };
    assert_eq!(file(&mut harness, silent).unwrap_err(), Refusal::NoOverrideReason);
    let agent = Actor { credential: Credential::Agent, ..person() };
    let overriding = CommandKind::Pipeline(Box::new(PipelineCommand::Review(review(Verdict::Overridden))));
    assert!(matches!(harness.tell(agent, overriding, true), Err(Refusal::PersonRequired { .. })));
    file(&mut harness, review(Verdict::Overridden)).unwrap();
    let filed = known(&harness).review.clone().unwrap();
    assert_eq!((filed.verdict, filed.attempt, filed.override_reason.as_deref()), (Verdict::Overridden, 2, Some("we must")));
    assert_eq!(harness.started(), ["phase-1/WS1"]);
}

#[test]
fn gates_required_by_a_review_must_pass_before_completion() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut harness = Harness::new(definition);
    let none = Review { gates: Vec::new(), ..review(Verdict::ShipWithGates) };
    assert_eq!(file(&mut harness, none).unwrap_err(), Refusal::NoGatesNamed);
    let known = Review { gates: vec![gate("tests")], ..review(Verdict::ShipWithGates) };
    assert_eq!(file(&mut harness, known).unwrap_err(), Refusal::GateKnown { gate: GateId::from("tests") });
    file(&mut harness, review(Verdict::ShipWithGates)).unwrap();
    assert_eq!(said(&harness).gates_pending, ["schema (WS1)", "tests", "rls"]);
    harness.work();
    harness.answer("Continue", None);
    harness.work();
    assert!(harness.has(|event| matches!(event, Event::GatePassed { gate, .. } if gate.as_str() == "rls")));
    assert_eq!(said(&harness).gates_passed, ["schema (WS1)", "tests", "rls"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_permitting_review_is_revoked_only_by_a_blocking_review_or_a_person() {
    let mut definition = pipeline();
    let known = definition.pipeline.as_mut().unwrap();
    known.review = true;
    known.manual_gates = vec![ManualGate {
        title: "audit (WS2)".into(),
        phase: PhaseId::from("phase-2"),
        criteria: None,
        convention: None,
        task: None,
    }];
    let mut harness = Harness::new(definition);
    harness.tell(person(), CommandKind::Interrupt { signal: "SIGINT".into() }, true).unwrap();
    let asking = |name: &str| Review { gates: vec![gate(name)], ..review(Verdict::ShipWithGates) };
    assert_eq!(file(&mut harness, asking("audit")).unwrap_err(), Refusal::GateKnown { gate: GateId::from("audit") });
    file(&mut harness, asking("rls")).unwrap();
    let stands = Refusal::ReviewStands { verdict: "ship_with_gates" };
    assert_eq!(file(&mut harness, review(Verdict::Ship)).unwrap_err(), stands);
    file(&mut harness, review(Verdict::DoNotShip)).unwrap();
    file(&mut harness, review(Verdict::Overridden)).unwrap();
    assert!(said(&harness).gates_pending.contains(&"rls".to_owned()), "its gates must still pass");
}

#[test]
fn notes_can_be_added_at_any_time() {
    let mut harness = Harness::new(pipeline());
    let fix = Fix { file: "a.ts".into(), change: "x".into() };
    let notes = Notes { key_fixes: vec![fix.clone()], ..Notes::default() };
    harness.work();
    let inside = Actor { inside_task: Some("phase-1/WS1".into()), ..person() };
    harness.tell(inside, CommandKind::Pipeline(Box::new(PipelineCommand::Note(notes))), false).unwrap();
    assert!(
        harness
            .has(|event| matches!(event, Event::Pipeline(pipeline_event) if matches!(**pipeline_event, PipelineEvent::Noted(_))))
    );
    assert_eq!(known(&harness).notes.key_fixes, [fix]);
    let mut other = Harness::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let notes = Notes { cleanup_done: vec!["x".into()], ..Notes::default() };
    assert_eq!(
        other.tell(person(), CommandKind::Pipeline(Box::new(PipelineCommand::Note(notes))), false).unwrap_err(),
        Refusal::NotAPipeline
    );
}

#[test]
fn an_interrupted_phase_can_be_restarted_from_its_first_task() {
    let mut harness = Harness::new(pipeline());
    harness.work();
    harness.answer("Continue", None);
    next(&mut harness);
    harness.tell(person(), CommandKind::Pipeline(Box::new(PipelineCommand::Restart)), false).unwrap();
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(harness.run.iteration_counts["phase-2"], 2);
    harness.work();
    assert_eq!(lists(&harness), expected("complete", 2, "WS1 WS2 WS3", "", ""));
}

pub(super) fn imported(status: Lifecycle) -> Imported {
    let names = |names: &[&str]| names.iter().map(|name| TaskId::from(*name)).collect::<Vec<_>>();
    Imported {
        file: FrozenFile { path: "PRD-009.json".into(), digest: Digest::of(b"file") },
        status,
        current_phase: 1,
        completed: names(&["WS1", "WS0"]),
        in_progress: Vec::new(),
        pending: names(&["WS2", "WS3"]),
        artifacts: [(TaskId::from("WS1"), vec!["old.sql".to_owned()])].into(),
        gates_passed: vec!["schema".into(), "manual look".into()],
        gates_pending: vec!["tests".into()],
        timestamp: Some("2025-12-11T10:16:00Z".into()),
        error: Some(FileError { workstream: "WS2".into(), message: "x".into(), file: None, line: None })
            .filter(|_| status == Lifecycle::Failed),
        review: None,
    }
}

fn import(status: Lifecycle) -> Harness {
    import_of(imported(status))
}

fn import_of(imported: Imported) -> Harness {
    import_into(pipeline(), imported)
}

pub(super) fn import_into(definition: Workflow, imported: Imported) -> Harness {
    let mut harness = Harness { run: Harness::new(pipeline()).run, entries: Vec::new(), now: 0 };
    let created = Created {
        origin: Origin::Imported(Box::new(imported)),
        feature: Some("PRD-009".into()),
        ..Created::new(RunId::from("run00000"), Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"))
    };
    let body = Create { created, presets: Vec::new() };
    (harness.run, harness.entries) = create(&envelope(person(), 0, false), &body, Arc::new(definition)).unwrap();
    harness
}

#[test]
fn an_imported_pipeline_keeps_the_status_of_its_file_until_resumed() {
    for status in Lifecycle::ALL {
        let harness = import(status);
        let said = said(&harness);
        assert_eq!((said.status, said.current_phase), (status, 1));
        assert_eq!((said.completed.join(" "), said.pending.join(" ")), ("WS1 WS0".into(), "WS2 WS3".into()));
        assert_eq!(said.gates_passed, ["schema", "manual look"]);
        let ended = match status {
            Lifecycle::Failed => Status::Failed,
            Lifecycle::Complete => Status::Complete,
            Lifecycle::Initialized | Lifecycle::InProgress | Lifecycle::Paused => Status::Waiting,
        };
        assert_eq!(harness.run.status(), ended);
    }
}

#[test]
fn work_finished_before_the_import_never_reruns_and_no_data_is_lost() {
    for status in [Lifecycle::Paused, Lifecycle::Failed, Lifecycle::InProgress, Lifecycle::Initialized] {
        let mut harness = import(status);
        harness.take_over();
        assert_eq!(harness.started(), ["phase-2/WS2", "phase-2/WS3"], "{status:?}");
        assert_eq!(lists(&harness), expected("in_progress", 2, "WS1 WS0", "WS2 WS3", ""));
        harness.work();
        assert_eq!(lists(&harness), expected("complete", 2, "WS1 WS2 WS3 WS0", "", ""));
        let said = said(&harness);
        assert_eq!(said.artifacts, [("WS1".to_owned(), vec!["old.sql".to_owned()])]);
        assert_eq!(said.gates_passed, ["schema (WS1)", "tests", "manual look"]);
    }
}

#[test]
fn an_imported_passed_gate_counts_only_if_its_work_was_finished() {
    let names = |names: &[&str]| names.iter().map(|name| TaskId::from(*name)).collect::<Vec<_>>();
    let gates = ["schema", "tests"].map(str::to_owned).to_vec();
    let state = |completed: &[&str]| Imported {
        completed: names(completed),
        pending: names(&["WS3"]),
        gates_passed: gates.clone(),
        ..imported(Lifecycle::Paused)
    };
    let ran = |completed: &[&str]| {
        let mut harness = import_of(state(completed));
        harness.take_over();
        let before = said(&harness).gates_pending;
        harness.work();
        if harness.run.status() == Status::Waiting {
            harness.answer("Continue", None);
            harness.work();
        }
        assert_eq!(harness.run.status(), Status::Complete);
        let ran = |id: &str| harness.has(|event| matches!(event, Event::GatePassed { gate, .. } if gate.as_str() == id));
        (before.join(", "), ran("schema"), ran("tests"))
    };
    assert_eq!(ran(&["WS1", "WS2"]), ("tests".into(), false, true), "WS3 is not done");
    assert_eq!(ran(&["WS2", "WS3"]), ("schema (WS1)".into(), true, false), "WS1 is not done");
    assert_eq!(ran(&["WS1", "WS2", "WS3"]), (String::new(), false, false));
}

#[test]
fn an_imported_review_stays_in_effect() {
    let reviewed = |verdict: Verdict| {
        let review = Some(Review { attempt: 2, gates: Vec::new(), ..review(verdict) });
        import_of(Imported { review, status: Lifecycle::Initialized, completed: Vec::new(), ..imported(Lifecycle::Initialized) })
    };
    let mut harness = reviewed(Verdict::DoNotShip);
    assert!(harness.run.waits_for_review());
    assert_eq!(known(&harness).review.as_ref().unwrap().verdict, Verdict::DoNotShip);
    assert_eq!(file(&mut harness, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
    file(&mut harness, review(Verdict::Overridden)).unwrap();
    assert!(!harness.run.waits_for_review());
    assert!(!reviewed(Verdict::Ship).run.waits_for_review());
}

#[test]
fn the_state_file_is_never_complete_while_work_is_pending() {
    let names = |names: &[&str]| names.iter().map(|name| TaskId::from(*name)).collect::<Vec<_>>();
    let elsewhere = Imported { pending: names(&["WS2", "WS3", "WS9"]), ..imported(Lifecycle::Paused) };
    let gate = Imported { gates_pending: vec!["audit".into()], ..imported(Lifecycle::Paused) };
    for imported in [elsewhere, gate] {
        let mut harness = import_of(imported);
        harness.take_over();
        harness.work();
        assert_eq!((harness.run.status(), said(&harness).status), (Status::Complete, Lifecycle::Paused));
    }
}
