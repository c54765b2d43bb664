//! What every process needs from the run: its environment, secrets, directory and log.

use super::values::Renderer;
use super::{Shared, secrets};
use crate::dry_run::Position;
use crate::files::RunDirs;
use crate::process::{self, Ended, ExitReason, Grace, Job, LogLimits};
use crate::root::Step;
use crate::secret::Secret;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::{Phase, SecretSource, Shell};
use lockgate_engine::stored_value::StoredValue;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest value of a variable, in bytes. Linux limits a name and its value together to 128 KiB.
const LONGEST_VALUE: usize = 120_000;

/// The exit code that shells report for SIGPIPE.
const CUT_OFF: i32 = 141;

/// What a process needs from the run, captured when its effect starts.
pub(super) struct Prepared {
    pub(super) run: RunId,
    pub(super) address: String,
    pub(super) dir: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) ours: Vec<(String, String)>,
    pub(super) secrets: Vec<(String, Option<SecretSource>)>,
    pub(super) remove_env: Vec<String>,
    /// The shell for the command; `None` for the system's default.
    pub(super) shell: Option<Shell>,
    pub(super) timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) lock: PathBuf,
    pub(super) log: PathBuf,
    pub(super) run_dirs: RunDirs,
    /// Feedback on the last attempt from a person or a check; empty if there is none.
    pub(super) feedback: String,
    /// Which work this is, for looking up stubs.
    pub(super) at: Position,
    /// The default working directory: the root or a worktree.
    pub(super) base: PathBuf,
}

/// How a task or gate configures its process.
pub(super) struct ProcessSpec<'a> {
    pub(super) name: &'a str,
    pub(super) address: String,
    pub(super) step: Step<'a>,
    pub(super) attempt: u32,
    pub(super) dir: &'a Option<String>,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) secrets: &'a [String],
    pub(super) timeout: Option<Duration>,
    /// The configured shell, if any.
    pub(super) shell: Option<&'a Shell>,
    /// Feedback from a person on the last attempt.
    pub(super) feedback: Option<&'a str>,
}

pub(super) fn prepare(shared: &Shared, run: &Run, phase: &Phase, process_spec: ProcessSpec<'_>) -> Prepared {
    let run_dirs = shared.run_dirs(run);
    let of_phase = || run.current.as_ref().and_then(|phase| phase.feedback.clone());
    let feedback = process_spec.feedback.map(str::to_owned).or_else(of_phase).unwrap_or_default();
    let ours = [
        ("LOCKGATE_RUN", run.id.to_string()),
        ("LOCKGATE_PHASE", phase.id.to_string()),
        ("LOCKGATE_TASK", process_spec.name.to_owned()),
        ("LOCKGATE_ATTEMPT", process_spec.attempt.to_string()),
        ("LOCKGATE_OUTPUT_DIR", run_dirs.output_path().to_string_lossy().into_owned()),
    ];
    let source = |name: &String| (name.clone(), run.workflow.secrets.get(name).cloned());
    Prepared {
        run: run.id.clone(),
        feedback,
        at: Position {
            address: process_spec.address.clone(),
            iteration: process_spec.step.iteration(),
            attempt: process_spec.attempt,
        },
        address: process_spec.address,
        dir: process_spec.dir.clone(),
        env: process_spec.env.clone(),
        ours: ours.map(|(name, value)| (name.to_owned(), value)).into(),
        secrets: process_spec.secrets.iter().map(source).collect(),
        remove_env: secrets::variables(&run.workflow, &shared.config),
        shell: run.workflow.shell_in(phase, process_spec.shell).cloned(),
        timeout: process_spec.timeout,
        idle_timeout: None,
        lock: shared.root.lock_file(&run.id, process_spec.step, process_spec.attempt),
        log: shared.root.log_file(&run.id, process_spec.step, process_spec.attempt),
        base: run_dirs.root.clone(),
        run_dirs,
    }
}

