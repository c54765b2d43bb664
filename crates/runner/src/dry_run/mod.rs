//! Rehearsals: a workflow is walked with stub work and stub answers, and nothing of the project is touched.
//!
//! The ordinary driver drives an ordinary run in a store in memory. Conditions, scripts, lists, criteria and documents are evaluated
//! as they are; stubs stand in for commands and agents, the first option is taken where no answer is given, and nobody waits.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `stubs` | what stands in for processes |
//! | `schema_sample` | what an agent says whose answer must fit a schema |
//! | `clock` | a clock on which nobody waits |
//! | `step` | the steps and questions of a rehearsal, as programs read them |
//! | `transcript` | what happened, step by step |
//! | `test_case` | a file of cases: what is given |
//! | `expectation` | what a case expects, held against what came |

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

/// A phase is executed at most so often, and a hold answered by its first option: a walk that goes round would never end.
pub const MAX_ROUNDS: u32 = 20;

/// What the run is called.
const RUN: &str = "dry-run";

/// What is needed to rehearse.
pub struct DryRunEnv {
    /// The project. It is only read.
    pub root: Root,
    /// Its settings.
    pub config: Config,
    /// What evaluates scripts.
    pub evaluator: Evaluator,
    /// An empty folder for whatever is written; whoever made it removes it.
    pub folder: PathBuf,
    /// Asks the rehearsal to stop.
    pub halt: Halt,
}

/// What came of a rehearsal.
#[derive(Debug)]
pub struct DryRunReport {
    /// Where the run stood in the end.
    pub status: Status,
    /// Why it failed, where it did.
    pub error: Option<String>,
    /// Why the rehearsal ended before the run did, where that is so.
    pub truncated: Option<String>,
    /// The phases in the order in which they were executed.
    pub path: Vec<String>,
    /// What would happen.
    pub steps: Vec<Step>,
    /// The questions, in the order in which they were asked.
    pub holds: Vec<DryRunHold>,
    /// The context in the end.
    pub context: Value,
    /// The files that would be in the output directory in the end.
    pub files: Vec<String>,
    /// Where outputs would go, relative to the root.
    pub output_dir: String,
    /// Answers that were given and never asked for: their selector and option.
    pub unused_answers: Vec<(String, String)>,
    /// Stubs that were given and never needed.
    pub unused_stubs: Vec<String>,
    /// Where the files lie as long as the folder is there.
    pub files_in: PathBuf,
}

/// Why there was no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The run cannot have the output directory that its workflow names.
    #[error(transparent)]
    OutputDir(#[from] OutputDirError),
    /// The directory for its files cannot be created.
    #[error(transparent)]
    Files(std::io::Error),
    /// The run could not be driven.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// Walks a workflow with stubs for its work, until it ends or goes round too often.
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
    // It is filled in by now, and what lies behind it is made elsewhere.
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
        // Nothing of it is real, so nothing need be ended.
        () = halt.halted() => {}
    }

    let run = driver.run();
    let recorder = std::mem::take(&mut *recorder.lock().expect("nobody panics while holding this"));
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

/// Performs one effect after the other, in the order in which they begin: the same rehearsal then always goes the same way.
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

/// Drives to the end, taking the first option of whatever waits.
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
            let told = format!(
                "the hold {name} opened {MAX_ROUNDS} times, and its first option only leads round; {}",
                otherwise(&name, &labels)
            );
            recorder.lock().expect("nobody panics while holding this").truncated = Some(told);
            return Ok(());
        };
        let option = first.id.to_string();
        let feedback = first.requires_feedback.then(|| "(what a person says)".to_owned());
        let answer = CommandKind::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option, feedback };
        driver.submit(nobody(), answer).await?;
    }
}

/// How somebody leads a walk out of its round.
fn otherwise<T: AsRef<str>>(hold: &str, labels: &[T]) -> String {
    let labels: Vec<String> = labels.iter().map(|label| format!("{:?}", label.as_ref())).collect();
    format!("answer it with {hold}=OPTION ({})", labels.join(", "))
}

/// The caller who answers where no one is asked.
fn nobody() -> Caller {
    let actor = Actor {
        credential: Credential::Person,
        name: "rehearsal".into(),
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

/// Follows a run, and halts it when it goes round too often.
struct RecordingListener {
    recorder: Arc<Mutex<Recorder>>,
    halt: Halt,
}

impl Listener for RecordingListener {
    fn committed(&mut self, run: &Run, entries: &[Entry]) {
        let mut recorder = self.recorder.lock().expect("nobody panics while holding this");
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
            let told = format!("phase {phase} was executed {MAX_ROUNDS} times, and the walk goes round{how}");
            recorder.truncated = Some(told);
            self.halt.halt(HaltReason::Endless);
        }
    }
}

/// The context with all stored values.
async fn context(store: &dyn Store, run: &Run) -> Value {
    let digests: Vec<_> =
        run.context(&lockgate_engine::spec::workflow::Reads::All).stored.into_iter().map(|(_, digest)| digest).collect();
    let found = store.values(&digests).await.unwrap_or_default();
    let known: BTreeMap<_, _> = digests.into_iter().zip(found).collect();
    run.full_context(&|digest| serde_json::from_slice(known.get(digest)?.as_deref()?).ok())
}

/// The files below a folder, as paths in it, sorted.
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

/// Names the output directory as it would be called.
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
