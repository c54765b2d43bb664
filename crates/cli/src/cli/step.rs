//! What `lockgate retry` and `lockgate skip` share: a person says what becomes of one task or gate.

use super::answer::{tell_driven, tell_who_goes_on};
use super::resume::{self, GoneOn};
use crate::authority::{Authority, Decision};
use crate::exit::Exit;
use crate::open::Project;
use crate::select::{self, StepName};
use crate::standing::standing;
use crate::trouble::Trouble;
use crate::{neutral, print};
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::Status;
use lockgate_engine::run::command::{Channel, CommandKind};
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::run::state::{GateState, TaskState};
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::driver::{DriveError, submit};
use lockgate_runner::load::load;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How often and how long apart it is looked whether the process that drives the run has gone on from what was recorded.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Which task or gate it is about, and what happens afterwards.
#[derive(Debug, clap::Args)]
pub(super) struct StepArguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// The task or gate: PHASE/TASK, or TASK alone where no other has that name
    task: String,
    /// Goes on with the run afterwards, unless a process that drives it does
    #[arg(long)]
    resume: bool,
    /// Prints JSON: what was recorded or, with --resume, where the run stands at the end
    #[arg(long)]
    json: bool,
}

impl StepArguments {
    pub(super) fn authority(&self, what: &'static str) -> Authority<'_> {
        Authority::Person(Decision::about_run(what, &self.run))
    }
}

/// What a person says of a task or gate.
pub(super) enum Wish {
    /// It is to be tried again.
    Retry,
    /// It counts as done, for this reason.
    Skip(String),
}

impl Wish {
    fn body(&self, step: StepKey, cut_off: Option<u32>) -> CommandKind {
        match self {
            Self::Retry => CommandKind::RetryTask { step, cut_off },
            Self::Skip(reason) => CommandKind::SkipTask { step, reason: reason.clone(), cut_off },
        }
    }

    /// Whether a refusal only says that it is so already.
    fn is_granted_by(&self, refusal: &Refusal) -> bool {
        match (self, refusal) {
            (Self::Retry, Refusal::AlreadyAsked { .. }) => true,
            (Self::Skip(_), Refusal::StepDone { state, .. }) => matches!(state, StepStatus::Skipped | StepStatus::Waived),
            (_, refusal) => matches!(refusal, Refusal::AlreadyAnswered { .. }),
        }
    }
}

/// Records a wish and, where that was asked for, goes on with the run.
pub(super) async fn run(root: Option<&Path>, arguments: StepArguments, wish: Wish) -> Result<Exit, Trouble> {
    let project = crate::open::open(root)?;
    let found = select::run(project.store(), &arguments.run).await?;
    let run = &found.row.run;
    let caller = project.caller(Channel::Command);
    let state = load(project.store(), run).await?;
    let step = select::step(&state, &arguments.task)?;
    let cut_off = cut_off(&project, &state, &step).await?;
    let key = step.key(state.iteration_counts.get(step.phase().as_str()).copied().unwrap_or(1));
    let submitted = submit(&project.world, run, caller, wish.body(key.clone(), cut_off)).await;
    let recorded = match submitted {
        Ok(now) => {
            print::say(told(&wish, &step, &key));
            if arguments.resume {
                until_seen(&project, &now).await?;
            }
            true
        }
        Err(DriveError::Refused(refusal)) if wish.is_granted_by(&refusal) => {
            print::say(neutral::line(&refusal.to_string()));
            false
        }
        Err(DriveError::Refused(refusal)) => return Err(Trouble::refused_in(run, refusal)),
        Err(error) => return Err(error.into()),
    };
    if arguments.resume {
        return go_on(&project, run, arguments.json).await;
    }
    tell_who_goes_on(&project, &load(project.store(), run).await?).await?;
    if arguments.json {
        print::json(&recorded_json(run, &step, &key, recorded));
    }
    Ok(Exit::Done)
}

/// Waits a moment while somebody drives the run and has not gone on yet: a driver that is about to end does not see what was
/// recorded, and once it is gone the run can go on here.
async fn until_seen(project: &Project, recorded: &Run) -> Result<(), Trouble> {
    for _ in 0..LOOKS {
        let driven = project.store().driver_of(&recorded.id).await?.is_some();
        if !driven || !project.store().commits(&recorded.id, recorded.version, 1).await?.is_empty() {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(())
}

/// Goes on with the run, unless the process that drives it does: then what was asked is done.
async fn go_on(project: &Project, run: &RunId, json: bool) -> Result<Exit, Trouble> {
    let now = select::run(project.store(), run.as_str()).await?.row.status;
    let exit = if let Some(status) = resume::ended(&now) {
        print::note(format_args!("run {run} is {status} already"));
        if status == Status::Complete { Exit::Done } else { Exit::Aborted }
    } else {
        match resume::go_on(project, run, Vec::new(), resume::How { json, ..resume::How::default() }).await? {
            GoneOn::Here(exit) => return Ok(exit),
            GoneOn::Elsewhere(by) => tell_driven(run, &by),
        }
        Exit::Done
    };
    if json {
        print::json(&super::status::view_of(project, run).await?);
    }
    Ok(exit)
}

fn told(wish: &Wish, step: &StepName, key: &StepKey) -> String {
    let address = neutral::line(&key.address()).into_owned();
    match (wish, step) {
        (Wish::Retry, StepName::Task(..) | StepName::Gate(..)) => format!("{address} will be tried again"),
        (Wish::Skip(_), StepName::Task(..)) => format!("{address} counts as done"),
        (Wish::Skip(_), StepName::Gate(..)) => format!("{address} counts as passed"),
    }
}

fn recorded_json(run: &RunId, step: &StepName, key: &StepKey, recorded: bool) -> serde_json::Value {
    let iteration = match key {
        StepKey::Task(key) => key.iteration,
        StepKey::Gate { iteration, .. } => *iteration,
    };
    json!({"run": run, "phase": step.phase(), step.kind(): step.id(), "iteration": iteration, "recorded": recorded})
}

/// The attempt of a task or gate that was under way when its driver died. What may be left of it is ended first.
async fn cut_off(project: &Project, state: &Run, step: &StepName) -> Result<Option<u32>, Trouble> {
    let Some(attempt) = running_attempt(state, step) else { return Ok(None) };
    if !standing(project.store(), &state.id).await?.is_interrupted() {
        return Ok(None);
    }
    let ended = project.world.perform.end_orphans(state).await;
    ended.map_err(|detail| Trouble::from(DriveError::Orphans { run: state.id.clone(), detail }))?;
    Ok(Some(attempt))
}

/// The attempt of a task or gate that is under way as far as the history says.
pub(super) fn running_attempt(state: &Run, step: &StepName) -> Option<u32> {
    let phase = state.current.as_ref().filter(|phase| phase.id == *step.phase() && state.end.is_none())?;
    match step {
        StepName::Task(_, id, item) => {
            let task = phase.tasks.iter().find(|task| task.task == *id && task.item == *item)?;
            (task.state == TaskState::Running).then_some(task.attempts)
        }
        StepName::Gate(_, id) => {
            let gate = phase.gates.iter().find(|gate| gate.gate == *id)?;
            (gate.state == GateState::Running && !state.stopping).then_some(gate.attempts)
        }
    }
}
