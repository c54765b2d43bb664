//! Scripts: JavaScript in a worker process.

use super::values::{FillError, Renderer, TaskValues, overlay};
use super::{Shared, TaskCall, failed};
use crate::dry_run::{Position, Stubs};
use crate::files::{MissingOutputs, RunDirs, collect_outputs};
use crate::process::Stop;
use crate::root::Step;
use crate::runtime::Performed;
use crate::script::{AgentReply, Call, Failed, Files, Form, Limits, Returned, ScriptError, StoredPart};
use crate::secret::Masks;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::TaskOutcome;
use lockgate_engine::run::context::Context;
use lockgate_engine::run::event::{Failure, FailureKind, OutputFile, Requester};
use lockgate_engine::spec::workflow::{Phase, Reads, Script};
use lockgate_engine::stored_value::StoredValue;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an evaluation needs from the run, captured when it starts.
pub(super) struct Prepared {
    source: Arc<str>,
    line: u32,
    form: Form,
    context: Context,
    globals: Vec<(String, String)>,
    /// Globals whose values may have to be loaded from the store.
    data: Vec<(&'static str, StoredValue)>,
    files: Option<Files>,
    /// Templates of the files that the phase is expected to write.
    expected: Option<(Renderer, Vec<String>)>,
    /// Earlier agent queries of this script: question and answer.
    agent_queries: Option<Vec<(StoredValue, StoredValue)>>,
    limits: Limits,
}

/// Why an evaluation gave no result, and its log up to then.
pub(super) struct EvalError {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    pub(super) log: Vec<String>,
    /// The agent query that it is waiting for; in that case this is not an error.
    pub(super) wants: Option<String>,
}

impl EvalError {
    pub(super) fn new(kind: FailureKind, message: impl std::fmt::Display) -> Self {
        Self { kind, message: message.to_string(), log: Vec::new(), wants: None }
    }
}

/// How many of the last log lines go into the record of a failure.
const TAIL_LINES: usize = 40;

pub(super) struct EvalOptions<'a> {
    pub(super) form: Form,
    pub(super) limits: Limits,
    pub(super) files: bool,
    /// Who queries, if it may query an agent.
    pub(super) requester: Option<&'a Requester>,
    pub(super) task: TaskValues<'a>,
}

impl<'a> EvalOptions<'a> {
    /// A function body that may use files and query agents.
    pub(super) fn script(shared: &Shared, requester: Option<&'a Requester>, task: TaskValues<'a>) -> Self {
        let limits = Limits { time: shared.config.script.timeout, memory: memory(shared), ..Limits::SCRIPT };
        Self { form: Form::Body, limits, files: true, requester, task }
    }

    /// An expression, with or without files.
    pub(super) fn condition(shared: &Shared, files: bool, task: TaskValues<'a>) -> Self {
        let limits = Limits { time: shared.config.script.condition_timeout, memory: memory(shared), ..Limits::CONDITION };
        Self { form: Form::Expression, limits, files, requester: None, task }
    }
}

fn memory(shared: &Shared) -> usize {
    shared.config.script.memory_mb.get() as usize * 1024 * 1024
}

pub(super) fn task(
    shared: Arc<Shared>,
    run: &Run,
    call: TaskCall<'_>,
    script: &Script,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let run_dirs = shared.run_dirs(run);
    let requester = Requester::Task(call.key.clone());
    let mut options = EvalOptions::script(&shared, Some(&requester), call.values());
    if let Some(timeout) = call.task.timeout {
        options.limits.time = timeout;
    }
    let prepared = prepare(&shared, run, call.phase, script, options);
    let declared = call.task.outputs.clone();
    let templates = declared.iter().map(String::as_str);
    let renderer = Renderer::of(run, call.phase, &run_dirs.output_path(), call.values(), templates);
    let log = shared.root.log_file(&run.id, Step::Task(call.key), call.attempt);
    let (key, attempt) = (call.key.clone(), call.attempt);
    let custom = run.workflow.output_dir.is_some();
    let mut ending = call.ending(&shared, run, stop.clone());
    let run = run.id.clone();
    async move {
        let (outcome, values) = 'outcome: {
            if let Err(failure) = ending.start().await {
                break 'outcome (TaskOutcome::Failed(failure), Vec::new());
            }
            if custom && let Err(why) = stays_inside(&run_dirs) {
                break 'outcome (failed(FailureKind::Start, why), Vec::new());
            }
            let (stubs, evaluated) = stubbed_or_evaluated(&shared, prepared, &key, attempt, &run_dirs, &stop).await;
            match evaluated {
                Ok(returned) => match rendered(&shared, renderer, &declared).await {
                    Ok(declared) => {
                        if let Some(Err(failure)) = stubs.map(|stubs| stubs.leave(&key.address(), &run_dirs, &declared)) {
                            break 'outcome (TaskOutcome::Failed(failure), Vec::new());
                        }
                        finished(&shared, (&run, &key), returned, declared, run_dirs, log).await
                    }
                    Err(why) => (failed(FailureKind::Output, why), Vec::new()),
                },
                Err(eval_error) => {
                    keep_log(&shared, &run, &key, &eval_error.log, &log);
                    eval_failed(&shared, eval_error)
                }
            }
        };
        ending.end(outcome, values, None).await
    }
    .boxed()
}

