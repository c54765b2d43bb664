//! Performing effects in the real world: one function for each.

mod checkpoint;
mod script;
mod secrets;
mod shell;
mod values;

use crate::config::Config;
use crate::files::Places;
use crate::process::Stop;
use crate::root::Root;
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
use lockgate_engine::spec::workflow::Work;
use lockgate_store::Store;
use std::sync::Arc;

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
    secrets: secrets::Known,
    cache: values::Cache,
}

impl Performer {
    /// Performs effects under a root.
    pub fn new(root: Root, config: Config, store: Arc<dyn Store>, evaluator: Evaluator, on_line: OnLine) -> Self {
        let secrets = secrets::Known::default();
        let cache = values::Cache::default();
        Self { shared: Arc::new(Shared { root, config, store, evaluator, on_line, secrets, cache }) }
    }
}

impl Performer {
    fn begin_knowing(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let shared = self.shared.clone();
        match effect {
            Effect::Task { key, attempt } => begin_task(shared, run, key, *attempt, stop),
            Effect::Gate { phase, iteration, gate, attempt } => {
                shell::gate(shared, run, (phase, *iteration), gate, *attempt, stop)
            }
            Effect::Evaluate { phase, iteration } => script::condition(shared, run, phase, *iteration, stop),
            Effect::Show { phase, iteration } => checkpoint::show(shared, run, phase, *iteration),
            Effect::Recheck { hold, revision } => checkpoint::recheck(shared, run, hold, *revision),
            Effect::Wake { timer, .. } => futures::future::ready(Body::TimerDue { timer: timer.clone() }.into()).boxed(),
        }
    }
}

impl Perform for Performer {
    fn begin(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let shared = self.shared.clone();
        let performed = self.begin_knowing(run, effect, stop);
        match shared.secrets.unknown(run) {
            None => performed,
            // Nothing is written or shown before every secret that may be in it is known.
            Some(unknown) => async move {
                shared.secrets.find(unknown, shared.root.dir()).await;
                performed.await
            }
            .boxed(),
        }
    }

    /// Every attempt that was not seen to its end has left its lock file, whatever the history says of it.
    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), String>> {
        let locks = self.shared.root.lock_files(&run.id);
        if locks.is_empty() {
            return futures::future::ready(Ok(())).boxed();
        }
        let ended = tokio::task::spawn_blocking(move || {
            locks.iter().try_for_each(|lock| {
                crate::process::end_orphans(lock).map_err(|error| error.to_string())?;
                // What could not be removed is looked at again next time.
                let _ = std::fs::remove_file(lock);
                Ok(())
            })
        });
        async move { ended.await.map_err(|error| error.to_string())? }.boxed()
    }
}

fn begin_task(shared: Arc<Shared>, run: &Run, key: &TaskKey, attempt: u32, stop: Stop) -> BoxFuture<'static, Performed> {
    let Some(task) = run.declared(key) else {
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
        self.secrets.masks()
    }
}
