//! `lockgate resume`: go on with a run where it stopped.

use crate::authority::{Authority, Decision};
use crate::code::Code;
use crate::definition::{self, Changed, Settled};
use crate::exit::Exit;
use crate::open::Project;
use crate::pipeline::{self, GoOn, Going};
use crate::preset_answers;
use crate::preset_arguments::PresetArguments;
use crate::progress::Progress;
use crate::trouble::Trouble;
use crate::view::Aborted;
use crate::{drive, print, select};
use lockgate_engine::hold::HoldKind;
use lockgate_engine::id::{PhaseId, RunId, StepKey, TaskId};
use lockgate_engine::run::Status;
use lockgate_engine::run::command::{Caller, Channel, CommandKind};
use lockgate_engine::run::event::Preset;
use lockgate_engine::run::index::StoredWord;
use lockgate_engine::run::pipeline::PipelineWish;
use lockgate_engine::run::state::TaskState;
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::agent::Configured;
use lockgate_runner::config::Config;
use lockgate_runner::driver::{DriveError, Driver, Halt, accept, detach, submit};
use lockgate_runner::load::{load, load_fresh};
use lockgate_runner::projection::runs_of;
use lockgate_runner::start::Frozen;
use lockgate_store::{DriverInfo, ListedRun};
use std::path::Path;

/// What resuming a failed run does, as it completes "may not …".
const RETRY_FAILED: &str = "retry a failed run";

/// What `--agent` does, as it completes "may not …".
const CHOOSE_AGENT: &str = "choose another agent";

const NOTHING_CUT_OFF: &str = "no task waits because it was cut off, so there is nothing to run again";

/// Goes on with a run where it stopped: what is finished stays so, what failed is tried again
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Runs tasks again that were cut off, instead of asking
    #[arg(long)]
    rerun: bool,
    #[command(flatten)]
    go_on: GoOn,
    #[command(flatten)]
    presets: PresetArguments,
    /// What it goes on with when its files have changed since it began
    #[arg(long, value_name = "WHICH")]
    changed: Option<Changed>,
    /// Continues with another agent, whatever else is configured: a known one such as claude, or a command that reads the prompt
    #[arg(long, value_name = "COMMAND")]
    agent: Option<String>,
    /// Leaves the run to a process in the background, which is begun where there is none, and ends at once
    #[arg(long)]
    detach: bool,
    /// Prints where the run stands as JSON at the end, and asks nothing
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        let decide = |what: &'static str| Decision::about_run(what, &self.run);
        if self.go_on.restart {
            return Authority::Person(decide("run a phase again"));
        }
        if self.rerun || self.go_on.go_on {
            return Authority::Person(decide("answer a hold"));
        }
        if self.presets.is_given() {
            return Authority::Person(decide("answer in advance"));
        }
        if self.agent.is_some() {
            return Authority::Person(decide(CHOOSE_AGENT));
        }
        match self.changed {
            Some(Changed::Accept) => Authority::Person(decide("accept a changed definition")),
            Some(Changed::Keep) | None if self.go_on.fixed => Authority::OutsideTasks(decide(RETRY_FAILED)),
            // Nested workflows are resumed from inside tasks. What the run itself waits for still needs a person.
            Some(Changed::Keep) | None => Authority::Anyone,
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let mut presets = arguments.presets.presets()?;
    let project = crate::open::open(root)?;
    let found = meant(&project, &arguments.run).await?;
    let going = match of_pipeline(&project, &found, &arguments).await? {
        None => {
            if let Some(status) = ended(&found.row.status) {
                return Err(already_ended(&project, &found.row.run, status).await?);
            }
            Going::default()
        }
        Some((going, answer)) => {
            presets.extend(answer);
            going
        }
    };
    if let Some(agent) = arguments.agent.as_deref().map(str::trim).filter(|agent| !agent.is_empty()) {
        change_agent(&project, &found.row.run, agent).await?;
    }
    refuse_without_agent(&load(project.store(), &found.row.run).await?, &project.config)?;
    if going.restart {
        let (caller, body) = (project.caller(Channel::Command), CommandKind::Pipeline(Box::new(PipelineWish::Restart)));
        project.may_decide(&caller, &found.row.run, "run a phase again").await?;
        submit(&project.world, &found.row.run, caller, body).await?;
    }
    let (rerun, approve) = (arguments.rerun || going.rerun, going.approve);
    let how = How { rerun, approve, changed: arguments.changed, json: arguments.json };
    if arguments.detach {
        return leave(&project, &found.row.run, presets, how).await;
    }
    match go_on(&project, &found.row.run, presets, how).await? {
        GoneOn::Here(exit) => Ok(exit),
        GoneOn::Elsewhere(by) => Err(DriveError::DrivenBy { run: found.row.run, by }.into()),
    }
}

