//! W5: a complete short run, from the start of the process to its end: three steps and one preset answer.

use super::project::{Root, sequential_phase};
use super::table::{Row, Target, Unit};
use super::{Bench, Workload, baseline};
use std::time::Instant;

#[derive(Default)]
pub(crate) struct StartToEnd {
    baseline: Vec<f64>,
    ours: Vec<f64>,
}

impl Workload for StartToEnd {
    fn name(&self) -> &'static str {
        "w5"
    }

    fn prepare(&mut self, _bench: &Bench) -> Result<(), String> {
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        let directory = bench.fresh()?;
        let mut command = baseline::program("short", &directory.path().join("baseline.db"), 0)?;
        let started = Instant::now();
        let status = command.status().map_err(|error| format!("cannot start baseline short: {error}"))?;
        self.baseline.push(started.elapsed().as_secs_f64() * 1000.0);
        if !status.success() {
            return Err(format!("baseline short: {status}"));
        }
        let Some(lockgate) = &bench.lockgate else { return Ok(()) };
        let directory = bench.fresh()?;
        let root = Root::make(lockgate, directory.path(), &workflow())?;
        let started = Instant::now();
        root.output(&["run", "workflow.yaml", "--answer", "one=Continue"])?;
        self.ours.push(started.elapsed().as_secs_f64() * 1000.0);
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        vec![Row {
            what: "W5 three steps, one answer: process, start to end".to_owned(),
            unit: Unit::Milliseconds,
            raw: Vec::new(),
            baseline: self.baseline.clone(),
            ours: self.ours.clone(),
            target: Target::Baselines(2.2),
        }]
    }
}

fn workflow() -> String {
    let checkpoint = "    checkpoint:\n      approval_required: true\n";
    format!(
        "name: short\nphases:\n{}{checkpoint}{}",
        sequential_phase("one", 2, "pass: true"),
        sequential_phase("two", 1, "pass: true")
    )
}
