//! Plans: the work, the two hosts and their faults, generated from a seed.

use lockgate_engine::id::{GateId, PhaseId, TaskId};
use lockgate_engine::spec::workflow::{Gate, OnInterrupt, Phase, Retry, Task, Work, Workflow};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::time::Duration;

/// There are no faults after this time, so the run must complete.
pub(super) const QUIET_AFTER: Duration = Duration::from_secs(180);

/// Whether the hosts respect their leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leases {
    Kept,
    Ignored,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) leases: Leases,
    pub(super) phases: Vec<PlannedPhase>,
    pub(super) hosts: [PlannedHost; 2],
}

#[derive(Clone, Debug)]
pub(super) struct PlannedPhase {
    pub(super) tasks: Vec<PlannedTask>,
    pub(super) gate: bool,
}

#[derive(Clone, Debug)]
pub(super) struct PlannedTask {
    needs: BTreeSet<usize>,
    pub(super) takes: Duration,
    /// How long it takes to end once it is asked to.
    pub(super) ends_in: Duration,
    pub(super) fails: u32,
}

#[derive(Clone, Debug)]
pub(super) struct PlannedHost {
    /// How much faster than the store's clock its own runs, in thousandths.
    pub(super) drift: i32,
    /// The offset of its wall clock from that of the store, in milliseconds.
    pub(super) apart: i64,
    /// How long it waits before it tries to drive the run again.
    pub(super) pause: Duration,
    /// Whether it is a new process each time.
    pub(super) restarts: bool,
    pub(super) latency: Duration,
    /// When it is frozen; its tasks keep running.
    pub(super) freezes: Vec<Span>,
    pub(super) cuts: Vec<Cut>,
    /// After how long it stops driving and releases the run for the first host to claim it again; `None` for never.
    pub(super) rests_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: Duration,
    pub(super) to: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) span: Span,
    /// Whether it notices; otherwise its requests arrive when the cut is over.
    pub(super) fails: bool,
}

impl Plan {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let phases = (0..random.random_range(1..=3)).map(|_| PlannedPhase::random(&mut random)).collect();
        let hosts = [PlannedHost::random(&mut random), PlannedHost::random(&mut random)];
        Self { seed, leases: Leases::Kept, phases, hosts }
    }

    pub(super) fn workflow(&self) -> Workflow {
        let phases = self.phases.iter().enumerate();
        let phases = phases.map(|(index, phase)| phase.declared(PhaseId::new(format!("p{index}")))).collect();
        Workflow { name: "simulated".into(), phases, ..Workflow::default() }
    }
}

impl PlannedPhase {
    fn random(random: &mut SmallRng) -> Self {
        let tasks = (0..random.random_range(1..=3)).map(|index| PlannedTask::random(index, random)).collect();
        Self { tasks, gate: random.random() }
    }

    fn declared(&self, id: PhaseId) -> Phase {
        let gates = if self.gate { vec![Gate::new(GateId::new("g"), "true".into())] } else { Vec::new() };
        let tasks = self.tasks.iter().enumerate().map(|(index, task)| task.declared(index)).collect();
        Phase { tasks, gates, ..Phase::new(id) }
    }
}

fn task_id(index: usize) -> TaskId {
    TaskId::new(format!("t{index}"))
}

impl PlannedTask {
    fn random(index: usize, random: &mut SmallRng) -> Self {
        Self {
            needs: (0..index).filter(|_| random.random_range(0..2) == 0).collect(),
            takes: millis(random, 0..25_000),
            ends_in: millis(random, 0..8_000),
            fails: u32::from(random.random_range(0..5) == 0),
        }
    }

    fn declared(&self, index: usize) -> Task {
        Task {
            needs: self.needs.iter().copied().map(task_id).collect(),
            retry: Retry { attempts: 2, backoff: Duration::from_secs(1) },
            on_interrupt: OnInterrupt::Rerun,
            ..Task::new(task_id(index), Work::Run("work".into()))
        }
    }
}

impl PlannedHost {
    fn random(random: &mut SmallRng) -> Self {
        Self {
            drift: random.random_range(-10..=10),
            apart: random.random_range(-100_000_000..100_000_000),
            pause: millis(random, 200..5_000),
            restarts: random.random(),
            latency: millis(random, 0..60),
            freezes: (0..random.random_range(0..3)).map(|_| Span::random(random)).collect(),
            cuts: (0..random.random_range(0..3)).map(|_| Cut { span: Span::random(random), fails: random.random() }).collect(),
            rests_after: random.random::<bool>().then(|| millis(random, 500..40_000)),
        }
    }
}

impl Span {
    /// Some are shorter than a lease, some longer.
    fn random(random: &mut SmallRng) -> Self {
        let from = millis(random, 0..120_000);
        Self { from, to: (from + millis(random, 10..40_000)).min(QUIET_AFTER) }
    }

    pub(super) fn has(&self, at: Duration) -> bool {
        self.from <= at && at < self.to
    }
}

fn millis(random: &mut SmallRng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(random.random_range(range))
}
