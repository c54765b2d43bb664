//! W4: after a process with a long history is killed, the time until a new one has made its first step durable.

use super::first_commit::{copy_as_left, kill_at, next_to, time};
use super::project::{Root, sequential_phase};
use super::table::{Row, Target, Unit};
use super::{Bench, Workload, baseline, first_commit};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// Tasks of the repeated phase.
const TASKS: usize = 100;

/// The workload, with histories of several lengths.
#[derive(Default)]
pub(crate) struct Recovery {
    lengths: Vec<Length>,
}

/// One length of history.
struct Length {
    steps: usize,
    baseline_left: Left,
    ours_left: Option<Left>,
    run: String,
    baseline: Vec<f64>,
    ours: Vec<f64>,
    bytes: Vec<f64>,
}

/// The database of a killed process.
struct Left {
    directory: tempfile::TempDir,
    last: i64,
}

impl Workload for Recovery {
    fn name(&self) -> &'static str {
        "w4"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<(), String> {
        let lengths: &[usize] = if bench.quick { &[1_000, 10_000] } else { &[1_000, 10_000, 100_000] };
        for &steps in lengths {
            let mut length = Length {
                steps,
                baseline_left: baseline_left(bench, steps)?,
                ours_left: None,
                run: String::new(),
                baseline: Vec::new(),
                ours: Vec::new(),
                bytes: Vec::new(),
            };
            if let Some(lockgate) = &bench.lockgate {
                length.make_ours(bench, lockgate)?;
            }
            self.lengths.push(length);
        }
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        for length in &mut self.lengths {
            let directory = length.baseline_left.copy(bench)?;
            let database = directory.path().join("baseline.db");
            let took = time(baseline::program("recover", &database, 0)?, &database, length.baseline_left.last)?;
            length.baseline.push(took.as_secs_f64() * 1000.0);

            let (Some(lockgate), Some(left)) = (&bench.lockgate, &length.ours_left) else { continue };
            let directory = left.copy(bench)?;
            let root = Root::found(lockgate, directory.path());
            let took = time(root.command(&["resume", &length.run]), &root.database(), left.last);
            let took = took.map_err(|error| format!("W4: `lockgate resume {}`: {error}", length.run))?;
            length.ours.push(took.as_secs_f64() * 1000.0);
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for length in &self.lengths {
            let what = format!("W4 {} steps of history", length.steps);
            rows.push(Row {
                what: format!("{what}: start to first new commit"),
                unit: Unit::Milliseconds,
                raw: Vec::new(),
                baseline: length.baseline.clone(),
                ours: length.ours.clone(),
                target: Target::Baselines(4.0),
            });
            if !length.bytes.is_empty() {
                rows.push(Row {
                    what: format!("{what}: database"),
                    unit: Unit::BytesPerStep,
                    raw: Vec::new(),
                    baseline: Vec::new(),
                    ours: length.bytes.clone(),
                    target: Target::AtMost(400.0),
                });
            }
        }
        rows
    }
}

impl Left {
    /// Inspects a copy, because opening the original would clean it up.
    fn look(bench: &Bench, directory: tempfile::TempDir, database: &str) -> Result<(Self, tempfile::TempDir), String> {
        let left = Self { directory, last: 0 };
        let copy = left.copy(bench)?;
        let connection = Connection::open(copy.path().join(database)).map_err(|error| error.to_string())?;
        let last = first_commit::newest(&connection).map_err(|error| error.to_string())?;
        Ok((Self { last, ..left }, copy))
    }

    fn copy(&self, bench: &Bench) -> Result<tempfile::TempDir, String> {
        let copy = bench.fresh()?;
        copy_as_left(self.directory.path(), copy.path()).map_err(|error| format!("cannot copy the database: {error}"))?;
        Ok(copy)
    }
}

fn baseline_left(bench: &Bench, steps: usize) -> Result<Left, String> {
    let directory = bench.fresh()?;
    let database: PathBuf = directory.path().join("baseline.db");
    kill_at(baseline::program("fill", &database, 0)?, &database, steps as i64)?;
    assert_left_open(&database)?;
    Left::look(bench, directory, "baseline.db").map(|(left, _)| left)
}

impl Length {
    fn make_ours(&mut self, bench: &Bench, lockgate: &Path) -> Result<(), String> {
        let directory = bench.fresh()?;
        let root = Root::make(lockgate, directory.path(), &workflow())?;
        // More answers than needed: the process must not end before it is killed.
        let answers = "- { at: work, option: Again }\n".repeat(self.steps / TASKS * 5 / 4 + 50);
        root.put("answers.yaml", &answers)?;
        // A repetition has a few more commits than tasks.
        let commits = self.steps + 3 * self.steps / TASKS;
        kill_at(root.command(&["run", "workflow.yaml", "--answers", "answers.yaml"]), &root.database(), commits as i64)
            .map_err(|error| format!("W4: `lockgate run`: {error}"))?;
        assert_left_open(&root.database())?;
        let (left, copy) = Left::look(bench, directory, ".lockgate/lockgate.db")?;
        let copied = Root::found(lockgate, copy.path());
        self.run = copied.newest_run()?;
        let finished = copied.history(&self.run)?.finished;
        eprintln!("w4: killed after {finished} finished tasks, wanted {}", self.steps);
        self.bytes.push(copied.bytes()? as f64 / finished as f64);
        self.ours_left = Some(left);
        Ok(())
    }
}

/// A killed process leaves a log next to the database; without one, it ended by itself.
fn assert_left_open(database: &Path) -> Result<(), String> {
    if next_to(database, "-wal").exists() {
        Ok(())
    } else {
        Err(format!("{} was closed cleanly, not killed", database.display()))
    }
}

fn workflow() -> String {
    let phase = sequential_phase("work", TASKS, "pass: true");
    let checkpoint = "    checkpoint:
      prompt: Once more?
      options:
        - label: Again
          on_select: { action: repeat_phase, target: current }
        - label: Enough
          on_select: { action: continue }
";
    format!("name: history\nphases:\n{phase}{checkpoint}")
}
