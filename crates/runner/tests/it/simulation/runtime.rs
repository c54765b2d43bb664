//! A simulated runtime: work that takes a number of polls, and a clock that only advances when it is read or slept on.

use super::invariants::Watch;
use super::liveness::Turns;
use super::plan::{Plan, PlannedFault};
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{PresentedFile, Seen};
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, GapsFound, Item, Presentation, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{ConditionOutcome, DiffBase, Failure, FailureKind, OutputFile};
use lockgate_engine::run::pipeline::PipelineCommand;
use lockgate_engine::spec::workflow::{Checkpoint, ItemSource};
use lockgate_engine::stored_value::StoredValue;
use lockgate_engine::time::Timestamp;
use lockgate_runner::runtime::{Clock, OrphanError, Perform, Performed, Stop};
use lockgate_store::{Fault, MemoryStore};
use serde_json::Value;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

/// Yields this many times.
pub(super) struct YieldNow(pub(super) u32);

impl Future for YieldNow {
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

/// What outlives processes: the clock, the shown file, and the observers.
pub(super) struct Outside {
    pub(super) plan: Plan,
    now: AtomicI64,
    readings: AtomicU32,
    seeds: AtomicU64,
    pub(super) file: Mutex<Vec<u8>>,
    pub(super) watch: Mutex<Watch>,
    /// The iterations of the current process's loop.
    pub(super) turns: Mutex<Turns>,
    /// The store of the current process.
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
            turns: Mutex::new(Turns::default()),
            store: Mutex::new(None),
        })
    }

    pub(super) fn pass_until(&self, moment: Timestamp) {
        self.now.fetch_max(moment.as_millis(), Ordering::Relaxed);
    }

    /// A question, ready to be shown.
    fn showing(&self, checkpoint: &Checkpoint) -> Presentation {
        let files = if checkpoint.show_files.is_empty() { Vec::new() } else { self.shown() };
        let automatic = self.plan.policy.is_some();
        Presentation { prompt: "?".into(), question: checkpoint.question.clone(), files, automatic, ..Presentation::default() }
    }

    fn shown(&self) -> Vec<PresentedFile> {
        let bytes = self.file.lock().unwrap();
        let seen = Seen::File { digest: Digest::of(&bytes), bytes: bytes.len() as u64, mode: 0o644 };
        vec![PresentedFile { not_kept: Some("simulated".into()), ..PresentedFile::new("plan.md", seen) }]
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

    fn sleep_until(&self, due: Timestamp, longest: Option<Duration>) -> BoxFuture<'static, ()> {
        let outside = self.0.clone();
        outside.turns.lock().unwrap().waits(due);
        async move {
            YieldNow(2).await;
            // A backoff lasts no longer than it should, whatever the wall clock does meanwhile.
            let longest = longest.map(|longest| outside.now.load(Ordering::Relaxed) + longest.as_millis() as i64);
            let over = longest.map_or(due.as_millis(), |longest| longest.min(due.as_millis()));
            outside.pass_until(Timestamp::from_millis(over));
            outside.turns.lock().unwrap().comes(due);
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

/// The performer of one process. Dropping it drops all its running work.
pub(super) struct SimulatedPerformer {
    pub(super) outside: Arc<Outside>,
    pub(super) process: u32,
}

/// Running work, reported to the watch when it starts and when it ends for any reason.
struct Working {
    outside: Arc<Outside>,
    key: TaskKey,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.outside.watch.lock().unwrap().ended(&self.key);
    }
}

impl Perform for SimulatedPerformer {
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let outside = self.outside.clone();
        outside.turns.lock().unwrap().performs(format!("{effect:?}"));
        match effect.clone() {
            Effect::Task { key, attempt } => self.work(run, key, attempt, stop),
            Effect::Gate { phase, iteration, gate, attempt } => {
                let planned = outside.plan.phases.get(run.workflow.position(phase.as_str()).unwrap());
                let fails = planned.is_some_and(|phase| phase.gate_fails) && attempt == 1 && iteration == 1;
                async move {
                    YieldNow(1).await;
                    CommandKind::GateEnded { phase, iteration, gate, attempt, failure: fails.then(planned_failure) }.into()
                }
                .boxed()
            }
            Effect::Evaluate { phase, iteration } => {
                let odd = outside.plan.seed % 2 == 1;
                let outcome = if odd { ConditionOutcome::True } else { ConditionOutcome::Error("planned".into()) };
                async move {
                    YieldNow(1).await;
                    CommandKind::ConditionEvaluated { phase, iteration, outcome }.into()
                }
                .boxed()
            }
            Effect::Show { phase, iteration } => {
                let checkpoint = run.workflow.phase(phase.as_str()).and_then(|phase| phase.checkpoint.clone()).unwrap();
                async move {
                    YieldNow(1).await;
                    let shown = Box::new(outside.showing(&checkpoint));
                    CommandKind::Shown { phase, iteration, shown }.into()
                }
                .boxed()
            }
            Effect::DiffBase { phase, iteration } => {
                let base = DiffBase::Missing("simulated".into());
                async move { CommandKind::DiffBaseRecorded { phase, iteration, base }.into() }.boxed()
            }
            Effect::Recheck { hold, revision } => async move {
                YieldNow(1).await;
                CommandKind::Rechecked { hold, revision, files: outside.shown(), diff: None, differences: vec!["changed".into()] }
                    .into()
            }
            .boxed(),
            Effect::When { key } => {
                let odd = key.item.as_ref().map_or(0, String::len).is_multiple_of(2);
                let outcome = if odd { ConditionOutcome::False } else { ConditionOutcome::True };
                async move {
                    YieldNow(1).await;
                    CommandKind::WhenEvaluated { key, outcome }.into()
                }
                .boxed()
            }
            Effect::Gaps { phase, iteration, round } => {
                let planned = &outside.plan.phases[run.workflow.position(phase.as_str()).unwrap()];
                let whole = GapsFound::Whole { status: "complete".into(), message: None };
                let found = if round <= planned.gaps { planned.gaps_found(round) } else { whole };
                async move {
                    YieldNow(1).await;
                    CommandKind::GapsChecked { phase, iteration, round, found }.into()
                }
                .boxed()
            }
            Effect::QueryAgent { requester, .. } => async move {
                YieldNow(1).await;
                CommandKind::AgentQueryAnswered { requester, text: Ok(StoredValue::Inline("\"so\"".into())), agent: None }.into()
            }
            .boxed(),
            Effect::Finalize => async move {
                YieldNow(1).await;
                let file = OutputFile { path: "final.md".into(), digest: Digest::of(b"f"), bytes: 1, stored: false };
                CommandKind::Finalized { made: Ok(file) }.into()
            }
            .boxed(),
            Effect::Check { hold, revision } => {
                // Sometimes a person reports too early that it is done.
                let failure = (revision == 1 && outside.plan.seed.is_multiple_of(2)).then(planned_failure);
                futures::future::ready(CommandKind::Checked { hold, revision, failure }.into()).boxed()
            }
            Effect::Artifacts { key } => {
                let found = PipelineCommand::ArtifactsFound { key, paths: vec!["made.txt".into()], missing: Vec::new() };
                async move {
                    YieldNow(1).await;
                    CommandKind::Pipeline(Box::new(found)).into()
                }
                .boxed()
            }
            Effect::Wake { timer, .. } => futures::future::ready(CommandKind::TimerDue { timer }.into()).boxed(),
        }
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        async {
            YieldNow(1).await;
            Ok(())
        }
        .boxed()
    }
}

