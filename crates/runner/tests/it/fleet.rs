//! Which runs a fleet finds in a shared store, and the effect of a panic in one of them.

use crate::no_effects::NoEffects;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, RunId, TaskId, TimerId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Caller, CommandKind, Create, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::Created;
use lockgate_engine::run::index::TimerKind;
use lockgate_engine::spec::workflow::{Phase, Task, Work, Workflow};
use lockgate_runner::driver::{DriveError, Driver, Halt, HaltReason, Listener, Paused, start_detached};
use lockgate_runner::fleet::{Fleet, FleetLimits, Watcher};
use lockgate_runner::runtime::OrphanError;
use lockgate_runner::runtime::{Perform, Performed, Runtime, Stop, SystemClock};
use lockgate_runner::start::Prepared;
use lockgate_store::conformance::{HistoryWriter, timer_row};
use lockgate_store::{MemoryStore, Store, StoreError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Recognizes its runs by their id prefix, and stops the fleet once one of them was tried.
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
        self.halt.halt(HaltReason::Stopped);
    }

    fn is_ours(&self, run: &RunId) -> bool {
        run.as_str().starts_with("ours")
    }
}

async fn store_with(runs: impl Iterator<Item = String>) -> Arc<dyn Store> {
    Arc::new(memory_with(runs).await)
}

async fn memory_with(runs: impl Iterator<Item = String>) -> MemoryStore {
    let store = MemoryStore::new();
    for run in runs {
        let mut scribe = HistoryWriter::new(&run);
        let mut append = scribe.next("detached");
        let mut wants = timer_row(&scribe.run, "drive", 0);
        wants.kind = TimerKind::Drive.into();
        append.index.timers = vec![wants];
        scribe.append(&store, append).await.unwrap();
    }
    store
}

fn fleet(store: Arc<dyn Store>) -> (Fleet, Halt, Arc<Mutex<Vec<RunId>>>) {
    let (halt, tried) = (Halt::default(), Arc::new(Mutex::new(Vec::new())));
    let runtime = Runtime { store, perform: Arc::new(NoEffects), clock: Arc::new(SystemClock) };
    let root = Root { tried: tried.clone(), halt: halt.clone() };
    (Fleet::new(runtime, Box::new(root)), halt, tried)
}

#[tokio::test]
async fn a_run_behind_many_runs_of_other_roots_is_found_and_driven() {
    let others = (0..50).map(|number| format!("theirs{number:02}"));
    let (mut fleet, halt, tried) = fleet(store_with(others.chain(["ours".to_owned()])).await);
    assert_eq!(fleet.has_work().await, Ok(true));
    let until = FleetLimits { idle: Some(Duration::ZERO), max_runs: 2 };
    fleet.drive(until, &halt).await.unwrap();
    assert_eq!(*tried.lock().unwrap(), [RunId::new("ours")]);
}

