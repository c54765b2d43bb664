//! Pipelines: how far they are, their review, what was done before they were imported.

use super::*;
use crate::run::event::FrozenFile;
use crate::run::pipeline::{
    Fix, Imported, Lifecycle, Notes, PipelineFact, PipelineFailure, PipelineProgress, PipelineRun, Review, Verdict,
};
use crate::run::{Status, pipeline::FileError};

/// Two phases: WS1 with a gate of its own; WS2 and WS3 side by side, and a gate of the phase.
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

pub(super) fn said(bench: &Bench) -> PipelineProgress {
    bench.run.pipeline_progress().expect("it is a pipeline")
}

fn known(bench: &Bench) -> &PipelineRun {
    bench.run.pipeline.as_deref().expect("it is a pipeline")
}

/// Status, current phase and the three lists.
fn lists(bench: &Bench) -> (&'static str, u32, String, String, String) {
    let said = said(bench);
    (said.status.word(), said.current_phase, said.completed.join(" "), said.in_progress.join(" "), said.pending.join(" "))
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

fn next(bench: &mut Bench) -> Vec<Event> {
    let effect = bench.run.pending().into_iter().next().expect("something is under way");
    bench.perform(&effect)
}

fn looks(bench: &mut Bench) {
    while let Some(effect) = bench.run.pending().into_iter().find(|effect| matches!(effect, Effect::Artifacts { .. })) {
        bench.perform(&effect);
    }
}

pub(super) fn review(verdict: Verdict) -> Review {
    let gates = if verdict == Verdict::ShipWithGates { vec![gate("rls")] } else { Vec::new() };
    Review { verdict, p0: 1, p1: 2, attempt: 0, findings: None, override_reason: Some("we must".into()), gates }
}

pub(super) fn file(bench: &mut Bench, review: Review) -> Result<Vec<Event>, Refusal> {
    bench.tell(person(), CommandKind::Pipeline(Box::new(PipelineWish::Review(review))), true)
}

#[test]
fn the_progress_follows_the_run_through_its_life() {
    let mut bench = Bench::new(pipeline());
    assert_eq!(lists(&bench), expected("in_progress", 1, "", "WS1", "WS2 WS3"));
    next(&mut bench);
    looks(&mut bench);
    assert_eq!(lists(&bench), expected("in_progress", 1, "", "WS1", "WS2 WS3"), "its gate runs");
    assert_eq!(said(&bench).gates_pending, ["schema (WS1)", "tests"]);
    bench.work();
    assert_eq!(lists(&bench), expected("paused", 1, "WS1", "", "WS2 WS3"), "a person must approve");
    assert_eq!(said(&bench).gates_passed, ["schema (WS1)"]);
    bench.answer("Continue", None);
    assert_eq!(lists(&bench), expected("in_progress", 2, "WS1", "WS2 WS3", ""));
    next(&mut bench);
    looks(&mut bench);
    assert_eq!(lists(&bench), expected("in_progress", 2, "WS1", "WS2 WS3", ""), "the gate of the phase has not ended");
    bench.work();
    assert_eq!(lists(&bench), expected("complete", 2, "WS1 WS2 WS3", "", ""));
    assert_eq!((said(&bench).gates_passed, said(&bench).gates_pending), (vec!["schema (WS1)".into(), "tests".into()], vec![]));
}

#[test]
fn artifacts_are_those_of_completed_workstreams() {
    let mut bench = Bench::new(pipeline());
    next(&mut bench);
    let key = key("phase-1", 1, "WS1");
    assert!(bench.run.pending().contains(&Effect::Artifacts { key: key.clone() }));
    let (paths, missing) = (vec!["a.sql".into()], vec!["b.sql".into()]);
    bench.outcome(CommandKind::Pipeline(Box::new(PipelineWish::ArtifactsFound { key, paths, missing })));
    assert_eq!(bench.run.warnings, ["WS1 was to leave behind what is not there: b.sql"]);
    assert!(said(&bench).artifacts.is_empty(), "its gate has not passed");
    bench.work();
    assert_eq!(said(&bench).artifacts, [("WS1".to_owned(), vec!["a.sql".to_owned()])]);
}

#[test]
fn a_run_does_not_end_before_it_was_looked_for_what_its_workstreams_left_behind() {
    let finish = |bench: &mut Bench, name: &str, outcome: TaskOutcome| {
        let key = key("phase-2", 1, name);
        bench.outcome(CommandKind::TaskEnded { key, attempt: 1, outcome, agent: None, commit: None });
    };
    let done = || TaskOutcome::Finished { result: None, outputs: Vec::new() };
    let failure = Failure { kind: FailureKind::Exit(2), message: "it broke".into(), tail: String::new() };
    for (first, ends) in [(done(), Status::Complete), (TaskOutcome::Failed(failure), Status::Failed)] {
        let mut definition = pipeline();
        definition.phases[1].gates.clear();
        definition.pipeline.as_mut().unwrap().phases[1].gates.clear();
        let mut bench = Bench::new(definition);
        bench.work();
        bench.answer("Continue", None);
        finish(&mut bench, "WS3", first);
        finish(&mut bench, "WS2", done());
        assert_eq!(bench.run.status(), Status::Running, "nobody has looked yet");
        while let Some(Effect::Artifacts { key }) = bench.run.pending().into_iter().next() {
            let paths = vec![format!("{}.sql", key.task)];
            bench.outcome(CommandKind::Pipeline(Box::new(PipelineWish::ArtifactsFound { key, paths, missing: Vec::new() })));
        }
        assert_eq!(bench.run.status(), ends);
        assert!(said(&bench).artifacts.contains(&("WS2".to_owned(), vec!["WS2.sql".to_owned()])), "{ends:?}");
    }
}

#[test]
fn a_failure_names_the_workstream_and_keeps_its_output() {
    let mut bench = Bench::new(pipeline());
    bench.work();
    bench.answer("Continue", None);
    let tail = "/project/src/a.ts(45,7): error TS2339: Property 'x' does not exist";
    let failure = Failure { kind: FailureKind::Exit(2), message: "it ended with exit code 2".into(), tail: tail.into() };
    let (key, outcome) = (key("phase-2", 1, "WS3"), TaskOutcome::Failed(failure));
    bench.outcome(CommandKind::TaskEnded { key, attempt: 1, outcome, agent: None, commit: None });
    assert_eq!(said(&bench).status, Lifecycle::InProgress, "WS2 is at work");
    bench.work();
    assert_eq!(lists(&bench), expected("failed", 2, "WS1 WS2", "", "WS3"));
    let failure = PipelineFailure { workstream: "WS3".into(), message: "it ended with exit code 2", output: tail };
    assert_eq!(bench.run.pipeline_failure(), Some(failure));
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(lists(&bench), expected("in_progress", 2, "WS1 WS2", "WS3", ""), "what was completed stays so");
}

/// Fails the gate of the second phase, once.
fn fail_the_gate(bench: &mut Bench) {
    let failure = Failure { kind: FailureKind::Exit(1), message: "no".into(), tail: String::new() };
    while let Some(effect) = bench.run.pending().into_iter().next() {
        match effect {
            Effect::Gate { phase, iteration, gate, attempt } => {
                bench.outcome(CommandKind::GateEnded { phase, iteration, gate, attempt, failure: Some(failure) });
                return;
            }
            other => drop(bench.perform(&other)),
        }
    }
}

#[test]
fn completed_workstreams_never_become_fewer_when_a_gate_is_tried_again() {
    let mut bench = Bench::new(pipeline());
    bench.work();
    bench.answer("Continue", None);
    fail_the_gate(&mut bench);
    assert_eq!(lists(&bench), expected("failed", 2, "WS1", "", "WS2 WS3"), "their gate has not passed");
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(lists(&bench), expected("in_progress", 2, "WS1", "WS2 WS3", ""));
    bench.work();
    assert_eq!(lists(&bench), expected("complete", 2, "WS1 WS2 WS3", "", ""));
}

#[test]
fn a_person_may_resume_an_aborted_or_cancelled_pipeline_where_it_was() {
    let take_over = || CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false };
    let mut bench = Bench::new(pipeline());
    bench.work();
    bench.answer("Abort", None);
    let agent = Actor { credential: Credential::Agent, ..person() };
    assert!(matches!(bench.tell(agent, take_over(), true), Err(Refusal::NotAPerson { .. })));
    let inside = Actor { inside_task: Some("phase-1/WS1".into()), ..person() };
    assert!(matches!(bench.tell(inside, take_over(), true), Err(Refusal::InsideTask { .. })));
    bench.tell(person(), take_over(), true).unwrap();
    bench.work();
    assert_eq!(lists(&bench), expected("paused", 1, "WS1", "", "WS2 WS3"), "the same question is asked again");
    assert_eq!((bench.run.status(), bench.started().len()), (Status::Waiting, 1));
    bench.answer("Continue", None);
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!(bench.run.status(), Status::Cancelled);
    bench.tell(person(), take_over(), true).unwrap();
    while bench.run.status() == Status::Waiting {
        bench.answer("rerun", None);
    }
    bench.work();
    assert_eq!(lists(&bench), expected("complete", 2, "WS1 WS2 WS3", "", ""));
    let mut other = Bench::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    other.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(matches!(other.tell(person(), take_over(), true), Err(Refusal::Ended { status: Status::Cancelled })));
}

