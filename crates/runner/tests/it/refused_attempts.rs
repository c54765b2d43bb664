//! Refused attempts to decide about a run: the first ones are recorded, all are counted.

use crate::no_effects::NoEffects;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, RunId, TaskId};
use lockgate_engine::run::command::{Actor, Caller, Channel, Create, Credential, TerminalRule};
use lockgate_engine::run::event::{Created, RefusedAttempt};
use lockgate_engine::spec::workflow::{Phase, Task, Work, Workflow};
use lockgate_runner::driver::start_parked;
use lockgate_runner::load::load;
use lockgate_runner::refused_attempts::{RefusalRecord, record};
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Runtime, SystemClock};
use lockgate_runner::start::Prepared;
use lockgate_store::{MemoryStore, Store};
use std::sync::Arc;

fn agent() -> Actor {
    let inside_task = Some("one/t".to_owned());
    Actor {
        credential: Credential::Agent,
        name: "ada".into(),
        channel: Channel::Command,
        terminal: false,
        inside_task,
        uid: Some(1000),
    }
}

async fn started() -> (Runtime, RunId) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let runtime = Runtime { store, perform: Arc::new(NoEffects), clock: Arc::new(SystemClock) };
    let tasks = vec![Task::new(TaskId::from("t"), Work::Pass)];
    let phases = vec![Phase { tasks, ..Phase::new(PhaseId::from("one")) }];
    let workflow = Workflow { name: "test".into(), phases, ..Workflow::default() };
    let bytes = workflow.to_bytes();
    let run = RunId::from("run00001");
    let created = Created::new(run.clone(), Digest::of(&bytes), "out".into(), runtime.store.driver().clone());
    let values = vec![(created.definition, bytes)];
    let prepared = Prepared { create: Create { created, presets: Vec::new() }, workflow: Arc::new(workflow), values };
    start_parked(&runtime, Caller::new(agent(), TerminalRule::Required), prepared).await.unwrap();
    (runtime, run)
}

fn attempt() -> RefusedAttempt {
    RefusedAttempt::new("answer a hold", None, "inside a task".into())
}

#[tokio::test]
async fn attempts_after_the_first_hundred_are_counted_and_recorded_at_powers_of_two() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let (runtime, run) = started().await;
    root.prepare_run(&run).unwrap();
    for number in 1..=260 {
        let kept = record(&runtime, &root, &run, agent(), attempt()).await.unwrap();
        let expected = if number <= 100 || [128, 256].contains(&number) {
            RefusalRecord::AsEvent(number)
        } else {
            RefusalRecord::Counted(number)
        };
        assert_eq!(kept, expected);
    }
    let state = load(&*runtime.store, &run).await.unwrap();
    assert_eq!(state.refused_attempts, 256);
    assert!(state.warnings.iter().any(|warning| warning.contains("at least 256 attempts")), "{:?}", state.warnings);
}

#[tokio::test]
async fn an_uncounted_attempt_is_not_reported_as_counted() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let (runtime, run) = started().await;
    for _ in 1..=100 {
        record(&runtime, &root, &run, agent(), attempt()).await.unwrap();
    }
    assert_eq!(record(&runtime, &root, &run, agent(), attempt()).await.unwrap(), RefusalRecord::NotCounted);
}
