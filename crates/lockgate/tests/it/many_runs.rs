//! Many runs in one process, with panicking drivers and answers from another process.

use lockgate::engine::id::RunId;
use lockgate::engine::run::Run;
use lockgate::engine::run::event::{Entry, Event};
use lockgate::engine::time::Timestamp;
use lockgate::project::{Options, Project};
use lockgate::start::Start;
use lockgate::view::RunStatus;
use lockgate::worker::{Observer, Report, Worker};
use lockgate_store::postgres::test_server::server;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RUNS: usize = 200;

const WORKFLOW: &str = "
name: release
phases:
  - id: build
    tasks:
      - { id: compile, run: 'true', on_interrupt: rerun }
    checkpoint:
      prompt: Ship it?
      options:
        - { label: Ship, on_select: { action: continue } }
        - { label: Stop, on_select: { action: abort } }
  - id: ship
    tasks:
      - { id: upload, run: 'true', on_interrupt: rerun }
";

/// The time limit for the whole test, on two slow cores.
const BUDGET: Duration = Duration::from_secs(240);

/// Panics in the drivers of some runs, once each, and in reports about others.
#[derive(Default)]
struct Panics {
    doomed: Mutex<BTreeSet<RunId>>,
    /// Runs that panic as soon as they are driven, before they have a driver.
    doomed_at_start: Mutex<BTreeSet<RunId>>,
    /// Runs that panic when they wait, after their driver has ended.
    doomed_at_rest: Mutex<BTreeSet<RunId>>,
    panicked: Mutex<BTreeSet<RunId>>,
    not_driven: Mutex<Vec<(RunId, String)>>,
}

impl Observer for Panics {
    fn report(&self, run: &RunId, _: Timestamp, report: &Report) {
        match report {
            Report::NotDriven { error, .. } => self.not_driven.lock().unwrap().push((run.clone(), error.clone())),
            Report::Started if self.doomed_at_start.lock().unwrap().remove(run) => panic!("killed by the test at the start"),
            Report::Waiting if self.doomed_at_rest.lock().unwrap().remove(run) => panic!("killed by the test at rest"),
            _ => {}
        }
    }

    fn committed(&self, run: &Run, entries: &[Entry]) {
        let started = entries.iter().any(|entry| matches!(entry.event, Event::TaskStarted { .. }));
        if started && self.doomed.lock().unwrap().remove(&run.id) {
            self.panicked.lock().unwrap().insert(run.id.clone());
            panic!("the driver of run {} is killed by the test", run.id);
        }
    }
}

/// The example program `chat_bridge`, which cargo builds together with the tests. A shell starts it and exits, because
/// descendants of a process that drives runs may not answer for people.
fn chat_bridge(dir: &Path) -> (ChildStdin, ChildStdout) {
    let test = std::env::current_exe().unwrap();
    let target: PathBuf = test.parent().and_then(Path::parent).unwrap().join("examples/chat_bridge");
    assert!(target.is_file(), "{} is not built; `cargo test` builds it", target.display());
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3<&0; \"$0\" \"$1\" ada <&3 &"]).arg(target).arg(dir);
    let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let streams = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    assert!(shell.wait().unwrap().success());
    streams
}

/// Answers every hold that the bridge prints until all runs are answered, and returns the bridge's confirmations.
fn answer_all((mut input, output): (ChildStdin, ChildStdout)) -> Vec<String> {
    // The bridge exits when its input is closed, at the end of this function.
    let lines = BufReader::new(output).lines().map(Result::unwrap);
    let mut said = Vec::new();
    for line in lines {
        match line.split_once('\t') {
            Some((hold, prompt)) => {
                assert_eq!(prompt, "Ship it?");
                writeln!(input, "{hold} Ship").unwrap();
            }
            None => said.push(line),
        }
        if said.len() == RUNS {
            break;
        }
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_runs_complete_despite_panicking_drivers_while_another_process_answers() {
    tokio::time::timeout(BUDGET, all_complete(None)).await.expect("all runs complete in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_runs_complete_in_postgresql_too() {
    let url = tokio::task::spawn_blocking(|| server().database()).await.unwrap();
    tokio::time::timeout(BUDGET, all_complete(Some(url))).await.expect("all runs complete in time");
}

async fn all_complete(database: Option<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("release.yaml");
    std::fs::write(&file, WORKFLOW).unwrap();
    if let Some(url) = database {
        // The other process also finds the database in the settings.
        std::fs::create_dir(dir.path().join(".lockgate")).unwrap();
        std::fs::write(dir.path().join(".lockgate/config.yaml"), format!("database: \"{url}\"\n")).unwrap();
    }
    let project = Project::open_or_create(dir.path(), Options::default()).unwrap();
    let panics = Arc::new(Panics::default());
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let run = project.start(&file, Start::default(), project.person("ada")).await.unwrap();
        let doomed = match number % 10 {
            0 => Some(&panics.doomed),
            3 => Some(&panics.doomed_at_start),
            6 => Some(&panics.doomed_at_rest),
            _ => None,
        };
        if let Some(doomed) = doomed {
            doomed.lock().unwrap().insert(run.clone());
        }
        runs.push(run);
    }
    let doomed = panics.doomed.lock().unwrap().clone();
    let not_driven_once: BTreeSet<RunId> = doomed.union(&panics.doomed_at_start.lock().unwrap()).cloned().collect();
    let worker = Worker::start(&project, 32, panics.clone());

    let bridge = chat_bridge(dir.path());
    let said = tokio::task::spawn_blocking(move || answer_all(bridge)).await.unwrap();
    assert!(said.iter().all(|line| line.starts_with("answered: ")), "{said:?}");

    for run in &runs {
        assert_eq!(project.wait(run).await.unwrap(), RunStatus::Complete, "run {run}");
    }
    worker.stop().await.unwrap();

    assert_eq!(*panics.panicked.lock().unwrap(), doomed);
    assert!(panics.doomed_at_start.lock().unwrap().is_empty() && panics.doomed_at_rest.lock().unwrap().is_empty());
    let not_driven = panics.not_driven.lock().unwrap();
    let failed: BTreeSet<RunId> = not_driven.iter().map(|(run, _)| run.clone()).collect();
    assert_eq!(failed, not_driven_once, "no other run was disturbed: {not_driven:?}");
    assert!(not_driven.iter().all(|(_, error)| error.contains("killed by the test")), "{not_driven:?}");
}
