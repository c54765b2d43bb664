//! The output of tasks and gates: their attempts and log files.

use crate::code::Code;
use crate::error::Error;
use crate::history::History;
use crate::project::Project;
use crate::run_status::run_status;
use crate::select::StepName;
use crate::step::running_attempt;
use crate::view::lockgate;
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::catch_up;
use lockgate_runner::notifications::{Kind, Notification, Reporter};
use lockgate_runner::root::Step;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// How many bytes of a log to read at a time.
const PIECE: usize = 64 * 1024;

/// How many bytes from the end of a log [`last_line`] reads.
const END_OF_A_LOG: u64 = 4096;

/// How many attempts an error lists.
const LISTED: usize = 10;

/// An attempt of a task or gate, according to the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The execution of its phase, from 1.
    pub iteration: u32,
    /// The number within that execution, from 1.
    pub attempt: u32,
    /// When the attempt started.
    pub started_at: Timestamp,
    /// The status of the attempt.
    pub status: StepStatus,
}

/// Whether an attempt still writes output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printing {
    /// It is running, and its output is recorded.
    Yes,
    /// It has ended.
    Ended,
    /// It is running according to the history, but no process drives the run, so no more output is recorded.
    NotDriven,
}

impl Project {
    /// The attempts of a task or gate, in the order in which they started.
    pub async fn attempts(&self, run: &Run, step: &StepName) -> Result<Vec<Attempt>, Error> {
        let all = self.all_attempts(run).await?;
        Ok(all.into_iter().filter(|(name, _)| name == step).map(|(_, attempt)| attempt).collect())
    }

    /// The attempts of all tasks and gates, in the order in which they started.
    pub async fn all_attempts(&self, run: &Run) -> Result<Vec<(StepName, Attempt)>, Error> {
        let mut attempts: Vec<(StepName, Attempt)> = Vec::new();
        let (mut history, mut reporter) = (History::of(self.store(), &run.id), Reporter::default());
        loop {
            let commits = history.next().await?;
            if commits.is_empty() {
                break;
            }
            for commit in &commits {
                for Notification { at, kind, .. } in reporter.report(run, &commit.entries) {
                    let Some((name, iteration, attempt, status)) = step_attempt(&kind) else { continue };
                    let same = |(known, of): &&mut (StepName, Attempt)| {
                        (of.iteration, of.attempt) == (iteration, attempt) && *known == name
                    };
                    match attempts.iter_mut().rev().find(same) {
                        Some((_, known)) => known.status = status,
                        None => attempts.push((name, Attempt { iteration, attempt, started_at: at, status })),
                    }
                }
            }
        }
        mark_stopped(run, &mut attempts);
        Ok(attempts)
    }

    /// The log file of an attempt.
    pub fn log_file(&self, run: &RunId, key: &StepKey, attempt: u32) -> PathBuf {
        let step = match key {
            StepKey::Task(key) => Step::Task(key),
            StepKey::Gate { phase, iteration, gate } => Step::Gate { phase, iteration: *iteration, gate },
        };
        self.root.log_file(run, step, attempt)
    }

    /// Whether an attempt still writes output. Also updates the state of the run.
    pub async fn is_printing(&self, state: &mut Run, step: &StepName, attempt: &Attempt) -> Result<Printing, Error> {
        let interrupted = run_status(self.store(), &state.id).await?.is_interrupted();
        catch_up(self.store(), state).await?;
        let same = state.current.as_ref().is_some_and(|phase| phase.iteration == attempt.iteration);
        let running = same && running_attempt(state, step) == Some(attempt.attempt);
        Ok(match (running, interrupted) {
            (true, false) => Printing::Yes,
            (true, true) => Printing::NotDriven,
            (false, _) => Printing::Ended,
        })
    }
}

/// No event says that an attempt ended together with its phase or its run.
fn mark_stopped(run: &Run, attempts: &mut [(StepName, Attempt)]) {
    for at in 0..attempts.len() {
        let (name, attempt) = &attempts[at];
        if attempt.status == StepStatus::Running
            && (running_attempt(run, name).is_none() || attempts[at + 1..].iter().any(|(later, _)| later == name))
        {
            attempts[at].1.status = StepStatus::Stopped;
        }
    }
}

/// The task or gate, the number and the status of the attempt that a notification is about.
fn step_attempt(kind: &Kind<'_>) -> Option<(StepName, u32, u32, StepStatus)> {
    let (step, attempt, status) = if let Kind::StepStarted { step, attempt, .. } = kind {
        (*step, *attempt, StepStatus::Running)
    } else if let Kind::StepEnded { step, attempt, outcome, .. } = kind {
        (*step, *attempt, outcome.status())
    } else {
        return None;
    };
    let name = match step {
        Step::Task(key) => StepName::Task(key.phase.clone(), key.task.clone(), key.item.clone()),
        Step::Gate { phase, gate, .. } => StepName::Gate(phase.clone(), gate.clone()),
    };
    Some((name, step.iteration(), attempt, status))
}

/// Selects an attempt: the latest one, unless an attempt or an execution of the phase is given.
pub fn choose<'a>(
    attempts: &'a [Attempt],
    step: &StepName,
    run: &RunId,
    iteration: Option<u32>,
    attempt: Option<u32>,
) -> Result<&'a Attempt, Error> {
    let address = format!("{}/{}", step.phase(), step.id());
    let Some(last) = attempts.last() else {
        return Err(Error::new(Code::NotStarted, format!("{address} has not started, so it has printed nothing"))
            .help(format!("`{}` shows what runs now", lockgate(["status", run.as_str()]))));
    };
    let iteration = iteration.unwrap_or(last.iteration);
    let mut same = attempts.iter().rev().filter(|known| known.iteration == iteration);
    let found = match attempt {
        None => same.next(),
        Some(wanted) => same.find(|known| known.attempt == wanted),
    };
    found.ok_or_else(|| {
        let listed: Vec<String> = attempts
            .iter()
            .map(|known| format!("iteration {}, attempt {}  {}", known.iteration, known.attempt, known.status))
            .collect();
        let listed = &listed[listed.len().saturating_sub(LISTED)..];
        Error::new(Code::AttemptNotFound, format!("{address} has no such attempt"))
            .help(format!("there are\n{}", listed.join("\n")))
    })
}

/// A log file that may still grow, or may not exist yet.
pub struct Log {
    path: PathBuf,
    file: Option<File>,
}

impl Log {
    /// Opens a log file at its start.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Passes on the bytes that were written since the last call.
    pub fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.read_on(take)
            .map_err(|error| Error::new(Code::UnreadableLog, format!("the log {} cannot be read: {error}", self.path.display())))
    }

    fn read_on(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if self.file.is_none() {
            self.file = match File::open(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => take(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The last line of a log that is not blank.
pub fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_OF_A_LOG))).ok()?;
    let mut end = Vec::new();
    file.take(END_OF_A_LOG).read_to_end(&mut end).ok()?;
    let text = String::from_utf8_lossy(&end);
    text.split(['\n', '\r']).rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
}
