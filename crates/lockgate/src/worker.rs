//! Workers, which drive many runs in one process.
//!
//! A worker drives all runs that were [started](crate::Project::start) or [resumed](crate::Project::resume) without a driver of
//! their own, concurrently. A run that waits for a person uses no resources. When any process records the answer, the worker
//! continues the run.

use crate::error::Error;
use crate::project::Project;
use crate::retention::RetentionPass;
use crate::view::WorktreeView;
use crate::{plan_summaries, worktrees};
use lockgate_engine::id::RunId;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::{Run, Status};
use lockgate_engine::time::Timestamp;
use lockgate_runner::driver::{DriveError, Halt, HaltReason, Listener, Paused};
use lockgate_runner::fleet::{Fleet, FleetLimits, Watcher};
use lockgate_runner::notifications::{Kind, Notification, Reporter, StepOutcome};
use lockgate_runner::process::{become_subreaper, keep_reaping};
use lockgate_runner::root::{Root, Step};
use lockgate_runner::runtime::Runtime;
use lockgate_store::StoreError;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// An event of a run that a worker drives.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Report {
    /// The worker has started to drive the run.
    Started,
    /// The run waits for a person.
    Waiting,
    /// The run was interrupted.
    Interrupted,
    /// The run could not be driven.
    NotDriven {
        /// The error.
        error: String,
        /// The delay until the next attempt; absent if the worker gives up on the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
    },
    /// A task failed.
    TaskFailed {
        /// The address of the task.
        task: String,
        /// The error.
        error: String,
    },
    /// The run has ended.
    Ended {
        /// The final status.
        status: Status,
    },
    /// The run left a worktree.
    Worktree {
        /// The worktree.
        worktree: WorktreeView,
    },
    /// The worktrees of the run could not be listed.
    NoWorktrees {
        /// The error.
        error: String,
    },
    /// The summary of a plan was written.
    Summary {
        /// The path of the summary.
        path: String,
    },
    /// The summary of a plan could not be written.
    SummaryFailed {
        /// The error.
        error: String,
    },
}

/// Observes the runs that a worker drives. A panic in it ends only the driver of the affected run.
pub trait Observer: Send + Sync + 'static {
    /// Called for each event of a run.
    fn report(&self, run: &RunId, at: Timestamp, report: &Report);

    /// Called when a commit of a run has become durable.
    fn committed(&self, run: &Run, entries: &[Entry]) {
        let (_, _) = (run, entries);
    }

    /// Called when the store has failed. The worker retries after `again_in` and claims no other run until then.
    fn store_failed(&self, at: Timestamp, error: &StoreError, again_in: Duration) {
        let (_, _, _) = (at, error, again_in);
    }

    /// Called when the last driven run has paused, for example to give free memory back to the system.
    fn idle(&self) {}

    /// Called when the worker can notice changes by other processes only with a delay.
    fn changes_are_late(&self, at: Timestamp, warning: &str) {
        let (_, _) = (at, warning);
    }
}

impl Observer for () {
    fn report(&self, _: &RunId, _: Timestamp, _: &Report) {}
}

/// Drives runs in the background of this process until it is stopped.
///
/// The worker survives a temporary failure of the store, but not its loss or corruption: see [`Worker::ended`].
pub struct Worker {
    halt: Halt,
    /// `None` once the end of the worker has been observed.
    task: Option<JoinHandle<Result<(), Error>>>,
}

impl Worker {
    /// Starts a worker in the current tokio runtime, which drives at most `max_runs` runs at a time.
    pub fn start(project: &Project, max_runs: usize, observer: Arc<dyn Observer>) -> Self {
        let halt = Halt::default();
        let mut runs = Runs::new(project, observer);
        let stop = halt.clone();
        let task = tokio::spawn(async move {
            let driven = runs.drive(FleetLimits { idle: None, max_runs }, &stop).await;
            runs.settle_notices().await;
            driven
        });
        Self { halt, task: Some(task) }
    }

