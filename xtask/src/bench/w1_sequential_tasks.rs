//! W1: one run with a thousand sequential tasks; also with scripts, and with 100 KB of values in the context.

use super::project::{Root, sequential_phase};
use super::table::{Row, Target, Unit};
use super::{Bench, Workload, baseline};
use std::time::Instant;

const STEPS: usize = 1000;
const VARS_BYTES: usize = 100_000;

struct Variant {
    what: &'static str,
    work: &'static str,
    vars: bool,
    share_of_raw: f64,
}

const VARIANTS: &[Variant] = &[
    Variant { what: "pass", work: "pass: true", vars: false, share_of_raw: 0.7 },
    Variant { what: "pass, 100 KB vars untouched", work: "pass: true", vars: true, share_of_raw: 0.7 },
    Variant { what: "script", work: "script: return null", vars: false, share_of_raw: 0.5 },
    Variant { what: "script, 100 KB vars untouched", work: "script: return null", vars: true, share_of_raw: 0.5 },
    Variant { what: "script, 100 KB vars read", work: "script: return context.vars.big.length", vars: true, share_of_raw: 0.5 },
];

#[derive(Default)]
struct Samples {
    rate: Vec<f64>,
    wall: Vec<f64>,
    bytes: Vec<f64>,
}

pub(crate) struct SequentialSteps {
    raw: Vec<f64>,
    baseline: Vec<f64>,
    ours: Vec<Samples>,
}

impl Default for SequentialSteps {
    fn default() -> Self {
        Self { raw: Vec::new(), baseline: Vec::new(), ours: VARIANTS.iter().map(|_| Samples::default()).collect() }
    }
}

impl Workload for SequentialSteps {
    fn name(&self) -> &'static str {
        "w1"
    }

    fn prepare(&mut self, _bench: &Bench) -> Result<(), String> {
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        for (program, samples) in [("raw", &mut self.raw), ("steps", &mut self.baseline)] {
            let directory = bench.fresh()?;
            let took = baseline::timed(program, &directory.path().join("baseline.db"), STEPS)?;
            samples.push(STEPS as f64 / took.as_secs_f64());
        }
        let Some(lockgate) = &bench.lockgate else { return Ok(()) };
        for (variant, samples) in VARIANTS.iter().zip(&mut self.ours) {
            let directory = bench.fresh()?;
            let root = Root::make(lockgate, directory.path(), &variant.workflow())?;
            let started = Instant::now();
            root.output(&["run", "workflow.yaml", "--json"])?;
            samples.wall.push(started.elapsed().as_secs_f64() * 1000.0);
            let history = root.history(&root.newest_run()?)?;
            if history.finished != STEPS {
                return Err(format!("W1 {}: {} tasks finished, not {STEPS}", variant.what, history.finished));
            }
            samples.rate.push(STEPS as f64 * 1000.0 / history.milliseconds.max(1) as f64);
            samples.bytes.push(root.bytes()? as f64 / STEPS as f64);
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what: String, unit, ours: &[f64], target| Row {
            what,
            unit,
            raw: if unit == Unit::StepsPerSecond { self.raw.clone() } else { Vec::new() },
            baseline: if unit == Unit::StepsPerSecond { self.baseline.clone() } else { Vec::new() },
            ours: ours.to_vec(),
            target,
        };
        let mut rows = Vec::new();
        for (variant, samples) in VARIANTS.iter().zip(&self.ours) {
            let what = format!("W1 {}", variant.what);
            rows.push(row(what.clone(), Unit::StepsPerSecond, &samples.rate, Target::OfRaw(variant.share_of_raw)));
            if !samples.rate.is_empty() {
                rows.push(row(format!("{what}: process, start to end"), Unit::Milliseconds, &samples.wall, Target::None));
                // The values themselves are stored once, which would distort the comparison with the target.
                let target = if variant.vars { Target::None } else { Target::AtMost(400.0) };
                rows.push(row(format!("{what}: database"), Unit::BytesPerStep, &samples.bytes, target));
            } else {
                // Only the baselines were measured, and they are the same for all variants.
                break;
            }
        }
        rows
    }
}

impl Variant {
    fn workflow(&self) -> String {
        let vars = if self.vars { format!("vars:\n  big: {}\n", "x".repeat(VARS_BYTES)) } else { String::new() };
        format!("name: steps\n{vars}phases:\n{}", sequential_phase("work", STEPS, self.work))
    }
}
