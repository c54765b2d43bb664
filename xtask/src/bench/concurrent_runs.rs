//! Many runs in one process, each with its own driver, all on one store.

use lockgate_engine::run::command::{Caller, Channel, CommandKind, TerminalRule};
use lockgate_runner::config::Config;
use lockgate_runner::driver::{Driver, Halt, Parked, Paused, start_detached};
use lockgate_runner::identity::cli_actor;
use lockgate_runner::perform::Performer;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Clock, Runtime, SystemClock};
use lockgate_runner::script::{Evaluator, WorkerCommand};
use lockgate_runner::start::{Frozen, Prepared, StartOptions, read_workflow};
use lockgate_store::Store;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The same allocator as in the Lockgate program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A project whose runs are driven in this process.
#[derive(Clone)]
pub(crate) struct Harness {
    root: Root,
    runtime: Runtime,
    frozen: Arc<Frozen>,
    caller: Caller,
}

impl Harness {
    /// Writes a workflow to a directory.
    pub(crate) fn new(directory: &Path, store: Arc<dyn Store>, workflow: &str) -> Result<Self, String> {
        let path = directory.join("workflow.yaml");
        std::fs::write(&path, workflow).map_err(to_text)?;
        let root = Root::at(directory);
        root.prepare().map_err(to_text)?;
        let mut file = read_workflow(&path).map_err(to_text)?;
        let workflow = file.workflow.take().ok_or("the workflow has problems")?;
        let frozen = Arc::new(Frozen::new(&root, &file, workflow));
        // No workflow here needs a script.
        let evaluator = Evaluator::new(WorkerCommand { program: "false".into(), args: Vec::new(), env: Vec::new() });
        let performer = Performer::new(root.clone(), Config::default(), store.clone(), evaluator, Arc::new(|_, _, _| {}));
        let runtime = Runtime { store, perform: Arc::new(performer), clock: Arc::new(SystemClock) };
        let caller = Caller::new(cli_actor(&root, Channel::Command), TerminalRule::NotRequired);
        Ok(Self { root, runtime, frozen, caller })
    }

    /// Starts runs, at most `concurrency` of them in parallel, and drives them until they end or wait. Returns the duration and the waiting runs.
    pub(crate) async fn drive(&self, runs: usize, concurrency: usize) -> Result<(Duration, Vec<Parked>), String> {
        let started = Instant::now();
        let mut running = JoinSet::new();
        let mut waiting = Vec::new();
        for _ in 0..runs {
            if running.len() == concurrency {
                waiting.extend(running.join_next().await.transpose().map_err(to_text)?.transpose()?.flatten());
            }
            let stage = self.clone();
            running.spawn(async move { stage.one().await });
        }
        while let Some(done) = running.join_next().await {
            waiting.extend(done.map_err(to_text)??);
        }
        Ok((started.elapsed(), waiting))
    }

    async fn one(&self) -> Result<Option<Parked>, String> {
        let Prepared { create, workflow, values } = self.prepare()?;
        let created = Driver::create(self.runtime.clone(), self.caller.clone(), create, workflow, values, Box::new(())).await;
        let mut driver = created.map_err(to_text)?;
        match driver.drive(&Halt::default()).await.map_err(to_text)? {
            Paused::Ended => Ok(None),
            Paused::Waiting => Ok(Some(driver.park().await)),
            Paused::Interrupted => Err("a run was interrupted".to_owned()),
        }
    }

    /// Answers a waiting run, and returns the time until the next task started.
    pub(crate) async fn answer(&self, parked: &Parked) -> Result<Duration, String> {
        let started = Instant::now();
        let mut driver = parked.wake(self.runtime.clone(), Box::new(())).await.map_err(to_text)?;
        let hold = driver.run().open_holds().first().map(|hold| hold.id.clone()).ok_or("a run that waits has no hold")?;
        let answer = CommandKind::Answer { hold, revision: Some(1), option: "1".to_owned(), feedback: None };
        driver.submit(self.caller.clone(), answer).await.map_err(to_text)?;
        let took = started.elapsed();
        match driver.drive(&Halt::default()).await.map_err(to_text)? {
            Paused::Ended => Ok(took),
            paused @ (Paused::Waiting | Paused::Interrupted) => Err(format!("an answered run is {paused:?}")),
        }
    }

    /// Starts runs in the background.
    pub(crate) async fn leave(&self, runs: usize) -> Result<(), String> {
        let mut running = JoinSet::new();
        for _ in 0..runs {
            let stage = self.clone();
            running.spawn(async move {
                let prepared = stage.prepare()?;
                stage.root.prepare_run(&prepared.create.created.run).map_err(to_text)?;
                start_detached(&stage.runtime, stage.caller.clone(), prepared).await.map_err(to_text)
            });
        }
        while let Some(done) = running.join_next().await {
            done.map_err(to_text)??;
        }
        Ok(())
    }

    fn prepare(&self) -> Result<Prepared, String> {
        self.frozen.prepare(&self.root, self.runtime.store.driver(), SystemClock.seed(), StartOptions::default()).map_err(to_text)
    }
}

/// A runtime like that of `lockgate worker`.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(to_text)
}

fn to_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
