//! Ownership of runs: each run has one driver at a time, even within one process.

use lockgate::code::Code;
use lockgate::engine::id::RunId;
use lockgate::engine::run::Run;
use lockgate::engine::run::event::{Entry, Event};
use lockgate::engine::time::Timestamp;
use lockgate::project::{Options, Project};
use lockgate::resume::Resume;
use lockgate::start::Start;
use lockgate::view::RunStatus;
use lockgate::worker::{Observer, Report, Worker};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// Each run records the start of its task, which ends when the file `go` exists.
const WORKFLOW: &str = "
name: waits-for-go
phases:
  - id: work
    tasks:
      - { id: wait, run: 'echo started >> \"$ROOT/started\"; until [ -e \"$ROOT/go\" ]; do sleep 0.02; done', on_interrupt: rerun }
";

struct Bench {
    dir: TempDir,
    file: PathBuf,
    project: Project,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("workflow.yaml");
        std::fs::write(&file, WORKFLOW.replace("$ROOT", dir.path().to_str().unwrap())).unwrap();
        let project = Project::open_or_create(dir.path(), Options::default()).unwrap();
        Self { dir, file, project }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    async fn start(&self) -> RunId {
        self.project.start(&self.file, Start::default(), self.project.person("ada")).await.unwrap()
    }

    fn go(&self) {
        std::fs::write(self.path().join("go"), "").unwrap();
    }

    fn tasks_started(&self) -> usize {
        std::fs::read_to_string(self.path().join("started")).unwrap().lines().count()
    }
}

/// Counts started tasks, and records runs that could not be driven.
#[derive(Default)]
struct Observed {
    started: watch::Sender<usize>,
    not_driven: Mutex<Vec<String>>,
}

impl Observer for Observed {
    fn report(&self, run: &RunId, _: Timestamp, report: &Report) {
        if let Report::NotDriven { error, .. } = report {
            self.not_driven.lock().unwrap().push(format!("{run}: {error}"));
        }
    }

    fn committed(&self, _: &Run, entries: &[Entry]) {
        let started = entries.iter().filter(|entry| matches!(entry.event, Event::TaskStarted { .. })).count();
        self.started.send_modify(|count| *count += started);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_worker_of_this_process_drives_is_not_resumed_a_second_time() {
    let bench = Bench::new();
    let run = bench.start().await;
    let observed = Arc::new(Observed::default());
    let worker = Worker::start(&bench.project, 4, observed.clone());
    observed.started.subscribe().wait_for(|started| *started == 1).await.unwrap();

    let again = bench.project.resume(&run, Resume::default(), None, bench.project.person("ada")).await.unwrap_err();
    assert_eq!(again.code(), Code::DrivenElsewhere, "{again}");

    bench.go();
    assert_eq!(bench.project.wait(&run).await.unwrap(), RunStatus::Complete);
    worker.stop().await.unwrap();
    assert_eq!(bench.tasks_started(), 1, "the task was not stopped and started again");
    assert_eq!(*observed.not_driven.lock().unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_of_one_project_share_its_runs() {
    const RUNS: usize = 12;
    let bench = Bench::new();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(bench.start().await);
    }
    let observed = Arc::new(Observed::default());
    let workers = [8, 8].map(|most| Worker::start(&bench.project, most, observed.clone()));
    observed.started.subscribe().wait_for(|started| *started == RUNS).await.unwrap();
    bench.go();
    for run in &runs {
        assert_eq!(bench.project.wait(run).await.unwrap(), RunStatus::Complete);
    }
    for worker in workers {
        worker.stop().await.unwrap();
    }
    assert_eq!(bench.tasks_started(), RUNS, "each task ran once");
    assert_eq!(*observed.not_driven.lock().unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_run_is_waited_for_while_the_worker_is_busy_with_another() {
    let bench = Bench::new();
    let (first, queued) = (bench.start().await, bench.start().await);
    let observed = Arc::new(Observed::default());
    let worker = Worker::start(&bench.project, 1, observed.clone());
    observed.started.subscribe().wait_for(|started| *started == 1).await.unwrap();
    let waiting = bench.project.wait(&queued);
    tokio::pin!(waiting);
    // Longer than a handover between processes may take.
    let early = tokio::time::timeout(Duration::from_secs(3), &mut waiting).await;
    assert!(early.is_err(), "{early:?}");
    bench.go();
    assert_eq!(waiting.await.unwrap(), RunStatus::Complete);
    assert_eq!(bench.project.wait(&first).await.unwrap(), RunStatus::Complete);
    worker.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_no_worker_takes_is_interrupted() {
    let bench = Bench::new();
    let run = bench.start().await;
    assert_eq!(bench.project.wait(&run).await.unwrap(), RunStatus::Interrupted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_database_is_gone_ends_with_the_reason() {
    let bench = Bench::new();
    let run = bench.start().await;
    let observed = Arc::new(Observed::default());
    let mut worker = Worker::start(&bench.project, 1, observed.clone());
    observed.started.subscribe().wait_for(|started| *started == 1).await.unwrap();
    std::fs::rename(bench.path().join(".lockgate/lockgate.db"), bench.path().join("moved.db")).unwrap();
    let ended = worker.ended().await.unwrap_err();
    assert!(ended.to_string().contains("removed or moved"), "run {run}: {ended}");
}
