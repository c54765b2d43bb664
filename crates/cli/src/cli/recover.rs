//! `lockgate recover`: rebuild runs from snapshot files when the database is gone.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print::{self, STRONG, styled};
use lockgate::recovery::RECOVER;
use lockgate::sanitize;
use lockgate::view::resume_command;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Channel;
use std::path::{Path, PathBuf};

/// Rebuild runs from snapshot files when the database is gone
///
/// Each run is rebuilt from its newest usable snapshot. Tasks that the snapshot does not know as finished may have run since, so
/// a person is asked before any of them starts.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["lockgate recover .lockgate/runs", "lockgate recover /backup/snapshots --json"]))]
pub(super) struct Arguments {
    /// Directory that contains the snapshots, or directories with them
    #[arg(value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority() -> Authority<'static> {
        Authority::Person(Decision::about_project(RECOVER))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_or_create(root)?;
    let recovery = project.recover(&arguments.dir, &project.caller(Channel::Command)).await?;
    for error in &recovery.unreadable {
        print::warn(sanitize::line(error.message()));
    }
    if arguments.json {
        print::json(&recovery.recovered);
    }
    for known in recovery.recovered.iter().filter(|_| !arguments.json) {
        let (run, workflow) = (styled(STRONG, &known.run), sanitize::line(&known.workflow));
        print::data(&format!("recovered {run} ({workflow}, {}) from {}\n", known.status, known.snapshot));
        if matches!(known.status, Status::Running | Status::Waiting | Status::Failed) {
            print::say(format_args!("continue it with `{}`", resume_command(&known.run, [])));
        }
    }
    for (run, error) in &recovery.failed {
        print::warn(format_args!("run {run} was not recovered: {}", sanitize::line(error.message())));
    }
    Ok(if recovery.failed.is_empty() { Exit::Done } else { Exit::Failed })
}
