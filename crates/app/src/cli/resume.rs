//! `lockgate resume`: go on with a run where it stopped.

use crate::code::Code;
use crate::definition::{self, Changed};
use crate::exit::Exit;
use crate::open::Project;
use crate::presets::{self, PresetArguments};
use crate::progress::Progress;
use crate::trouble::Trouble;
use crate::{drive, print, select};
use lockgate_engine::hold::HoldKind;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{Body, Way};
use lockgate_engine::run::event::Preset;
use lockgate_runner::driver::{DriveError, Driver, accept, detach, submit};
use lockgate_runner::load::{load, load_fresh};
use lockgate_store::DriverInfo;
use std::path::Path;

/// Goes on with a run where it stopped: what is finished stays so, what failed is tried again
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Runs tasks again that were cut off, instead of asking
    #[arg(long)]
    rerun: bool,
    #[command(flatten)]
    presets: PresetArguments,
    /// What it goes on with when its files have changed since it began
    #[arg(long, value_name = "WHICH")]
    changed: Option<Changed>,
    /// Leaves the run to a process in the background, which is begun where there is none, and ends at once
    #[arg(long, conflicts_with = "rerun")]
    detach: bool,
    /// Prints where the run stands as JSON at the end, and asks nothing
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let presets = arguments.presets.presets()?;
    let project = Project::open(root)?;
    let found = select::run(project.store(), &arguments.run).await?;
    refuse_ended(&found.row.run, &found.row.status)?;
    if arguments.detach {
        return leave(&project, &found.row.run, presets, arguments.changed, arguments.json).await;
    }
    let how = How { rerun: arguments.rerun, changed: arguments.changed, json: arguments.json };
    match go_on(&project, &found.row.run, presets, how).await? {
        GoneOn::Here(exit) => Ok(exit),
        GoneOn::Elsewhere(by) => Err(DriveError::DrivenBy { run: found.row.run, by }.into()),
    }
}

/// Leaves a run to the background.
async fn leave(
    project: &Project,
    run: &RunId,
    presets: Vec<Preset>,
    changed: Option<Changed>,
    json: bool,
) -> Result<Exit, Trouble> {
    let actor = project.actor(Way::Command);
    let state = load(project.store(), run).await?;
    if !presets.is_empty() {
        project.may_decide(&actor, run, "answer in advance").await?;
        let presets = presets::resolve(presets, &state.workflow, Some(&state))?;
        submit(&project.world, run, actor.clone(), Body::GivePresets { presets }, project.require_terminal()).await?;
    }
    if let Some(difference) = definition::difference(project, &state)
        && let Some(frozen) = definition::settle(&state, difference, changed, !json)?
    {
        project.may_decide(&actor, run, "accept a changed definition").await?;
        accept(&project.world, run, actor.clone(), &frozen, project.require_terminal()).await?;
    }
    let claim = Project::open(Some(project.root.dir()))?;
    let detached = detach(&claim.world, run, actor, project.require_terminal()).await;
    // The claim on the run ends with the store that made it; whoever drives in the background makes a new one.
    drop(claim);
    detached?;
    super::run::left(project, run, json).await
}

/// Where a run went on.
pub(super) enum GoneOn {
    /// Here, and the program ends so.
    Here(Exit),
    /// In the process that drives it already.
    Elsewhere(DriverInfo),
}

/// How a run goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct How {
    /// Whether tasks that were cut off run again, instead of asking.
    pub(super) rerun: bool,
    /// What it goes on with when its files have changed.
    pub(super) changed: Option<Changed>,
    /// Whether nothing is asked, and JSON is printed at the end.
    pub(super) json: bool,
}

/// Takes a run over and drives it, unless another process drives it.
pub(super) async fn go_on(project: &Project, run: &RunId, presets: Vec<Preset>, how: How) -> Result<GoneOn, Trouble> {
    let How { rerun, changed, json } = how;
    let actor = project.actor(Way::Command);
    let read = load_fresh(project.store(), run).await?;
    let state = &read.run;
    // Asked before anything starts: whoever may not decide does not set the run going either.
    if rerun {
        project.may_decide(&actor, run, "answer a hold").await?;
    }
    if !presets.is_empty() {
        project.may_decide(&actor, run, "answer in advance").await?;
    }
    let presets = presets::resolve(presets, &state.workflow, Some(state))?;
    let halt = drive::make_ready()?;
    if let Some(by) = project.store().driver_of(run).await? {
        return Ok(GoneOn::Elsewhere(by));
    }
    // Before it is taken over, since that already tries again what failed.
    let accepted = match definition::difference(project, state) {
        None => None,
        Some(difference) => definition::settle(state, difference, changed, !json)?,
    };
    if let Some(frozen) = accepted {
        project.may_decide(&actor, run, "accept a changed definition").await?;
        accept(&project.world, run, actor.clone(), &frozen, project.require_terminal()).await?;
    }
    let progress = Box::new(Progress::new(json, project.config.notify));
    let resumed = Driver::resume_read(project.world.clone(), read, actor.clone(), progress).await;
    let mut driver = match resumed {
        Err(DriveError::DrivenBy { by, .. }) => return Ok(GoneOn::Elsewhere(by)),
        resumed => resumed?,
    };
    if !presets.is_empty() {
        driver.submit(actor.clone(), Body::GivePresets { presets }, project.require_terminal()).await?;
    }
    if rerun {
        rerun_interrupted(project, &mut driver, actor).await?;
    }
    drive::drive(project, driver, &halt, json).await.map(GoneOn::Here)
}

async fn rerun_interrupted(
    project: &Project,
    driver: &mut Driver,
    actor: lockgate_engine::run::command::Actor,
) -> Result<(), Trouble> {
    let holds = driver.run().open_holds();
    let interrupted: Vec<_> = holds.into_iter().filter(|hold| hold.kind == HoldKind::Interrupted).cloned().collect();
    if interrupted.is_empty() {
        print::note("no task waits because it was cut off, so there is nothing to run again");
    }
    for hold in interrupted {
        let body = Body::Answer { hold: hold.id, revision: Some(hold.revision), option: "rerun".to_owned(), feedback: None };
        driver.submit(actor.clone(), body, project.require_terminal()).await?;
    }
    Ok(())
}

/// A run that has ended for good is not resumed.
pub(super) fn refuse_ended(run: &RunId, status: &str) -> Result<(), Trouble> {
    let why = match status {
        "complete" => "all its phases are done",
        "aborted" => "a person ended it at a checkpoint",
        "cancelled" => "somebody cancelled it",
        _ => return Ok(()),
    };
    let message = format!("run {run} is {status}: {why}, so there is nothing to resume");
    Err(Trouble::new(Code::RunEnded, message)
        .help(format!("see what it did with `lockgate log {run}`; begin a new one with `lockgate run`")))
}
