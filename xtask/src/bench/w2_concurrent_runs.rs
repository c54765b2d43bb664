//! W2: a thousand runs of ten tasks each, driven concurrently in one process.

use super::concurrent_runs::{Harness, runtime};
use super::project::sequential_phase;
use super::table::{Row, Target, Unit};
use super::{Bench, Workload, baseline};
use lockgate_store::SqliteStore;
use std::sync::Arc;

const RUNS: usize = 1000;
const STEPS_EACH: usize = 10;
/// The number of raw commits.
const RAW: usize = 1000;

#[derive(Default)]
pub(crate) struct ConcurrentRuns {
    raw: Vec<f64>,
    ours: Vec<f64>,
}

impl Workload for ConcurrentRuns {
    fn name(&self) -> &'static str {
        "w2"
    }

    fn prepare(&mut self, _bench: &Bench) -> Result<(), String> {
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        self.raw.push(raw(bench)?);
        if bench.lockgate.is_none() {
            return Ok(());
        }
        let directory = bench.fresh()?;
        let store = SqliteStore::open(&directory.path().join(".lockgate")).map_err(|error| error.to_string())?;
        let workflow = format!("name: steps\nphases:\n{}", sequential_phase("work", STEPS_EACH, "pass: true"));
        let stage = Harness::new(directory.path(), Arc::new(store), &workflow)?;
        let (took, waiting) = runtime()?.block_on(stage.drive(RUNS, RUNS))?;
        if !waiting.is_empty() {
            return Err(format!("W2: {} runs did not end", waiting.len()));
        }
        self.ours.push((RUNS * STEPS_EACH) as f64 / took.as_secs_f64());
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![Row {
            what: "W2 1,000 concurrent runs of 10 tasks".to_owned(),
            unit: Unit::StepsPerSecond,
            raw: self.raw.clone(),
            baseline: Vec::new(),
            ours: self.ours.clone(),
            target: Target::OfRaw(5.0),
        }]
    }
}

/// The number of raw commits per second.
pub(crate) fn raw(bench: &Bench) -> Result<f64, String> {
    let directory = bench.fresh()?;
    let took = baseline::timed("raw", &directory.path().join("baseline.db"), RAW)?;
    Ok(RAW as f64 / took.as_secs_f64())
}
