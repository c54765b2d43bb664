//! `lockgate logs`: the output of tasks and gates.

use super::help::examples;
use crate::complete::RunThenTask;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, STRONG, styled};
use clap_complete::ArgValueCompleter;
use lockgate::code::Code;
use lockgate::logs::{Attempt, Log, Printing, choose};
use lockgate::run_status::{Changes, run_status};
use lockgate::sanitize;
use lockgate::select::{self, NEWEST, StepName};
use lockgate::view::lockgate;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::StepStatus;
use lockgate_runner::load::{catch_up, load};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How often a growing log is read. Output does not change the database, so there is nothing to wait for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Show the output of tasks and gates
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate logs",
    "lockgate logs d12cbewf build/compile",
    "lockgate logs @ tests --follow",
]))]
pub(super) struct Arguments {
    /// Run, and task or gate: PHASE/TASK, or TASK if no other has that name [default: all tasks of the newest run]
    #[arg(num_args = 0..=2, value_names = ["[RUN] [TASK]"], add = ArgValueCompleter::new(RunThenTask))]
    run_and_task: Vec<String>,
    /// Follow the output until the task or the run ends
    #[arg(short, long)]
    follow: bool,
    /// Attempt [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Execution of the phase [default: the last]
    #[arg(long, value_name = "N")]
    iteration: Option<u32>,
    /// Print the bytes as they are, including control sequences
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let (state, task) = find(&project, &arguments.run_and_task).await?;
    match task {
        Some(task) => of_task(&project, state, &task, &arguments).await,
        None if arguments.attempt.is_some() || arguments.iteration.is_some() => {
            Err(CommandError::new(Code::InvalidUsage, "--attempt and --iteration need a task")
                .help(format!("name it: {}", lockgate(["logs", state.id.as_str(), "PHASE/TASK"]))))
        }
        None if arguments.json => all_as_json(&project, &state).await,
        None => all_as_text(&project, state, &arguments).await,
    }
}

/// The run and the named task, if any. A single name is a run; if no run has it, it is a task of the newest run.
async fn find(project: &Project, names: &[String]) -> Result<(Run, Option<StepName>), CommandError> {
    let (run, task) = match names {
        [] => (select::run_or_ended(project.store(), NEWEST).await?, None),
        [name] => match select::run_or_ended(project.store(), name).await {
            Ok(run) => (run, None),
            Err(error) if error.code() == Code::RunNotFound => {
                (select::run_or_ended(project.store(), NEWEST).await.map_err(|_| error)?, Some(name))
            }
            Err(error) => return Err(error.into()),
        },
        [run, task, ..] => (select::run_or_ended(project.store(), run).await?, Some(task)),
    };
    let state = load(project.store(), &run.row.run).await?;
    let task = match task {
        Some(task) => Some(select::step(&state, task)?),
        None => None,
    };
    Ok((state, task))
}

