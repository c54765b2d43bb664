//! Performs effects on this machine: one function for each.

mod agent;
mod answer_schema;
mod artifacts;
mod ask_agent;
mod attempt;
mod auth_gate;
mod checkpoint;
mod command;
mod commit;
mod conditions;
mod diff;
mod dir_lock;
mod fan_out;
mod gap_check;
mod handover;
mod loops;
mod notice_secrets;
mod prompt;
mod script;
mod secrets;
mod shell;
mod snapshots;
mod team;
mod think_hard;
mod values;
mod worktree;

pub(crate) use command::explain;
pub use commit::recover_commits;

use crate::config::{Config, ConfigError};
use crate::dry_run::Stubs;
use crate::files::RunDirs;
use crate::outbox::command::CommandChannel;
use crate::outbox::{Courier, Render};
use crate::process::Stop;
use crate::projection::StateFile;
use crate::root::{Root, Step};
use crate::runtime::{OrphanError, Perform, Performed, SystemClock};
use crate::script::Evaluator;
use crate::secret::Masks;
use crate::snapshot::SnapshotOptions;
use command::ProcessSpec;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::{RunId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{DiffBase, Failure, FailureKind};
use lockgate_engine::run::outbox::Subscriptions;
use lockgate_engine::run::phase::TaskRun;
use lockgate_engine::spec::workflow::{Phase, Task, Work};
use lockgate_store::Store;
use std::sync::Arc;
use values::TaskValues;

/// Receives each line that a task or gate prints, with its run and address. One process drives many runs, whose addresses may
/// coincide.
pub type OnLine = Arc<dyn Fn(&RunId, &str, &str) + Send + Sync>;

#[derive(Clone)]
pub struct Performer {
    shared: Arc<Shared>,
    courier: Option<Arc<Courier>>,
}

struct Shared {
    root: Root,
    config: Config,
    store: Arc<dyn Store>,
    evaluator: Evaluator,
    on_line: OnLine,
    secrets: secrets::Known,
    cache: values::Cache,
    dir_locks: dir_lock::DirLocks,
    /// Replaces processes in a dry run.
    stubs: Option<Arc<Stubs>>,
}

impl Performer {
    pub fn new(root: Root, config: Config, store: Arc<dyn Store>, evaluator: Evaluator, on_line: OnLine) -> Self {
        Self::with(root, config, store, evaluator, on_line, None)
    }

    /// For a dry run: scripts and conditions are evaluated, and stubs replace every process.
    pub fn for_dry_run(root: Root, config: Config, store: Arc<dyn Store>, evaluator: Evaluator, stubs: Arc<Stubs>) -> Self {
        Self::with(root, config, store, evaluator, Arc::new(|_, _, _| {}), Some(stubs))
    }

    /// Adds a courier that delivers notices according to the settings; `render` produces the JSON of a notice.
    pub fn notifying(self, render: Arc<Render>) -> Self {
        let Shared { root, config, store, .. } = &*self.shared;
        let Some(command) = config.notify.command.clone() else { return self };
        let channel = CommandChannel {
            root: root.clone(),
            command,
            shell: config.shell.clone(),
            render,
            secrets: Box::new(notice_secrets::Secrets(self.shared.clone())),
        };
        let subscriptions = config.notify.subscriptions();
        let courier = Courier::new(store.clone(), Arc::new(SystemClock), subscriptions, Box::new(channel));
        Self { courier: Some(courier), ..self }
    }

    fn with(
        root: Root,
        config: Config,
        store: Arc<dyn Store>,
        evaluator: Evaluator,
        on_line: OnLine,
        stubs: Option<Arc<Stubs>>,
    ) -> Self {
        let secrets = secrets::Known::default();
        let cache = values::Cache::default();
        Self {
            courier: None,
            shared: Arc::new(Shared {
                root,
                config,
                store,
                evaluator,
                on_line,
                secrets,
                cache,
                dir_locks: dir_lock::DirLocks::default(),
                stubs,
            }),
        }
    }
}

impl Performer {
    fn start_effect(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let shared = self.shared.clone();
        match effect {
            Effect::Task { key, attempt } => start_task(shared, run, key, *attempt, stop),
            Effect::Gate { phase, iteration, gate, attempt } => {
                shell::gate(shared, run, (phase, *iteration), gate, *attempt, stop)
            }
            Effect::Evaluate { phase, iteration } => conditions::checkpoint(shared, run, phase, *iteration, stop),
            Effect::Show { phase, iteration } => checkpoint::show(shared, run, phase, *iteration, stop),
            Effect::DiffBase { phase, iteration } => diff::record(shared, run, phase, *iteration, stop),
            Effect::Recheck { hold, revision } => checkpoint::recheck(shared, run, hold, *revision, stop),
            Effect::Check { hold, revision } => checkpoint::check(shared, run, hold, *revision, stop),
            Effect::When { key } => conditions::when(shared, run, key, stop),
            Effect::Gaps { phase, iteration, round } => gap_check::check(shared, run, (phase, *iteration), *round, stop),
            Effect::QueryAgent { requester, number } => think_hard::query_agent(shared, run, requester, *number, stop),
            Effect::Finalize => gap_check::finalize(shared, run),
            Effect::Artifacts { key } => artifacts::look(shared, run, key),
            Effect::Wake { timer, .. } => futures::future::ready(CommandKind::TimerDue { timer: timer.clone() }.into()).boxed(),
        }
    }
}

impl Perform for Performer {
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let shared = self.shared.clone();
        let masks = shared.masks();
        let performed = self.start_effect(run, effect, stop).map(move |performed| mask_failures(performed, &masks)).boxed();
        match shared.secrets.unknown(run, &shared.config).filter(|_| shared.stubs.is_none()) {
            None => performed,
            // All secrets that the effect may output must be known before anything is written or shown.
            Some(unknown) => async move {
                shared.secrets.find(unknown, shared.root.dir()).await;
                performed.await
            }
            .boxed(),
        }
    }

    fn project(&self, run: &Run) -> Option<StateFile> {
        // A dry run writes no files.
        let shared = self.shared.clone();
        StateFile::of(&shared.root, shared.store.clone(), run).filter(|_| shared.stubs.is_none())
    }

    fn snapshots(&self, run: &Run) -> Result<Option<SnapshotOptions>, ConfigError> {
        // A dry run writes no files.
        if self.shared.stubs.is_some() {
            return Ok(None);
        }
        snapshots::options(&self.shared, run)
    }

    fn masks(&self, run: &Run) -> BoxFuture<'static, Arc<Masks>> {
        notice_secrets::known_masks(&self.shared, run)
    }

    fn courier(&self) -> Option<&Arc<Courier>> {
        self.courier.as_ref()
    }

    /// Every attempt that did not end in an orderly way has left its lock file, whatever the history says.
    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        let locks = self.shared.root.lock_files(&run.id);
        let commits = run.workflow.commits();
        if locks.is_empty() && !commits {
            return futures::future::ready(Ok(())).boxed();
        }
        let (root, run) = (self.shared.root.clone(), run.id.clone());
        let span = tracing::Span::current();
        let ended = tokio::task::spawn_blocking(move || {
            let _in_run = span.entered();
            if locks.iter().any(|lock| crate::process::job_mark::is_inside(lock)) {
                return Err(OrphanError::Inside);
            }
            for lock in &locks {
                crate::process::end_all_orphans(lock)?;
                crate::process::remove_lock(lock);
            }
            match commits {
                true => Ok(recover_commits(&root, &run)?),
                false => Ok(()),
            }
        });
        async move { ended.await? }.boxed()
    }
}

