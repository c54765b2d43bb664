//! The performer of a host: tasks that keep running while it is frozen, and clocks that differ from those of the other host.

use super::plan::{Plan, PlannedTask};
use super::watch::Watch;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::{DriverId, RunId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::time::Timestamp;
use lockgate_runner::runtime::{Clock, OrphanError, Perform, Performed, Stop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

#[derive(Clone)]
pub(super) struct SimulatedPerformer {
    pub(super) plan: Arc<Plan>,
    pub(super) watch: Arc<Watch>,
    pub(super) host: usize,
    pub(super) driver: DriverId,
}

/// The process of a task. It ends with the future of its effect at the latest, like a killed group.
struct Process {
    hands: SimulatedPerformer,
    key: TaskKey,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.hands.watch.task_ends(&self.key, &self.hands.driver);
    }
}

impl SimulatedPerformer {
    fn planned(&self, run: &Run, key: &TaskKey) -> PlannedTask {
        let phase = run.workflow.position(key.phase.as_str()).expect("the phase is planned");
        let number: usize = key.task.as_str()[1..].parse().expect("tasks are numbered");
        self.plan.phases[phase].tasks[number].clone()
    }

    async fn task(self, run: RunId, key: TaskKey, attempt: u32, planned: PlannedTask, stop: Stop) -> Performed {
        self.watch.effect_starts(&run, self.host, &self.driver, &key.address());
        self.watch.task_starts(&key, attempt, self.host, &self.driver);
        let process = Process { hands: self, key: key.clone() };
        let fails = attempt <= planned.fails;
        // A separate process: it is killed when its waiter is gone, and otherwise runs even while its host is frozen.
        let (_waits, gone) = tokio::sync::oneshot::channel::<()>();
        let (ended, end) = tokio::sync::oneshot::channel();
        let asked = stop.clone();
        tokio::spawn(async move {
            let _process = process;
            tokio::select! {
                biased;
                _ = gone => {}
                () = live(&planned, &asked) => drop(ended.send(())),
            }
        });
        let _ = end.await;
        let failure = Failure { kind: FailureKind::Exit(1), message: "planned".into(), tail: String::new() };
        let outcome = match stop.is_stopped() || fails {
            true => TaskOutcome::Failed(failure),
            false => TaskOutcome::Finished { result: None, outputs: Vec::new() },
        };
        CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }.into()
    }
}

/// The process of a task: it does not end as soon as it is asked to, but when it is killed.
async fn live(planned: &PlannedTask, stop: &Stop) {
    tokio::select! {
        () = sleep(planned.takes) => return,
        () = stop.stopped() => {}
    }
    let killed = async {
        stop.hurried(None).await;
        sleep_until(stop.kill_at().unwrap_or_else(Instant::now)).await;
    };
    tokio::select! {
        () = sleep(planned.ends_in) => {}
        () = killed => {}
    }
}

impl Perform for SimulatedPerformer {
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let (hands, run_id) = (self.clone(), run.id.clone());
        match effect.clone() {
            Effect::Task { key, attempt } => {
                let planned = self.planned(run, &key);
                hands.task(run_id, key, attempt, planned, stop).boxed()
            }
            Effect::Gate { phase, iteration, gate, attempt } => async move {
                hands.watch.effect_starts(&run_id, hands.host, &hands.driver, &format!("gate {gate}"));
                sleep(Duration::from_millis(10)).await;
                CommandKind::GateEnded { phase, iteration, gate, attempt, failure: None }.into()
            }
            .boxed(),
            other @ (Effect::Evaluate { .. }
            | Effect::Show { .. }
            | Effect::DiffBase { .. }
            | Effect::When { .. }
            | Effect::Gaps { .. }
            | Effect::QueryAgent { .. }
            | Effect::Finalize
            | Effect::Check { .. }
            | Effect::Artifacts { .. }
            | Effect::Recheck { .. }
            | Effect::Wake { .. }) => panic!("no plan asks for {other:?}"),
        }
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        futures::future::ready(Ok(())).boxed()
    }
}

/// The wall clock of a host.
pub(super) struct HostClock {
    pub(super) start: Instant,
    pub(super) apart: i64,
    pub(super) seeds: Arc<AtomicU64>,
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.start.elapsed().as_millis()).expect("plans are short");
        Timestamp::from_millis(1_700_000_000_000 + self.apart + elapsed)
    }

    fn sleep_until(&self, due: Timestamp, longest: Option<Duration>) -> BoxFuture<'static, ()> {
        let left = due.since(self.now());
        sleep(longest.map_or(left, |longest| left.min(longest))).boxed()
    }

    fn seed(&self) -> [u8; 16] {
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.seeds.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        seed
    }
}
