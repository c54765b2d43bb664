//! The state file of a run, beyond the progress of the pipeline.

use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::command::{Caller, Command, CommandKind, Create, Envelope, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{Created, Failure, FailureKind, FrozenFile, Origin};
use lockgate_engine::run::pipeline::{FileError, Fix, Lifecycle, Notes, PipelineCommand};
use lockgate_engine::run::{Run, create, handle};
use lockgate_engine::spec::includes::NoIncludes;
use lockgate_engine::time::Timestamp;
use lockgate_formats::file_format;
use lockgate_formats::state_file::document::document;
use lockgate_formats::state_file::import::lenient;
use std::sync::Arc;

const SPEC: &str = "\
prd: PRD-009
prd_title: Cashier Workflows
workstreams:
  WS1: { name: Service, command: make service }
  WS2: { name: Screen, command: make screen }
execution_phases:
  - { name: All, parallel: [WS1, WS2] }
";

fn envelope(at: i64) -> Envelope {
    Envelope { id: None, caller: Caller::driver(), at: Timestamp::from_millis(at), seed: [7; 16], driving: true }
}

fn command(kind: CommandKind, at: i64) -> Command {
    Command { envelope: envelope(at), kind }
}

fn start(origin: Origin) -> Run {
    let workflow = file_format::read_with_includes(SPEC, &mut NoIncludes).read.workflow.expect("a workflow");
    let id = RunId::from("run00000");
    let created = Created { origin, ..Created::new(id, Digest::of(b"definition"), "out".into(), DriverId::from("driver-1")) };
    create(&envelope(0), &Create { created, presets: Vec::new() }, Arc::new(workflow)).expect("a run").0
}

/// Ends the running tasks; the listed ones fail with this output.
fn end_tasks(run: &mut Run, failing: &[&str], output: &str) {
    for effect in run.pending() {
        let Effect::Task { key, attempt } = effect else { continue };
        let outcome = if failing.contains(&key.task.as_str()) {
            let message = "it ended with exit code 2".to_owned();
            TaskOutcome::Failed(Failure { kind: FailureKind::Exit(2), message, tail: output.to_owned() })
        } else {
            TaskOutcome::Finished { result: None, outputs: Vec::new() }
        };
        handle(run, &command(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }, 1000))
            .expect("it is accepted");
    }
}

fn failed_with(output: &str) -> Run {
    let mut run = start(Origin::New);
    end_tasks(&mut run, &["WS2"], output);
    run
}

#[test]
fn a_failure_names_the_workstream_and_the_position_that_its_output_shows() {
    let run = failed_with("/project/src/a.ts(45,7): error TS2339: Property 'x' does not exist");
    let said = document(&run, Some("/project")).expect("a pipeline");
    assert_eq!(
        (said.status, said.completed.as_slice(), said.pending.as_slice()),
        (Lifecycle::Failed, &["WS1".to_owned()][..], &["WS2".to_owned()][..])
    );
    let (workstream, message) = ("WS2".to_owned(), "Property 'x' does not exist".to_owned());
    assert_eq!(said.error, Some(FileError { workstream, message, file: Some("src/a.ts".into()), line: Some(45) }));
}

#[test]
fn a_failure_without_a_position_keeps_its_own_message() {
    let said = document(&failed_with("no"), None).expect("a pipeline");
    let (workstream, message) = ("WS2".to_owned(), "it ended with exit code 2".to_owned());
    assert_eq!(said.error, Some(FileError { workstream, message, file: None, line: None }));
}

#[test]
fn a_pipeline_without_a_failure_has_no_error() {
    let mut run = start(Origin::New);
    assert_eq!(document(&run, None).expect("a pipeline").error, None);
    end_tasks(&mut run, &[], "");
    let said = document(&run, None).expect("a pipeline");
    assert_eq!((said.status, said.error, said.timestamp.as_str()), (Lifecycle::Complete, None, "1970-01-01T00:00:01.000Z"));
}

#[test]
fn an_imported_pipeline_keeps_the_timestamp_and_the_error_of_its_file_and_gets_new_notes() {
    let text = r#"{"prd": "PRD-009", "prd_title": "Cashier Workflows", "current_phase": 1, "status": "failed",
        "completed_workstreams": ["WS1"], "in_progress_workstreams": [], "pending_workstreams": ["WS2"], "artifacts": {},
        "gates_passed": [], "gates_pending": [], "timestamp": "2025-12-11T10:16:00Z",
        "error": {"workstream": "WS2", "message": "no"}}"#;
    let (state, _) = lenient(text).expect("a state file");
    let file = FrozenFile { path: "PRD-009.json".into(), digest: Digest::of(text.as_bytes()) };
    let mut run = start(Origin::Imported(Box::new(state.imported(file))));
    let fix = Fix { file: "a.ts".into(), change: "x".into() };
    let notes = Notes { key_fixes: vec![fix], ..Notes::default() };
    handle(&mut run, &command(CommandKind::Pipeline(Box::new(PipelineCommand::Note(notes.clone()))), 1000))
        .expect("it is accepted");
    let said = document(&run, None).expect("a pipeline");
    assert_eq!((said.timestamp.as_str(), said.status), ("2025-12-11T10:16:00Z", Lifecycle::Failed));
    assert_eq!(said.error.map(|error| error.message), Some("no".to_owned()));
    assert_eq!(said.notes, notes);
}
