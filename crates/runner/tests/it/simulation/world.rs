//! A world for the drive loop: work that takes a number of polls, a clock that only moves when it is read or slept on.

use super::claims::Watch;
use super::plan::{Plan, PlannedFault, TASKS};
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::datum::Datum;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Seen, ShownFile};
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Body, GapsFound, Item, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{ConditionOutcome, Failure, FailureKind, OutputFile};
use lockgate_engine::run::pipeline::PipelineWish;
use lockgate_engine::spec::workflow::Over;
use lockgate_engine::time::Timestamp;
use lockgate_runner::world::{Clock, Perform, Performed, Stop};
use lockgate_store::{Fault, MemoryStore};
use serde_json::Value;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

/// Gives way this many times.
pub(super) struct GiveWay(pub(super) u32);

impl Future for GiveWay {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// What outlives processes: the clock, the file that people are shown, and who watches.
pub(super) struct Outside {
    pub(super) plan: Plan,
    now: AtomicI64,
    readings: AtomicU32,
    seeds: AtomicU64,
    pub(super) file: Mutex<Vec<u8>>,
    pub(super) watch: Mutex<Watch>,
    /// The store of the process that lives now.
    pub(super) store: Mutex<Option<MemoryStore>>,
}

impl Outside {
    pub(super) fn new(plan: &Plan) -> Arc<Self> {
        Arc::new(Self {
            plan: plan.clone(),
            now: AtomicI64::new(1_700_000_000_000),
            readings: AtomicU32::new(0),
            seeds: AtomicU64::new(plan.seed.wrapping_mul(1_000_003)),
            file: Mutex::new(b"plan".to_vec()),
            watch: Mutex::new(Watch::default()),
            store: Mutex::new(None),
        })
    }

    fn shown(&self) -> Vec<ShownFile> {
        let bytes = self.file.lock().unwrap();
        let seen = Seen::File { digest: Digest::of(&bytes), bytes: bytes.len() as u64, mode: 0o644 };
        vec![ShownFile { not_kept: Some("simulated".into()), ..ShownFile::new("plan.md", seen) }]
    }
}

#[derive(Clone)]
pub(super) struct SimulatedClock(pub(super) Arc<Outside>);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let reading = self.0.readings.fetch_add(1, Ordering::Relaxed);
        let jump = self.0.plan.jumps.get(&reading).copied().unwrap_or(0);
        if let (Some(fault), Some(store)) = (self.0.plan.faults.get(&reading), &*self.0.store.lock().unwrap()) {
            store.set_fault(match fault {
                PlannedFault::BeforeCommit => Fault::BeforeCommit,
                PlannedFault::AfterCommit => Fault::AfterCommit,
            });
        }
        Timestamp::from_millis(self.0.now.fetch_add(1 + jump, Ordering::Relaxed) + 1 + jump)
    }

    fn sleep_until(&self, due: Timestamp, _: Option<Duration>) -> BoxFuture<'static, ()> {
        let outside = self.0.clone();
        async move {
            GiveWay(2).await;
            outside.now.fetch_max(due.as_millis(), Ordering::Relaxed);
        }
        .boxed()
    }

    fn seed(&self) -> [u8; 16] {
        let number = self.0.seeds.fetch_add(1, Ordering::Relaxed);
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        seed
    }
}

/// One process's hands. When it is dropped, so is all that it had under way.
pub(super) struct Hands {
    pub(super) outside: Arc<Outside>,
    pub(super) process: u32,
}

/// Work under way, told to the watch when it begins and when it ends in whichever way.
struct Working {
    outside: Arc<Outside>,
    key: TaskKey,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.outside.watch.lock().unwrap().ended(&self.key);
    }
}

