//! `lockgate watch`: follow a run live, whichever process drives it.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::progress::Progress;
use crate::prompt::{Key, Terminal};
use crate::run_argument::RunArgument;
use crate::{drive, live, print, signals};
use lockgate::history::{catch_up, recent};
use lockgate::logs::last_line;
use lockgate::run_status::{Changes, run_status};
use lockgate::view::RunStatus;
use lockgate::{sanitize, select};
use lockgate_engine::id::RunId;
use lockgate_runner::driver::{Halt, Listener as _};
use lockgate_runner::load::load;
use lockgate_runner::notifications::Reporter;
use std::path::Path;
use std::time::Duration;

/// How often the last lines of logs are read. Output does not change the store, so there is nothing to wait for.
const READ_LOGS: Duration = Duration::from_millis(200);

/// The number of tasks whose logs are read; no window shows more.
const MOST_LOGS: usize = 64;

/// Follow a run live
///
/// Watching changes nothing. Press q to leave.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate watch",
    "lockgate watch d12cbewf --json",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print the state as JSON, one object per line, now and after every change
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let run = select::run_or_ended(project.store(), arguments.run.name()).await?.row.run;
    let halt = Halt::default();
    signals::listen(&halt)?;
    if arguments.json {
        return as_json(&project, &run, &halt).await;
    }
    let tree = print::stdout_is_terminal() && live::possible();
    match tree {
        true => as_tree(&project, &run, &halt).await,
        false => as_lines(&project, &run, &halt).await,
    }
}

async fn as_json(project: &Project, run: &RunId, halt: &Halt) -> Result<Exit, CommandError> {
    let mut changes = Changes::of(project.store(), run);
    let mut rendered = None;
    loop {
        let now = run_status(project.store(), run).await?;
        let view = super::status::view_of(project, run).await?;
        let view = serde_json::to_value(&view).unwrap_or_default();
        if rendered.as_ref() != Some(&view) {
            if !print::json_lines(&[&view]) {
                return Ok(Exit::Done);
            }
            rendered = Some(view);
        }
        if now.has_ended() {
            return drive::ended(project, &load(project.store(), run).await?).await;
        }
        tokio::select! {
            changed = changes.next() => changed?,
            () = halt.halted() => return Ok(Exit::halted(halt.reason())),
        }
    }
}

async fn as_lines(project: &Project, run: &RunId, halt: &Halt) -> Result<Exit, CommandError> {
    let mut changes = Changes::of(project.store(), run);
    let mut state = load(project.store(), run).await?;
    let mut progress = Progress::default();
    progress.recall(&state, &recent(project.store(), &state).await?);
    let driven = project.store().driver_of(run).await?.is_some();
    let status = RunStatus::of(state.status(), driven);
    if !print::data(&format!("run {run}: {} is {status}\n", sanitize::line(&state.workflow.name))) {
        return Ok(Exit::Done);
    }
    let mut rendered = false;
    loop {
        // The status is read before the events, so that the history of an ended run is complete.
        let now = run_status(project.store(), run).await?;
        let mut text = String::new();
        catch_up(project.store(), &mut state, &mut |run, entries| text += &progress.rendered(run, entries)).await?;
        if !text.is_empty() && !print::data(&text) {
            return Ok(Exit::Done);
        }
        if now.has_ended() {
            return drive::ended(project, &state).await;
        }
        if now.is_interrupted() && !rendered {
            print::note(format_args!("no process drives run {run}; continue it with `lockgate resume {run}`"));
        }
        rendered = now.is_interrupted();
        tokio::select! {
            changed = changes.next() => changed?,
            () = halt.halted() => return Ok(Exit::halted(halt.reason())),
        }
    }
}

async fn as_tree(project: &Project, run: &RunId, halt: &Halt) -> Result<Exit, CommandError> {
    let mut changes = Changes::of(project.store(), run);
    let mut state = load(project.store(), run).await?;
    let earlier = recent(project.store(), &state).await?;
    let mut progress = Progress::new(false, project.config().notify.terminal);
    progress.recall(&state, &earlier);
    // Keys are read only at a terminal with a person; elsewhere, signals end the program.
    let mut terminal = if print::is_interactive() { Terminal::take().ok() } else { None };
    print::note(format_args!("press q to leave; run {run} continues"));
    let (mut known, mut has_changed) = (false, true);
    loop {
        if std::mem::take(&mut has_changed) {
            let now = run_status(project.store(), run).await?;
            catch_up(project.store(), &mut state, &mut |run, entries| progress.committed(run, entries)).await?;
            if now.has_ended() {
                drop(progress);
                return drive::ended(project, &state).await;
            }
            if let Some(live) = progress.live() {
                live.watch(&state, !now.is_interrupted());
                if !std::mem::replace(&mut known, true) {
                    live.recall(&state, &Reporter::default().report(&state, &earlier));
                }
            }
        }
        if let Some(live) = progress.live() {
            for (key, attempt) in live.running().into_iter().take(MOST_LOGS) {
                if let Some(line) = last_line(&project.log_file(run, &key, attempt)) {
                    live::line(run, &key.address(), &line);
                }
            }
        }
        let key = async {
            match &mut terminal {
                Some(terminal) => terminal.key().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = halt.halted() => return Ok(Exit::halted(halt.reason())),
            key = key => match key {
                Some(Key::Character('q' | 'Q') | Key::Escape | Key::End) => return Ok(Exit::Done),
                Some(Key::Interrupt) => return Ok(Exit::Interrupted),
                Some(Key::Suspend) => {
                    let _hidden = live::hide();
                    if let Some(terminal) = &mut terminal {
                        terminal.suspend("the run continues; `fg` shows it again").await;
                    }
                }
                None => return Ok(Exit::Terminated),
                Some(_) => {}
            },
            changed = changes.next() => {
                changed?;
                has_changed = true;
            }
            () = tokio::time::sleep(READ_LOGS) => {}
        }
    }
}
