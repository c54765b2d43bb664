//! Scripts and conditions: JavaScript in a worker process.

use super::values::Renderer;
use super::{Shared, ended, failed};
use crate::files::{Places, collect_outputs};
use crate::process::Stop;
use crate::root::Step;
use crate::script::{Call, Files, Form, Limits, Returned, ScriptError, StoredPart};
use crate::secret::Masks;
use crate::world::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::datum::Datum;
use lockgate_engine::id::{PhaseId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Body, TaskOutcome};
use lockgate_engine::run::event::{ConditionOutcome, Failure, FailureKind};
use lockgate_engine::run::view::Context;
use lockgate_engine::spec::workflow::{Reads, Script, Task};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an evaluation needs of the run, taken when it begins.
struct Prepared {
    source: Arc<str>,
    line: u32,
    form: Form,
    context: Context,
    globals: Vec<(String, String)>,
    files: Option<Files>,
    limits: Limits,
}

/// Why an evaluation gave nothing, and what it had logged until then.
struct Trouble {
    kind: FailureKind,
    message: String,
    log: Vec<String>,
}

/// So many of the last logged lines go into the record of a failure.
const TAIL_LINES: usize = 40;

pub(super) fn task(
    shared: Arc<Shared>,
    run: &Run,
    key: &TaskKey,
    attempt: u32,
    task: &Task,
    script: &Script,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let places = shared.places(run);
    let files = Files { output_dir: places.output_path(), feature: run.feature.clone(), expected: Vec::new() };
    let memory = shared.config.script.memory_mb.get() as usize * 1024 * 1024;
    let limits = Limits { time: task.timeout.unwrap_or(shared.config.script.time), memory, ..Limits::SCRIPT };
    let prepared = prepare(run, &key.phase, script, Form::Body, Some(files), limits, &places);
    let declared = task.outputs.clone();
    let renderer = run.workflow.phase(key.phase.as_str()).map(|phase| {
        Renderer::of(
            run,
            phase,
            &places.output_path(),
            Some((key.task.as_str(), attempt)),
            task.outputs.iter().map(String::as_str),
        )
    });
    let log = shared.root.log_file(&run.id, Step::Task(key), attempt);
    let key = key.clone();
    let custom = run.workflow.output_dir.is_some();
    async move {
        if custom && let Err(message) = stays_inside(&places) {
            return ended(&key, attempt, failed(FailureKind::Start, message));
        }
        let called = tokio::select! {
            called = call(&shared, prepared) => called,
            () = stop.stopped() => return ended(&key, attempt, failed(FailureKind::Stopped, "it was stopped")),
        };
        match called {
            Ok(returned) => match rendered(&shared, renderer, &declared).await {
                Ok(declared) => finished(&shared, &key, attempt, returned, declared, places, log).await,
                Err(message) => ended(&key, attempt, failed(FailureKind::Output, message)),
            },
            Err(trouble) => {
                keep_log(&shared, &key, &trouble.log, &log);
                ended(&key, attempt, TaskOutcome::Failed(masked(&shared, &trouble)))
            }
        }
    }
    .boxed()
}

pub(super) fn condition(
    shared: Arc<Shared>,
    run: &Run,
    phase: &PhaseId,
    iteration: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let phase = phase.clone();
    let checkpoint = run.workflow.phase(phase.as_str()).and_then(|phase| phase.checkpoint.as_ref());
    let Some(condition) = checkpoint.and_then(|checkpoint| checkpoint.condition.as_ref()) else {
        let outcome = ConditionOutcome::Error("the definition has no such condition".into());
        return futures::future::ready(Body::ConditionEvaluated { phase, iteration, outcome }.into()).boxed();
    };
    let memory = shared.config.script.memory_mb.get() as usize * 1024 * 1024;
    let limits = Limits { time: shared.config.script.condition_time, memory, ..Limits::CONDITION };
    let places = shared.places(run);
    let prepared = prepare(run, &phase, condition, Form::Expression, None, limits, &places);
    async move {
        let called = tokio::select! {
            called = call(&shared, prepared) => called,
            // Whoever stops it does not wait for what it would have given.
            () = stop.stopped() => Err(Trouble { kind: FailureKind::Stopped, message: "it was stopped".into(), log: Vec::new() }),
        };
        let outcome = match called {
            Ok(Returned { truthy: true, .. }) => ConditionOutcome::True,
            Ok(Returned { truthy: false, .. }) => ConditionOutcome::False,
            Err(trouble) => ConditionOutcome::Error(masked(&shared, &trouble).message),
        };
        Body::ConditionEvaluated { phase, iteration, outcome }.into()
    }
    .boxed()
}

/// An output directory that the workflow chose may be a link; it must not lead out of the root, nor to Lockgate's own state.
fn stays_inside(places: &Places) -> Result<(), String> {
    let path = places.output_path();
    // What does not exist yet is made as a folder, not as a link.
    let (Ok(found), Ok(root)) = (path.canonicalize(), places.root.canonicalize()) else { return Ok(()) };
    let state = root.join(crate::root::FOLDER);
    if !found.starts_with(&root) || found.starts_with(&state) || state.starts_with(&found) {
        return Err(format!(
            "the output directory {} leads to {}, where a script may not write",
            path.display(),
            found.display()
        ));
    }
    Ok(())
}

async fn rendered(shared: &Shared, renderer: Option<Renderer>, declared: &[String]) -> Result<Vec<String>, String> {
    match renderer {
        Some(renderer) if !declared.is_empty() => renderer.ready(shared).await?.texts(declared),
        Some(_) | None => Ok(Vec::new()),
    }
}

