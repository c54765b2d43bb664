//! Shell tasks and gates: a command in its own session, with its secrets, its log and its declared outputs.

use super::values::Renderer;
use super::{Shared, ended, failed, script, secrets};
use crate::files::Places;
use crate::process::{self, Ended, Grace, How, Job, LogLimits, Stop};
use crate::root::Step;
use crate::secret::Secret;
use crate::world::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::{GateId, PhaseId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Body, TaskOutcome};
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::{Gate, Phase, SecretSource, Task};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a command needs of the run, taken when it begins.
struct Prepared {
    address: String,
    command: String,
    dir: Option<String>,
    env: BTreeMap<String, String>,
    ours: Vec<(String, String)>,
    secrets: Vec<(String, Option<SecretSource>)>,
    remove_env: Vec<String>,
    timeout: Option<Duration>,
    lock: PathBuf,
    log: PathBuf,
    renderer: Renderer,
    outputs: Vec<String>,
    places: Places,
}

pub(super) fn task(
    shared: Arc<Shared>,
    run: &Run,
    key: &TaskKey,
    attempt: u32,
    task: &Task,
    command: &str,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let Some(phase) = run.workflow.phase(key.phase.as_str()) else { unreachable!("the task was found in its phase") };
    let like =
        Like { command, dir: &task.dir, env: &task.env, secrets: &task.secrets, timeout: task.timeout, outputs: &task.outputs };
    let step = Step::Task(key);
    let prepared = prepare(&shared, run, phase, like, key.task.as_str(), key.address(), step, attempt);
    let key = key.clone();
    async move {
        let (outputs, places) = (prepared.outputs.clone(), prepared.places.clone());
        let outputs = match execute(&shared, prepared, outputs, &stop).await {
            Ok(outputs) => outputs,
            Err(failure) => return ended(&key, attempt, TaskOutcome::Failed(failure)),
        };
        if outputs.is_empty() {
            return ended(&key, attempt, TaskOutcome::Finished { result: None, outputs: Vec::new() });
        }
        let keep = shared.config.limits.output_keep_bytes();
        match script::collect(places, outputs, keep, shared.masks()).await {
            Err(message) => ended(&key, attempt, failed(FailureKind::Output, message)),
            Ok((outputs, values)) => {
                let outcome = TaskOutcome::Finished { result: None, outputs };
                Performed { body: Body::TaskEnded { key, attempt, outcome }, values }
            }
        }
    }
    .boxed()
}

pub(super) fn gate(
    shared: Arc<Shared>,
    run: &Run,
    (phase_id, iteration): (&PhaseId, u32),
    gate_id: &GateId,
    attempt: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let (phase_id, gate_id) = (phase_id.clone(), gate_id.clone());
    let declared = run.workflow.phase(phase_id.as_str()).and_then(|phase| Some((phase, phase.gate(gate_id.as_str())?)));
    let ended = move |failure: Option<Failure>| {
        Performed::from(Body::GateEnded { phase: phase_id.clone(), iteration, gate: gate_id.clone(), attempt, failure })
    };
    let Some((phase, gate)) = declared else {
        return futures::future::ready(ended(Some(failure(FailureKind::Start, "the definition has no such gate")))).boxed();
    };
    let Gate { run: command, dir, env, secrets, timeout, id, .. } = gate;
    let like = Like { command, dir, env, secrets, timeout: *timeout, outputs: &[] };
    let address = format!("{}/{id}", phase.id);
    let step = Step::Gate { phase: &phase.id, iteration, gate: id };
    let prepared = prepare(&shared, run, phase, like, id.as_str(), address, step, attempt);
    async move { ended(execute(&shared, prepared, Vec::new(), &stop).await.err()) }.boxed()
}

/// What tasks and gates that run commands have in common.
struct Like<'a> {
    command: &'a str,
    dir: &'a Option<String>,
    env: &'a BTreeMap<String, String>,
    secrets: &'a [String],
    timeout: Option<Duration>,
    outputs: &'a [String],
}

#[expect(clippy::too_many_arguments, reason = "each is another thing, and a struct for them would be made in one place only")]
fn prepare(
    shared: &Shared,
    run: &Run,
    phase: &Phase,
    like: Like<'_>,
    name: &str,
    address: String,
    step: Step<'_>,
    attempt: u32,
) -> Prepared {
    let places = shared.places(run);
    let feedback = run.current.as_ref().and_then(|phase| phase.feedback.clone()).unwrap_or_default();
    let output_path = places.output_path();
    let ours = [
        ("LOCKGATE_RUN", run.id.to_string()),
        ("LOCKGATE_PHASE", phase.id.to_string()),
        ("LOCKGATE_TASK", name.to_owned()),
        ("LOCKGATE_ATTEMPT", attempt.to_string()),
        ("LOCKGATE_OUTPUT_DIR", output_path.to_string_lossy().into_owned()),
        ("LOCKGATE_FEEDBACK", feedback),
    ];
    let templates = std::iter::once(like.command)
        .chain(like.dir.as_deref())
        .chain(like.env.values().map(String::as_str))
        .chain(like.outputs.iter().map(String::as_str));
    let source = |name: &String| (name.clone(), run.workflow.secrets.get(name).cloned());
    Prepared {
        address,
        command: like.command.to_owned(),
        dir: like.dir.clone(),
        env: like.env.clone(),
        ours: ours.map(|(name, value)| (name.to_owned(), value)).into(),
        secrets: like.secrets.iter().map(source).collect(),
        remove_env: secrets::variables(&run.workflow),
        timeout: like.timeout,
        lock: shared.root.lock_file(&run.id, step, attempt),
        log: shared.root.log_file(&run.id, step, attempt),
        renderer: Renderer::of(run, phase, &output_path, Some((name, attempt)), templates),
        outputs: like.outputs.to_vec(),
        places,
    }
}

