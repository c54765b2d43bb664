//! Resuming runs: in this process, or by leaving them to a worker.

use crate::code::Code;
use crate::definition::{self, Choice, Settled};
use crate::error::Error;
use crate::preset_answers;
use crate::project::Project;
use crate::select;
use crate::view::Aborted;
use lockgate_engine::hold::HoldKind;
use lockgate_engine::id::{PhaseId, RunId, StepKey, TaskId};
use lockgate_engine::run::command::{Caller, CommandKind};
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::run::pipeline::PipelineCommand;
use lockgate_engine::run::state::TaskState;
use lockgate_engine::run::{Refusal, Run, Status};
use lockgate_runner::agent::AgentSources;
use lockgate_runner::config::Config;
use lockgate_runner::driver::{DriveError, Driver, Listener, accept, detach, submit};
use lockgate_runner::load::{LoadedRun, load};
use lockgate_runner::projection::runs_of;
use lockgate_runner::start::Frozen;
use lockgate_store::{DriverInfo, ListedRun};

/// What resuming a failed run does, as it completes "may not …".
pub const RETRY_FAILED: &str = "retry a failed run";

/// What choosing another agent does, as it completes "may not …".
pub const CHOOSE_AGENT: &str = "choose another agent";

/// How a run is resumed.
#[derive(Clone, Default)]
pub struct Resume {
    /// Answers given in advance.
    pub answers: Vec<PresetAnswer>,
    /// Runs tasks again that were interrupted, instead of asking.
    pub rerun: bool,
    /// Answers the checkpoint that waits: the run continues.
    pub approve: bool,
    /// The definition that the run continues with, where a changed one was accepted.
    pub accepted: Option<Box<Frozen>>,
}

/// Where a run was resumed.
pub enum Resumed {
    /// Here.
    Here {
        /// Drives the run.
        driver: Box<Driver>,
        /// Whether interrupted tasks were to run again and there were none.
        nothing_to_rerun: bool,
    },
    /// In the process that drives it already.
    Elsewhere(DriverInfo),
}

impl Project {
    /// Resumes a run that a worker of this or another process then drives.
    pub async fn resume(&self, run: &RunId, resume: Resume, choice: Option<Choice>, caller: Caller) -> Result<(), Error> {
        let found = select::run_or_ended(self.store(), run.as_str()).await?;
        if let Some(status) = ended(&found.row.status) {
            return Err(already_ended(self, run, status).await?);
        }
        let state = load(self.store(), run).await?;
        refuse_without_agent(&state, &self.config)?;
        let accepted = match definition::difference(self, &state).map(|difference| difference.settle(&state, choice)) {
            Some(settled) => match settled? {
                Settled::Kept(_) => None,
                Settled::Accepted(frozen) => Some(frozen),
            },
            None => None,
        };
        self.leave(run, Resume { accepted, ..resume }, caller).await.map(drop)
    }

    /// Takes a run over that was read before, unless another process drives it.
    pub async fn take_over(
        &self,
        read: LoadedRun,
        resume: Resume,
        caller: Caller,
        listener: Box<dyn Listener>,
    ) -> Result<Resumed, Error> {
        let run = read.run.id.clone();
        self.may_resume(&run, &resume, &caller).await?;
        let answers = preset_answers::resolve(resume.answers, &read.run.workflow, Some(&read.run))?;
        if let Some(by) = self.store().driver_of(&run).await? {
            return Ok(Resumed::Elsewhere(by));
        }
        // Before it is taken over, since that already tries again what failed.
        if let Some(frozen) = &resume.accepted {
            accept_definition(self, &run, &caller, frozen).await?;
        }
        let mut driver = match Driver::resume_read(self.runtime.clone(), read, caller.clone(), listener).await {
            Err(DriveError::DrivenBy { by, .. }) => return Ok(Resumed::Elsewhere(by)),
            Err(DriveError::Refused(refusal)) => return Err(refused(self, &caller, &run, refusal).await?),
            resumed => resumed?,
        };
        if !answers.is_empty() {
            driver.submit(caller.clone(), CommandKind::PresetAnswers { presets: answers }).await?;
        }
        let mut nothing_to_rerun = false;
        if resume.rerun {
            let rerun = answer_all(&mut driver, caller.clone(), HoldKind::Interrupted, "rerun").await?;
            nothing_to_rerun = rerun == 0 && !resume.approve;
        }
        if resume.approve {
            answer_all(&mut driver, caller, HoldKind::Checkpoint, "continue").await?;
        }
        Ok(Resumed::Here { driver: Box::new(driver), nothing_to_rerun })
    }

    /// Asked before anything starts: a caller who may not decide does not set the run going either.
    pub async fn may_resume(&self, run: &RunId, resume: &Resume, caller: &Caller) -> Result<(), Error> {
        if resume.rerun || resume.approve {
            self.may_decide(caller, run, "answer a hold").await?;
        }
        if !resume.answers.is_empty() {
            self.may_decide(caller, run, "answer in advance").await?;
        }
        Ok(())
    }