/// Masks failure messages and notes of questions, because some of them repeat a program's output.
fn mask_failures(mut performed: Performed, masks: &Masks) -> Performed {
    let mask = |text: &mut String| *text = masks.mask_text(text).into_owned();
    let mask_failure = |failure: &mut Failure| {
        mask(&mut failure.message);
        mask(&mut failure.tail);
    };
    match &mut performed.command {
        CommandKind::TaskEnded { outcome, .. } => match outcome {
            TaskOutcome::Failed(failure) => mask_failure(failure),
            TaskOutcome::Asks(showing) => showing.notes.iter_mut().for_each(mask),
            TaskOutcome::Again { why, .. } => mask(why),
            TaskOutcome::Finished { .. }
            | TaskOutcome::Items(_)
            | TaskOutcome::Agents(_)
            | TaskOutcome::QueriesAgent(_)
            | TaskOutcome::Unauthenticated { .. }
            | TaskOutcome::HandsOver(_)
            | TaskOutcome::CommitsMissing(_) => {}
        },
        CommandKind::Shown { shown, .. } => shown.notes.iter_mut().for_each(mask),
        CommandKind::GateEnded { failure, .. } | CommandKind::Checked { failure, .. } => {
            failure.iter_mut().for_each(mask_failure)
        }
        CommandKind::AgentQueryAnswered { text: Err(failure), .. } => mask_failure(failure),
        CommandKind::Finalized { made: Err(failure) } => mask_failure(failure),
        CommandKind::Rechecked { differences, .. } => differences.iter_mut().for_each(mask),
        CommandKind::DiffBaseRecorded { base: DiffBase::Missing(why), .. } => mask(why),
        CommandKind::DiffBaseRecorded { base: DiffBase::Tree { .. }, .. }
        | CommandKind::AgentQueryAnswered { text: Ok(_), .. }
        | CommandKind::Finalized { made: Ok(_) }
        | CommandKind::SessionNamed { .. }
        | CommandKind::WhenEvaluated { .. }
        | CommandKind::GapsChecked { .. }
        | CommandKind::ConditionEvaluated { .. }
        | CommandKind::TakeOver { .. }
        | CommandKind::AcceptDefinition { .. }
        | CommandKind::ChangeAgent { .. }
        | CommandKind::ChangeAnswer(_)
        | CommandKind::TimerDue { .. }
        | CommandKind::Advance
        | CommandKind::Answer { .. }
        | CommandKind::PresetAnswers { .. }
        | CommandKind::Interrupt { .. }
        | CommandKind::Cancel { .. }
        | CommandKind::RetryTask { .. }
        | CommandKind::SkipTask { .. }
        | CommandKind::RecordRefusal(_)
        | CommandKind::Pipeline(_)
        | CommandKind::Rewind(_)
        | CommandKind::Team(_) => {}
    }
    performed
}

