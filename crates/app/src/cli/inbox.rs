//! `lockgate inbox`: all that waits for a person, in every run.

use crate::exit::Exit;
use crate::open::Project;
use crate::print::{HELP, STRONG, styled};
use crate::trouble::Trouble;
use crate::view::{self, HoldView};
use crate::{moment, neutral, print, progress};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::load;
use lockgate_store::{HoldFilter, ListedHold, Page};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Lists all that waits for a person, longest first
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// A hold with the run that it belongs to.
#[derive(Serialize)]
struct Line {
    run: RunId,
    workflow: String,
    feature: Option<String>,
    #[serde(flatten)]
    hold: HoldView,
    /// Whether a process drives the run, which goes on by itself once the hold is answered.
    #[serde(skip)]
    driven: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = Project::open(root)?;
    let holds = project.store().holds(HoldFilter::Open, Page::ALL).await?;
    let lines = lines(&project, holds).await?;
    if arguments.json {
        print::json(&lines);
        return Ok(Exit::Done);
    }
    if lines.is_empty() {
        print::say("Nothing waits for a person.");
    }
    let now = project.world.clock.now();
    print::data(&lines.iter().map(|line| text(line, now)).collect::<String>());
    Ok(Exit::Done)
}

/// What is listed, with what only the runs themselves know: notes, and which options ask for feedback.
async fn lines(project: &Project, holds: Vec<ListedHold>) -> Result<Vec<Line>, Trouble> {
    let mut runs: BTreeMap<RunId, (Run, bool)> = BTreeMap::new();
    let mut lines = Vec::new();
    for listed in holds {
        let id = listed.row.run;
        if !runs.contains_key(&id) {
            let driven = project.store().driver_of(&id).await?.is_some();
            runs.insert(id.clone(), (load(project.store(), &id).await?, driven));
        }
        let Some((run, driven)) = runs.get(&id) else { continue };
        // Somebody may have answered it since the list was made.
        let Some(hold) = run.holds.get(&listed.row.hold).map(HoldView::of).filter(HoldView::is_open) else { continue };
        lines.push(Line { run: id, workflow: listed.workflow, feature: listed.feature, hold, driven: *driven });
    }
    Ok(lines)
}

fn text(line: &Line, now: Timestamp) -> String {
    let hold = &line.hold;
    let about = line.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    let phase = hold.phase.as_deref().map(|phase| format!(", phase {phase}")).unwrap_or_default();
    let place = format!("{}{about}{phase}, {}", line.workflow, hold.kind);
    let name = format!("{}@{}", hold.id, hold.revision);
    let mut text = format!(
        "{}  run {}  {}  {}\n  {}\n",
        styled(STRONG, &name),
        line.run,
        neutral::line(&place),
        moment::ago(now, hold.since),
        progress::first_line(&hold.prompt)
    );
    text += &view::shown_text(hold, "  ");
    if !hold.files.is_empty() {
        let _ = writeln!(text, "  see them: {}", styled(HELP, format_args!("lockgate why {}", line.run)));
    }
    for command in hold.commands(!line.driven) {
        let _ = writeln!(text, "  {}", styled(HELP, neutral::line(&command)));
    }
    text
}
