//! W6: snapshots. What they cost a busy run, how long a long list takes, and how fast runs are rebuilt from them.

use super::project::{Root, sequential_phase};
use super::table::{Row, Target, Unit};
use super::{Bench, Workload};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

const STEPS: usize = 1000;
const PHASES: usize = 100;
const TASKS: usize = 10;
const LISTED: usize = 10_000;
const RECOVERED: usize = 1000;
const MEGABYTE: usize = 1_000_000;

const OFF: &str = "people: { require_terminal: false }\ncheckpoint: { enabled: false }\n";
const UNLIMITED: &str = "people: { require_terminal: false }\ncheckpoint: { storage: { max_size_mb: -1 } }\n";

#[derive(Default)]
pub(crate) struct Snapshots {
    chain: Compared,
    phases: Compared,
    list: Compared,
    large: Compared,
    recovery: Vec<f64>,
}

/// Samples without and with snapshots, or of a floor and ours.
#[derive(Default)]
struct Compared {
    without: Vec<f64>,
    with: Vec<f64>,
}

impl Workload for Snapshots {
    fn name(&self) -> &'static str {
        "w6"
    }

    fn prepare(&mut self, _bench: &Bench) -> Result<(), String> {
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        let Some(lockgate) = &bench.lockgate else { return Ok(()) };
        let chain = format!("name: chain\nphases:\n{}", sequential_phase("work", STEPS, "pass: true"));
        speed(bench, lockgate, &chain, STEPS, &mut self.chain, |_| Ok(()))?;
        let phases: String = (1..=PHASES).map(|number| parallel_phase(number, TASKS)).collect();
        speed(bench, lockgate, &format!("name: phases\nphases:\n{phases}"), PHASES * TASKS, &mut self.phases, milestones)?;
        self.list(bench, lockgate)?;
        self.large(bench, lockgate)?;
        self.recover(bench, lockgate)
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what: String, unit, compared: &Compared, target| Row {
            what,
            unit,
            raw: Vec::new(),
            baseline: compared.without.clone(),
            ours: compared.with.clone(),
            target,
        };
        let rate = Unit::StepsPerSecond;
        let recovery = Compared { without: Vec::new(), with: self.recovery.clone() };
        vec![
            row(format!("W6 {STEPS} sequential tasks; baseline: no snapshots"), rate, &self.chain, Target::OfBaseline(0.9)),
            row(
                format!("W6 {PHASES} phases of {TASKS} tasks; baseline: no snapshots"),
                rate,
                &self.phases,
                Target::OfBaseline(0.9),
            ),
            row(
                format!("W6 list of {LISTED} snapshots; baseline: `inbox`"),
                Unit::Milliseconds,
                &self.list,
                Target::Baselines(5.0),
            ),
            row(
                "W6 snapshot of a 1 MB state; baseline: 1 MB written".into(),
                Unit::Milliseconds,
                &self.large,
                Target::Baselines(2.0),
            ),
            row(format!("W6 recovery of {RECOVERED} runs"), Unit::Milliseconds, &recovery, Target::AtMost(10_000.0)),
        ]
    }
}

impl Snapshots {
    /// A directory with many snapshots, listed, compared with an empty inbox of the same project.
    fn list(&mut self, bench: &Bench, lockgate: &Path) -> Result<(), String> {
        let directory = bench.fresh()?;
        let root =
            Root::make(lockgate, directory.path(), &format!("name: a\nphases:\n{}", sequential_phase("a", 1, "pass: true")))?;
        root.put(".lockgate/config.yaml", UNLIMITED)?;
        root.output(&["run", "workflow.yaml", "--json"])?;
        let dir = snapshot_dir(directory.path(), &root.newest_run()?);
        multiply(&dir, LISTED)?;
        // The index is written with the next snapshot.
        root.output(&["snapshots", "create"])?;
        let started = Instant::now();
        root.output(&["inbox", "--json"])?;
        self.list.without.push(milliseconds(started));
        let started = Instant::now();
        let listed = root.output(&["snapshots", "list", "--json"])?;
        self.list.with.push(milliseconds(started));
        let count = parsed(&listed)?.as_array().map_or(0, Vec::len);
        if count < LISTED { Err(format!("W6: {count} snapshots are listed, not {LISTED}")) } else { Ok(()) }
    }