async fn of_task(project: &Project, mut state: Run, step: &StepName, arguments: &Arguments) -> Result<Exit, CommandError> {
    let attempts = project.attempts(&state, step).await?;
    let chosen = choose(&attempts, step, &state.id, arguments.iteration, arguments.attempt)?;
    let path = project.log_file(&state.id, &step.key(chosen.iteration), chosen.attempt);
    if arguments.json {
        let mut view = attempt_json(project, &state, step, chosen)?;
        view["attempts"] = json!(attempts);
        print::json(&view);
        return Ok(Exit::Done);
    }
    let mut shown = LogPrinter { raw: arguments.raw, ..LogPrinter::default() };
    let mut log = Log::new(path);
    let id = state.id.clone();
    let mut changes = Changes::of(project.store(), &id);
    loop {
        // The status is read before the log, so that the log of an ended attempt is complete.
        let running = arguments.follow && is_running(project, &mut state, step, chosen).await?;
        log.read(&mut |piece| shown.show(piece))?;
        if !running || shown.gone {
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

fn attempt_json(project: &Project, state: &Run, step: &StepName, attempt: &Attempt) -> Result<serde_json::Value, CommandError> {
    let path = project.log_file(&state.id, &step.key(attempt.iteration), attempt.attempt);
    let mut kept = Vec::new();
    Log::new(path.clone()).read(&mut |piece| kept.extend_from_slice(piece))?;
    Ok(json!({
        "run": state.id,
        "phase": step.phase(),
        step.kind(): step.id(),
        "iteration": attempt.iteration,
        "attempt": attempt.attempt,
        "status": attempt.status,
        "path": path,
        "text": String::from_utf8_lossy(&kept),
    }))
}

async fn all_as_json(project: &Project, state: &Run) -> Result<Exit, CommandError> {
    let attempts = project.all_attempts(state).await?;
    let views: Result<Vec<_>, _> = attempts.iter().map(|(step, attempt)| attempt_json(project, state, step, attempt)).collect();
    print::json(&views?);
    Ok(Exit::Done)
}

/// Prints the logs of all attempts, each below a line that names it. Followed, the output of parallel tasks alternates.
async fn all_as_text(project: &Project, mut state: Run, arguments: &Arguments) -> Result<Exit, CommandError> {
    let id = state.id.clone();
    let mut changes = Changes::of(project.store(), &id);
    let mut logs: Vec<(String, Log, LogPrinter)> = Vec::new();
    let mut last = None;
    loop {
        let now = run_status(project.store(), &state.id).await?;
        catch_up(project.store(), &mut state).await?;
        for (step, attempt) in project.all_attempts(&state).await?.into_iter().skip(logs.len()) {
            let key = step.key(attempt.iteration);
            let title = match attempt.iteration {
                1 => format!("{} (attempt {})", key.address(), attempt.attempt),
                iteration => format!("{} (iteration {iteration}, attempt {})", key.address(), attempt.attempt),
            };
            let log = Log::new(project.log_file(&state.id, &key, attempt.attempt));
            logs.push((title, log, LogPrinter { raw: arguments.raw, ..LogPrinter::default() }));
        }
        for (at, (title, log, shown)) in logs.iter_mut().enumerate() {
            let mut text = Vec::new();
            log.read(&mut |piece| text.extend_from_slice(piece))?;
            if !text.is_empty() && last.replace(at) != Some(at) {
                print::data(&format!("{}\n", styled(STRONG, format_args!("== {}", sanitize::line(title)))));
            }
            shown.show(&text);
            if shown.gone {
                return Ok(Exit::Done);
            }
        }
        if !arguments.follow || now.has_ended() || now.is_interrupted() {
            break;
        }
        tokio::select! {
            changed = changes.next() => changed?,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
    logs.iter_mut().for_each(|(_, _, shown)| shown.finish());
    if last.is_none() {
        print::note(format_args!("the tasks of run {} have printed nothing", state.id));
    }
    Ok(Exit::Done)
}

/// Whether an attempt is running and a process keeps its output.
async fn is_running(project: &Project, state: &mut Run, step: &StepName, chosen: &Attempt) -> Result<bool, CommandError> {
    match project.is_printing(state, step, chosen).await? {
        Printing::Yes => Ok(true),
        Printing::Ended => Ok(false),
        Printing::NotDriven => {
            let run = &state.id;
            print::note(format_args!(
                "no process drives run {run}, so its output is not recorded; continue it with `lockgate resume {run}`"
            ));
            Ok(false)
        }
    }
}

/// Prints pieces of a log with control characters made visible.
#[derive(Default)]
struct LogPrinter {
    raw: bool,
    something: bool,
    /// Whether stdout is closed.
    gone: bool,
    /// The start of a character or line break whose end is still missing.
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

/// The length of the prefix that consists of complete characters and line breaks.
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
        assert_eq!(whole(b"bad \xff\xff"), 6, "invalid bytes are not held back");
    }
}
