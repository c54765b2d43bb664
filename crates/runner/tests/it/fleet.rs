//! Which runs a fleet finds in a store that it shares with others.

use crate::nobody::Nobody;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::TimerKind;
use lockgate_runner::driver::{DriveError, Halt, Listener, Paused};
use lockgate_runner::fleet::{Fleet, Until, Watcher};
use lockgate_runner::world::{SystemClock, World};
use lockgate_store::conformance::{Scribe, timer_row};
use lockgate_store::{MemoryStore, Store};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Knows its runs by how their ids begin, and stops the fleet once one of them was tried.
struct Root {
    tried: Arc<Mutex<Vec<RunId>>>,
    halt: Halt,
}

impl Watcher for Root {
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener> {
        self.tried.lock().unwrap().push(run.clone());
        Box::new(())
    }

    fn paused(&mut self, _: &RunId, _: &Paused) {}

    fn failed(&mut self, _: &RunId, _: &DriveError, _: Option<Duration>) {
        self.halt.halt("enough");
    }

    fn is_ours(&self, run: &RunId) -> bool {
        run.as_str().starts_with("ours")
    }
}

/// A store in which these runs want a driver.
async fn store_with(runs: impl Iterator<Item = String>) -> Arc<dyn Store> {
    let store = MemoryStore::new();
    for run in runs {
        let mut scribe = Scribe::new(&run);
        let mut append = scribe.next("detached");
        let mut wants = timer_row(&scribe.run, "drive", 0);
        wants.kind = TimerKind::Drive.into();
        append.index.timers = vec![wants];
        scribe.append(&store, append).await.unwrap();
    }
    Arc::new(store)
}

fn fleet(store: Arc<dyn Store>) -> (Fleet, Halt, Arc<Mutex<Vec<RunId>>>) {
    let (halt, tried) = (Halt::default(), Arc::new(Mutex::new(Vec::new())));
    let world = World { store, perform: Arc::new(Nobody), clock: Arc::new(SystemClock) };
    let root = Root { tried: tried.clone(), halt: halt.clone() };
    (Fleet::new(world, Box::new(root)), halt, tried)
}

#[tokio::test]
async fn a_run_behind_many_of_other_places_is_found_and_driven() {
    let others = (0..50).map(|number| format!("theirs{number:02}"));
    let (mut fleet, halt, tried) = fleet(store_with(others.chain(["ours".to_owned()])).await);
    assert_eq!(fleet.is_wanted().await, Ok(true));
    let until = Until { idle: Some(Duration::ZERO), at_once: 2 };
    fleet.drive(until, &halt).await.unwrap();
    assert_eq!(*tried.lock().unwrap(), [RunId::new("ours")]);
}

#[tokio::test]
async fn runs_of_other_places_are_nothing_to_wait_for() {
    let others = (0..50).map(|number| format!("theirs{number:02}"));
    let (mut fleet, halt, tried) = fleet(store_with(others).await);
    assert_eq!(fleet.is_wanted().await, Ok(false));
    fleet.drive(Until { idle: Some(Duration::ZERO), at_once: 2 }, &halt).await.unwrap();
    assert!(tried.lock().unwrap().is_empty());
}
