//! `lockgate runs`: all runs, newest first.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::pagination::PageArguments;
use crate::print;
use crate::print::{STRONG, styled};
use crate::style::Styled as _;
use lockgate::lists::{Part, RunLine};
use lockgate::{human_time, sanitize};
use lockgate_engine::time::Timestamp;
use std::path::Path;

/// Lists all runs, newest first
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    page: PageArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let Part { lines, more } = project.runs(arguments.page.limit(), arguments.page.after.as_deref()).await?;
    if arguments.json {
        print::json(&lines);
    } else {
        print_list(&lines, project.now());
    }
    if let (true, Some(last)) = (more, lines.last()) {
        arguments.page.print_more("runs", last.run.as_str());
    }
    Ok(Exit::Done)
}

fn print_list(lines: &[RunLine], now: Timestamp) {
    if lines.is_empty() {
        print::say("There are no runs yet; `lockgate run FILE` begins one.");
    }
    let mut text = String::new();
    for line in lines {
        let about = line.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
        let phase = line.phase.as_deref().map(|phase| format!(" in {phase}")).unwrap_or_default();
        let status = styled(line.status.style(), format_args!("{:<11}", line.status));
        let rest = sanitize::line(&format!("{}{about}{phase}", line.workflow)).into_owned();
        text.push_str(&format!("{}  {status}  {rest}  {}\n", styled(STRONG, &line.run), human_time::ago(now, line.changed_at)));
    }
    print::data(&text);
}
