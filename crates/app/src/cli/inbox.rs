//! `lockgate inbox`: all that waits for a person, in every run.

use crate::exit::Exit;
use crate::open::Project;
use crate::print::{HELP, STRONG, styled};
use crate::trouble::Trouble;
use crate::{moment, neutral, print, progress, view};
use lockgate_store::{HoldFilter, ListedHold, Page};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Lists all that waits for a person, longest first
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = Project::open(root)?;
    let holds = project.store().holds(HoldFilter::Open, Page::ALL).await?;
    if arguments.json {
        print::json(&holds.iter().map(line).collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    if holds.is_empty() {
        print::say("Nothing waits for a person.");
    }
    let now = project.world.clock.now();
    let mut text = String::new();
    for hold in &holds {
        let shown = line(hold);
        let word = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();
        let about = hold.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
        let phase = shown["phase"].as_str().map(|phase| format!(", phase {phase}")).unwrap_or_default();
        let place = format!("{}{about}{phase}, {}", hold.workflow, hold.row.kind);
        let name = format!("{}@{}", hold.row.hold, hold.row.revision);
        let _ = writeln!(
            text,
            "{}  run {}  {}  {}",
            styled(STRONG, &name),
            hold.row.run,
            neutral::line(&place),
            moment::ago(now, hold.row.since)
        );
        let _ = writeln!(text, "  {}", progress::first_line(&word("prompt")));
        for file in shown["files"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  file {}", neutral::line(file["path"].as_str().unwrap_or_default()));
        }
        for (at, option) in shown["options"].as_array().into_iter().flatten().enumerate() {
            let label = option["label"].as_str().unwrap_or_default();
            let command = view::answer_command(hold.row.hold.as_str(), hold.row.revision, label, at);
            let _ = writeln!(text, "  {}", styled(HELP, neutral::line(&command)));
        }
    }
    print::data(&text);
    Ok(Exit::Done)
}

fn line(hold: &ListedHold) -> Value {
    let row = &hold.row;
    let mut line = json!({
        "id": row.hold,
        "run": row.run,
        "workflow": hold.workflow,
        "feature": hold.feature,
        "kind": row.kind,
        "revision": row.revision,
        "since": row.since,
    });
    if let (Value::Object(line), Ok(Value::Object(shown))) = (&mut line, serde_json::from_str(&row.shown)) {
        line.extend(shown);
    }
    line
}
