//! `cargo xtask bench`: measures speed and size as ratios to two programs measured in the same run.
//!
//! *Raw* is SQLite itself: WAL, `synchronous=FULL`, one row of 300 bytes per transaction, the same bundled library.
//! *Baseline* is a bare loop on that library that does the same durable work as Lockgate, without an engine.
//! *Ours* is the release binary as users start it. The three take turns, seven times, and the medians are compared.
//!
//! | file | contents |
//! | --- | --- |
//! | `w1_sequential_tasks.rs` to `w6_snapshots.rs` | the workloads; a new one implements [`Workload`] and is added to [`workloads`] |
//! | `postgres.rs` | W1 and W2 on a temporary PostgreSQL server |
//! | `concurrent_runs.rs` | many runs in one process |
//! | `baseline.rs` | the raw and baseline programs, each in its own process |
//! | `project.rs` | a project root for Lockgate, and times from its history |
//! | `first_commit.rs` | the time from the start of a process to its first new commit |
//! | `table.rs`, `machine.rs` | rows, medians and targets; the machine |

pub(crate) mod baseline;

#[cfg(feature = "bench")]
mod concurrent_runs;
mod first_commit;
mod machine;
#[cfg(feature = "bench")]
mod postgres;
mod project;
mod table;
mod w1_sequential_tasks;
#[cfg(feature = "bench")]
mod w2_concurrent_runs;
#[cfg(feature = "bench")]
mod w3_waiting_runs;
mod w4_recovery;
mod w5_short_run;
mod w6_snapshots;

use crate::cargo;
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Row;

/// A measurement of raw, baseline and ours in turn, several times.
trait Workload {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// Prepares what all rounds need.
    fn prepare(&mut self, bench: &Bench) -> Result<(), String>;
    /// Measures each program once.
    fn round(&mut self, bench: &Bench) -> Result<(), String>;
    fn rows(&self) -> Vec<Row>;
}

/// What all workloads share.
pub(crate) struct Bench {
    /// Lockgate's release binary; `None` if only raw and baseline are measured.
    lockgate: Option<PathBuf>,
    /// A directory on a real disk, removed afterwards.
    directory: PathBuf,
    /// Whether to measure fewer rounds with shorter histories.
    quick: bool,
}

impl Bench {
    /// A new directory for one measurement, removed when dropped.
    fn fresh(&self) -> Result<tempfile::TempDir, String> {
        tempfile::tempdir_in(&self.directory)
            .map_err(|error| format!("cannot create a directory in {}: {error}", self.directory.display()))
    }

    fn rounds(&self) -> usize {
        if self.quick { 3 } else { 7 }
    }
}

fn workloads() -> Vec<Box<dyn Workload>> {
    vec![
        Box::<w1_sequential_tasks::SequentialSteps>::default(),
        #[cfg(feature = "bench")]
        Box::<w2_concurrent_runs::ConcurrentRuns>::default(),
        #[cfg(feature = "bench")]
        Box::<w3_waiting_runs::Waiting>::default(),
        Box::<w4_recovery::Recovery>::default(),
        Box::<w5_short_run::StartToEnd>::default(),
        Box::<w6_snapshots::Snapshots>::default(),
        #[cfg(feature = "bench")]
        Box::<postgres::OnPostgres>::default(),
    ]
}

/// The names of the workloads, also in a build that cannot measure.
const NAMES: &[&str] = &["w1", "w2", "w3", "w4", "w5", "w6", "pg"];

/// Runs the command.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let request = Request::read(arguments)?;
    match &request.binary {
        Some(binary) => measure(&request, binary),
        None => build_and_measure(arguments, request.baselines),
    }
}

struct Request {
    names: Vec<String>,
    quick: bool,
    baselines: bool,
    write: bool,
    binary: Option<PathBuf>,
}

impl Request {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { names: Vec::new(), quick: false, baselines: false, write: false, binary: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--quick" => request.quick = true,
                "--baselines" => request.baselines = true,
                "--write" => request.write = true,
                "--binary" => request.binary = Some(rest.next().ok_or("--binary needs a file")?.into()),
                name if NAMES.contains(&name) => request.names.push(name.to_owned()),
                other => return Err(format!("unknown argument {other:?}; the workloads are {}", NAMES.join(", "))),
            }
        }
        Ok(request)
    }
}

/// Builds this program and Lockgate with optimization, together so that both contain the same library, and measures with them.
fn build_and_measure(arguments: &[String], baselines: bool) -> Result<bool, String> {
    let packages: &[&str] =
        if baselines { &["--package", "xtask"] } else { &["--package", "xtask", "--package", "lockgate-cli"] };
    let programs = cargo::build(&[["build", "--release", "--bins", "--features", "xtask/bench"].as_slice(), packages].concat())?;
    let find = |name: &str| programs.iter().find(|product| product.target == name).map(|product| product.program.clone());
    let xtask = find("xtask").ok_or("cargo built no program `xtask`")?;
    let lockgate = if baselines { xtask.clone() } else { find("lockgate").ok_or("cargo built no program `lockgate`")? };
    let status = Command::new(xtask).arg("bench").args(arguments).arg("--binary").arg(lockgate).status();
    status.map(|status| status.success()).map_err(|error| format!("cannot start the release build of xtask: {error}"))
}

fn measure(request: &Request, binary: &Path) -> Result<bool, String> {
    let binary = binary.canonicalize().map_err(|error| format!("cannot find {}: {error}", binary.display()))?;
    // Next to the binary, because the system's directory for temporary files may be in memory, where a sync costs nothing.
    let parent = binary.parent().ok_or("the binary has no parent directory")?;
    let directory = tempfile::Builder::new().prefix("bench-").tempdir_in(parent).map_err(|error| error.to_string())?;
    let bench = Bench {
        lockgate: (!request.baselines).then(|| binary.clone()),
        directory: directory.path().to_path_buf(),
        quick: request.quick,
    };
    let machine = machine::describe(&bench.directory);
    let mut rows = Vec::new();
    for mut workload in workloads() {
        if !request.names.is_empty() && !request.names.iter().any(|name| name == workload.name()) {
            continue;
        }
        eprintln!("{}: preparing", workload.name());
        workload.prepare(&bench)?;
        for round in 1..=bench.rounds() {
            eprintln!("{}: round {round} of {}", workload.name(), bench.rounds());
            workload.round(&bench)?;
        }
        rows.extend(workload.rows());
    }
    let text = format!("{machine}\n\n{}", table::markdown(&rows, bench.rounds()));
    println!("{text}");
    if request.write {
        table::write(&crate::root().join("docs/benchmarks.md"), &text)?;
    }
    Ok(true)
}
