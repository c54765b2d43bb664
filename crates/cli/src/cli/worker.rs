//! `lockgate worker`: drive all runs that were left to the background, side by side.

mod reporter;

use crate::authority::{Authority, Decision};
use crate::drive;
use crate::error::CommandError;
use crate::exit::Exit;
use lockgate::background::{BackgroundLock, halt_when_moved};
use lockgate::code::Code;
use lockgate::worker::Runs;
use lockgate_engine::time::parse_duration;
use lockgate_runner::config::MAX_CONCURRENT_RUNS;
use lockgate_runner::fleet::FleetLimits;
use lockgate_runner::root::Root;
use reporter::WorkerReporter;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Without another word, a process that was not begun for the background ends as soon as nothing can go on.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_millis(200);

/// Drives all runs that were begun or resumed with --detach, side by side, until none of them can go on
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Stays when nothing can go on, and waits for answers and new runs
    #[arg(long, conflicts_with = "idle")]
    stay: bool,
    /// Stays for so long when nothing can go on, for example 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,
    /// How many runs go on side by side at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CONCURRENT_RUNS)))]
    max_runs: Option<u32>,
    /// Prints what becomes of the runs as JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Begun by `--detach`: leaves the terminal that it was begun at
    #[arg(long, hide = true)]
    in_background: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        let decision = Decision::about_project("drive runs");
        if self.in_background { Authority::Background(decision) } else { Authority::OutsideTasks(decision) }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    if arguments.in_background {
        if let Err(error) = rustix::process::setsid() {
            // It fails only for the leader of a group, which a process that another one started is not.
            tracing::warn!(%error, "the process stays in the session of the terminal");
        }
        tracing::info!(pid = std::process::id(), "started in the background");
    }
    let project = crate::open::open(root)?;
    let unusable = |error: std::io::Error| {
        CommandError::new(Code::Unwritable, format!("{} cannot be used: {error}", project.root().state_dir().display()))
    };
    let mut lock = match BackgroundLock::take(project.root()).map_err(unusable)? {
        Ok(lock) => lock,
        Err(_) if arguments.in_background => return Ok(Exit::Done),
        Err(pid) => {
            let message = format!("process {pid} drives the detached runs of {} already", project.root().dir().display());
            return Err(CommandError::new(Code::DrivenElsewhere, message).help("`lockgate runs` shows what they do"));
        }
    };
    let halt = drive::make_ready()?;
    let moved = tokio::spawn(halt_when_moved(project.root().clone(), halt.clone()));
    let settings = &project.config().background;
    let idle = match (arguments.stay, arguments.idle) {
        (true, _) => None,
        (false, Some(idle)) => Some(idle),
        (false, None) if arguments.in_background => Some(settings.idle_timeout),
        (false, None) => Some(DEFAULT_IDLE_TIMEOUT),
    };
    let until = FleetLimits { idle, max_runs: arguments.max_runs.unwrap_or(settings.max_runs.get()) as usize };
    let mut runs = Runs::new(&project, Arc::new(WorkerReporter { json: arguments.json }));
    loop {
        match runs.drive(until, &halt).await {
            Err(error) if error.code() == Code::RootMoved => return Err(root_moved(project.root())),
            driven => driven?,
        }
        lock.release().map_err(unusable)?;
        if halt.is_halted() || !runs.has_work().await? {
            break;
        }
        // A run was left after the last look and before the turn was given back; whoever left it relied on this process.
        match BackgroundLock::take(project.root()).map_err(unusable)? {
            Ok(again) => lock = again,
            Err(_) => break,
        }
    }
    if moved.is_finished() {
        return Err(root_moved(project.root()));
    }
    Ok(if halt.is_halted() { Exit::halted(halt.reason()) } else { Exit::Done })
}

fn root_moved(root: &Root) -> CommandError {
    let message = format!("{} is no longer where it was, so nothing is driven there any more", root.dir().display());
    CommandError::new(Code::RootMoved, message).help("`lockgate worker` goes on where it is now")
}
