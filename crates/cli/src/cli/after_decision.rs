//! What happens to a run after a decision about it: it continues here at a terminal, and in the background elsewhere.

use super::resume::{self, ResumeOptions, ResumeOutcome};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::{background, print};
use lockgate::code::Code;
use lockgate::resume::Resume;
use lockgate::sanitize;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::RunId;
use lockgate_engine::plural::counted;
use lockgate_engine::run::{Run, Status};
use lockgate_runner::load::load;
use lockgate_store::DriverInfo;
use serde::Serialize;

/// Whether a decision also continues the run, and where
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct ResumeFlags {
    /// Continue the run in this process, even without a terminal; a detached run stays in the background
    #[arg(long, conflicts_with = "no_resume")]
    foreground: bool,
    /// Only record the decision; do not continue the run
    #[arg(long)]
    no_resume: bool,
}

impl ResumeFlags {
    /// Without a flag, a person at a terminal sees how the run continues. A program does not want to wait for that.
    pub(super) fn mode(self, json: bool) -> ResumeMode {
        match self {
            Self { no_resume: true, .. } => ResumeMode::No,
            Self { foreground: true, .. } => ResumeMode::Foreground { json },
            _ if !json && print::is_interactive() => ResumeMode::Foreground { json },
            _ => ResumeMode::Background,
        }
    }
}

/// Whether a decision also continues the run, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResumeMode {
    /// Drive the run in this process. With `json`, ask nothing and print the final state.
    Foreground { json: bool },
    /// Leave the run to a worker.
    Background,
    /// Only record the decision.
    No,
}

/// Where a run continues after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Continues {
    /// In this process, which exits as the run did.
    Here(#[serde(skip)] Exit),
    /// In the background.
    Background,
    /// In the process that drives it already.
    Elsewhere,
    /// Nowhere: it has ended, still waits for a person, or must be resumed by hand.
    No,
}

impl Continues {
    /// How the program ends.
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Here(exit) => exit,
            Self::Background | Self::Elsewhere | Self::No => Exit::Done,
        }
    }
}

/// Continues a run after a decision, unless another process drives it.
pub(super) async fn continue_run(project: &Project, run: &RunId, mode: ResumeMode) -> Result<Continues, CommandError> {
    let state = load(project.store(), run).await?;
    if let Some(status) =
        state.end.as_ref().map(lockgate_engine::run::state::End::status).filter(|status| !status.is_unfinished())
    {
        print::note(format_args!("run {run} is {status}"));
        return Ok(Continues::No);
    }
    if mode == ResumeMode::No {
        print_who_continues(project, &state).await?;
        return Ok(Continues::No);
    }
    // A detached run stays in the background. Driving it here would race with the worker that the decision has woken.
    if state.detached && state.status() == Status::Running {
        return in_background(project, run).await;
    }
    // A driver that is about to end does not see the decision. Once it is gone, the run continues here.
    if state.holds.values().any(|hold| hold.state == HoldState::Checking) {
        project.until_driver_saw(run, state.version).await?;
    }
    if let Some(by) = project.store().driver_of(run).await? {
        print_driven(run, &by);
        return Ok(Continues::Elsewhere);
    }
    match mode {
        ResumeMode::Foreground { json } => in_foreground(project, run, json).await,
        ResumeMode::Background | ResumeMode::No if state.status() != Status::Running => {
            let waiting = counted(state.open_holds().len(), "hold");
            print::note(format_args!("run {run} waits for {waiting}; see `lockgate why {run}`"));
            Ok(Continues::No)
        }
        ResumeMode::Background | ResumeMode::No => leave(project, &state).await,
    }
}

async fn in_foreground(project: &Project, run: &RunId, json: bool) -> Result<Continues, CommandError> {
    match resume::continue_run(project, run, Resume::default(), ResumeOptions { json, ..ResumeOptions::default() }).await? {
        ResumeOutcome::Here(exit) => Ok(Continues::Here(exit)),
        ResumeOutcome::Elsewhere(by) => {
            print_driven(run, &by);
            Ok(Continues::Elsewhere)
        }
    }
}

/// Hands a run to the background. The decision is already recorded, so a run that cannot continue is not a failure of the command.
async fn leave(project: &Project, state: &Run) -> Result<Continues, CommandError> {
    let run = &state.id;
    let left = match lockgate::resume::refuse_without_agent(state, project.config()) {
        Ok(()) => resume::detach(project, run, Resume::default(), ResumeOptions { json: true, ..ResumeOptions::default() }).await,
        Err(error) => Err(error.into()),
    };
    match left {
        Ok(_) => in_background(project, run).await,
        Err(error) if [Code::DefinitionChanged, Code::AgentNotConfigured].contains(&error.error().code()) => {
            print::warn(format_args!("run {run} does not continue: {}", sanitize::line(error.error().message())));
            print::note(format_args!("continue it with `lockgate resume {run}`"));
            Ok(Continues::No)
        }
        Err(error) => Err(error),
    }
}

async fn in_background(project: &Project, run: &RunId) -> Result<Continues, CommandError> {
    match background::ensure_driven(project, run).await? {
        background::Pickup::Driven => Ok(Continues::Background),
        background::Pickup::NotDriven => Ok(Continues::No),
    }
}

/// Prints which process continues a run, and wakes a worker for a detached one.
pub(super) async fn print_who_continues(project: &Project, run: &Run) -> Result<(), CommandError> {
    // Even if a process seems to drive it: one that is about to end may have checked for the last time.
    if run.detached && run.status() == Status::Running {
        return background::ensure_driven(project, &run.id).await.map(drop);
    }
    match project.store().driver_of(&run.id).await? {
        Some(by) => print_driven(&run.id, &by),
        None => print::note(format_args!("no process drives run {0}; continue it with `lockgate resume {0}`", run.id)),
    }
    Ok(())
}

fn print_driven(run: &RunId, by: &DriverInfo) {
    print::note(format_args!("process {} on {} drives run {run} and continues it", by.pid, sanitize::line(&by.host)));
}