fn prepare(
    run: &Run,
    phase: &PhaseId,
    script: &Script,
    form: Form,
    files: Option<Files>,
    limits: Limits,
    places: &Places,
) -> Prepared {
    let mut globals = Vec::new();
    let mut global = |name: &str, value: &dyn Fn() -> Value| {
        // A name may be written with escapes.
        if script.reads == Reads::All || script.source.contains(name) || script.source.contains("\\u") {
            globals.push((name.to_owned(), value().to_string()));
        }
    };
    global("phase", &|| run.workflow.phase(phase.as_str()).map_or(Value::Null, |phase| run.phase_view(phase)));
    global("workflow", &|| run.workflow_view());
    global("output_dir", &|| json!(places.output_path().to_string_lossy()));
    let context = run.context(&script.reads);
    Prepared { source: script.source.as_str().into(), line: script.line, form, context, globals, files, limits }
}

async fn call(shared: &Shared, prepared: Prepared) -> Result<Returned, Trouble> {
    let Prepared { source, line, form, context, mut globals, files, limits } = prepared;
    globals.push(("context".to_owned(), Value::Object(context.value).to_string()));
    let mut stored = Vec::new();
    for (path, digest) in context.stored {
        let json = shared.stored_text(digest).await.map_err(|message| Trouble {
            kind: FailureKind::Script,
            message,
            log: Vec::new(),
        })?;
        let path = std::iter::once("context".to_owned()).chain(path).collect();
        stored.push(StoredPart { path, digest, json });
    }
    let call = Call { form, source, globals, stored, files, thoughts: None, limits };
    shared.evaluator.evaluate(&call).await.map_err(|failed| {
        let kind = match &failed.error {
            ScriptError::Timeout(_) => FailureKind::Timeout,
            ScriptError::Thrown { .. }
            | ScriptError::Memory
            | ScriptError::Stack
            | ScriptError::NeverSettles
            | ScriptError::NotJson(_)
            | ScriptError::TooLarge
            | ScriptError::Wants { .. }
            | ScriptError::Worker(_) => FailureKind::Script,
        };
        Trouble { kind, message: in_the_file(&failed.error, line), log: failed.log }
    })
}

async fn finished(
    shared: &Arc<Shared>,
    key: &TaskKey,
    attempt: u32,
    returned: Returned,
    declared: Vec<String>,
    places: Places,
    log: PathBuf,
) -> Performed {
    keep_log(shared, key, &returned.log, &log);
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
        let keep = shared.config.limits.output_keep_bytes();
        match collect(places, paths, keep, masks.clone()).await {
            Ok(collected) => (outputs, values) = collected,
            Err(message) => return ended(key, attempt, failed(FailureKind::Output, message)),
        }
    }
    let result = match returned.json.as_str() {
        "null" => None,
        json => {
            let (datum, value) = Datum::keep_text(mask_json(json, &masks));
            values.extend(value);
            Some(datum)
        }
    };
    let outcome = TaskOutcome::Finished { result, outputs };
    Performed { body: Body::TaskEnded { key: key.clone(), attempt, outcome }, values }
}

/// What went wrong, with its place in the workflow file where that is known.
fn in_the_file(error: &ScriptError, first_line: u32) -> String {
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
        | ScriptError::Wants { .. }
        | ScriptError::Worker(_) => error.to_string(),
    }
}

/// Masks the texts of a JSON value, and leaves it a JSON value.
fn mask_json(json: &str, masks: &Masks) -> String {
    if !masks.contains(json.as_bytes()) {
        return json.to_owned();
    }
    fn masked(value: Value, masks: &Masks) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => {
                let text = number.to_string();
                if masks.contains(text.as_bytes()) { json!(masks.mask_text(&text)) } else { Value::Number(number) }
            }
            Value::String(text) => json!(masks.mask_text(&text)),
            Value::Array(values) => values.into_iter().map(|value| masked(value, masks)).collect(),
            Value::Object(values) => {
                let values = values.into_iter();
                values.map(|(key, value)| (masks.mask_text(&key).into_owned(), masked(value, masks))).collect()
            }
        }
    }
    let value = serde_json::from_str(json).unwrap_or_else(|_| json!(masks.mask_text(json)));
    masked(value, masks).to_string()
}

pub(super) type Collected = (Vec<lockgate_engine::run::event::OutputFile>, Vec<(lockgate_engine::digest::Digest, Vec<u8>)>);

/// Makes declared outputs durable and digests them, off the drive loop's thread.
pub(super) async fn collect(places: Places, paths: Vec<String>, keep: u64, masks: Masks) -> Result<Collected, String> {
    let work = move || {
        let collected = collect_outputs(&places, &paths, keep, &|bytes| masks.contains(bytes));
        collected.map(|outputs| (outputs.files, outputs.values)).map_err(|missing| missing.to_string())
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
}

fn masked(shared: &Shared, trouble: &Trouble) -> Failure {
    let masks = shared.masks();
    let last = trouble.log.len().saturating_sub(TAIL_LINES);
    let tail = masks.mask_text(&trouble.log[last..].join("\n")).into_owned();
    Failure { kind: trouble.kind, message: masks.mask_text(&trouble.message).into_owned(), tail }
}

/// Writes what a script logged. A log that cannot be written is no reason to fail a script that did its work.
fn keep_log(shared: &Shared, key: &TaskKey, lines: &[String], log: &Path) {
    if lines.is_empty() {
        return;
    }
    let masks = shared.masks();
    for line in lines {
        (shared.on_line)(&key.address(), &masks.mask_text(line));
    }
    let text = lines.join("\n") + "\n";
    let _ = log.parent().map(std::fs::create_dir_all);
    let _ = std::fs::write(log, masks.mask_text(&text).as_bytes());
}