/// Why a process cannot get its directory or environment.
#[derive(Debug, thiserror::Error)]
enum EnvironmentError {
    #[error(
        "the value of `{name}` under `env` has {bytes} bytes, and a variable can hold {LONGEST_VALUE}; write it to a file instead"
    )]
    TooLong {
        name: String,
        /// How long its value is.
        bytes: usize,
    },
    #[error("the feedback cannot be written to a file: {0}")]
    Feedback(io::Error),
    #[error("the directory {dir:?} cannot be used: {error}")]
    Directory { dir: String, error: io::Error },
    #[error("the directory {0:?} is not inside the root")]
    Outside(String),
    #[error("{} cannot be created: {error}", path.display())]
    NotCreated { path: PathBuf, error: io::Error },
}

/// A failure before anything was started.
pub(super) fn start(message: impl Display) -> Failure {
    failure(FailureKind::Start, message)
}

pub(super) fn failure(kind: FailureKind, message: impl Display) -> Failure {
    Failure { kind, message: message.to_string(), tail: String::new() }
}

impl Prepared {
    /// Passes the item of a fanned-out task to the process; a large one is only available to templates and scripts.
    pub(super) fn set_item(&mut self, item: Option<(&str, &StoredValue)>) {
        if let Some((_, StoredValue::Inline(json))) = item {
            let text = match serde_json::from_str(json) {
                Ok(serde_json::Value::String(text)) => text,
                Ok(_) | Err(_) => json.clone(),
            };
            self.ours.push(("LOCKGATE_ITEM".to_owned(), text));
        }
    }

    /// The job that runs this command in a shell.
    pub(super) async fn job(
        &self,
        shared: &Shared,
        renderer: &super::values::Ready,
        command: String,
        stdin: Option<Vec<u8>>,
    ) -> Result<Job, Failure> {
        let mut env = self.ours.clone();
        for (name, template) in &self.env {
            env.push((name.clone(), fitting(name, renderer.text(template).map_err(start)?).map_err(start)?));
        }
        for (name, source) in &self.secrets {
            let secret = Secret::resolve(name, source.as_ref(), &self.run_dirs.root).await.map_err(start)?;
            env.push((name.clone(), secret.value.clone()));
            shared.secrets.add(secret);
        }
        let dir = match &self.dir {
            None => self.base.clone(),
            Some(dir) => inside(&self.base, &renderer.text(dir).map_err(start)?).map_err(start)?,
        };
        let folders = [Some(self.run_dirs.output_path()), self.lock.parent().map(PathBuf::from)];
        for folder in folders.into_iter().flatten() {
            let created = std::fs::create_dir_all(&folder);
            created.map_err(|error| start(EnvironmentError::NotCreated { path: folder, error }))?;
        }
        env.extend(self.feedback_variables().map_err(start)?);
        Ok(Job {
            command,
            shell: self.shell.clone(),
            dir,
            env,
            remove_env: self.remove_env.clone(),
            stdin,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            lock: self.lock.clone(),
            log: self.log.clone(),
            masks: shared.masks(),
            limits: log_limits(shared.config.limits.log_mb.get()),
            grace: Grace::default(),
        })
    }

    /// Variables that pass the feedback to a job: the beginning of it, and a file with all of it.
    fn feedback_variables(&self) -> Result<Vec<(String, String)>, EnvironmentError> {
        let variable = |name: &str, value: String| (name.to_owned(), value);
        if self.feedback.is_empty() {
            return Ok(vec![variable("LOCKGATE_FEEDBACK", String::new())]);
        }
        let path = process::write_value_file(&self.lock, &self.feedback).map_err(EnvironmentError::Feedback)?;
        Ok(vec![
            variable("LOCKGATE_FEEDBACK", beginning(&self.feedback)),
            variable("LOCKGATE_FEEDBACK_FILE", path.to_string_lossy().into_owned()),
        ])
    }

    /// Checks that all templates of a job can be rendered. Directories are not checked, because earlier work may create them.
    pub(super) fn check_templates(&self, renderer: &super::values::Ready) -> Result<(), Failure> {
        let mut templates = self.env.values().chain(&self.dir);
        templates.try_for_each(|template| renderer.text(template).map(drop)).map_err(start)
    }

