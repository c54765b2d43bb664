//! `lockgate worker`: drive all detached runs in parallel.

mod reporter;

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::drive;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use lockgate::background::{BackgroundLock, halt_when_moved};
use lockgate::code::Code;
use lockgate::worker::Runs;
use lockgate_engine::time::parse_duration;
use lockgate_runner::config::MAX_CONCURRENT_RUNS;
use lockgate_runner::driver::HaltReason;
use lockgate_runner::fleet::FleetLimits;
use lockgate_runner::root::Root;
use reporter::WorkerReporter;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A worker in the foreground exits as soon as no run can continue.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_millis(200);

/// Drive detached runs
///
/// A worker drives the runs that were started or resumed with --detach, in parallel. By default it exits as soon as no run can continue.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate worker",
    "lockgate worker --idle-timeout never",
    "lockgate worker --max-runs 4 --json",
]))]
pub(super) struct Arguments {
    /// Exit after being idle for this long, for example 30s or 5m; never keeps the worker running
    #[arg(long, value_name = "DURATION|never", value_parser = idle_timeout)]
    idle_timeout: Option<IdleTimeout>,
    /// Drive at most this many runs in parallel
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CONCURRENT_RUNS)))]
    max_runs: Option<u32>,
    /// Print the progress of the runs as JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Set by `--detach`: leave the session of the terminal
    #[arg(long, hide = true)]
    in_background: bool,
}

/// How long a worker stays when no run can continue.
#[derive(Clone, Copy, Debug)]
enum IdleTimeout {
    After(Duration),
    Never,
}

fn idle_timeout(given: &str) -> Result<IdleTimeout, String> {
    if given == "never" {
        return Ok(IdleTimeout::Never);
    }
    parse_duration(given).map(IdleTimeout::After).map_err(|error| error.to_string())
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
            // It fails only for a process group leader, and a process started by another one is not a leader.
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
            let message = format!("process {pid} already drives the detached runs of {}", project.root().dir().display());
            return Err(CommandError::new(Code::DrivenElsewhere, message).help("see them with `lockgate runs`"));
        }
    };
    let halt = drive::make_ready(&project)?;
    let moved = tokio::spawn(halt_when_moved(project.root().clone(), halt.clone()));
    let settings = &project.config().background;
    let idle = match arguments.idle_timeout {
        Some(IdleTimeout::Never) => None,
        Some(IdleTimeout::After(idle)) => Some(idle),
        None if arguments.in_background => Some(settings.idle_timeout),
        None => Some(DEFAULT_IDLE_TIMEOUT),
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
        // A run was detached after the last check and before the lock was released, and its caller relied on this process.
        match BackgroundLock::take(project.root()).map_err(unusable)? {
            Ok(again) => lock = again,
            Err(_) => break,
        }
    }
    if moved.is_finished() {
        return Err(root_moved(project.root()));
    }
    if halt.reason() == Some(HaltReason::SessionTimeout) {
        print::note("the session timeout has passed; continue the interrupted runs with `lockgate worker`");
    }
    Ok(if halt.is_halted() { Exit::halted(halt.reason()) } else { Exit::Done })
}

fn root_moved(root: &Root) -> CommandError {
    let message = format!("{} has moved, so this process no longer drives its runs", root.dir().display());
    CommandError::new(Code::RootMoved, message).help("start `lockgate worker` in the new location")
}
