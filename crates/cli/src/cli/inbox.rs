//! `lockgate inbox`: all that waits for a person, in every run.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::pagination::PageArguments;
use crate::print;
use crate::print::{HELP, STRONG, styled};
use lockgate::view::HoldView;
use lockgate::{human_time, sanitize, select};
use lockgate_engine::id::RunId;
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::load;
use lockgate_store::{HoldFilter, ListedHold};
use serde::Serialize;
use std::path::Path;

/// Lists all that waits for a person, longest first
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    page: PageArguments,
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
}

impl Line {
    fn of(listed: ListedHold) -> Self {
        let run = listed.row.run.clone();
        Self { run, workflow: listed.workflow, feature: listed.feature, hold: HoldView::listed(listed.row) }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let after = match &arguments.page.after {
        Some(hold) => Some(select::hold(project.store(), &select::hold_name(hold)?).await?.cursor),
        None => None,
    };
    let holds = project.store().holds(HoldFilter::Open, arguments.page.from(after)).await?;
    let (holds, more) = arguments.page.cut(holds);
    let lines: Vec<Line> = holds.into_iter().map(Line::of).collect();
    if arguments.json {
        print::json(&lines);
    } else {
        print_list(&project, &lines).await?;
    }
    if let (true, Some(last)) = (more, lines.last()) {
        arguments.page.print_more("inbox", &last.hold.id);
    }
    Ok(Exit::Done)
}

async fn print_list(project: &Project, lines: &[Line]) -> Result<(), CommandError> {
    if lines.is_empty() {
        print::say("Nothing waits for a person.");
    }
    let now = project.runtime.clock.now();
    let mut out = String::new();
    for line in lines {
        // A process that drives the run goes on by itself once the hold is answered; so does one in the background.
        let goes_on = project.store().driver_of(&line.run).await?.is_some() || load(project.store(), &line.run).await?.detached;
        out += &text(line, goes_on, now);
    }
    print::data(&out);
    Ok(())
}

fn text(line: &Line, goes_on: bool, now: Timestamp) -> String {
    let hold = &line.hold;
    let about = line.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    let phase = hold.phase.as_deref().map(|phase| format!(", phase {phase}")).unwrap_or_default();
    let place = format!("{}{about}{phase}, {}", line.workflow, hold.kind);
    let name = format!("{}@{}", hold.id, hold.revision);
    let mut text = format!(
        "{}  run {}  {}  {}\n  {}\n",
        styled(STRONG, &name),
        line.run,
        sanitize::line(&place),
        human_time::ago(now, hold.since),
        lockgate::phrases::first_line(&hold.prompt)
    );
    text.extend(crate::run_text::deadline_line(hold, now).map(|line| format!("  {line}\n")));
    text += &crate::run_text::shown_text(hold, "  ");
    if hold.text.is_some() {
        text.push_str(&format!("  see it whole: {}\n", styled(HELP, format_args!("lockgate why {}", line.run))));
    }
    if hold.shows_content() {
        text.push_str(&format!("  see what is shown: {}\n", styled(HELP, format_args!("lockgate why {}", line.run))));
    }
    for command in hold.next_commands(line.run.as_str(), !goes_on, now) {
        text.push_str(&format!("  {}\n", styled(HELP, sanitize::line(&command))));
    }
    text
}
