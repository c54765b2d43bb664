//! `lockgate runs`: all runs, newest first.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::pagination::PageArguments;
use crate::print;
use crate::print::{STRONG, styled};
use crate::style::Styled as _;
use lockgate::view::RunStatus;
use lockgate::{human_time, sanitize, select};
use lockgate_engine::run::event::RunKind;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::time::Timestamp;
use lockgate_store::ListedRun;
use serde::Serialize;
use std::path::Path;

/// Lists all runs, newest first
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    page: PageArguments,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct RunLine<'r> {
    run: &'r str,
    kind: &'r OpenEnum<RunKind>,
    workflow: &'r str,
    feature: Option<&'r str>,
    status: RunStatus,
    phase: Option<&'r str>,
    created_at: Timestamp,
    changed_at: Timestamp,
}

impl<'r> RunLine<'r> {
    fn of(listed: &'r ListedRun) -> Self {
        let row = &listed.row;
        Self {
            run: row.run.as_str(),
            kind: &row.kind,
            workflow: &row.workflow,
            feature: row.feature.as_deref(),
            status: RunStatus::of_row(&row.status, listed.driven),
            phase: row.phase.as_deref(),
            created_at: row.created_at,
            changed_at: row.changed_at,
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let after = match &arguments.page.after {
        Some(run) => Some(select::run_or_ended(project.store(), run).await?.cursor),
        None => None,
    };
    let (listed, more) = arguments.page.cut(project.store().runs(arguments.page.from(after)).await?);
    let lines: Vec<RunLine<'_>> = listed.iter().map(RunLine::of).collect();
    if arguments.json {
        print::json(&lines);
    } else {
        print_list(&lines, project.runtime.clock.now());
    }
    if let (true, Some(last)) = (more, lines.last()) {
        arguments.page.print_more("runs", last.run);
    }
    Ok(Exit::Done)
}

fn print_list(lines: &[RunLine<'_>], now: Timestamp) {
    if lines.is_empty() {
        print::say("There are no runs yet; `lockgate run FILE` begins one.");
    }
    let mut text = String::new();
    for line in lines {
        let about = line.feature.map(|feature| format!(" ({feature})")).unwrap_or_default();
        let phase = line.phase.map(|phase| format!(" in {phase}")).unwrap_or_default();
        let status = styled(line.status.style(), format_args!("{:<11}", line.status));
        let rest = sanitize::line(&format!("{}{about}{phase}", line.workflow)).into_owned();
        text.push_str(&format!("{}  {status}  {rest}  {}\n", styled(STRONG, line.run), human_time::ago(now, line.changed_at)));
    }
    print::data(&text);
}