    /// Stops the worker. Running tasks are ended, and their runs are saved as interrupted.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.halt.halt(HaltReason::Stopped);
        self.ended().await
    }

    /// Waits until the worker ends by itself because its store is lost or corrupt. Reports the reason only once.
    pub async fn ended(&mut self) -> Result<(), Error> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = task.await;
        self.task = None;
        match ended {
            Ok(driven) => driven,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

/// Makes this process adopt processes that tasks leave behind, so that they end with their task even if they daemonize. The
/// `lockgate` program does this whenever it drives runs. Call it once, inside the tokio runtime, if your program drives runs,
/// unless your own code waits for arbitrary children: the adopted processes are reaped in the background.
pub fn adopt_orphans() -> std::io::Result<()> {
    let adopted = become_subreaper();
    tokio::spawn(keep_reaping());
    adopted
}

/// The runs of a project that this process drives.
pub struct Runs {
    fleet: Fleet,
    writing: Writing,
    runtime: Runtime,
    retention: RetentionPass,
}

impl Runs {
    /// Creates an empty set of runs.
    pub fn new(project: &Project, observer: Arc<dyn Observer>) -> Self {
        let writing = Writing::default();
        let shared = Shared { root: project.root.clone(), runtime: project.runtime.clone(), writing: writing.clone(), observer };
        let (fleet, runtime) = (Fleet::new(project.runtime.clone(), Box::new(shared)), project.runtime.clone());
        Self { fleet, writing, runtime, retention: project.retention_pass() }
    }

    /// Drives all runs that can continue, until there have been none for a while or `halt` is triggered. Meanwhile, finished runs that the settings no
    /// longer keep are removed, at least once.
    pub async fn drive(&mut self, until: FleetLimits, halt: &Halt) -> Result<(), Error> {
        let ended = Arc::new(Notify::new());
        let drive = async {
            let driven = self.fleet.drive(until, halt).await;
            ended.notify_one();
            driven
        };
        let (driven, ()) = tokio::join!(drive, self.retention.apply_until(&ended, halt));
        let writing = std::mem::take(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        for written in writing {
            if let Err(error) = written.await {
                tracing::warn!(%error, "a summary was not written");
            }
        }
        Ok(driven?)
    }

    /// Waits until each notice that is due has been attempted once.
    async fn settle_notices(&self) {
        if let Some(courier) = self.runtime.perform.courier() {
            courier.settle().await;
        }
    }

    /// Whether a run could be driven here, other than those that the worker has given up on.
    pub async fn has_work(&self) -> Result<bool, Error> {
        Ok(self.fleet.has_work().await?)
    }
}

/// Tasks that write summaries of plans.
type Writing = Arc<Mutex<Vec<JoinHandle<()>>>>;

/// State that is shared by all runs of a worker.
#[derive(Clone)]
struct Shared {
    root: Root,
    runtime: Runtime,
    writing: Writing,
    observer: Arc<dyn Observer>,
}

impl Shared {
    fn report(&self, run: &RunId, report: &Report) {
        self.observer.report(run, self.runtime.clock.now(), report);
    }

    fn write_summaries(&self, run: &Run) {
        if run.workflow.plans.is_empty() {
            return;
        }
        let (shared, run) = (self.clone(), run.clone());
        let written = tokio::spawn(async move {
            for written in plan_summaries::write_summaries(&shared.runtime, &shared.root, &run).await {
                let report = written
                    .map_or_else(|error| Report::SummaryFailed { error: error.to_string() }, |path| Report::Summary { path });
                shared.report(&run.id, &report);
            }
        });
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        writing.retain(|earlier| !earlier.is_finished());
        writing.push(written);
    }
}

impl Watcher for Shared {
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener> {
        self.report(run, &Report::Started);
        Box::new(OneRun { shared: self.clone(), reporter: Reporter::default() })
    }

    fn paused(&mut self, run: &RunId, paused: &Paused) {
        match paused {
            Paused::Waiting => self.report(run, &Report::Waiting),
            Paused::Interrupted => self.report(run, &Report::Interrupted),
            // The end was reported when it happened.
            Paused::Ended => {}
        }
    }

    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>) {
        let retry_in_ms = again_in.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        self.report(run, &Report::NotDriven { error: error.to_string(), retry_in_ms });
    }

    fn store_failed(&mut self, error: &StoreError, again_in: Duration) {
        self.observer.store_failed(self.runtime.clock.now(), error, again_in);
    }

    fn changes_are_late(&mut self, warning: &str) {
        self.observer.changes_are_late(self.runtime.clock.now(), warning);
    }

    fn idle(&mut self) {
        self.observer.idle();
    }

    fn is_ours(&self, run: &RunId) -> bool {
        self.root.run_dir(run).is_dir()
    }
}

/// Reports how a run ended, its worktrees and its plan summaries.
struct OneRun {
    shared: Shared,
    reporter: Reporter,
}

impl Listener for OneRun {
    fn committed(&mut self, run: &Run, entries: &[Entry]) {
        self.shared.observer.committed(run, entries);
        for Notification { at, kind, .. } in self.reporter.report(run, entries) {
            let report = |report: &Report| self.shared.observer.report(&run.id, at, report);
            if let Kind::StepEnded { step: Step::Task(key), outcome: StepOutcome::Failed(failure), .. } = kind {
                report(&Report::TaskFailed { task: key.address(), error: failure.message.clone() });
            } else if let Kind::RunEnded(_) = kind {
                report(&Report::Ended { status: run.status() });
                match worktrees::settle(&self.shared.root, run) {
                    Ok(left) => left.into_iter().for_each(|worktree| report(&Report::Worktree { worktree })),
                    Err(error) => report(&Report::NoWorktrees { error: error.to_string() }),
                }
                self.shared.write_summaries(run);
            }
        }
    }
}