/// Records that another agent does what remains. A process that drives the run already keeps the agent that it works with.
async fn change_agent(project: &Project, run: &RunId, agent: &str) -> Result<(), Trouble> {
    let caller = project.caller(Channel::Command);
    project.may_decide(&caller, run, CHOOSE_AGENT).await?;
    if let Some(by) = project.store().driver_of(run).await? {
        return Err(DriveError::DrivenBy { run: run.clone(), by }.into());
    }
    let body = CommandKind::ChangeAgent { agent: agent.to_owned() };
    submit(&project.world, run, caller, body).await?;
    Ok(())
}

/// A run whose remaining work needs an agent that nobody chose would start and fail, so it is refused with what to do.
pub(super) fn refuse_without_agent(run: &Run, config: &Config) -> Result<(), Trouble> {
    let configured =
        Configured { instead: run.agent.clone(), workflow: run.workflow.agents.clone(), project: config.agents.clone() };
    let done = |phase: &PhaseId, task: &TaskId| {
        let imported = run.pipeline.as_ref().is_some_and(|known| known.was_done(task));
        let current = run.current.as_ref().filter(|current| current.id == *phase);
        let ended = current.is_some_and(|current| {
            current.tasks.iter().any(|known| known.task == *task && matches!(known.state, TaskState::Done | TaskState::Skipped))
        });
        imported || ended
    };
    let left = run.workflow.phases.iter().skip(run.position).filter(|phase| !run.skip_list.contains(&phase.id));
    for phase in left {
        for task in phase.tasks.iter().filter(|task| !done(&phase.id, &task.id)) {
            let Some(work) = task.agent() else { continue };
            if configured.choose(work.agent.as_deref()).is_err() {
                let message = format!("task {}/{} needs an agent, and no agent is chosen", phase.id, task.id);
                return Err(Trouble::new(Code::NoAgent, message)
                    .help("choose one in .lockgate/config.yaml, such as `agents: { default: claude }`, then resume, or resume with --agent COMMAND"));
            }
        }
    }
    Ok(())
}

/// Leaves a run to the background.
async fn leave(project: &Project, run: &RunId, presets: Vec<Preset>, how: How) -> Result<Exit, Trouble> {
    let How { rerun, approve, changed, json } = how;
    let caller = project.caller(Channel::Command);
    let state = load(project.store(), run).await?;
    if rerun || approve {
        project.may_decide(&caller, run, "answer a hold").await?;
    }
    if !presets.is_empty() {
        project.may_decide(&caller, run, "answer in advance").await?;
        let presets = preset_answers::resolve(presets, &state.workflow, Some(&state))?;
        submit(&project.world, run, caller.clone(), CommandKind::GivePresets { presets }).await?;
    }
    if let Some(difference) = lockgate::definition::difference(project, &state) {
        // Nothing listens for signals here, so they end the program as they end any other.
        let halt = Halt::default();
        match definition::settle(&state, difference, changed, (!json).then_some(&halt)).await? {
            Settled::Kept => {}
            Settled::Accepted(frozen) => accept_definition(project, run, &caller, &frozen).await?,
            Settled::Halted(exit) => return Ok(exit),
        }
    }
    let claim = crate::open::open(Some(project.root.dir()))?;
    let detached = detach(&claim.world, run, caller.clone()).await;
    // While the claim lasts, nobody else goes on with it and asks what is answered here.
    let answered = match &detached {
        Ok(state) => answer_left(project, state, rerun, approve).await,
        Err(_) => Ok(()),
    };
    // The claim on the run ends with the store that made it; whoever drives in the background makes a new one.
    drop(claim);
    if let Err(DriveError::Refused(refusal)) = detached {
        return Err(refused(project, &caller, run, refusal).await?);
    }
    detached?;
    answered?;
    super::run::left(project, run, json).await
}

