//! Plans, generated from a seed. A plan is data, so that a failing one can be shrunk.

mod change;
mod checkpoint;
mod phase;
mod pipeline;
mod shrink;
mod task;

pub(super) use change::Change;
pub(super) use phase::PlannedPhase;
pub(super) use task::PlannedTask;

use lockgate_engine::id::TaskId;
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::spec::workflow::{Automatic, Policy, Workflow};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

pub(super) const TASKS: usize = 100;

/// A workflow, and the faults it meets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) phases: Vec<PlannedPhase>,
    pub(super) max_parallel: Option<u32>,
    /// Whether questions may be answered automatically, and how many in a row.
    pub(super) policy: Option<u32>,
    /// Whether it runs as a pipeline, whose state file is then checked.
    pub(super) pipeline: bool,
    /// Changes of the definition, each accepted when a later process resumes the run.
    pub(super) changes: Vec<Change>,
    /// Each process lives for this many polls and is then dropped wherever it is; after the last one, processes live on.
    pub(super) lives: Vec<u32>,
    /// Every other process is asked to stop after this many polls instead of being dropped.
    pub(super) halts: bool,
    /// How an append fails, by the number of clock readings.
    pub(super) faults: BTreeMap<u32, PlannedFault>,
    /// By how many milliseconds the clock jumps, by the number of clock readings.
    pub(super) jumps: BTreeMap<u32, i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PlannedFault {
    BeforeCommit,
    AfterCommit,
}

/// Whether something with this chance happens.
fn one_in(random: &mut SmallRng, chances: u32) -> bool {
    random.random_range(0..chances) == 0
}

impl Plan {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let random = &mut random;
        let pipeline = one_in(random, 4);
        let count = [1, 2, 2, 2, 3][random.random_range(0..5)];
        let phases = (0..count).map(|index| PlannedPhase::random(index, count, pipeline, random)).collect();
        let lives = (0..random.random_range(0..5)).map(|_| random.random_range(1..60)).collect();
        let faults = (0..random.random_range(0..4)).map(|_| {
            let fault = if random.random() { PlannedFault::BeforeCommit } else { PlannedFault::AfterCommit };
            (random.random_range(0..60), fault)
        });
        let faults = faults.collect();
        let jumps = (0..random.random_range(0..3)).map(|_| (random.random_range(0..60), random.random_range(-100_000..100_000)));
        let jumps = jumps.collect();
        Self {
            seed,
            phases,
            max_parallel: one_in(random, 2).then(|| random.random_range(1..=2)),
            policy: (!pipeline && one_in(random, 4)).then(|| random.random_range(1..4)),
            pipeline,
            changes: if pipeline || !one_in(random, 3) { Vec::new() } else { vec![Change::random(count, random)] },
            lives,
            halts: random.random(),
            faults,
            jumps,
        }
    }

    /// Preset answers: first a repeat, then continue.
    pub(super) fn presets(&self) -> Vec<PresetAnswer> {
        let phases =
            self.phases.iter().enumerate().filter(|(_, phase)| phase.checkpoint.as_ref().is_some_and(|asked| asked.preset));
        let preset = |index: usize, option: &str| PresetAnswer {
            selector: format!("p{index}"),
            option: option.into(),
            feedback: Some("again".into()),
        };
        phases.flat_map(|(index, _)| [preset(index, "redo"), preset(index, "continue")]).collect()
    }

    pub(super) fn workflow(&self) -> Workflow {
        let rule = self.policy.map(|most| Automatic { when: None, max_consecutive: Some(most) });
        let phases = self.phases.iter().enumerate();
        Workflow {
            name: "simulated".into(),
            max_parallel: self.max_parallel,
            phases: phases.map(|(index, phase)| phase.declared(index, self.phases.len())).collect(),
            pipeline: self.pipeline.then(|| Box::new(self.spec())),
            policy: Policy { checkpoint: rule.clone(), verify: rule.clone(), decision: rule, collect_phase: false },
            ..Workflow::default()
        }
    }

    /// The definition after this many changes.
    pub(super) fn workflow_after(&self, changes: usize) -> Workflow {
        let mut workflow = self.workflow();
        self.changes.iter().take(changes).for_each(|change| change.make(&mut workflow));
        workflow
    }

    /// The plan of a task; tasks that were added later succeed.
    pub(super) fn task(&self, phase: usize, task: &TaskId) -> PlannedTask {
        let number = task.as_str().strip_prefix('t').and_then(|number| number.parse::<usize>().ok());
        let planned = number.and_then(|number| self.phases.get(phase)?.tasks.get(number % TASKS));
        planned.cloned().unwrap_or_default()
    }
}

/// Unique in the whole plan, like the ids of workstreams.
fn task_id(phase: usize, task: usize) -> TaskId {
    TaskId::new(format!("t{}", phase * TASKS + task))
}