impl Perform for Hands {
    fn begin(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let outside = self.outside.clone();
        match effect.clone() {
            Effect::Task { key, attempt } => {
                outside.watch.lock().unwrap().began(&key, attempt, self.process);
                let task = run.declared(&key).unwrap();
                let items = task.for_each.as_ref().filter(|_| key.item.is_none()).map(|list| list.over.clone());
                let working = Working { outside: outside.clone(), key: key.clone() };
                let phase = &outside.plan.phases[run.workflow.position(key.phase.as_str()).unwrap()];
                // Whom a gap check called works like the first task.
                let number = key.task.as_str()[1..].parse::<usize>().unwrap_or(0) % TASKS;
                let planned = phase.tasks[number].clone();
                async move {
                    let _working = working;
                    let stopped = tokio::select! {
                        biased;
                        () = GiveWay(planned.takes) => false,
                        () = stop.stopped() => true,
                    };
                    if stopped {
                        // It does not listen at once.
                        GiveWay(planned.ends_in).await;
                    }
                    let failed = stopped || (attempt <= planned.fails && key.iteration == 1);
                    let failure = Failure { kind: FailureKind::Exit(1), message: "planned".into(), tail: String::new() };
                    let outcome = match (failed, items) {
                        (true, _) => TaskOutcome::Failed(failure),
                        (false, Some(Over::List(items))) => TaskOutcome::Items(items.iter().map(item).collect()),
                        (false, _) => TaskOutcome::Finished { result: None, outputs: Vec::new() },
                    };
                    Body::TaskEnded { key, attempt, outcome, agent: None, commit: None }.into()
                }
                .boxed()
            }
            Effect::Gate { phase, iteration, gate, attempt } => {
                let position = run.workflow.position(phase.as_str()).unwrap();
                let fails = outside.plan.phases[position].gate_fails && attempt == 1 && iteration == 1;
                let failure = Failure { kind: FailureKind::Exit(1), message: "planned".into(), tail: String::new() };
                async move {
                    GiveWay(1).await;
                    Body::GateEnded { phase, iteration, gate, attempt, failure: fails.then_some(failure) }.into()
                }
                .boxed()
            }
            Effect::Evaluate { phase, iteration } => {
                let odd = outside.plan.seed % 2 == 1;
                let outcome = if odd { ConditionOutcome::True } else { ConditionOutcome::Error("planned".into()) };
                async move {
                    GiveWay(1).await;
                    Body::ConditionEvaluated { phase, iteration, outcome }.into()
                }
                .boxed()
            }
            Effect::Show { phase, iteration } => async move {
                GiveWay(1).await;
                let files = outside.shown();
                Body::Shown {
                    phase,
                    iteration,
                    shown: Box::new(lockgate_engine::run::command::Showing { prompt: "?".into(), files, ..Default::default() }),
                }
                .into()
            }
            .boxed(),
            Effect::Recheck { hold, revision } => async move {
                GiveWay(1).await;
                Body::Rechecked { hold, revision, files: outside.shown(), differences: vec!["changed".into()] }.into()
            }
            .boxed(),
            Effect::When { key } => {
                let odd = key.item.as_ref().map_or(0, String::len).is_multiple_of(2);
                let outcome = if odd { ConditionOutcome::False } else { ConditionOutcome::True };
                async move {
                    GiveWay(1).await;
                    Body::WhenEvaluated { key, outcome }.into()
                }
                .boxed()
            }
            Effect::Gaps { phase, iteration, round } => {
                let planned = &outside.plan.phases[run.workflow.position(phase.as_str()).unwrap()];
                let whole = GapsFound::Whole { status: "complete".into(), message: None };
                let found = if round <= planned.gaps { planned.gaps_found(round) } else { whole };
                async move {
                    GiveWay(1).await;
                    Body::GapsChecked { phase, iteration, round, found }.into()
                }
                .boxed()
            }
            Effect::Think { thinker, .. } => async move {
                GiveWay(1).await;
                Body::Thought { thinker, text: Ok(Datum::Inline("\"so\"".into())), agent: None }.into()
            }
            .boxed(),
            Effect::Finalize => async move {
                GiveWay(1).await;
                let file = OutputFile { path: "final.md".into(), digest: Digest::of(b"f"), bytes: 1, stored: false };
                Body::Finalized { made: Ok(file) }.into()
            }
            .boxed(),
            Effect::Check { hold, revision } => {
                futures::future::ready(Body::Checked { hold, revision, failure: None }.into()).boxed()
            }
            Effect::Artifacts { key } => {
                let found = PipelineWish::ArtifactsFound { key, paths: vec!["made.txt".into()], missing: Vec::new() };
                async move {
                    GiveWay(1).await;
                    Body::Pipeline(Box::new(found)).into()
                }
                .boxed()
            }
            Effect::Wake { timer, .. } => futures::future::ready(Body::TimerDue { timer }.into()).boxed(),
        }
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), String>> {
        async {
            GiveWay(1).await;
            Ok(())
        }
        .boxed()
    }
}

fn item(value: &Value) -> Item {
    Item { key: value.to_string(), value: Datum::keep(value).0 }
}
