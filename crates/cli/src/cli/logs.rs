//! `lockgate logs`: what a task or gate printed.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use lockgate::logs::{Attempt, Log, Printing, choose};
use lockgate::run_status::Changes;
use lockgate::sanitize;
use lockgate::select::{self, StepName};
use lockgate_engine::run::Run;
use lockgate_engine::run::state::StepStatus;
use lockgate_runner::load::load;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

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

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let mut state = load(project.store(), &found.row.run).await?;
    let step = select::step(&state, &arguments.task)?;
    let attempts = project.attempts(&state, &step).await?;
    let chosen = choose(&attempts, &step, &state.id, arguments.iteration, arguments.attempt)?;
    let path = project.log_file(&state.id, &step.key(chosen.iteration), chosen.attempt);
    if arguments.json {
        let mut kept = Vec::new();
        Log::new(path.clone()).read(&mut |piece| kept.extend_from_slice(piece))?;
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
    let mut log = Log::new(path);
    let mut changes = Changes::of(project.store(), &found.row.run);
    loop {
        // Asked first: what an ended attempt had printed is then in its log.
        let under_way = arguments.follow && is_running(&project, &mut state, &step, chosen).await?;
        log.read(&mut |piece| shown.show(piece))?;
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

/// Whether an attempt is still under way, and somebody keeps what it prints.
async fn is_running(project: &Project, state: &mut Run, step: &StepName, chosen: &Attempt) -> Result<bool, CommandError> {
    match project.is_printing(state, step, chosen).await? {
        Printing::Yes => Ok(true),
        Printing::Ended => Ok(false),
        Printing::NotDriven => {
            let run = &state.id;
            print::note(format_args!("nothing drives run {run}, so no more is kept; go on with `lockgate resume {run}`"));
            Ok(false)
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