#[test]
fn an_imported_pipeline_waits_until_a_person_resumes_it() {
    for status in [Lifecycle::Initialized, Lifecycle::InProgress, Lifecycle::Paused] {
        let mut bench = import_of(imported(status));
        assert_eq!((bench.run.status(), said(&bench).status), (Status::Waiting, status));
        bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: true });
        assert_eq!(bench.run.status(), Status::Running, "{status:?}");
    }
}

#[test]
fn a_gate_that_a_file_has_as_passed_and_pending_has_not_passed() {
    let both = vec!["schema (WS1)".to_owned()];
    let bench = import_of(Imported { gates_passed: both.clone(), gates_pending: both, ..imported(Lifecycle::Paused) });
    let known = bench.run.pipeline.as_ref().unwrap();
    assert!(!known.had_passed("schema (WS1)", Some(&TaskId::from("WS1")), &[TaskId::from("WS1")]));
}

#[test]
fn a_third_review_may_forbid_what_an_earlier_one_allowed() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut bench = Bench::new(definition);
    bench.tell(person(), CommandKind::Interrupt { signal: "SIGINT".into() }, true).unwrap();
    file(&mut bench, review(Verdict::DoNotShip)).unwrap();
    file(&mut bench, review(Verdict::Ship)).unwrap();
    file(&mut bench, review(Verdict::DoNotShip)).unwrap();
    let filed = known(&bench).review.clone().unwrap();
    assert_eq!((filed.verdict, filed.attempt), (Verdict::DoNotShip, 2), "the format knows two attempts");
    assert_eq!(file(&mut bench, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
    assert_eq!(file(&mut bench, review(Verdict::DoNotShip)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
}

#[test]
fn interruption_cancellation_and_abortion_are_pauses() {
    let stopped = |body: CommandKind| {
        let mut bench = Bench::new(pipeline());
        bench.tell(person(), body, true).unwrap();
        lists(&bench)
    };
    let paused = expected("paused", 1, "", "", "WS1 WS2 WS3");
    assert_eq!(stopped(CommandKind::Interrupt { signal: "SIGINT".into() }), paused);
    assert_eq!(stopped(CommandKind::Cancel { reason: None }), paused);
    let mut bench = Bench::new(pipeline());
    bench.work();
    bench.answer("Abort", None);
    assert_eq!(lists(&bench), expected("paused", 1, "WS1", "", "WS2 WS3"));
}

#[test]
fn nothing_begins_before_a_review_lets_it() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut bench = Bench::new(definition);
    assert_eq!((bench.run.status(), bench.started().len()), (Status::Waiting, 0));
    assert_eq!(lists(&bench), expected("initialized", 0, "", "", "WS1 WS2 WS3"));
    file(&mut bench, review(Verdict::DoNotShip)).unwrap();
    assert_eq!(bench.run.status(), Status::Failed);
    assert_eq!(lists(&bench), expected("initialized", 0, "", "", "WS1 WS2 WS3"));
    let take_over = CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false };
    assert_eq!(bench.tell(person(), take_over, true).unwrap_err(), Refusal::NotReviewed);
    file(&mut bench, review(Verdict::Ship)).unwrap();
    assert_eq!((known(&bench).review.as_ref().unwrap().attempt, bench.started()), (2, vec!["phase-1/WS1".to_owned()]));
    assert_eq!(file(&mut bench, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewTooLate);
}

#[test]
fn after_two_reviews_only_a_person_with_a_reason_moves_the_pipeline() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut bench = Bench::new(definition);
    file(&mut bench, review(Verdict::DoNotShip)).unwrap();
    file(&mut bench, review(Verdict::DoNotShip)).unwrap();
    assert_eq!(file(&mut bench, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
    let silent = Review { override_reason: Some("  ".into()), ..review(Verdict::Overridden) };
    assert_eq!(file(&mut bench, silent).unwrap_err(), Refusal::NoOverrideReason);
    let agent = Actor { credential: Credential::Agent, ..person() };
    let overriding = CommandKind::Pipeline(Box::new(PipelineWish::Review(review(Verdict::Overridden))));
    assert!(matches!(bench.tell(agent, overriding, true), Err(Refusal::NotAPerson { .. })));
    file(&mut bench, review(Verdict::Overridden)).unwrap();
    let filed = known(&bench).review.clone().unwrap();
    assert_eq!((filed.verdict, filed.attempt, filed.override_reason.as_deref()), (Verdict::Overridden, 2, Some("we must")));
    assert_eq!(bench.started(), ["phase-1/WS1"]);
}

#[test]
fn gates_that_a_review_asks_for_must_pass_in_the_end() {
    let mut definition = pipeline();
    definition.pipeline.as_mut().unwrap().review = true;
    let mut bench = Bench::new(definition);
    let none = Review { gates: Vec::new(), ..review(Verdict::ShipWithGates) };
    assert_eq!(file(&mut bench, none).unwrap_err(), Refusal::NoGatesNamed);
    let known = Review { gates: vec![gate("tests")], ..review(Verdict::ShipWithGates) };
    assert_eq!(file(&mut bench, known).unwrap_err(), Refusal::GateKnown { gate: GateId::from("tests") });
    file(&mut bench, review(Verdict::ShipWithGates)).unwrap();
    assert_eq!(said(&bench).gates_pending, ["schema (WS1)", "tests", "rls"]);
    bench.work();
    bench.answer("Continue", None);
    bench.work();
    assert!(bench.has(|event| matches!(event, Event::GatePassed { gate, .. } if gate.as_str() == "rls")));
    assert_eq!(said(&bench).gates_passed, ["schema (WS1)", "tests", "rls"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_review_that_let_it_begin_is_undone_only_by_one_that_forbids_or_by_a_person() {
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
    let mut bench = Bench::new(definition);
    bench.tell(person(), CommandKind::Interrupt { signal: "SIGINT".into() }, true).unwrap();
    let asking = |name: &str| Review { gates: vec![gate(name)], ..review(Verdict::ShipWithGates) };
    assert_eq!(file(&mut bench, asking("audit")).unwrap_err(), Refusal::GateKnown { gate: GateId::from("audit") });
    file(&mut bench, asking("rls")).unwrap();
    let stands = Refusal::ReviewStands { verdict: "ship_with_gates" };
    assert_eq!(file(&mut bench, review(Verdict::Ship)).unwrap_err(), stands);
    file(&mut bench, review(Verdict::DoNotShip)).unwrap();
    file(&mut bench, review(Verdict::Overridden)).unwrap();
    assert!(said(&bench).gates_pending.contains(&"rls".to_owned()), "what it asked for still must hold");
}

#[test]
fn notes_can_be_added_at_any_time() {
    let mut bench = Bench::new(pipeline());
    let fix = Fix { file: "a.ts".into(), change: "x".into() };
    let notes = Notes { key_fixes: vec![fix.clone()], ..Notes::default() };
    bench.work();
    let inside = Actor { inside_task: Some("phase-1/WS1".into()), ..person() };
    bench.tell(inside, CommandKind::Pipeline(Box::new(PipelineWish::Note(notes))), false).unwrap();
    assert!(bench.has(|event| matches!(event, Event::Pipeline(fact) if matches!(**fact, PipelineFact::Noted(_)))));
    assert_eq!(known(&bench).notes.key_fixes, [fix]);
    let mut other = Bench::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let notes = Notes { cleanup_done: vec!["x".into()], ..Notes::default() };
    assert_eq!(
        other.tell(person(), CommandKind::Pipeline(Box::new(PipelineWish::Note(notes))), false).unwrap_err(),
        Refusal::NoPipeline
    );
}

#[test]
fn the_phase_that_was_cut_off_can_run_again_from_its_beginning() {
    let mut bench = Bench::new(pipeline());
    bench.work();
    bench.answer("Continue", None);
    next(&mut bench);
    bench.tell(person(), CommandKind::Pipeline(Box::new(PipelineWish::Restart)), false).unwrap();
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(bench.run.iteration_counts["phase-2"], 2);
    bench.work();
    assert_eq!(lists(&bench), expected("complete", 2, "WS1 WS2 WS3", "", ""));
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

fn import(status: Lifecycle) -> Bench {
    import_of(imported(status))
}

fn import_of(imported: Imported) -> Bench {
    import_into(pipeline(), imported)
}

pub(super) fn import_into(definition: Workflow, imported: Imported) -> Bench {
    let mut bench = Bench { run: Bench::new(pipeline()).run, entries: Vec::new(), now: 0 };
    let created = Created {
        origin: Origin::Imported(Box::new(imported)),
        feature: Some("PRD-009".into()),
        ..Created::new(RunId::from("run00000"), Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"))
    };
    let body = Create { created, presets: Vec::new() };
    (bench.run, bench.entries) = create(&envelope(person(), 0, false), &body, Arc::new(definition)).unwrap();
    bench
}

#[test]
fn an_imported_pipeline_stands_as_its_file_says_until_it_goes_on() {
    for status in Lifecycle::ALL {
        let bench = import(status);
        let said = said(&bench);
        assert_eq!((said.status, said.current_phase), (status, 1));
        assert_eq!((said.completed.join(" "), said.pending.join(" ")), ("WS1 WS0".into(), "WS2 WS3".into()));
        assert_eq!(said.gates_passed, ["schema", "manual look"]);
        let ended = match status {
            Lifecycle::Failed => Status::Failed,
            Lifecycle::Complete => Status::Complete,
            Lifecycle::Initialized | Lifecycle::InProgress | Lifecycle::Paused => Status::Waiting,
        };
        assert_eq!(bench.run.status(), ended);
    }
}

#[test]
fn what_was_done_before_the_import_never_runs_again_and_nothing_known_is_lost() {
    for status in [Lifecycle::Paused, Lifecycle::Failed, Lifecycle::InProgress, Lifecycle::Initialized] {
        let mut bench = import(status);
        bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
        assert_eq!(bench.started(), ["phase-2/WS2", "phase-2/WS3"], "{status:?}");
        assert_eq!(lists(&bench), expected("in_progress", 2, "WS1 WS0", "WS2 WS3", ""));
        bench.work();
        assert_eq!(lists(&bench), expected("complete", 2, "WS1 WS2 WS3 WS0", "", ""));
        let said = said(&bench);
        assert_eq!(said.artifacts, [("WS1".to_owned(), vec!["old.sql".to_owned()])]);
        assert_eq!(said.gates_passed, ["schema (WS1)", "tests", "manual look"]);
    }
}

#[test]
fn a_gate_that_had_passed_counts_only_where_its_work_was_done() {
    let names = |names: &[&str]| names.iter().map(|name| TaskId::from(*name)).collect::<Vec<_>>();
    let gates = ["schema", "tests"].map(str::to_owned).to_vec();
    let state = |completed: &[&str]| Imported {
        completed: names(completed),
        pending: names(&["WS3"]),
        gates_passed: gates.clone(),
        ..imported(Lifecycle::Paused)
    };
    let ran = |completed: &[&str]| {
        let mut bench = import_of(state(completed));
        bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
        let before = said(&bench).gates_pending;
        bench.work();
        if bench.run.status() == Status::Waiting {
            bench.answer("Continue", None);
            bench.work();
        }
        assert_eq!(bench.run.status(), Status::Complete);
        let ran = |id: &str| bench.has(|event| matches!(event, Event::GatePassed { gate, .. } if gate.as_str() == id));
        (before.join(", "), ran("schema"), ran("tests"))
    };
    assert_eq!(ran(&["WS1", "WS2"]), ("tests".into(), false, true), "WS3 is not done");
    assert_eq!(ran(&["WS2", "WS3"]), ("schema (WS1)".into(), true, false), "WS1 is not done");
    assert_eq!(ran(&["WS1", "WS2", "WS3"]), (String::new(), false, false));
}

#[test]
fn a_review_outlives_an_import() {
    let reviewed = |verdict: Verdict| {
        let review = Some(Review { attempt: 2, gates: Vec::new(), ..review(verdict) });
        import_of(Imported { review, status: Lifecycle::Initialized, completed: Vec::new(), ..imported(Lifecycle::Initialized) })
    };
    let mut bench = reviewed(Verdict::DoNotShip);
    assert!(bench.run.waits_for_review());
    assert_eq!(known(&bench).review.as_ref().unwrap().verdict, Verdict::DoNotShip);
    assert_eq!(file(&mut bench, review(Verdict::Ship)).unwrap_err(), Refusal::ReviewsSpent { attempts: 2 });
    file(&mut bench, review(Verdict::Overridden)).unwrap();
    assert!(!bench.run.waits_for_review());
    assert!(!reviewed(Verdict::Ship).run.waits_for_review());
}

#[test]
fn the_file_is_never_complete_while_it_says_that_something_is_pending() {
    let names = |names: &[&str]| names.iter().map(|name| TaskId::from(*name)).collect::<Vec<_>>();
    let elsewhere = Imported { pending: names(&["WS2", "WS3", "WS9"]), ..imported(Lifecycle::Paused) };
    let gate = Imported { gates_pending: vec!["audit".into()], ..imported(Lifecycle::Paused) };
    for imported in [elsewhere, gate] {
        let mut bench = import_of(imported);
        bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
        bench.work();
        assert_eq!((bench.run.status(), said(&bench).status), (Status::Complete, Lifecycle::Paused));
    }
}