    /// Leaves a run to a worker. Gives whether interrupted tasks were to run again and there were none.
    pub async fn leave(&self, run: &RunId, resume: Resume, caller: Caller) -> Result<bool, Error> {
        let state = load(self.store(), run).await?;
        self.may_resume(run, &resume, &caller).await?;
        if !resume.answers.is_empty() {
            let presets = preset_answers::resolve(resume.answers, &state.workflow, Some(&state))?;
            submit(&self.runtime, run, caller.clone(), CommandKind::PresetAnswers { presets }).await?;
        }
        if let Some(frozen) = &resume.accepted {
            accept_definition(self, run, &caller, frozen).await?;
        }
        let mut nothing_to_rerun = false;
        let detached = detach(&self.runtime, run, caller.clone(), |state| {
            let answers = remaining_answers(state, resume.rerun, resume.approve);
            nothing_to_rerun = answers.is_empty() && resume.rerun && !resume.approve;
            answers
        });
        match detached.await {
            Ok(_) => Ok(nothing_to_rerun),
            Err(DriveError::Refused(refusal)) => Err(refused(self, &caller, run, refusal).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// Records that another agent does what remains. A process that drives the run already keeps the agent that it works with.
    pub async fn change_agent(&self, run: &RunId, agent: &str, caller: Caller) -> Result<(), Error> {
        self.may_decide(&caller, run, CHOOSE_AGENT).await?;
        if let Some(by) = self.store().driver_of(run).await? {
            return Err(DriveError::DrivenBy { run: run.clone(), by }.into());
        }
        submit(&self.runtime, run, caller, CommandKind::ChangeAgent { agent: agent.to_owned() }).await?;
        Ok(())
    }

    /// Runs the current phase of a pipeline again from its start.
    pub async fn restart_phase(&self, run: &RunId, caller: Caller) -> Result<(), Error> {
        self.may_decide(&caller, run, "run a phase again").await?;
        submit(&self.runtime, run, caller, CommandKind::Pipeline(Box::new(PipelineCommand::Restart))).await?;
        Ok(())
    }
}

/// A run whose remaining work needs an agent that nobody chose would start and fail, so it is refused with what to do.
pub fn refuse_without_agent(run: &Run, config: &Config) -> Result<(), Error> {
    let configured =
        AgentSources { instead: run.agent.clone(), workflow: run.workflow.agents.clone(), project: config.agents.clone() };
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
            if configured.select(work.agent.as_deref()).is_err() {
                let message = format!("task {}/{} needs an agent, and no agent is chosen", phase.id, task.id);
                return Err(Error::new(Code::AgentNotConfigured, message)
                    .help("choose one in .lockgate/config.yaml, such as `agents: { default: claude }`, then resume, or resume with --agent COMMAND"));
            }
        }
    }
    Ok(())
}

/// The answers to what is asked about a run that no process drives: what was cut off runs again, and its checkpoint lets it continue.
fn remaining_answers(state: &Run, rerun: bool, approve: bool) -> Vec<CommandKind> {
    let said = [(rerun, HoldKind::Interrupted, "rerun"), (approve, HoldKind::Checkpoint, "continue")];
    let answers = state.open_holds().into_iter().filter_map(|hold| {
        let (_, _, option) = said.iter().find(|(is_said, kind, _)| *is_said && *kind == hold.kind)?;
        let option = (*option).to_owned();
        Some(CommandKind::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option, feedback: None })
    });
    // Nobody has asked about these yet: that would be done by whoever drives.
    let unasked = state.current.iter().filter(|_| rerun).flat_map(|phase| {
        let cut_off = phase
            .failed_or_interrupted()
            .filter(|at| phase.tasks[*at].state == TaskState::Interrupted && phase.tasks[*at].hold.is_none());
        cut_off.map(|at| CommandKind::RetryTask { step: StepKey::Task(phase.key(at)), cut_off: None })
    });
    answers.chain(unasked).collect()
}

/// Lets a run go on with a changed definition.
async fn accept_definition(project: &Project, run: &RunId, caller: &Caller, frozen: &Frozen) -> Result<(), Error> {
    project.may_decide(caller, run, "accept a changed definition").await?;
    match accept(&project.runtime, run, caller.clone(), frozen).await {
        Ok(_) => Ok(()),
        Err(DriveError::Refused(refusal)) => Err(Error::refused_in(run, refusal)),
        Err(error) => Err(error.into()),
    }
}

/// Answers all open questions of a kind; gives how many there were.
async fn answer_all(driver: &mut Driver, caller: Caller, kind: HoldKind, option: &str) -> Result<usize, Error> {
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

/// The run to resume by this name; that of a pipeline also where it has ended, so that what is told is about the pipeline.
pub async fn resumable(project: &Project, named: &str) -> Result<ListedRun, Error> {
    if let Some(newest) = runs_of(project.store(), named).await?.into_iter().next()
        && load(project.store(), &newest.row.run).await?.pipeline.is_some()
    {
        return Ok(newest);
    }
    select::run(project.store(), named).await
}

/// How a run has ended for good, where it has.
pub fn ended(status: &OpenEnum<Status>) -> Option<Status> {
    status.known().filter(|status| !status.is_unfinished())
}

/// A run that has ended for good is not resumed.
pub async fn already_ended(project: &Project, run: &RunId, status: Status) -> Result<Error, Error> {
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
    Ok(Error::new(Code::RunEnded, message).help(format!("see what it did with `lockgate log {run}`, or begin a new run")))
}

/// Why a run cannot be resumed. Where a deadline has just aborted it, that says more than that it has ended.
async fn refused(project: &Project, caller: &Caller, run: &RunId, refusal: Refusal) -> Result<Error, Error> {
    match refusal {
        Refusal::Ended { status } => already_ended(project, run, status).await,
        refusal => Ok(project.refuse(caller.actor(), run, RETRY_FAILED, None, refusal).await),
    }
}
