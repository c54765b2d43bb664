//! `lockgate inbox`: all that waits for a person, in every run.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::pagination::PageArguments;
use crate::print;
use crate::print::{HELP, STRONG, styled};
use lockgate::lists::{HoldLine, Part};
use lockgate::{human_time, sanitize};
use lockgate_engine::time::Timestamp;
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

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let Part { lines, more } = project.inbox(arguments.page.limit(), arguments.page.after.as_deref()).await?;
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

async fn print_list(project: &Project, lines: &[HoldLine]) -> Result<(), CommandError> {
    if lines.is_empty() {
        print::say("Nothing waits for a person.");
    }
    let now = project.now();
    let mut out = String::new();
    for line in lines {
        out += &text(line, project.continues_by_itself(&line.run).await?, now);
    }
    print::data(&out);
    Ok(())
}

fn text(line: &HoldLine, goes_on: bool, now: Timestamp) -> String {
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