/// Answers what is asked about a run that nobody drives here: what was cut off runs again, and its checkpoint lets it go on.
async fn answer_left(project: &Project, state: &Run, rerun: bool, approve: bool) -> Result<(), Trouble> {
    let said = [(rerun, HoldKind::Interrupted, "rerun"), (approve, HoldKind::Checkpoint, "continue")];
    let answers = state.open_holds().into_iter().filter_map(|hold| {
        let (_, _, option) = said.iter().find(|(is_said, kind, _)| *is_said && *kind == hold.kind)?;
        let option = (*option).to_owned();
        Some(CommandKind::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option, feedback: None })
    });
    // Nobody has asked about these yet: that would be done by whoever drives.
    let unasked = state.current.iter().filter(|_| rerun).flat_map(|phase| {
        let cut_off =
            phase.troubled().filter(|at| phase.tasks[*at].state == TaskState::Interrupted && phase.tasks[*at].hold.is_none());
        cut_off.map(|at| CommandKind::RetryTask { step: StepKey::Task(phase.key(at)), cut_off: None })
    });
    let bodies: Vec<CommandKind> = answers.chain(unasked).collect();
    if bodies.is_empty() && rerun && !approve {
        print::note(NOTHING_CUT_OFF);
    }
    for body in bodies {
        submit(&project.world, &state.id, project.caller(Channel::Command), body).await?;
    }
    Ok(())
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
    /// Whether the checkpoint that waits is answered: it goes on.
    pub(super) approve: bool,
    /// What it goes on with when its files have changed.
    pub(super) changed: Option<Changed>,
    /// Whether nothing is asked, and JSON is printed at the end.
    pub(super) json: bool,
}

/// Takes a run over and drives it, unless another process drives it.
pub(super) async fn go_on(project: &Project, run: &RunId, presets: Vec<Preset>, how: How) -> Result<GoneOn, Trouble> {
    let How { rerun, approve, changed, json } = how;
    let caller = project.caller(Channel::Command);
    let read = load_fresh(project.store(), run).await?;
    let state = &read.run;
    // Asked before anything starts: whoever may not decide does not set the run going either.
    if rerun || approve {
        project.may_decide(&caller, run, "answer a hold").await?;
    }
    if !presets.is_empty() {
        project.may_decide(&caller, run, "answer in advance").await?;
    }
    let presets = preset_answers::resolve(presets, &state.workflow, Some(state))?;
    let halt = drive::make_ready()?;
    if let Some(by) = project.store().driver_of(run).await? {
        return Ok(GoneOn::Elsewhere(by));
    }
    // Before it is taken over, since that already tries again what failed.
    if let Some(difference) = lockgate::definition::difference(project, state) {
        match definition::settle(state, difference, changed, (!json).then_some(&halt)).await? {
            Settled::Kept => {}
            Settled::Accepted(frozen) => accept_definition(project, run, &caller, &frozen).await?,
            Settled::Halted(exit) => return Ok(GoneOn::Here(exit)),
        }
    }
    let progress = Box::new(Progress::new(json, project.config.notify));
    let resumed = Driver::resume_read(project.world.clone(), read, caller.clone(), progress).await;
    let mut driver = match resumed {
        Err(DriveError::DrivenBy { by, .. }) => return Ok(GoneOn::Elsewhere(by)),
        Err(DriveError::Refused(refusal)) => return Err(refused(project, &caller, run, refusal).await?),
        resumed => resumed?,
    };
    if !presets.is_empty() {
        driver.submit(caller.clone(), CommandKind::GivePresets { presets }).await?;
    }
    if rerun {
        rerun_interrupted(&mut driver, caller.clone(), approve).await?;
    }
    if approve {
        answer_all(&mut driver, caller, HoldKind::Checkpoint, "continue").await?;
    }
    drive::drive(project, driver, &halt, json).await.map(GoneOn::Here)
}