#[tokio::test]
async fn the_fleet_does_not_wait_for_runs_of_other_roots() {
    let others = (0..50).map(|number| format!("theirs{number:02}"));
    let (mut fleet, halt, tried) = fleet(store_with(others).await);
    assert_eq!(fleet.has_work().await, Ok(false));
    fleet.drive(FleetLimits { idle: Some(Duration::ZERO), max_runs: 2 }, &halt).await.unwrap();
    assert!(tried.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_driven_by_another_process_is_left_alone_until_released() {
    let store = memory_with(["ours".to_owned()].into_iter()).await;
    let (other, run) = (store.another_process(), RunId::new("ours"));
    let epoch = other.claim(&run).await.unwrap();
    let (mut fleet, halt, tried) = fleet(Arc::new(store.clone()));
    assert_eq!(fleet.has_work().await, Ok(true), "its driver may be about to end");
    let released = async {
        // By then the fleet has asked for the next run several times.
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert!(tried.lock().unwrap().is_empty(), "it is not a failure and is not given up");
        }
        other.release(&run, epoch).await.unwrap();
    };
    let driven = fleet.drive(FleetLimits { idle: Some(Duration::ZERO), max_runs: 2 }, &halt);
    let (driven, ()) = futures::future::join(driven, released).await;
    driven.unwrap();
    assert_eq!(*tried.lock().unwrap(), [run]);
}

/// Finishes every task, except in runs that are to panic: in the effect itself, or before it starts.
struct Panicking;

impl Perform for Panicking {
    fn start(&self, run: &Run, effect: &Effect, _: Stop) -> BoxFuture<'static, Performed> {
        let run = run.id.clone();
        assert_ne!(run.as_str(), "before", "on purpose");
        let Effect::Task { key, attempt } = effect.clone() else { panic!("no other effect is asked for") };
        Box::pin(async move {
            tokio::task::yield_now().await;
            assert_ne!(run.as_str(), "within", "on purpose");
            let outcome = TaskOutcome::Finished { result: None, outputs: Vec::new() };
            CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }.into()
        })
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Records the outcome of runs, and stops the fleet after this many.
struct Notes {
    noted: Arc<Mutex<Vec<String>>>,
    enough: usize,
    halt: Halt,
}

impl Notes {
    fn note(&self, note: String) {
        let mut noted = self.noted.lock().unwrap();
        noted.push(note);
        if noted.len() == self.enough {
            self.halt.halt(HaltReason::Stopped);
        }
    }
}

impl Watcher for Notes {
    fn listener(&mut self, _: &RunId) -> Box<dyn Listener> {
        Box::new(())
    }

    fn paused(&mut self, run: &RunId, paused: &Paused) {
        self.note(format!("{run} {paused:?}"));
    }

    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>) {
        let is_panic = matches!(error, DriveError::Panicked { run: of, detail } if of == run && detail.contains("on purpose"));
        self.note(format!("{run} panicked: {is_panic}, again: {}", again_in.is_some()));
    }

    fn is_ours(&self, _: &RunId) -> bool {
        true
    }
}

/// Starts detached runs with one task each.
async fn leave(runtime: &Runtime, runs: &[&str]) {
    for run in runs.iter().copied() {
        let task = Task::new(TaskId::new("t"), Work::Run("work".into()));
        let phase = Phase { tasks: vec![task], ..Phase::new(PhaseId::new("p")) };
        let workflow = Workflow { name: "panics".into(), phases: vec![phase], ..Workflow::default() };
        let bytes = workflow.to_bytes();
        let created = Created::new(RunId::new(run), Digest::of(&bytes), "out".into(), runtime.store.driver().clone());
        let values = vec![(created.definition, bytes)];
        let create = Create { created, presets: Vec::new() };
        let prepared = Prepared { create, workflow: Arc::new(workflow), values };
        start_detached(runtime, Caller::driver(), prepared).await.unwrap();
    }
}

fn runtime(store: &MemoryStore) -> Runtime {
    Runtime { store: Arc::new(store.clone()), perform: Arc::new(Panicking), clock: Arc::new(SystemClock) }
}

#[tokio::test]
async fn a_panic_in_one_run_ends_only_that_run_and_releases_it() {
    let store = MemoryStore::new();
    let runtime = runtime(&store);
    let runs = ["before", "fine", "within"];
    leave(&runtime, &runs).await;
    let (halt, noted) = (Halt::default(), Arc::new(Mutex::new(Vec::new())));
    let notes = Notes { noted: noted.clone(), enough: runs.len(), halt: halt.clone() };
    Fleet::new(runtime, Box::new(notes)).drive(FleetLimits { idle: None, max_runs: 9 }, &halt).await.unwrap();
    let mut noted = noted.lock().unwrap().clone();
    noted.sort();
    assert_eq!(noted, ["before panicked: true, again: true", "fine Ended", "within panicked: true, again: true"]);
    for run in runs {
        assert_eq!(store.driver_of(&RunId::new(run)).await, Ok(None), "{run}");
    }
}

/// Panics whenever it is notified of a run that is to panic, and halts after the end of `fine`.
struct PanickingWatcher {
    noted: Arc<Mutex<Vec<String>>>,
    halt: Halt,
}

impl PanickingWatcher {
    fn note(&self, run: &RunId, note: &str) {
        self.noted.lock().unwrap().push(format!("{run} {note}"));
        assert!(run.as_str() == "fine", "on purpose");
    }
}

impl Watcher for PanickingWatcher {
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener> {
        self.note(run, "is driven");
        Box::new(())
    }

    fn paused(&mut self, run: &RunId, _: &Paused) {
        if run.as_str() == "fine" {
            self.halt.halt(HaltReason::Stopped);
        }
        self.note(run, "paused");
    }

    fn failed(&mut self, run: &RunId, _: &DriveError, _: Option<Duration>) {
        self.note(run, "failed");
    }