    /// The time that a snapshot of a large state takes beyond one of a small state.
    fn large(&mut self, bench: &Bench, lockgate: &Path) -> Result<(), String> {
        let mut took = Vec::new();
        for bytes in [10, MEGABYTE] {
            let directory = bench.fresh()?;
            let script = format!("script: return 'x'.repeat({bytes})");
            let root =
                Root::make(lockgate, directory.path(), &format!("name: a\nphases:\n{}", sequential_phase("a", 1, &script)))?;
            root.put(".lockgate/config.yaml", "people: { require_terminal: false }\ncheckpoint: { auto_checkpoint: false, checkpoint_triggers: { session_end: false } }\n")?;
            root.output(&["run", "workflow.yaml", "--json"])?;
            let started = Instant::now();
            root.output(&["snapshots", "create"])?;
            took.push(milliseconds(started));
        }
        self.large.with.push((took[1] - took[0]).max(0.01));
        let directory = bench.fresh()?;
        let started = Instant::now();
        let written = File::create(directory.path().join("value")).and_then(|mut file| {
            file.write_all(&vec![b'x'; MEGABYTE])?;
            file.sync_all()
        });
        written.map_err(|error| error.to_string())?;
        self.large.without.push(milliseconds(started));
        Ok(())
    }

    /// Many runs, each with its snapshots, are rebuilt after their database is removed.
    fn recover(&mut self, bench: &Bench, lockgate: &Path) -> Result<(), String> {
        let directory = bench.fresh()?;
        let root =
            Root::make(lockgate, directory.path(), &format!("name: a\nphases:\n{}", sequential_phase("a", 2, "pass: true")))?;
        for _ in 0..if bench.quick { RECOVERED / 10 } else { RECOVERED } {
            root.output(&["run", "workflow.yaml", "--json"])?;
        }
        for entry in fs::read_dir(directory.path().join(".lockgate")).map_err(|error| error.to_string())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("lockgate.db") {
                fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
            }
        }
        let started = Instant::now();
        root.output(&["recover", ".lockgate/runs", "--json"])?;
        self.recovery.push(milliseconds(started) * if bench.quick { 10.0 } else { 1.0 });
        Ok(())
    }
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

fn snapshot_dir(root: &Path, run: &str) -> PathBuf {
    root.join(".lockgate/runs").join(run).join("checkpoints")
}

fn parallel_phase(number: usize, tasks: usize) -> String {
    let tasks: String = (1..=tasks).map(|task| format!("      - {{ id: t{task}, pass: true }}\n")).collect();
    format!("  - id: p{number}\n    tasks:\n{tasks}")
}

/// Runs a workflow without and with snapshots, in turn.
fn speed(
    bench: &Bench,
    lockgate: &Path,
    workflow: &str,
    steps: usize,
    compared: &mut Compared,
    check: fn(&Path) -> Result<(), String>,
) -> Result<(), String> {
    for (off, samples) in [(true, &mut compared.without), (false, &mut compared.with)] {
        let directory = bench.fresh()?;
        let root = Root::make(lockgate, directory.path(), workflow)?;
        if off {
            root.put(".lockgate/config.yaml", OFF)?;
        }
        let started = Instant::now();
        root.output(&["run", "workflow.yaml", "--json"])?;
        samples.push(steps as f64 / started.elapsed().as_secs_f64());
        if !off {
            check(&snapshot_dir(directory.path(), &root.newest_run()?))?;
        }
    }
    Ok(())
}

/// Every phase must have left its snapshot.
fn milestones(dir: &Path) -> Result<(), String> {
    let index = fs::read_to_string(dir.join("index.yaml")).map_err(|error| error.to_string())?;
    let found = index.matches("trigger: phase_transition").count();
    if found == PHASES + 1 { Ok(()) } else { Err(format!("W6: {found} phase transitions have snapshots, not {}", PHASES + 1)) }
}

/// Copies the entry of a snapshot in the index, with files of the same names.
fn multiply(dir: &Path, count: usize) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let index = fs::read_to_string(dir.join("index.yaml")).map_err(failed)?;
    let start = index.find("- checkpoint_id: ").ok_or("the index has no entries")?;
    let end = index[start + 1..].find("- checkpoint_id: ").map_or(index.len(), |at| start + 1 + at);
    let entry = &index[start..end];
    let id = entry.lines().next().and_then(|line| line.strip_prefix("- checkpoint_id: ")).ok_or("an entry has no id")?;
    let mut entries = String::new();
    for number in 0..count {
        let copy = format!("{}{number:016x}", &id[..id.len() - 16]);
        fs::write(dir.join(format!("{copy}.yaml")), "").map_err(failed)?;
        entries += &entry.replace(id, &copy);
    }
    let index = format!("{}{entries}{}", &index[..start], &index[start..]);
    fs::write(dir.join("index.yaml"), index).map_err(failed)
}
