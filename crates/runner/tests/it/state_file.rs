//! The state file of a pipeline: written in order, atomically, and by the run it belongs to.

use crate::no_effects::NoEffects;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, RunId, TaskId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Actor, Caller, Channel, CommandKind, Create, Credential, TerminalRule};
use lockgate_engine::run::event::Created;
use lockgate_engine::run::pipeline::{Notes, PipelineCommand};
use lockgate_engine::spec::workflow::{Phase, Pipeline, PipelinePhase, Task, Work, Workflow};
use lockgate_runner::driver::{start_parked, submit};
use lockgate_runner::projection::{StateFile, StateFileError};
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Runtime, SystemClock};
use lockgate_runner::start::Prepared;
use lockgate_store::{MemoryStore, Store};
use std::sync::Arc;

struct Harness {
    folder: tempfile::TempDir,
    runtime: Runtime,
}

impl Harness {
    fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = Runtime { store, perform: Arc::new(NoEffects), clock: Arc::new(SystemClock) };
        Self { folder: tempfile::tempdir().unwrap(), runtime }
    }

    async fn start(&self, id: &str, state_file: &str) -> Run {
        let task = Task::new(TaskId::from("WS1"), Work::Pass);
        let said = PipelinePhase { name: "one".into(), workstreams: vec![task.id.clone()], gates: Vec::new() };
        let pipeline = Pipeline {
            prd: "PRD-001".into(),
            title: "x".into(),
            phases: vec![said],
            state_file: Some(state_file.into()),
            ..Pipeline::default()
        };
        let workflow = Workflow {
            name: "PRD-001".into(),
            phases: vec![Phase { tasks: vec![task], ..Phase::new(PhaseId::from("one")) }],
            pipeline: Some(Box::new(pipeline)),
            ..Workflow::default()
        };
        let bytes = workflow.to_bytes();
        let driver = self.runtime.store.driver().clone();
        let created = Created {
            feature: Some("PRD-001".into()),
            ..Created::new(RunId::from(id), Digest::of(&bytes), "out".into(), driver)
        };
        let values = vec![(created.definition, bytes)];
        let create = Create { created, presets: Vec::new() };
        let prepared = Prepared { create, workflow: Arc::new(workflow), values };
        start_parked(&self.runtime, person(), prepared).await.unwrap()
    }

    async fn note(&self, run: &Run, text: &str) -> Run {
        let notes = Notes { cleanup_done: vec![text.to_owned()], ..Notes::default() };
        submit(&self.runtime, &run.id, person(), CommandKind::Pipeline(Box::new(PipelineCommand::Note(notes)))).await.unwrap()
    }

    fn file(&self, run: &Run) -> StateFile {
        StateFile::of(&Root::at(self.folder.path()), self.runtime.store.clone(), run).expect("it is a pipeline")
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }
}

fn person() -> Caller {
    let actor = Actor {
        credential: Credential::Person,
        name: "ada".into(),
        channel: Channel::Command,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    };
    Caller::new(actor, TerminalRule::Required)
}

#[tokio::test]
async fn an_older_state_is_never_written_over_a_newer_one() {
    let harness = Harness::new();
    let before = harness.start("run00001", "states/one.json").await;
    let after = harness.note(&before, "swept").await;
    harness.file(&after).write().await.unwrap();
    harness.file(&before).write().await.unwrap();
    assert!(harness.text("states/one.json").contains("swept"));
    // Writing the same state again repairs a damaged file.
    for (text, kept) in [("half of a fi", "states/one.json.unreadable"), ("{", "states/one.json.unreadable-2")] {
        std::fs::write(harness.folder.path().join("states/one.json"), text).unwrap();
        let aside = harness.file(&after).write().await.unwrap();
        assert_eq!(aside, Some(harness.folder.path().join(kept)));
        assert!(harness.text("states/one.json").contains("swept"));
        assert_eq!(harness.text(kept), text, "what stood there is kept");
    }
    assert_eq!(harness.text("states/one.json.unreadable"), "half of a fi", "and so is what stood there before");
}

#[tokio::test]
async fn only_the_newest_run_of_a_pipeline_writes_its_file() {
    let harness = Harness::new();
    let old = harness.start("run00001", "one.json").await;
    let old = harness.note(&old, "old").await;
    // Runs are ordered by their start time in milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(2));
    let new = harness.start("run00002", "one.json").await;
    harness.file(&new).write().await.unwrap();
    harness.file(&old).write().await.unwrap();
    assert!(harness.text("one.json").contains("initialized") && !harness.text("one.json").contains("old"));
}

#[tokio::test]
async fn a_path_outside_the_root_is_refused() {
    let harness = Harness::new();
    for path in ["../one.json", "/tmp/lockgate-one.json", "a/../../one.json", ""] {
        let run = harness.start(&format!("run{:05}", path.len()), path).await;
        let refused = harness.file(&run).write().await;
        assert!(matches!(refused, Err(StateFileError::BadPath { .. })), "{path:?}: {refused:?}");
    }
    assert_eq!(
        std::fs::read_dir(harness.folder.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name() != ".lockgate")
            .count(),
        0
    );
}