/// Lets a run go on with a changed definition.
async fn accept_definition(project: &Project, run: &RunId, caller: &Caller, frozen: &Frozen) -> Result<(), Trouble> {
    project.may_decide(caller, run, "accept a changed definition").await?;
    match accept(&project.world, run, caller.clone(), frozen).await {
        Ok(_) => Ok(()),
        Err(DriveError::Refused(refusal)) => Err(Trouble::refused_in(run, refusal)),
        Err(error) => Err(error.into()),
    }
}

async fn rerun_interrupted(driver: &mut Driver, caller: Caller, quietly: bool) -> Result<(), Trouble> {
    if answer_all(driver, caller, HoldKind::Interrupted, "rerun").await? == 0 && !quietly {
        print::note(NOTHING_CUT_OFF);
    }
    Ok(())
}

/// Answers all open questions of a kind; gives how many there were.
async fn answer_all(driver: &mut Driver, caller: Caller, kind: HoldKind, option: &str) -> Result<usize, Trouble> {
    let holds: Vec<_> = driver.run().open_holds().into_iter().filter(|hold| hold.kind == kind).cloned().collect();
    for hold in &holds {
        let body = CommandKind::Answer {
            hold: hold.id.clone(),
            revision: Some(hold.revision),
            option: option.to_owned(),
            feedback: None,
        };
        driver.submit(caller.clone(), body).await?;
    }
    Ok(holds.len())
}

/// The run that is meant; that of a pipeline also where it has ended, so that what is told is about the pipeline.
async fn meant(project: &Project, named: &str) -> Result<ListedRun, Trouble> {
    if let Some(newest) = runs_of(project.store(), named).await?.into_iter().next()
        && load(project.store(), &newest.row.run).await?.pipeline.is_some()
    {
        return Ok(newest);
    }
    Ok(select::run(project.store(), named).await?)
}

/// How a pipeline goes on; nothing where the run is none.
async fn of_pipeline(
    project: &Project,
    found: &ListedRun,
    arguments: &Arguments,
) -> Result<Option<(Going, Option<Preset>)>, Trouble> {
    let state = load(project.store(), &found.row.run).await?;
    if state.pipeline.is_none() {
        return match arguments.go_on.is_given() {
            true => Err(Trouble::from(Refusal::NoPipeline).help("--fixed, --continue and --restart are for pipelines")),
            false => Ok(None),
        };
    }
    let may_ask = !arguments.json && !arguments.detach;
    let going = pipeline::go_on(project, &state, arguments.go_on, may_ask).await?;
    // The question that was answered with abort is asked anew, so the answer is given in advance.
    let asked_anew = pipeline::aborted_at(&state).filter(|_| going.approve);
    let answer = asked_anew.map(|phase| Preset { selector: phase.to_string(), option: "continue".to_owned(), feedback: None });
    Ok(Some((going, answer)))
}

/// How a run has ended for good, where it has.
pub(super) fn ended(status: &StoredWord<Status>) -> Option<Status> {
    status.known().filter(|status| !status.is_unfinished())
}

/// A run that has ended for good is not resumed.
async fn already_ended(project: &Project, run: &RunId, status: Status) -> Result<Trouble, Trouble> {
    let why = match status {
        Status::Complete => ": all its phases are done".to_owned(),
        Status::Aborted => {
            let state = load(project.store(), run).await?;
            let aborted = Aborted::of(project.store(), &state).await?;
            aborted.map(|aborted| format!(": {}", aborted.why())).unwrap_or_default()
        }
        Status::Cancelled => ": somebody cancelled it".to_owned(),
        Status::Running | Status::Waiting | Status::Failed => String::new(),
    };
    let message = format!("run {run} is {status}{why}; there is nothing to resume");
    Ok(Trouble::new(Code::RunEnded, message).help(format!("see what it did with `lockgate log {run}`, or begin a new run")))
}

/// Why a run cannot be resumed. Where a deadline has just aborted it, that says more than that it has ended.
async fn refused(project: &Project, caller: &Caller, run: &RunId, refusal: Refusal) -> Result<Trouble, Trouble> {
    match refusal {
        Refusal::Ended { status } => already_ended(project, run, status).await,
        refusal => Ok(project.refuse(caller.actor(), run, RETRY_FAILED, None, refusal).await.into()),
    }
}
