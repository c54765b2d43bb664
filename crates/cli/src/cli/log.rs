//! `lockgate log`: the history of a run, one event a line.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use crate::print::{FAINT, styled};
use lockgate::describe::Describer;
use lockgate::run_status::{Changes, run_status};
use lockgate::select;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{Entry, Event};
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::path::Path;

/// How many commits are read at once.
const COMMITS: usize = 1000;

/// Shows the history of a run, one event a line
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// How many events are shown at most
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    limit: Option<u64>,
    /// Begins after the event with this number
    #[arg(long, value_name = "SEQ", default_value = "0", hide_default_value = true)]
    after: u64,
    /// Goes on with what happens until the run has ended
    #[arg(short, long)]
    follow: bool,
    /// Prints JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let run = &found.row.run;
    let mut changes = Changes::of(project.store(), run);
    let mut printer = EventPrinter {
        project: &project,
        json: arguments.json,
        after: 0,
        events: arguments.after..arguments.after.saturating_add(arguments.limit.unwrap_or(u64::MAX)),
        describer: Describer::default(),
    };
    let mut told = false;
    loop {
        // Asked first: what an ended run had to tell is then in the history.
        let now = run_status(project.store(), run).await?;
        if !printer.render(run).await? || !arguments.follow || now.has_ended() {
            return Ok(Exit::Done);
        }
        if now.is_interrupted() && !told {
            if !project.is_abandoned(run).await? {
                continue;
            }
            print::note(format_args!("nothing drives run {run}; it goes on with `lockgate resume {run}`"));
        }
        told = now.is_interrupted();
        changes.next().await?;
    }
}

/// Tells a history from where it was told last.
struct EventPrinter<'p> {
    project: &'p Project,
    json: bool,
    /// The commits that were read.
    after: u64,
    /// The numbers of the events to be told, each counted from the one before it.
    events: Range<u64>,
    describer: Describer,
}

impl EventPrinter<'_> {
    /// Prints what was committed since; gives whether somebody still reads it.
    async fn render(&mut self, run: &RunId) -> Result<bool, CommandError> {
        loop {
            let commits = self.project.store().commits(run, self.after, COMMITS).await?;
            let Some(last) = commits.last() else { return Ok(true) };
            self.after = last.version;
            let (mut lines, mut text) = (Vec::new(), String::new());
            for sealed in &commits {
                let commit = sealed.open()?;
                for (seq, entry) in (commit.first_seq..).zip(&commit.entries) {
                    let told = self.events.contains(&(seq - 1));
                    if self.json {
                        lines.extend(told.then(|| json_line(seq, entry, sealed.hash)));
                    } else {
                        // Also what is not told: later events are told with what earlier ones said.
                        let line = text_line(seq, entry, &mut self.describer);
                        text += if told { &line } else { "" };
                    }
                }
            }
            let done = commits.last().and_then(|last| last.open().ok()).is_some_and(|last| last.first_seq > self.events.end);
            if !(if self.json { print::json_lines(&lines) } else { print::data(&text) }) || done {
                return Ok(false);
            }
        }
    }
}

/// The kind of an event and its own fields, with absent ones left out.
fn event(entry: &Entry) -> (String, Map<String, Value>) {
    let (kind, fields) = match serde_json::to_value(&entry.event) {
        Ok(Value::String(kind)) => (kind, Value::Null),
        Ok(Value::Object(tagged)) => tagged.into_iter().next().unwrap_or_default(),
        Ok(_) | Err(_) => ("unknown".to_owned(), Value::Null),
    };
    let mut own = Map::new();
    if let Value::Object(fields) = without_absent(fields) {
        for (name, value) in fields {
            match value {
                // Which task it is about stands beside the other fields, not below them.
                Value::Object(key) if name == "key" => own.extend(key),
                value => {
                    own.insert(name, value);
                }
            }
        }
    }
    (kind, own)
}

fn without_absent(value: Value) -> Value {
    match value {
        // A value that stands in the event is shown as the value that it is.
        Value::Object(fields) if fields.len() == 1 && fields.get("inline").is_some_and(Value::is_string) => {
            fields["inline"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        }
        Value::Object(fields) => {
            fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name, without_absent(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_absent).collect(),
        other => other,
    }
}

fn json_line(seq: u64, entry: &Entry, hash: Digest) -> Value {
    let (kind, own) = event(entry);
    let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
    let mut line = json!({"seq": seq, "at": entry.at, "type": kind, "actor": without_absent(json!(actor)), "hash": hash});
    if let Value::Object(line) = &mut line {
        line.extend(entry.cause.as_ref().map(|cause| ("cause".to_owned(), json!(cause))));
        for (name, value) in own {
            line.entry(name).or_insert(value);
        }
    }
    line
}

fn text_line(seq: u64, entry: &Entry, describer: &mut Describer) -> String {
    // What a timer does by itself, its sentence says already.
    let actor = entry.actor.as_ref().filter(|_| !matches!(entry.event, Event::Reminded { .. } | Event::DeadlinePassed { .. }));
    let by = actor.map(|actor| styled(FAINT, format_args!("  (by {})", lockgate::phrases::by(Some(actor)))));
    format!("{seq:>5}  {}  {}{}\n", styled(FAINT, entry.at), describer.render(entry), by.unwrap_or_default())
}
