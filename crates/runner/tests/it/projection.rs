//! The state file of a pipeline as a file: written in order, whole, and by the run that it belongs to.

use crate::nobody::Nobody;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, RunId, TaskId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Actor, Caller, Channel, CommandKind, Create, Credential, TerminalRule};
use lockgate_engine::run::event::Created;
use lockgate_engine::run::pipeline::{Notes, PipelineWish};
use lockgate_engine::spec::workflow::{Phase, Pipeline, PipelinePhase, Task, Work, Workflow};
use lockgate_runner::driver::{begin_resting, submit};
use lockgate_runner::projection::{StateFile, StateFileError};
use lockgate_runner::root::Root;
use lockgate_runner::start::Prepared;
use lockgate_runner::world::{SystemClock, World};
use lockgate_store::{MemoryStore, Store};
use std::sync::Arc;

struct Bench {
    folder: tempfile::TempDir,
    world: World,
}

impl Bench {
    fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let world = World { store, perform: Arc::new(Nobody), clock: Arc::new(SystemClock) };
        Self { folder: tempfile::tempdir().unwrap(), world }
    }

    async fn begin(&self, id: &str, state_file: &str) -> Run {
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
        let driver = self.world.store.driver().clone();
        let created = Created {
            feature: Some("PRD-001".into()),
            ..Created::new(RunId::from(id), Digest::of(&bytes), "out".into(), driver)
        };
        let values = vec![(created.definition, bytes)];
        let create = Create { created, presets: Vec::new() };
        let prepared = Prepared { create, workflow: Arc::new(workflow), values };
        begin_resting(&self.world, person(), prepared).await.unwrap()
    }

    async fn note(&self, run: &Run, text: &str) -> Run {
        let notes = Notes { cleanup_done: vec![text.to_owned()], ..Notes::default() };
        submit(&self.world, &run.id, person(), CommandKind::Pipeline(Box::new(PipelineWish::Note(notes)))).await.unwrap()
    }

    fn file(&self, run: &Run) -> StateFile {
        StateFile::of(&Root::at(self.folder.path()), self.world.store.clone(), run).expect("it is a pipeline")
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
    let bench = Bench::new();
    let before = bench.begin("run00001", "states/one.json").await;
    let after = bench.note(&before, "swept").await;
    bench.file(&after).write().await.unwrap();
    bench.file(&before).write().await.unwrap();
    assert!(bench.text("states/one.json").contains("swept"));
    // The same state again mends what somebody did to the file.
    for (text, kept) in [("half of a fi", "states/one.json.unreadable"), ("{", "states/one.json.unreadable-2")] {
        std::fs::write(bench.folder.path().join("states/one.json"), text).unwrap();
        let aside = bench.file(&after).write().await.unwrap();
        assert_eq!(aside, Some(bench.folder.path().join(kept)));
        assert!(bench.text("states/one.json").contains("swept"));
        assert_eq!(bench.text(kept), text, "what stood there is kept");
    }
    assert_eq!(bench.text("states/one.json.unreadable"), "half of a fi", "and so is what stood there before");
}

#[tokio::test]
async fn only_the_newest_run_of_a_pipeline_writes_its_file() {
    let bench = Bench::new();
    let old = bench.begin("run00001", "one.json").await;
    let old = bench.note(&old, "old").await;
    // Which run is newer is told by the moment at which it began, in milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(2));
    let new = bench.begin("run00002", "one.json").await;
    bench.file(&new).write().await.unwrap();
    bench.file(&old).write().await.unwrap();
    assert!(bench.text("one.json").contains("initialized") && !bench.text("one.json").contains("old"));
}

#[tokio::test]
async fn a_path_that_leads_out_of_the_root_is_refused() {
    let bench = Bench::new();
    for path in ["../one.json", "/tmp/lockgate-one.json", "a/../../one.json", ""] {
        let run = bench.begin(&format!("run{:05}", path.len()), path).await;
        let refused = bench.file(&run).write().await;
        assert!(matches!(refused, Err(StateFileError::BadPath { .. })), "{path:?}: {refused:?}");
    }
    assert_eq!(
        std::fs::read_dir(bench.folder.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name() != ".lockgate")
            .count(),
        0
    );
}
