//! `lockgate log`: show the history of a run, one event per line.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::print::{FAINT, styled};
use crate::run_argument::RunArgument;
use lockgate::describe::Describer;
use lockgate::history::{History, event_json};
use lockgate::run_status::{Changes, run_status};
use lockgate::{human_time, select};
use lockgate_engine::run::event::{Entry, Event};
use std::ops::Range;
use std::path::Path;

/// Show the history of a run, one event per line
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate log",
    "lockgate log login --follow",
    "lockgate log d12cbewf --json",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Show at most this many events
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    limit: Option<u64>,
    /// Start after the event with this number
    #[arg(long, value_name = "SEQ", default_value = "0", hide_default_value = true)]
    after: u64,
    /// Follow new events until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), arguments.run.name()).await?;
    let run = &found.row.run;
    let mut changes = Changes::of(project.store(), run);
    let mut printer = EventPrinter {
        history: History::of(project.store(), run),
        json: arguments.json,
        events: arguments.after..arguments.after.saturating_add(arguments.limit.unwrap_or(u64::MAX)),
        describer: Describer::default(),
    };
    let mut noted = false;
    loop {
        // The status is read before the events, so that the history of an ended run is complete.
        let now = run_status(project.store(), run).await?;
        if !printer.render().await? || !arguments.follow || now.has_ended() {
            return Ok(Exit::Done);
        }
        if now.is_interrupted() && !noted {
            if !project.is_abandoned(run).await? {
                continue;
            }
            print::note(format_args!("no process drives run {run}; continue it with `lockgate resume {run}`"));
        }
        noted = now.is_interrupted();
        changes.next().await?;
    }
}

/// Prints a history from the last printed event on.
struct EventPrinter<'p> {
    history: History<'p>,
    json: bool,
    /// The events to print, counted from 0.
    events: Range<u64>,
    describer: Describer,
}

impl EventPrinter<'_> {
    /// Prints new commits, and returns whether stdout is still read.
    async fn render(&mut self) -> Result<bool, CommandError> {
        loop {
            let commits = self.history.next().await?;
            let Some(last) = commits.last() else { return Ok(true) };
            let done = last.first_seq > self.events.end;
            let (mut lines, mut text) = (Vec::new(), String::new());
            for commit in &commits {
                for (seq, entry) in commit.numbered() {
                    let shown = self.events.contains(&(seq - 1));
                    if self.json {
                        lines.extend(shown.then(|| event_json(seq, entry, commit.hash)));
                    } else {
                        // Events that are not shown are described too, because later descriptions depend on them.
                        let line = text_line(seq, entry, &mut self.describer);
                        text += if shown { &line } else { "" };
                    }
                }
            }
            if !(if self.json { print::json_lines(&lines) } else { print::data(&text) }) || done {
                return Ok(false);
            }
        }
    }
}

fn text_line(seq: u64, entry: &Entry, describer: &mut Describer) -> String {
    // The description of a timer event already names its actor.
    let actor = entry.actor.as_ref().filter(|_| !matches!(entry.event, Event::Reminded { .. } | Event::DeadlinePassed { .. }));
    let by = actor.map(|actor| styled(FAINT, format_args!("  (by {})", lockgate::phrases::by(Some(actor)))));
    format!("{seq:>5}  {}  {}{}\n", styled(FAINT, human_time::local(entry.at)), describer.render(entry), by.unwrap_or_default())
}