    fn is_ours(&self, _: &RunId) -> bool {
        true
    }
}

#[tokio::test]
async fn a_panic_in_the_watcher_ends_no_other_run() {
    let store = MemoryStore::new();
    let runtime = runtime(&store);
    // It is claimed first, and the watcher panics both when it is driven and when it fails.
    leave(&runtime, &["a", "fine"]).await;
    let (halt, noted) = (Halt::default(), Arc::new(Mutex::new(Vec::new())));
    let watcher = PanickingWatcher { noted: noted.clone(), halt: halt.clone() };
    Fleet::new(runtime, Box::new(watcher)).drive(FleetLimits { idle: None, max_runs: 9 }, &halt).await.unwrap();
    assert_eq!(*noted.lock().unwrap(), ["a is driven", "a failed", "fine is driven", "fine paused"]);
    assert_eq!(store.driver_of(&RunId::new("a")).await, Ok(None), "the claim is released");
}

/// Records that the store failed, and lets it recover.
struct Outage {
    notes: Notes,
    store: MemoryStore,
    failures: Arc<Mutex<u32>>,
}

impl Watcher for Outage {
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener> {
        self.notes.listener(run)
    }

    fn paused(&mut self, run: &RunId, paused: &Paused) {
        self.notes.paused(run, paused);
    }

    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>) {
        self.notes.failed(run, error, again_in);
    }

    fn store_failed(&mut self, _: &StoreError, _: Duration) {
        let mut failures = self.failures.lock().unwrap();
        *failures += 1;
        self.store.set_cut_off(*failures < 3);
    }

    fn is_ours(&self, _: &RunId) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_for_a_while_does_not_end_the_fleet() {
    let store = MemoryStore::new();
    let runtime = runtime(&store);
    leave(&runtime, &["fine"]).await;
    store.set_cut_off(true);
    let (halt, noted, failures) = (Halt::default(), Arc::new(Mutex::new(Vec::new())), Arc::default());
    let notes = Notes { noted: noted.clone(), enough: 1, halt: halt.clone() };
    let outage = Outage { notes, store, failures: Arc::clone(&failures) };
    Fleet::new(runtime, Box::new(outage)).drive(FleetLimits { idle: None, max_runs: 9 }, &halt).await.unwrap();
    assert_eq!(*noted.lock().unwrap(), ["fine Ended"]);
    assert_eq!(*failures.lock().unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_here_and_ended_elsewhere_is_nothing_to_wait_for() {
    let store = memory_with(["ours".to_owned()].into_iter()).await;
    let (halt, tried) = (Halt::default(), Arc::new(Mutex::new(Vec::new())));
    // Its history cannot be read, so it fails and is to be retried.
    let root = Root { tried: tried.clone(), halt: Halt::default() };
    let runtime = Runtime { store: Arc::new(store.clone()), perform: Arc::new(NoEffects), clock: Arc::new(SystemClock) };
    let mut fleet = Fleet::new(runtime, Box::new(root));
    let ended_elsewhere = async {
        while tried.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (version, hash) = store.load(&RunId::new("ours")).await.unwrap().unwrap().head();
        let mut scribe = HistoryWriter { version, hash, ..HistoryWriter::new("ours") };
        let mut last = scribe.next("cancelled");
        last.index.timers_removed = vec![TimerId::new("drive")];
        scribe.append(&store.another_process(), last).await.unwrap();
    };
    let driven = fleet.drive(FleetLimits { idle: Some(Duration::ZERO), max_runs: 2 }, &halt);
    let (driven, ()) = futures::future::join(driven, ended_elsewhere).await;
    driven.unwrap();
    assert_eq!(tried.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_driver_that_is_dropped_releases_its_claim() {
    let store = MemoryStore::new();
    let runtime = runtime(&store);
    leave(&runtime, &["fine"]).await;
    let run = RunId::new("fine");
    let driver = Driver::resume(runtime.clone(), &run, Caller::driver(), Box::new(())).await.unwrap();
    let again = Driver::resume(runtime.clone(), &run, Caller::driver(), Box::new(())).await;
    assert!(matches!(again, Err(DriveError::DrivenBy { .. })), "one driver at a time, in one process, too");
    drop(driver);
    assert_eq!(store.driver_of(&run).await, Ok(None));
}
