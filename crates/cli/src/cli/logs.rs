//! `lockgate logs`: what a task or gate printed.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use lockgate::code::Code;
use lockgate::run_status::{Changes, run_status};
use lockgate::sanitize;
use lockgate::select::{self, StepName};
use lockgate::step::running_attempt;
use lockgate::view::lockgate;
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::{catch_up, load};
use lockgate_runner::notifications::{Kind, Notification, Reporter};
use lockgate_runner::root::Step;
use lockgate_store::Store;
use serde::Serialize;
use serde_json::json;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many commits are read at once.
const COMMITS: usize = 1000;

/// How much of a log is read at once.
const PIECE: usize = 64 * 1024;

/// How often a log that grows is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Shows what a task or gate printed
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// The task or gate: PHASE/TASK, or TASK alone where no other has that name
    task: String,
    /// Goes on with what it prints until it has ended
    #[arg(short, long)]
    follow: bool,
    /// Which attempt; the last one when absent
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Which execution of its phase; the last one when absent
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
    /// Prints the bytes as they are kept, also those that steer a terminal
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Prints JSON
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

/// An attempt of a task or gate, as the history knows it.
#[derive(Clone, Debug, Serialize)]
struct Attempt {
    iteration: u32,
    attempt: u32,
    started_at: Timestamp,
    status: StepStatus,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let mut state = load(project.store(), &found.row.run).await?;
    let step = select::step(&state, &arguments.task)?;
    let mut attempts = attempts(project.store(), &state, &step).await?;
    let running = running_attempt(&state, &step);
    let newest = attempts.len();
    for (at, known) in attempts.iter_mut().enumerate() {
        // Nothing says of an attempt that it was ended with its phase or its run.
        if known.status == StepStatus::Running && (at + 1 < newest || running.is_none()) {
            known.status = StepStatus::Stopped;
        }
    }
    let chosen = choose(&attempts, &step, &arguments)?;
    let path = log_file(&project, &state.id, &step.key(chosen.iteration), chosen.attempt);
    if arguments.json {
        let mut kept = Vec::new();
        LogReader::new(path.clone())
            .read(&mut |piece| kept.extend_from_slice(piece))
            .map_err(|error| unreadable(&path, &error))?;
        print::json(&json!({
            "run": state.id,
            "phase": step.phase(),
            step.kind(): step.id(),
            "iteration": chosen.iteration,
            "attempt": chosen.attempt,
            "status": chosen.status,
            "path": path,
            "text": String::from_utf8_lossy(&kept),
            "attempts": attempts,
        }));
        return Ok(Exit::Done);
    }
    let mut shown = LogPrinter { raw: arguments.raw, ..LogPrinter::default() };
    let mut kept = LogReader::new(path.clone());
    let mut changes = Changes::of(project.store(), &found.row.run);
    loop {
        // Asked first: what an ended attempt had printed is then in its log.
        let under_way = arguments.follow && is_running(&project, &mut state, &step, chosen).await?;
        kept.read(&mut |piece| shown.show(piece)).map_err(|error| unreadable(&path, &error))?;
        if !under_way || shown.gone {
            break;
        }
        tokio::select! {
            changed = changes.next() => changed?,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
    shown.finish();
    if !shown.something {
        let address = format!("{}/{}", step.phase(), step.id());
        let yet = if chosen.status == StepStatus::Running && !arguments.follow { " yet" } else { "" };
        print::note(format_args!("{} has printed nothing{yet} (attempt {})", sanitize::line(&address), chosen.attempt));
    }
    Ok(Exit::Done)
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(Code::UnreadableLog, format!("the log {} cannot be read: {error}", path.display()))
}

/// The file that keeps what an attempt of a task or gate printed.
pub(super) fn log_file(project: &Project, run: &RunId, key: &StepKey, attempt: u32) -> PathBuf {
    let step = match key {
        StepKey::Task(key) => Step::Task(key),
        StepKey::Gate { phase, iteration, gate } => Step::Gate { phase, iteration: *iteration, gate },
    };
    project.root.log_file(run, step, attempt)
}

fn choose<'a>(attempts: &'a [Attempt], step: &StepName, arguments: &Arguments) -> Result<&'a Attempt, CommandError> {
    let address = format!("{}/{}", step.phase(), step.id());
    let Some(last) = attempts.last() else {
        return Err(CommandError::new(Code::NotStarted, format!("{address} has not started, so it has printed nothing"))
            .help(format!("`{}` shows what runs now", lockgate(["status", &arguments.run]))));
    };
    let iteration = arguments.iteration.unwrap_or(last.iteration);
    let mut same = attempts.iter().rev().filter(|known| known.iteration == iteration);
    let found = match arguments.attempt {
        None => same.next(),
        Some(wanted) => same.find(|known| known.attempt == wanted),
    };
    found.ok_or_else(|| {
        let listed: Vec<String> = attempts
            .iter()
            .map(|known| format!("--iteration {} --attempt {}  {}", known.iteration, known.attempt, known.status))
            .collect();
        let listed = &listed[listed.len().saturating_sub(10)..];
        CommandError::new(Code::AttemptNotFound, format!("{address} has no such attempt"))
            .help(format!("there are\n{}", listed.join("\n")))
    })
}

