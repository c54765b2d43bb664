//! Dry runs: a workflow is executed with stubs and default answers, and nothing in the project is changed.
//!
//! The regular driver drives a regular run in an in-memory store. Conditions, scripts, lists, criteria and documents are
//! evaluated; stubs replace commands and agents, the first option is chosen if no answer is given, and timers fire
//! immediately.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `stubs` | replaces processes |
//! | `schema_sample` | the stub answer of an agent with an output schema |
//! | `clock` | a clock that skips sleeps |
//! | `step` | the steps and questions of a dry run, as programs read them |
//! | `transcript` | records what happened, step by step |
//! | `test_case` | files of test cases |
//! | `expectation` | compares a dry run with a test case's expectations |

mod clock;
mod expectation;
mod schema_sample;
mod step;
mod stubs;
mod test_case;
mod transcript;

pub use expectation::Expected;
pub use step::{DryRunAnswer, DryRunHold, DryRunOutcome, DryRunWork, RehearsedDiff, Step, StepKind};
pub(crate) use stubs::AgentPrompt;
pub use stubs::{Position, Stub, StubCall, StubPlan, Stubs};
pub use test_case::{Case, CaseFile, SourcePosition, read_cases};

use crate::config::Config;
use crate::driver::{DriveError, Driver, Halt, HaltReason, Listener, Paused};
use crate::notifications::{Kind, Reporter};
use crate::perform::Performer;
use crate::root::Root;
use crate::runtime::{Clock, OrphanError, Perform, Performed, Runtime, Stop};
use crate::script::Evaluator;
use crate::start::{Frozen, OutputDirError, StartOptions, WorkflowFile};
use clock::TimeSkippingClock;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{Actor, Caller, Channel, CommandKind, Credential, TerminalRule};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::state::End;
use lockgate_engine::run::{Run, Status};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_store::{MemoryStore, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use transcript::Transcript;

/// How often a phase is executed, or a hold is answered with its first option, before the dry run stops, because it may loop
/// forever.
pub const MAX_ROUNDS: u32 = 20;

const RUN: &str = "dry-run";

/// What a dry run needs.
pub struct DryRunEnv {
    /// The project, which is only read.
    pub root: Root,
    pub config: Config,
    pub evaluator: Evaluator,
    /// An empty directory for written files; the caller removes it.
    pub folder: PathBuf,
    /// Requests a stop.
    pub halt: Halt,
}

/// The result of a dry run.
#[derive(Debug)]
pub struct DryRunReport {
    /// The final status of the run.
    pub status: Status,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Why the dry run stopped before the run ended, if it did.
    pub truncated: Option<String>,
    /// The phases in the order of their execution.
    pub path: Vec<String>,
    pub steps: Vec<Step>,
    /// The questions in the order in which they were asked.
    pub holds: Vec<DryRunHold>,
    /// The final context.
    pub context: Value,
    /// The files that would be in the output directory at the end.
    pub files: Vec<String>,
    /// The output directory, relative to the root.
    pub output_dir: String,
    /// Given answers that were never used: their selector and option.
    pub unused_answers: Vec<(String, String)>,
    /// Given stubs that were never used.
    pub unused_stubs: Vec<String>,
    /// Where the files are as long as the directory exists.
    pub files_in: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    #[error(transparent)]
    OutputDir(#[from] OutputDirError),
    #[error(transparent)]
    Files(std::io::Error),
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// Executes a workflow with stubs until it ends or loops too often.
pub async fn dry_run(
    stage: DryRunEnv,
    file: &WorkflowFile,
    workflow: Workflow,
    start_options: StartOptions,
    given: BTreeMap<String, StubPlan>,
) -> Result<DryRunReport, DryRunError> {
    let DryRunEnv { root, config, evaluator, folder, halt } = stage;
    let clock = Arc::new(TimeSkippingClock::default());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let prepared =
        Frozen::new(&root, file, workflow.clone()).prepare(&root, store.driver(), clock.seed(), start_options.clone())?;
    let output_dir = prepared.create.created.output_dir.replace(prepared.create.created.run.as_str(), RUN);
    // The path is already rendered, and its files are written elsewhere.
    let mut here = Frozen::new(&root, file, Workflow { output_dir: None, ..workflow }).prepare(
        &root,
        store.driver(),
        clock.seed(),
        start_options,
    )?;
    let real = folder.canonicalize().unwrap_or(folder);
    let files_in = real.join("out");
    std::fs::create_dir_all(&files_in).map_err(DryRunError::Files)?;
    here.create.created.run = RunId::from(RUN);
    here.create.created.output_dir = files_in.to_string_lossy().into_owned();

    let stubs = Arc::new(Stubs::new(given));
    let performer = Performer::for_dry_run(root.with_state(real.join("state")), config, store.clone(), evaluator, stubs.clone());
    let perform = Arc::new(SerialPerformer { performer, turn: Arc::default() });
    let runtime = Runtime { store: store.clone(), perform, clock };
    let recorder = Arc::new(Mutex::new(Recorder::default()));
    let going_round = Halt::default();
    let listener = Box::new(RecordingListener { recorder: recorder.clone(), halt: going_round.clone() });
    let mut driver = Driver::create(runtime, nobody(), here.create, here.workflow, here.values, listener).await?;
    tokio::select! {
        driven = drive(&mut driver, &going_round, &recorder) => driven?,
        // Nothing is really running, so nothing has to be stopped.
        () = halt.halted() => {}
    }

    let run = driver.run();
    let recorder = std::mem::take(&mut *recorder.lock().expect("no code panics while holding this lock"));
    let mut transcript = recorder.transcript;
    transcript.fill(stubs.stub_calls(), &transcript::in_words(run));
    let shown = Shown { from: files_in.to_string_lossy().into_owned(), to: output_dir.clone() };
    let truncated = recorder.truncated.or_else(|| halt.reason().map(|reason| format!("it was stopped by {reason}")));
    Ok(DryRunReport {
        status: run.status(),
        error: match &run.end {
            Some(End::Failed(message)) => Some(shown.text(message)),
            Some(End::Complete | End::Aborted | End::Cancelled) | None => None,
        },
        truncated,
        path: transcript.path,
        steps: transcript.steps.into_iter().map(|step| shown.step(step)).collect(),
        holds: transcript.holds.into_iter().map(|hold| shown.hold(hold)).collect(),
        context: shown.value(context(&*store, run).await),
        files: files_below(&files_in),
        output_dir,
        unused_answers: run.presets.iter().map(|given| (given.preset.selector.clone(), given.preset.option.clone())).collect(),
        unused_stubs: stubs.unused(),
        files_in,
    })
}

/// Performs effects one after the other, in the order in which they start, so that a dry run is deterministic.
struct SerialPerformer {
    performer: Performer,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Perform for SerialPerformer {
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        let (performed, turn) = (self.performer.start(run, effect, stop), self.turn.clone());
        async move {
            let _turn = turn.lock().await;
            performed.await
        }
        .boxed()
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        // No process was started that could have been left behind.
        futures::future::ready(Ok(())).boxed()
    }
}

/// Drives the run to its end, choosing the first option of every open hold.
async fn drive(driver: &mut Driver, halt: &Halt, recorder: &Mutex<Recorder>) -> Result<(), DriveError> {
    let mut answered: BTreeMap<String, u32> = BTreeMap::new();
    loop {
        match driver.drive(halt).await? {
            Paused::Ended | Paused::Interrupted => return Ok(()),
            Paused::Waiting => {}
        }
        let Some(hold) = driver.run().open_holds().first().map(|hold| (*hold).clone()) else { return Ok(()) };
        let name = transcript::name(&hold);
        let times = answered.entry(name.clone()).or_default();
        *times += 1;
        let Some(first) = hold.options.first().filter(|_| *times < MAX_ROUNDS) else {
            let labels: Vec<&str> = hold.options.iter().map(|choice| choice.label.as_str()).collect();
            let reason = format!(
                "the hold {name} opened {MAX_ROUNDS} times, and its first option always leads back to it; {}",
                otherwise(&name, &labels)
            );
            recorder.lock().expect("no code panics while holding this lock").truncated = Some(reason);
            return Ok(());
        };
        let option = first.id.to_string();
        let feedback = first.requires_feedback.then(|| "(feedback from a person)".to_owned());
        let answer = CommandKind::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option, feedback };
        driver.submit(nobody(), answer).await?;
    }
}

/// How to get out of the loop.
fn otherwise<T: AsRef<str>>(hold: &str, labels: &[T]) -> String {
    let labels: Vec<String> = labels.iter().map(|label| format!("{:?}", label.as_ref())).collect();
    format!("answer it with {hold}=OPTION ({})", labels.join(", "))
}

/// The caller that answers when no person is asked.
fn nobody() -> Caller {
    let actor = Actor {
        credential: Credential::Person,
        name: "dry-run".into(),
        channel: Channel::Command,
        terminal: false,
        inside_task: None,
        uid: None,
    };
    Caller::new(actor, TerminalRule::NotRequired)
}

#[derive(Default)]
struct Recorder {
    reporter: Reporter,
    transcript: Transcript,
    truncated: Option<String>,
}

/// Records a run, and halts it when it loops too often.
struct RecordingListener {
    recorder: Arc<Mutex<Recorder>>,
    halt: Halt,
}

impl Listener for RecordingListener {
    fn committed(&mut self, run: &Run, entries: &[Entry]) {
        let mut recorder = self.recorder.lock().expect("no code panics while holding this lock");
        let notifications = recorder.reporter.report(run, entries);
        recorder.transcript.take_in(run, &notifications);
        let too_often = notifications.iter().find_map(|notification| {
            let Kind::PhaseStarted { phase, iteration, .. } = notification.kind else { return None };
            (iteration > MAX_ROUNDS).then_some(phase)
        });
        if let Some(phase) = too_often.filter(|_| recorder.truncated.is_none()) {
            let last = recorder.transcript.holds.last().filter(|hold| hold.answer.as_ref().is_some_and(|answer| !answer.given));
            let how = last.map(|hold| otherwise(&hold.names().join(" and "), &hold.options));
            let how = how.map(|how| format!("; {how}")).unwrap_or_default();
            let reason = format!("phase {phase} was executed {MAX_ROUNDS} times and loops{how}");
            recorder.truncated = Some(reason);
            self.halt.halt(HaltReason::Endless);
        }
    }
}

async fn context(store: &dyn Store, run: &Run) -> Value {
    let digests: Vec<_> =
        run.context(&lockgate_engine::spec::workflow::Reads::All).stored.into_iter().map(|(_, digest)| digest).collect();
    let found = store.values(&digests).await.unwrap_or_default();
    let known: BTreeMap<_, _> = digests.into_iter().zip(found).collect();
    run.full_context(&|digest| serde_json::from_slice(known.get(digest)?.as_deref()?).ok())
}

/// The files below a directory, as relative paths, sorted.
fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => files.extend(entry.path().strip_prefix(folder).ok().map(|path| path.to_string_lossy().into_owned())),
            }
        }
    }
    files.sort();
    files
}

/// Replaces the temporary output directory with its real name.
struct Shown {
    from: String,
    to: String,
}

impl Shown {
    fn text(&self, text: &str) -> String {
        text.replace(&self.from, &self.to)
    }

    fn maybe(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.text(&text))
    }

    fn step(&self, step: Step) -> Step {
        Step {
            command: self.maybe(step.command),
            prompt: self.maybe(step.prompt),
            until: self.maybe(step.until),
            detail: self.maybe(step.detail),
            ..step
        }
    }

    fn hold(&self, hold: DryRunHold) -> DryRunHold {
        let all = |texts: Vec<String>| texts.iter().map(|text| self.text(text)).collect();
        DryRunHold { prompt: self.text(&hold.prompt), notes: all(hold.notes), files: all(hold.files), ..hold }
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, self.value(value))).collect(),
        }
    }
}
