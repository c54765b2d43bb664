//! Performing effects in the real world: one function for each.

mod checkpoint;
mod script;
mod shell;
mod values;

use crate::config::Config;
use crate::files::Places;
use crate::process::Stop;
use crate::root::{Root, Step};
use crate::script::Evaluator;
use crate::secret::Masks;
use crate::world::{Perform, Performed};
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Body, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::run::state::{GateState, TaskState};
use lockgate_engine::spec::workflow::Work;
use lockgate_store::Store;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Hears the lines that tasks and gates print.
pub type OnLine = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Performs effects on this machine.
#[derive(Clone)]
pub struct Performer {
    shared: Arc<Shared>,
}

struct Shared {
    root: Root,
    config: Config,
    store: Arc<dyn Store>,
    evaluator: Evaluator,
    on_line: OnLine,
    secrets: Mutex<BTreeMap<String, crate::secret::Secret>>,
    cache: values::Cache,
}

impl Performer {
    /// Performs effects under a root.
    pub fn new(root: Root, config: Config, store: Arc<dyn Store>, evaluator: Evaluator, on_line: OnLine) -> Self {
        let secrets = Mutex::new(BTreeMap::new());
        let cache = values::Cache::default();
        Self { shared: Arc::new(Shared { root, config, store, evaluator, on_line, secrets, cache }) }
    }
}

impl Perform for Performer {
    fn begin(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let shared = self.shared.clone();
        match effect {
            Effect::Task { key, attempt } => begin_task(shared, run, key, *attempt, stop),
            Effect::Gate { phase, iteration, gate, attempt } => {
                shell::gate(shared, run, (phase, *iteration), gate, *attempt, stop)
            }
            Effect::Evaluate { phase, iteration } => script::condition(shared, run, phase, *iteration),
            Effect::Show { phase, iteration } => checkpoint::show(shared, run, phase, *iteration),
            Effect::Recheck { hold, revision } => checkpoint::recheck(shared, run, hold, *revision),
            Effect::Wake { timer, .. } => futures::future::ready(Body::TimerDue { timer: timer.clone() }.into()).boxed(),
        }
    }

    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), String>> {
        let Some(phase) = &run.current else { return futures::future::ready(Ok(())).boxed() };
        let root = &self.shared.root;
        let tasks = phase.running().filter(|index| phase.tasks[*index].state == TaskState::Running).map(|index| {
            let task = &phase.tasks[index];
            root.lock_file(&run.id, Step::Task(&phase.key(index)), task.attempts)
        });
        let gates = phase.gates.iter().filter(|gate| gate.state == GateState::Running).map(|gate| {
            let step = Step::Gate { phase: &phase.id, iteration: phase.iteration, gate: &gate.gate };
            root.lock_file(&run.id, step, gate.attempts)
        });
        let locks: Vec<_> = tasks.chain(gates).filter(|lock| lock.exists()).collect();
        if locks.is_empty() {
            return futures::future::ready(Ok(())).boxed();
        }
        let ended = tokio::task::spawn_blocking(move || {
            locks.iter().try_for_each(|lock| crate::process::end_orphans(lock).map(drop).map_err(|error| error.to_string()))
        });
        async move { ended.await.map_err(|error| error.to_string())? }.boxed()
    }
}

fn begin_task(shared: Arc<Shared>, run: &Run, key: &TaskKey, attempt: u32, stop: Stop) -> BoxFuture<'static, Performed> {
    let declared = run.workflow.phase(key.phase.as_str()).and_then(|phase| phase.task(key.task.as_str()));
    let Some(task) = declared else {
        return futures::future::ready(ended(key, attempt, failed(FailureKind::Start, "the definition has no such task")))
            .boxed();
    };
    match &task.work {
        Work::Pass => {
            let outcome = TaskOutcome::Finished { result: None, outputs: Vec::new() };
            futures::future::ready(ended(key, attempt, outcome)).boxed()
        }
        Work::Script(source) => script::task(shared, run, key, attempt, task, source, stop),
        Work::Run(command) => shell::task(shared, run, key, attempt, task, command, stop),
    }
}

fn ended(key: &TaskKey, attempt: u32, outcome: TaskOutcome) -> Performed {
    Body::TaskEnded { key: key.clone(), attempt, outcome }.into()
}

fn failed(kind: FailureKind, message: impl Into<String>) -> TaskOutcome {
    TaskOutcome::Failed(Failure { kind, message: message.into(), tail: String::new() })
}

impl Shared {
    /// Where a run's files are.
    fn places(&self, run: &Run) -> Places {
        self.root.places(&run.output_dir, run.feature.as_deref())
    }

    /// Masks for every secret that is known by now.
    fn masks(&self) -> Masks {
        Masks::new(self.secrets.lock().expect("nobody panics while holding this").values())
    }
}