/// Whether an attempt is still under way, and somebody keeps what it prints.
async fn is_running(project: &Project, state: &mut Run, step: &StepName, chosen: &Attempt) -> Result<bool, CommandError> {
    let interrupted = run_status(project.store(), &state.id).await?.is_interrupted();
    catch_up(project.store(), state).await?;
    let same = state.current.as_ref().is_some_and(|phase| phase.iteration == chosen.iteration);
    let under_way = same && running_attempt(state, step) == Some(chosen.attempt);
    if under_way && interrupted {
        let run = &state.id;
        print::note(format_args!("nothing drives run {run}, so no more is kept; go on with `lockgate resume {run}`"));
    }
    Ok(under_way && !interrupted)
}

async fn attempts(store: &dyn Store, run: &Run, step: &StepName) -> Result<Vec<Attempt>, CommandError> {
    let (mut attempts, mut after): (Vec<Attempt>, u64) = (Vec::new(), 0);
    let mut reporter = Reporter::default();
    loop {
        let commits = store.commits(&run.id, after, COMMITS).await?;
        let Some(last) = commits.last() else { return Ok(attempts) };
        after = last.version;
        for sealed in &commits {
            let commit = sealed.open()?;
            for Notification { at, kind, .. } in reporter.report(run, &commit.entries) {
                let Some((iteration, attempt, status)) = about(&kind, step) else { continue };
                let known = attempts.iter_mut().rev().find(|known| (known.iteration, known.attempt) == (iteration, attempt));
                match known {
                    Some(known) => known.status = status,
                    None => attempts.push(Attempt { iteration, attempt, started_at: at, status }),
                }
            }
        }
    }
}

/// The number and the status of an attempt of this task or gate, where a notification is about one.
fn about(kind: &Kind<'_>, wanted: &StepName) -> Option<(u32, u32, StepStatus)> {
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
    (name == *wanted).then_some((step.iteration(), attempt, status))
}

/// A log file that may still grow, or not be there yet.
struct LogReader {
    path: PathBuf,
    file: Option<File>,
}

impl LogReader {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Gives what was written since the last time.
    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
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

/// Prints pieces of a log, with all that would steer a terminal made visible.
#[derive(Default)]
struct LogPrinter {
    raw: bool,
    something: bool,
    /// Whether nobody reads any more.
    gone: bool,
    /// The beginning of a character or line break whose end has not come yet.
    held: Vec<u8>,
}

impl LogPrinter {
    fn show(&mut self, piece: &[u8]) {
        self.something |= !piece.is_empty();
        if self.gone {
            return;
        }
        if self.raw {
            self.gone = !print::bytes(piece);
            return;
        }
        self.held.extend_from_slice(piece);
        let rest = self.held.split_off(whole(&self.held));
        let text = std::mem::replace(&mut self.held, rest);
        self.gone = !print::data(&sanitize::lines(&String::from_utf8_lossy(&text)));
    }

    fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() && !self.gone {
            self.gone = !print::data(&sanitize::lines(&String::from_utf8_lossy(&held)));
        }
    }
}

/// How many bytes end with a whole character, and not in the middle of a line break.
fn whole(bytes: &[u8]) -> usize {
    let recent = bytes.len().saturating_sub(3)..bytes.len();
    let cut = recent.rev().find(|at| {
        let length = match bytes[*at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        at + length > bytes.len()
    });
    match (cut, bytes.last()) {
        (Some(cut), _) => cut,
        (None, Some(b'\r')) => bytes.len() - 1,
        (None, _) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_never_split_characters_or_line_breaks() {
        let text = "größe 日本 🙂\r\nend";
        for at in 0..=text.len() {
            let first = whole(&text.as_bytes()[..at]);
            assert!(text.is_char_boundary(first) && at - first < 4, "{at}");
            assert!(!text[..first].ends_with('\r'), "{at}");
        }
        assert_eq!(whole(text.as_bytes()), text.len());
        assert_eq!(whole(b"bad \xff\xff"), 6, "what never becomes a character is not waited for");
    }
}
