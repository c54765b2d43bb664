//! `lockgate watch`: look on while a run goes on, whoever drives it.

use super::logs::log_file;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::progress::Progress;
use crate::prompt::{Key, Terminal};
use crate::{drive, live, print, signals};
use lockgate::run_status::{Changes, run_status};
use lockgate::view::RunStatus;
use lockgate::{sanitize, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Entry;
use lockgate_runner::driver::{Halt, Listener as _};
use lockgate_runner::load::load;
use lockgate_runner::notifications::Reporter;
use lockgate_store::Store;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// How often the last lines of logs are read: a line that a task prints changes nothing in the store.
const READ_LOGS: Duration = Duration::from_millis(200);

/// How many commits are read at once.
const COMMITS: usize = 1000;

/// How many commits before the present are looked at for when things began.
const REPLAYED_EVENTS: u64 = 64;

/// Of how many tasks the logs are looked at; no window shows more.
const MOST_LOGS: usize = 64;

/// How much of the end of a log is read.
const END_OF_A_LOG: u64 = 4096;

/// Looks on while a run goes on, whoever drives it, until it has ended; changes nothing
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Prints where the run stands as JSON, one object a line, now and whenever that changes
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let run = select::run_or_ended(project.store(), &arguments.run).await?.row.run;
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
        if now.is_interrupted() {
            // Between an answer and the process that continues the run in the background, no process drives it.
            tokio::select! {
                abandoned = project.is_abandoned(run) => if !abandoned? { continue },
                () = halt.halted() => return Ok(Exit::by_signal(halt.signal())),
            }
        }
        let view = super::status::view_of(project, run).await?;
        let view = serde_json::to_value(&view).unwrap_or_default();
        if rendered.as_ref() != Some(&view) {
            if !print::json_lines(&[&view]) {
                return Ok(Exit::Done);
            }
            rendered = Some(view);
        }
        if now.has_ended() {
            return drive::ended(project.store(), &load(project.store(), run).await?).await;
        }
        tokio::select! {
            changed = changes.next() => changed?,
            () = halt.halted() => return Ok(Exit::by_signal(halt.signal())),
        }
    }
}

async fn as_lines(project: &Project, run: &RunId, halt: &Halt) -> Result<Exit, CommandError> {
    let mut changes = Changes::of(project.store(), run);
    let mut state = load(project.store(), run).await?;
    let mut progress = Progress::default();
    progress.recall(&state, &earlier(project.store(), &state).await?);
    let driven = project.store().driver_of(run).await?.is_some();
    let status = RunStatus::of(state.status(), driven);
    if !print::data(&format!("run {run}: {} is {status}\n", sanitize::line(&state.workflow.name))) {
        return Ok(Exit::Done);
    }
    let mut rendered = false;
    loop {
        // Asked first: what an ended run had to tell is then in the history.
        let now = run_status(project.store(), run).await?;
        let mut text = String::new();
        news(project.store(), &mut state, &mut |run, entries| text += &progress.rendered(run, entries)).await?;
        if !text.is_empty() && !print::data(&text) {
            return Ok(Exit::Done);
        }
        if now.has_ended() {
            return drive::ended(project.store(), &state).await;
        }
        if now.is_interrupted() && !rendered {
            tokio::select! {
                abandoned = project.is_abandoned(run) => if !abandoned? { continue },
                () = halt.halted() => return Ok(Exit::by_signal(halt.signal())),
            }
            print::note(format_args!("nothing drives run {run}; it goes on with `lockgate resume {run}`"));
        }
        rendered = now.is_interrupted();
        tokio::select! {
            changed = changes.next() => changed?,
            () = halt.halted() => return Ok(Exit::by_signal(halt.signal())),
        }
    }
}

async fn as_tree(project: &Project, run: &RunId, halt: &Halt) -> Result<Exit, CommandError> {
    let mut changes = Changes::of(project.store(), run);
    let mut state = load(project.store(), run).await?;
    let earlier = earlier(project.store(), &state).await?;
    let mut progress = Progress::new(false, project.config.notify);
    progress.recall(&state, &earlier);
    // Keys are taken where there is somebody to press them; elsewhere signals end it.
    let mut terminal = if print::is_interactive() { Terminal::take().ok() } else { None };
    print::note(format_args!("q leaves, and run {run} goes on without you"));
    let (mut known, mut has_changed) = (false, true);
    loop {
        if std::mem::take(&mut has_changed) {
            let now = run_status(project.store(), run).await?;
            news(project.store(), &mut state, &mut |run, entries| progress.committed(run, entries)).await?;
            if now.has_ended() {
                drop(progress);
                return drive::ended(project.store(), &state).await;
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
                if let Some(line) = last_line(&log_file(project, run, &key, attempt)) {
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
            () = halt.halted() => return Ok(Exit::by_signal(halt.signal())),
            key = key => match key {
                Some(Key::Character('q' | 'Q') | Key::Escape | Key::End) => return Ok(Exit::Done),
                Some(Key::Interrupt) => return Ok(Exit::Interrupted),
                Some(Key::Suspend) => {
                    let _hidden = live::hide();
                    if let Some(terminal) = &mut terminal {
                        terminal.suspend("the run goes on; `fg` shows it again").await;
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

/// What happened shortly before the present.
async fn earlier(store: &dyn Store, state: &Run) -> Result<Vec<Entry>, CommandError> {
    let commits = store.commits(&state.id, state.version.saturating_sub(REPLAYED_EVENTS), COMMITS).await?;
    let mut entries = Vec::new();
    for sealed in &commits {
        entries.extend(sealed.open()?.entries);
    }
    Ok(entries)
}

/// Brings a state up to what the store holds, commit by commit.
async fn news(store: &dyn Store, state: &mut Run, heard: &mut dyn FnMut(&Run, &[Entry])) -> Result<(), CommandError> {
    loop {
        let commits = store.commits(&state.id, state.version, COMMITS).await?;
        if commits.is_empty() {
            return Ok(());
        }
        for sealed in &commits {
            let commit = sealed.open()?;
            lockgate_runner::load::apply(store, state, sealed).await?;
            heard(state, &commit.entries);
        }
    }
}

/// The last line of a log that says something.
fn last_line(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_OF_A_LOG))).ok()?;
    let mut end = Vec::new();
    file.take(END_OF_A_LOG).read_to_end(&mut end).ok()?;
    let text = String::from_utf8_lossy(&end);
    text.split(['\n', '\r']).rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_log_is_the_last_nonblank_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(last_line(&path), None);
        for (text, line) in [("", None), ("one\n\n", Some("one")), ("one\ntw", Some("tw")), ("10%\r20%\r", Some("20%"))] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(last_line(&path).as_deref(), line, "{text:?}");
        }
        std::fs::write(&path, format!("{}\nend\n", "x".repeat(10_000))).unwrap();
        assert_eq!(last_line(&path).as_deref(), Some("end"));
    }
}