impl SimulatedPerformer {
    /// An attempt of a task: its start and end are observed, and its outcome is the planned one.
    fn work(&self, run: &Run, key: TaskKey, attempt: u32, stop: Stop) -> BoxFuture<'static, Performed> {
        let outside = self.outside.clone();
        outside.watch.lock().unwrap().started(&key, attempt, self.process);
        let task = run.declared(&key).unwrap();
        let items = task.for_each.as_ref().filter(|_| key.item.is_none()).map(|list| list.over.clone());
        let asked = task.checkpoint().cloned();
        let working = Working { outside: outside.clone(), key: key.clone() };
        let planned = outside.plan.task(run.workflow.position(key.phase.as_str()).unwrap(), &key.task);
        async move {
            let _working = working;
            let stopped = tokio::select! {
                biased;
                () = YieldNow(planned.takes) => false,
                () = stop.stopped() => true,
            };
            if stopped {
                // It does not react to the stop immediately.
                YieldNow(planned.ends_in).await;
            }
            let failed = stopped || (attempt <= planned.fails && key.iteration <= planned.fails_in);
            let again = planned.until.is_some_and(|(_, rounds)| attempt <= rounds && key.iteration == 1);
            let outcome = match (failed, items, asked) {
                (true, _, _) => TaskOutcome::Failed(planned_failure()),
                (false, Some(ItemSource::List(items)), _) => TaskOutcome::Items(items.iter().map(item).collect()),
                (false, _, Some(asked)) => TaskOutcome::Asks(Box::new(outside.showing(&asked))),
                (false, _, None) if again => {
                    TaskOutcome::Again { result: None, outputs: Vec::new(), why: "once more".into(), failed_check: None }
                }
                (false, _, None) => TaskOutcome::Finished { result: None, outputs: Vec::new() },
            };
            CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }.into()
        }
        .boxed()
    }
}

fn planned_failure() -> Failure {
    Failure { kind: FailureKind::Exit(1), message: "planned".into(), tail: String::new() }
}

fn item(value: &Value) -> Item {
    Item { key: value.to_string(), value: StoredValue::keep(value).0 }
}
