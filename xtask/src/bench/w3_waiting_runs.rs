//! W3: a thousand runs that wait for a person, answered one by one; and ten thousand idle runs.

use super::concurrent_runs::{Harness, runtime};
use super::project::{Root, milliseconds, sequential_phase};
use super::table::{Row, Target, Unit, median};
use super::w2_concurrent_runs::raw;
use super::{Bench, Workload, baseline};
use lockgate_store::SqliteStore;
use rusqlite::Connection;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs that are answered in this process.
const RUNS: usize = 1000;
/// Answers to a run that another process drives.
const ANSWERS: usize = 15;
/// Idle runs, which wait for a person.
const RESTING: usize = 10_000;
/// How long all runs wait before the memory is measured.
const REST: Duration = Duration::from_secs(2);
/// The time after which something that has not happened counts as failed.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default)]
pub(crate) struct Waiting {
    raw: Vec<f64>,
    commit: Vec<f64>,
    pauses: Vec<f64>,
    answers: Vec<f64>,
    across: Vec<f64>,
    resting: Option<tempfile::TempDir>,
    megabytes: Vec<f64>,
    list_baseline: Vec<f64>,
    list: Vec<f64>,
}

impl Workload for Waiting {
    fn name(&self) -> &'static str {
        "w3"
    }

    /// Starts ten thousand runs, waits until all of them wait for a person, and measures the memory of the process that drove them.
    fn prepare(&mut self, bench: &Bench) -> Result<(), String> {
        let Some(lockgate) = &bench.lockgate else { return Ok(()) };
        let directory = bench.fresh()?;
        let root = Root::make(lockgate, directory.path(), &workflow(1))?;
        runtime()?.block_on(stage(directory.path(), 1)?.leave(RESTING))?;
        let driver = WorkerProcess::start(&root)?;
        let connection = Connection::open(root.database()).map_err(|error| error.to_string())?;
        until("all runs rest", || {
            let open = "SELECT count(*) FROM holds WHERE state = 0";
            let open: i64 = connection.query_row(open, [], |row| row.get(0)).map_err(|error| error.to_string())?;
            Ok(open == RESTING as i64)
        })?;
        std::thread::sleep(REST);
        self.megabytes.push(driver.megabytes()?);
        drop(driver);
        self.resting = Some(directory);
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        let raw = raw(bench)?;
        self.raw.push(raw);
        self.commit.push(1000.0 / raw);
        let Some(lockgate) = &bench.lockgate else { return Ok(()) };

        let directory = bench.fresh()?;
        let stage = stage(directory.path(), 1)?;
        let (took, answers) = runtime()?.block_on(async {
            let (took, waiting) = stage.drive(RUNS, RUNS).await?;
            let mut answers = Vec::new();
            for parked in &waiting {
                answers.push(stage.answer(parked).await?.as_secs_f64() * 1000.0);
            }
            Ok::<_, String>((took, answers))
        })?;
        if answers.len() != RUNS {
            return Err(format!("W3: {} runs waited, not {RUNS}", answers.len()));
        }
        self.pauses.push(RUNS as f64 / took.as_secs_f64());
        self.answers.extend(median(&answers));

        self.across.extend(median(&across(lockgate, bench)?));
        self.lists(lockgate)
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what: &str, unit, raw: &[f64], baseline: &[f64], ours: &[f64], target| Row {
            what: what.to_owned(),
            unit,
            raw: raw.to_vec(),
            baseline: baseline.to_vec(),
            ours: ours.to_vec(),
            target,
        };
        let ms = Unit::Milliseconds;
        vec![
            row("W3 1,000 runs come to wait", Unit::StepsPerSecond, &self.raw, &[], &self.pauses, Target::OfRaw(3.0)),
            row("W3 answer to the next start, in one process", ms, &self.commit, &[], &self.answers, Target::Raws(2.0)),
            row("W3 answer to the next start, across processes", ms, &[], &[], &self.across, Target::AtMost(2.0)),
            row(
                "W3 10,000 runs at rest: the process that drives",
                Unit::Megabytes,
                &[],
                &[],
                &self.megabytes,
                Target::AtMost(20.0),
            ),
            row("W3 10,000 runs at rest: inbox --json", ms, &[], &self.list_baseline, &self.list, Target::Baselines(5.0)),
        ]
    }
}