/// The outcome of an evaluation without a result: it queries an agent, or it has failed.
pub(super) fn eval_failed(shared: &Shared, eval_error: EvalError) -> Outcome {
    match &eval_error.wants {
        Some(prompt) => {
            let prompt = shared.masks().mask_text(prompt).into_owned();
            let (stored_value, stored) = StoredValue::keep(&Value::String(prompt));
            (TaskOutcome::QueriesAgent(stored_value), stored.into_iter().collect())
        }
        None => (TaskOutcome::Failed(masked(shared, &eval_error)), Vec::new()),
    }
}

/// Evaluates until it is stopped; then it returns immediately, without waiting for the result.
pub(super) async fn evaluate(shared: &Shared, prepared: Prepared, stop: &Stop) -> Result<Returned, EvalError> {
    tokio::select! {
        called = call(shared, prepared) => called,
        () = stop.stopped() => Err(EvalError::new(FailureKind::Stopped, "it was stopped")),
    }
}

/// Evaluates an attempt of a task, or returns its stub if there is one.
pub(super) async fn stubbed_or_evaluated<'s>(
    shared: &'s Shared,
    prepared: Prepared,
    key: &TaskKey,
    attempt: u32,
    run_dirs: &RunDirs,
    stop: &Stop,
) -> (Option<&'s Stubs>, Result<Returned, EvalError>) {
    let at = Position { address: key.address(), iteration: key.iteration, attempt };
    let given = shared.stubs.as_deref().and_then(|stubs| Some((stubs, stubs.script(&at, run_dirs)?)));
    match given {
        None => (None, evaluate(shared, prepared, stop).await),
        Some((stubs, Err(failure))) => (Some(stubs), Err(EvalError::new(failure.kind, failure.message))),
        Some((stubs, Ok(stub))) => {
            let json = stub.result.unwrap_or_default().to_string();
            (Some(stubs), Ok(Returned { json, truthy: true, log: Vec::new(), wrote: stub.files.into_keys().collect() }))
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the output directory {} leads to {}, where a script may not write", path.display(), leads_to.display())]
struct LeadsOut {
    path: PathBuf,
    leads_to: PathBuf,
}

/// An output directory chosen by the workflow may be a symlink; it must not lead out of the root or to Lockgate's own state.
fn stays_inside(run_dirs: &RunDirs) -> Result<(), LeadsOut> {
    let path = run_dirs.output_path();
    // A directory that does not exist yet is created as a real one.
    let (Ok(found), Ok(root)) = (path.canonicalize(), run_dirs.root.canonicalize()) else { return Ok(()) };
    let state = root.join(crate::root::STATE_DIR);
    if !found.starts_with(&root) || found.starts_with(&state) || state.starts_with(&found) {
        return Err(LeadsOut { path, leads_to: found });
    }
    Ok(())
}

async fn rendered(shared: &Shared, renderer: Renderer, declared: &[String]) -> Result<Vec<String>, FillError> {
    if declared.is_empty() {
        return Ok(Vec::new());
    }
    Ok(renderer.ready(shared).await?.texts(declared)?)
}

pub(super) fn prepare(shared: &Shared, run: &Run, phase: &Phase, script: &Script, options: EvalOptions<'_>) -> Prepared {
    let run_dirs = shared.run_dirs(run);
    // A name may be written with escapes.
    let names = |name: &str| script.reads == Reads::All || script.source.contains(name) || script.source.contains("\\u");
    let mut globals = Vec::new();
    let mut global = |name: &str, value: &dyn Fn() -> Value| {
        if names(name) {
            globals.push((name.to_owned(), value().to_string()));
        }
    };
    global("phase", &|| run.phase_view(phase));
    global("workflow", &|| run.workflow_view());
    global("output_dir", &|| json!(run_dirs.output_path().to_string_lossy()));
    if let Some((id, attempt)) = options.task.id {
        let round = options.task.round.map(|(_, round)| round);
        global("task", &|| json!({"id": id, "attempt": attempt, "round": round, "feedback": options.task.feedback}));
    }
    if matches!(options.task.round, Some((None, _))) {
        global("previous", &|| Value::Null);
    }
    let mut data = Vec::new();
    data.extend(options.task.item.map(|(_, value)| ("item", value.clone())));
    data.extend(options.task.round.and_then(|(previous, _)| Some(("previous", previous?.clone()))));
    let mut context = run.context(&script.reads);
    overlay(&mut context, &phase.vars);
    let files =
        options.files.then(|| Files { output_dir: run_dirs.output_path(), feature: run.feature.clone(), expected: Vec::new() });
    let looks = options.files && (names("analyzeFiles") || names("identifyGaps"));
    let expected = looks.then(|| expected(run, phase, &run_dirs));
    let agent_queries = options.requester.map(|requester| {
        let known = run.current.iter().flat_map(|phase| &phase.agent_queries).filter(|thought| thought.requester == *requester);
        known.filter_map(|thought| Some((thought.prompt.clone(), thought.text.clone()?))).collect()
    });
    let (source, line, form, limits) = (script.source.as_str().into(), script.line, options.form, options.limits);
    Prepared { source, line, form, context, globals, data, files, expected, agent_queries, limits }
}

/// Templates of the files that a phase's tasks are expected to write, and a renderer for them.
fn expected(run: &Run, phase: &Phase, run_dirs: &RunDirs) -> (Renderer, Vec<String>) {
    let current = run.current.as_ref().filter(|current| current.id == phase.id);
    let called = current.into_iter().flat_map(|current| &current.tasks).filter_map(|task| task.spec.as_deref());
    let tasks = phase.tasks.iter().chain(called);
    let templates: Vec<String> = tasks.flat_map(|task| task.expected()).map(str::to_owned).collect();
    let renderer = Renderer::of(run, phase, &run_dirs.output_path(), TaskValues::default(), templates.iter().map(String::as_str));
    (renderer, templates)
}

impl Prepared {
    pub(super) fn with(mut self, name: &str, json: String) -> Self {
        self.globals.push((name.to_owned(), json));
        self
    }
}

async fn call(shared: &Shared, prepared: Prepared) -> Result<Returned, EvalError> {
    let Prepared { source, line, form, context, mut globals, data, mut files, expected, agent_queries, limits } = prepared;
    let eval_error = |why: FillError| EvalError::new(FailureKind::Script, why);
    globals.push(("context".to_owned(), Value::Object(context.value).to_string()));
    for (name, stored_value) in data {
        globals.push((name.to_owned(), shared.value(&stored_value).await.map_err(eval_error)?.to_string()));
    }
    let mut stored = Vec::new();
    for (path, digest) in context.stored {
        let json = shared.stored_text(digest).await.map_err(eval_error)?;
        let path = std::iter::once("context".to_owned()).chain(path).collect();
        stored.push(StoredPart { path, digest, json });
    }
    if let (Some(files), Some((renderer, templates))) = (&mut files, expected) {
        let ready = renderer.ready(shared).await.map_err(eval_error)?;
        // Paths that depend on an item or on missing values cannot be predicted.
        files.expected = templates.iter().filter_map(|template| ready.text(template).ok()).collect();
    }
    let agent_queries = match agent_queries {
        None => None,
        Some(known) => Some(recorded_replies(shared, known).await.map_err(eval_error)?),
    };
    let call = Call { form, source, globals, stored, files, agent_queries, limits };
    evaluate_with_secrets(shared, call).await.map_err(|failed| {
        let (kind, wants) = match &failed.error {
            ScriptError::Timeout(_) => (FailureKind::Timeout, None),
            ScriptError::NeedsAgent { prompt } => (FailureKind::Script, Some(prompt.clone())),
            ScriptError::Thrown { .. }
            | ScriptError::Memory
            | ScriptError::Stack
            | ScriptError::NeverSettles
            | ScriptError::NotJson(_)
            | ScriptError::TooLarge
            | ScriptError::Worker(_) => (FailureKind::Script, None),
        };
        EvalError { kind, message: locate_in_file(&failed.error, line), log: failed.log, wants }
    })
}

/// Evaluates a call. A prompt with a secret is recorded masked, and is therefore also looked up masked.
async fn evaluate_with_secrets(shared: &Shared, mut call: Call) -> Result<Returned, Failed> {
    loop {
        let evaluated = shared.evaluator.evaluate(&call).await;
        let Err(Failed { error: ScriptError::NeedsAgent { prompt }, .. }) = &evaluated else { return evaluated };
        let masks = shared.masks();
        let recorded = masks.mask_text(prompt);
        let mut known = call.agent_queries.iter_mut().flatten().filter(|_| recorded != *prompt);
        match known.find(|thought| thought.prompt == recorded) {
            Some(thought) => thought.prompt = prompt.clone(),
            None => return evaluated,
        }
    }
}

async fn recorded_replies(shared: &Shared, known: Vec<(StoredValue, StoredValue)>) -> Result<Vec<AgentReply>, FillError> {
    let text = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let mut agent_queries = Vec::with_capacity(known.len());
    for (prompt, said) in known {
        agent_queries.push(AgentReply { prompt: text(shared.value(&prompt).await?), text: text(shared.value(&said).await?) });
    }
    Ok(agent_queries)
}

/// The outcome of a script, with the values it refers to.
pub(super) type Outcome = (TaskOutcome, Vec<(Digest, Vec<u8>)>);

async fn finished(
    shared: &Arc<Shared>,
    (run, key): (&RunId, &TaskKey),
    returned: Returned,
    declared: Vec<String>,
    run_dirs: RunDirs,
    log: PathBuf,
) -> Outcome {
    keep_log(shared, run, key, &returned.log, &log);
    let masks = shared.masks();
    let mut paths = declared;
    for path in returned.wrote {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let mut values = Vec::new();
    let mut outputs = Vec::new();
    if !paths.is_empty() {
        let keep = shared.config.limits.stored_outputs_bytes();
        match collect(run_dirs, paths, keep, masks.clone()).await {
            Ok(collected) => (outputs, values) = collected,
            Err(why) => return (failed(FailureKind::Output, why), Vec::new()),
        }
    }
    let result = match returned.json.as_str() {
        "null" => None,
        json => {
            let (stored_value, value) = StoredValue::keep_text(mask_json(json, &masks));
            values.extend(value);
            Some(stored_value)
        }
    };
    (TaskOutcome::Finished { result, outputs }, values)
}

/// The error message, with its line in the workflow file if known.
fn locate_in_file(error: &ScriptError, first_line: u32) -> String {
    match error {
        ScriptError::Thrown { message, line: Some(line), .. } if first_line > 0 => {
            format!("{message} (line {} of the workflow file)", first_line + line - 1)
        }
        ScriptError::Thrown { .. }
        | ScriptError::Timeout(_)
        | ScriptError::Memory
        | ScriptError::Stack
        | ScriptError::NeverSettles
        | ScriptError::NotJson(_)
        | ScriptError::TooLarge
        | ScriptError::NeedsAgent { .. }
        | ScriptError::Worker(_) => error.to_string(),
    }
}

/// Masks the strings in a JSON value, keeping it valid JSON.
pub(super) fn mask_json(json: &str, masks: &Masks) -> String {
    if !masks.contains(json.as_bytes()) {
        return json.to_owned();
    }
    let value = serde_json::from_str(json).unwrap_or_else(|_| json!(masks.mask_text(json)));
    masks.mask_value(value).to_string()
}

pub(super) type Collected = (Vec<OutputFile>, Vec<(Digest, Vec<u8>)>);

#[derive(Debug, thiserror::Error)]
pub(super) enum CollectError {
    #[error(transparent)]
    Missing(#[from] MissingOutputs),
    #[error(transparent)]
    Panicked(#[from] tokio::task::JoinError),
}

/// Makes declared outputs durable and computes their digests, off the drive loop's thread.
pub(super) async fn collect(
    run_dirs: RunDirs,
    paths: Vec<String>,
    keep: u64,
    masks: Arc<Masks>,
) -> Result<Collected, CollectError> {
    let work = move || {
        let collected = collect_outputs(&run_dirs, &paths, keep, &|bytes| masks.contains(bytes));
        collected.map(|outputs| (outputs.files, outputs.values))
    };
    Ok(tokio::task::spawn_blocking(work).await??)
}

pub(super) fn masked(shared: &Shared, eval_error: &EvalError) -> Failure {
    let masks = shared.masks();
    let last = eval_error.log.len().saturating_sub(TAIL_LINES);
    let tail = masks.mask_text(&eval_error.log[last..].join("\n")).into_owned();
    Failure { kind: eval_error.kind, message: masks.mask_text(&eval_error.message).into_owned(), tail }
}

/// Writes a script's log. An unwritable log does not fail a script that did its work.
pub(super) fn keep_log(shared: &Shared, run: &RunId, key: &TaskKey, lines: &[String], log: &Path) {
    if lines.is_empty() {
        return;
    }
    let masks = shared.masks();
    for line in lines {
        (shared.on_line)(run, &key.address(), &masks.mask_text(line));
    }
    let text = lines.join("\n") + "\n";
    let folder = log.parent().map_or(Ok(()), std::fs::create_dir_all);
    if let Err(error) = folder.and_then(|()| std::fs::write(log, masks.mask_text(&text).as_bytes())) {
        tracing::warn!(path = %log.display(), %error, "cannot write the log of a script");
    }
}