/// Runs the command; gives the declared outputs with values filled in, or why it failed.
async fn execute(shared: &Shared, prepared: Prepared, outputs: Vec<String>, stop: &Stop) -> Result<Vec<String>, Failure> {
    let start = |message: String| failure(FailureKind::Start, message);
    let ready = prepared.renderer.ready(shared).await.map_err(start)?;
    let command = ready.shell(&prepared.command).map_err(start)?;
    let outputs = ready.texts(&outputs).map_err(start)?;
    let mut env = prepared.ours;
    for (name, template) in &prepared.env {
        env.push((name.clone(), ready.text(template).map_err(start)?));
    }
    for (name, source) in &prepared.secrets {
        let secret =
            Secret::resolve(name, source.as_ref(), &prepared.places.root).await.map_err(|error| start(error.to_string()))?;
        env.push((name.clone(), secret.value.clone()));
        shared.secrets.add(secret);
    }
    let dir = match &prepared.dir {
        None => prepared.places.root.clone(),
        Some(dir) => inside(&prepared.places.root, &ready.text(dir).map_err(start)?).map_err(start)?,
    };
    let folders = [Some(prepared.places.output_path()), prepared.lock.parent().map(PathBuf::from)];
    for folder in folders.into_iter().flatten() {
        std::fs::create_dir_all(&folder).map_err(|error| start(format!("{} cannot be made: {error}", folder.display())))?;
    }
    let job = Job {
        command,
        dir,
        env,
        remove_env: prepared.remove_env,
        stdin: None,
        timeout: prepared.timeout,
        idle_timeout: None,
        lock: prepared.lock,
        log: prepared.log,
        masks: Arc::new(shared.masks()),
        limits: log_limits(shared.config.limits.log_mb.get()),
        grace: Grace::default(),
    };
    let mut on_line = |line: &str| (shared.on_line)(&prepared.address, line);
    let lock = job.lock.clone();
    let ended = process::run(job, stop.clone(), &mut on_line).await;
    if ended.survivors.is_empty() && !matches!(ended.how, How::NotStarted(_)) {
        // Nothing of it lives, so there is nothing for anybody to end later.
        let _ = std::fs::remove_file(&lock);
    }
    if let Some(problem) = &ended.log_error {
        (shared.on_line)(&prepared.address, &format!("its log is not whole: {problem}"));
    }
    match explain(&ended) {
        None => Ok(outputs),
        Some((kind, message)) => Err(Failure { kind, message, tail: ended.tail }),
    }
}

/// A folder under the root. Neither `..` nor a link leads out of it.
fn inside(root: &Path, dir: &str) -> Result<PathBuf, String> {
    let cannot = |error: std::io::Error| format!("the folder {dir:?} cannot be used: {error}");
    let found = root.join(dir).canonicalize().map_err(cannot)?;
    if !found.starts_with(root.canonicalize().map_err(cannot)?) {
        return Err(format!("the folder {dir:?} does not lie under the root"));
    }
    Ok(found)
}

/// So much of a log is kept: most of it from the beginning, and the last lines.
fn log_limits(megabytes: u32) -> LogLimits {
    let all = u64::from(megabytes) * 1_000_000;
    let tail = (all / 8).min(LogLimits::default().tail as u64);
    LogLimits { head: all - tail, tail: tail as usize }
}

/// Why a command failed, in one line; none when it went well.
fn explain(ended: &Ended) -> Option<(FailureKind, String)> {
    match &ended.how {
        How::Exit(0) => None,
        How::Exit(code) => Some((FailureKind::Exit(*code), format!("it ended with exit code {code}"))),
        How::Signal(signal) => Some((FailureKind::Signal(*signal), format!("it was ended by signal {signal}"))),
        How::TimedOut(limit) => Some((FailureKind::Timeout, format!("it took longer than {} s", limit.as_secs_f64()))),
        How::Idle(limit) => Some((FailureKind::Timeout, format!("it printed nothing for {} s", limit.as_secs_f64()))),
        How::Stopped => Some((FailureKind::Stopped, "it was stopped".to_owned())),
        How::NotStarted(why) => Some((FailureKind::Start, format!("it could not be started: {why}"))),
    }
}

fn failure(kind: FailureKind, message: impl Into<String>) -> Failure {
    Failure { kind, message: message.into(), tail: String::new() }
}