impl Waiting {
    fn lists(&mut self, lockgate: &Path) -> Result<(), String> {
        let Some(directory) = &self.resting else { return Ok(()) };
        let root = Root::found(lockgate, directory.path());
        for (mut command, samples) in [
            (baseline::program("list", &root.database(), 500)?, &mut self.list_baseline),
            (root.command(&["inbox", "--json"]), &mut self.list),
        ] {
            let started = Instant::now();
            let status = command.stdout(Stdio::null()).status().map_err(|error| error.to_string())?;
            samples.push(started.elapsed().as_secs_f64() * 1000.0);
            if !status.success() {
                return Err(format!("W3: listing what waits: {status}"));
            }
        }
        Ok(())
    }
}

/// A workflow with this many phases that each wait for a person, and one after them.
fn workflow(checkpoints: usize) -> String {
    let mut text = "name: waiting\nphases:\n".to_owned();
    for number in 1..=checkpoints {
        let phase = sequential_phase(&format!("p{number}"), 1, "pass: true");
        // Writing to a string cannot fail.
        let _ = write!(text, "{phase}    checkpoint:\n      approval_required: true\n");
    }
    text + &sequential_phase("last", 1, "pass: true")
}

fn stage(directory: &Path, checkpoints: usize) -> Result<Harness, String> {
    let store = SqliteStore::open(&directory.join(".lockgate")).map_err(|error| error.to_string())?;
    Harness::new(directory, Arc::new(store), &workflow(checkpoints))
}

/// Answers a run that another process drives, again and again; returns the time from each answer to its effect.
fn across(lockgate: &Path, bench: &Bench) -> Result<Vec<f64>, String> {
    let directory = bench.fresh()?;
    let root = Root::make(lockgate, directory.path(), &workflow(ANSWERS))?;
    runtime()?.block_on(stage(directory.path(), ANSWERS)?.leave(1))?;
    let driver = WorkerProcess::start(&root)?;
    for _ in 0..ANSWERS {
        let mut hold = None;
        until("the next question", || {
            let inbox: Value = serde_json::from_str(&root.output(&["inbox", "--json"])?).map_err(|error| error.to_string())?;
            hold = inbox[0]["id"].as_str().map(str::to_owned);
            Ok(hold.is_some())
        })?;
        root.output(&["answer", &hold.unwrap_or_default(), "1", "--no-resume"])?;
    }
    let run = root.newest_run()?;
    until("the end of the run", || {
        let status: Value =
            serde_json::from_str(&root.output(&["status", &run, "--json"])?).map_err(|error| error.to_string())?;
        Ok(status["status"] == "complete")
    })?;
    drop(driver);
    let (mut took, mut answered) = (Vec::new(), None);
    for line in root.output(&["log", &run, "--json"])?.lines() {
        let event: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let at = event["at"].as_str().and_then(milliseconds);
        match event["type"].as_str() {
            Some("answered") => answered = at,
            Some("task_started") => took.extend(answered.take().zip(at).map(|(answered, started)| (started - answered) as f64)),
            _ => {}
        }
    }
    if took.len() != ANSWERS {
        return Err(format!("W3: {} answers had an effect, not {ANSWERS}", took.len()));
    }
    Ok(took)
}

/// A process that drives background runs; killed when dropped.
struct WorkerProcess {
    child: Child,
}

impl WorkerProcess {
    fn start(root: &Root) -> Result<Self, String> {
        let child = root.command(&["worker", "--idle-timeout", "never"]).spawn().map_err(|error| error.to_string())?;
        Ok(Self { child })
    }

    /// The memory that it has allocated. The pages of the program itself do not count: all processes share them.
    fn megabytes(&self) -> Result<f64, String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).map_err(|error| error.to_string())?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).ok_or("the process has ended")?;
        let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().map_err(|_| format!("RssAnon: {line}"))?;
        Ok(kilobytes / 1024.0)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: &str, mut so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let started = Instant::now();
    while !so()? {
        if started.elapsed() > PATIENCE {
            return Err(format!("{what} did not happen"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