#[derive(Clone, Copy)]
struct TaskCall<'a> {
    phase: &'a Phase,
    key: &'a TaskKey,
    attempt: u32,
    task: &'a Task,
    state: &'a TaskRun,
}

impl<'a> TaskCall<'a> {
    fn process_spec(&self) -> ProcessSpec<'a> {
        ProcessSpec {
            name: self.key.task.as_str(),
            address: self.key.address(),
            step: Step::Task(self.key),
            attempt: self.attempt,
            dir: &self.task.dir,
            env: &self.task.env,
            secrets: &self.task.secrets,
            timeout: self.task.timeout,
            shell: self.task.shell.as_ref(),
            feedback: self.state.feedback(),
        }
    }

    /// What templates and scripts see of it.
    fn values(&self) -> TaskValues<'a> {
        TaskValues {
            id: Some((self.key.task.as_str(), self.attempt)),
            name: Some(self.task.title()),
            item: self.key.item.as_deref().zip(self.state.value.as_ref()),
            round: self.task.until.as_ref().map(|_| (self.state.previous.as_ref(), self.state.rounds + 1)),
            config: None,
            output_path: None,
            feedback: self.state.feedback(),
        }
    }

    fn ending(&self, shared: &Arc<Shared>, run: &Run, stop: Stop) -> attempt::Ending {
        attempt::Ending::new(shared.clone(), run, *self, stop)
    }
}

fn start_task(shared: Arc<Shared>, run: &Run, key: &TaskKey, attempt: u32, stop: Stop) -> BoxFuture<'static, Performed> {
    let found = run.workflow.phase(key.phase.as_str()).zip(run.declared(key)).zip(run.task_run(key));
    let Some(((phase, task), state)) = found else {
        return futures::future::ready(ended(key, attempt, failed(FailureKind::Start, "the definition has no such task")))
            .boxed();
    };
    let call = TaskCall { phase, key, attempt, task, state };
    if let (Some(list), None) = (&task.for_each, &key.item) {
        return fan_out::items(shared, run, call, list, stop);
    }
    match &task.work {
        Work::Pass if task.until.is_none() => {
            let outcome = TaskOutcome::Finished { result: None, outputs: Vec::new() };
            futures::future::ready(ended(key, attempt, outcome)).boxed()
        }
        Work::Pass => {
            let mut ending = call.ending(&shared, run, stop);
            async move {
                let outcome = match ending.start().await {
                    Ok(()) => TaskOutcome::Finished { result: None, outputs: Vec::new() },
                    Err(failure) => TaskOutcome::Failed(failure),
                };
                ending.end(outcome, Vec::new(), None).await
            }
            .boxed()
        }
        Work::Script(source) => script::task(shared, run, call, source, stop),
        Work::Adaptive(source) => fan_out::agents(shared, run, call, source, stop),
        Work::Run(command) => shell::task(shared, run, call, command, stop),
        Work::Agent(work) => agent::task(shared, run, call, work, stop),
        Work::Checkpoint(checkpoint) => checkpoint::task(shared, run, call, checkpoint, stop),
    }
}

fn ended(key: &TaskKey, attempt: u32, outcome: TaskOutcome) -> Performed {
    CommandKind::TaskEnded { key: key.clone(), attempt, outcome, agent: None, commit: None }.into()
}

fn failed(kind: FailureKind, message: impl std::fmt::Display) -> TaskOutcome {
    TaskOutcome::Failed(command::failure(kind, message))
}

impl Shared {
    fn run_dirs(&self, run: &Run) -> RunDirs {
        self.root.run_dirs(&run.output_dir, run.feature.as_deref())
    }

    /// The notices that commits must include; none in a dry run.
    fn subscriptions(&self) -> Subscriptions {
        if self.stubs.is_some() { Subscriptions::NONE } else { self.config.notify.subscriptions() }
    }

    /// Masks for every secret that is known so far.
    fn masks(&self) -> Arc<Masks> {
        self.secrets.masks()
    }
}
