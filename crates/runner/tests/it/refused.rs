//! Refused attempts to decide about a run: recorded at first, counted always.

use crate::nobody::Nobody;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, RunId, TaskId};
use lockgate_engine::run::command::{Actor, Caller, Channel, Create, Credential, TerminalRule};
use lockgate_engine::run::event::{Created, RefusedAttempt};
use lockgate_engine::spec::workflow::{Phase, Task, Work, Workflow};
use lockgate_runner::driver::begin_resting;
use lockgate_runner::load::load;
use lockgate_runner::refused::{Kept, record};
use lockgate_runner::root::Root;
use lockgate_runner::start::Prepared;
use lockgate_runner::world::{SystemClock, World};
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

async fn begun() -> (World, RunId) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let world = World { store, perform: Arc::new(Nobody), clock: Arc::new(SystemClock) };
    let tasks = vec![Task::new(TaskId::from("t"), Work::Pass)];
    let phases = vec![Phase { tasks, ..Phase::new(PhaseId::from("one")) }];
    let workflow = Workflow { name: "test".into(), phases, ..Workflow::default() };
    let bytes = workflow.to_bytes();
    let run = RunId::from("run00001");
    let created = Created::new(run.clone(), Digest::of(&bytes), "out".into(), world.store.driver().clone());
    let values = vec![(created.definition, bytes)];
    let prepared = Prepared { create: Create { created, presets: Vec::new() }, workflow: Arc::new(workflow), values };
    begin_resting(&world, Caller::new(agent(), TerminalRule::Required), prepared).await.unwrap();
    (world, run)
}

fn attempt() -> RefusedAttempt {
    RefusedAttempt::new("answer a hold", None, "inside a task".into())
}

#[tokio::test]
async fn attempts_beyond_the_first_hundred_are_counted_and_recorded_at_each_doubling() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let (world, run) = begun().await;
    root.prepare_run(&run).unwrap();
    for number in 1..=260 {
        let kept = record(&world, &root, &run, agent(), attempt()).await.unwrap();
        let expected = if number <= 100 || [128, 256].contains(&number) { Kept::AsEvent(number) } else { Kept::Counted(number) };
        assert_eq!(kept, expected);
    }
    let state = load(&*world.store, &run).await.unwrap();
    assert_eq!(state.refused_attempts, 256);
    assert!(state.warnings.iter().any(|warning| warning.contains("at least 256 attempts")), "{:?}", state.warnings);
}

#[tokio::test]
async fn an_attempt_that_cannot_be_counted_is_not_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let (world, run) = begun().await;
    for _ in 1..=100 {
        record(&world, &root, &run, agent(), attempt()).await.unwrap();
    }
    assert_eq!(record(&world, &root, &run, agent(), attempt()).await.unwrap(), Kept::NotCounted);
}
