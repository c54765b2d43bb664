//! `lockgate runs`: list runs, newest first, and remove finished ones.

mod remove;

pub(super) use remove::removed_line;

use super::help::examples;
use crate::authority::Authority;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::pagination::PageArguments;
use crate::print;
use crate::print::{STRONG, styled};
use crate::style::Styled as _;
use clap::ValueEnum;
use lockgate::lists::{Part, RunLine};
use lockgate::view::RunStatus;
use lockgate::{human_time, sanitize};
use lockgate_engine::time::Timestamp;
use std::path::Path;

/// List runs, or remove finished ones
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = examples(&[
    "lockgate runs",
    "lockgate runs --status waiting --status interrupted",
    "lockgate runs rm d12cbewf",
]))]
pub(super) struct Arguments {
    /// List only runs with this status; can be given several times
    #[arg(long, value_name = "STATUS", value_enum)]
    status: Vec<StatusArgument>,
    #[command(flatten)]
    page: PageArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Rm(remove::Arguments),
}

/// A status, or several that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatusArgument {
    Running,
    Waiting,
    Interrupted,
    Failed,
    Aborted,
    Cancelled,
    Complete,
    /// Runs that may still continue
    Unfinished,
    /// Runs that have ended for good
    Finished,
}

impl StatusArgument {
    fn statuses(self) -> &'static [RunStatus] {
        match self {
            Self::Running => &[RunStatus::Running],
            Self::Waiting => &[RunStatus::Waiting],
            Self::Interrupted => &[RunStatus::Interrupted],
            Self::Failed => &[RunStatus::Failed],
            Self::Aborted => &[RunStatus::Aborted],
            Self::Cancelled => &[RunStatus::Cancelled],
            Self::Complete => &[RunStatus::Complete],
            Self::Unfinished => &[RunStatus::Running, RunStatus::Interrupted, RunStatus::Waiting, RunStatus::Failed],
            Self::Finished => &[RunStatus::Aborted, RunStatus::Cancelled, RunStatus::Complete],
        }
    }

    /// As it is written on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match &self.action {
            None => Authority::Anyone,
            Some(Action::Rm(arguments)) => arguments.authority(),
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    if let Some(Action::Rm(arguments)) = arguments.action {
        return remove::run(root, arguments).await;
    }
    let project = crate::open::open_read_only(root)?;
    let statuses: Vec<RunStatus> = arguments.status.iter().flat_map(|status| status.statuses().iter().copied()).collect();
    let (limit, after) = (arguments.page.limit(), arguments.page.after.as_deref());
    let Part { lines, more } = project.runs_with_status(&statuses, limit, after).await?;
    if arguments.json {
        print::json(&lines);
    } else if lines.is_empty() && !statuses.is_empty() {
        print::say("There are no runs with this status.");
    } else {
        print_list(&lines, project.now());
    }
    if let (true, Some(last)) = (more, lines.last()) {
        let filter: String = arguments.status.iter().map(|status| format!(" --status {}", status.name())).collect();
        arguments.page.print_more(&format!("runs{filter}"), last.run.as_str());
    }
    Ok(Exit::Done)
}

fn print_list(lines: &[RunLine], now: Timestamp) {
    if lines.is_empty() {
        print::say("No runs yet; start one with `lockgate run FILE`.");
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