    /// Cleans up after a job: removes its lock, and reports an incomplete log.
    pub(super) fn ended(&self, shared: &Shared, ended: &Ended) {
        if ended.survivors.is_empty() && !matches!(ended.reason, ExitReason::NotStarted(_)) {
            // Nothing of it is still alive, so there is nothing to stop later.
            process::remove_lock(&self.lock);
        }
        if let Some(problem) = &ended.log_error {
            self.emit_line(shared, &format!("its log is incomplete: {problem}"));
        }
    }

    /// Passes a line to the listener for this run.
    pub(super) fn emit_line(&self, shared: &Shared, line: &str) {
        (shared.on_line)(&self.run, &self.address, line);
    }
}

fn fitting(name: &str, value: String) -> Result<String, EnvironmentError> {
    match value.len() > LONGEST_VALUE {
        true => Err(EnvironmentError::TooLong { name: name.to_owned(), bytes: value.len() }),
        false => Ok(value),
    }
}

/// The beginning of a text, up to the maximum size of a variable, with a note if it was cut off.
fn beginning(text: &str) -> String {
    const NOTE: &str = "\n(cut off here; the full text is in the file named by LOCKGATE_FEEDBACK_FILE)";
    if text.len() <= LONGEST_VALUE {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST_VALUE - NOTE.len());
    format!("{}{NOTE}", &text[..end])
}

/// The templates of a process, besides its command.
fn templates<'a>(prepared: &'a Prepared, others: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    prepared.dir.as_deref().into_iter().chain(prepared.env.values().map(String::as_str)).chain(others.iter().copied())
}

/// A directory inside `base`. Neither `..` nor a symlink may lead out of it.
fn inside(base: &Path, dir: &str) -> Result<PathBuf, EnvironmentError> {
    let cannot = |error: io::Error| EnvironmentError::Directory { dir: dir.to_owned(), error };
    let found = base.join(dir).canonicalize().map_err(cannot)?;
    if !found.starts_with(base.canonicalize().map_err(cannot)?) {
        return Err(EnvironmentError::Outside(dir.to_owned()));
    }
    Ok(found)
}

/// How much of a log is kept: mostly its beginning, and the last lines.
fn log_limits(megabytes: u32) -> LogLimits {
    let all = u64::from(megabytes) * 1_000_000;
    let tail = (all / 8).min(LogLimits::default().tail as u64);
    LogLimits { head: all - tail, tail: tail as usize }
}

/// Why a command failed, in one line; `None` if it succeeded.
pub(crate) fn explain(ended: &Ended) -> Option<(FailureKind, String)> {
    match &ended.reason {
        ExitReason::Exit(0) => None,
        ExitReason::Exit(CUT_OFF) => {
            let why = "a command wrote to a closed pipe";
            Some((FailureKind::Exit(CUT_OFF), format!("it ended with exit code {CUT_OFF}: {why}")))
        }
        ExitReason::Exit(code) => Some((FailureKind::Exit(*code), format!("it ended with exit code {code}"))),
        ExitReason::Signal(signal) => Some((FailureKind::Signal(*signal), format!("it was ended by signal {signal}"))),
        ExitReason::TimedOut(limit) => Some((FailureKind::Timeout, format!("it took longer than {} s", limit.as_secs_f64()))),
        ExitReason::Idle(limit) => Some((FailureKind::Idle, format!("it printed nothing for {} s", limit.as_secs_f64()))),
        ExitReason::Stopped => Some((FailureKind::Stopped, "it was stopped".to_owned())),
        ExitReason::NotStarted(why) => Some((FailureKind::Start, format!("it could not be started: {why}"))),
    }
}

/// A renderer for the templates of a process.
pub(super) fn renderer(
    run: &Run,
    phase: &Phase,
    prepared: &Prepared,
    task: super::values::TaskValues<'_>,
    others: &[&str],
) -> Renderer {
    Renderer::of(run, phase, &prepared.run_dirs.output_path(), task, templates(prepared, others))
}
