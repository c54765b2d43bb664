//! Resuming runs in this process, or leaving them to a worker.

use crate::code::Code;
use crate::definition::{self, Choice, Settled};
use crate::error::Error;
use crate::pipeline::{PipelineResume, ResumeChoice};
use crate::preset_answers;
use crate::project::Project;
use crate::select;
use crate::start::ANSWER_IN_ADVANCE;
use crate::view::Aborted;
use lockgate_engine::hold::{HoldKind, option_ids};
use lockgate_engine::id::{PhaseId, RunId, StepKey, TaskId};
use lockgate_engine::run::command::{Caller, CommandKind};
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::run::pipeline::PipelineCommand;
use lockgate_engine::run::state::{End, TaskState};
use lockgate_engine::run::{Refusal, Run, Status};
use lockgate_runner::agent::AgentSources;
use lockgate_runner::config::Config;
use lockgate_runner::driver::{DriveError, Driver, Listener, accept, detach, submit};
use lockgate_runner::load::{LoadedRun, load};
use lockgate_runner::projection::runs_of;
use lockgate_runner::start::Frozen;
use lockgate_store::{DriverInfo, ListedRun};

/// The action, as it completes "may not …".
pub const RETRY_FAILED: &str = "retry a failed run";

/// The action, as it completes "may not …".
pub const CHOOSE_AGENT: &str = "choose another agent";

/// The action, as it completes "may not …".
pub const RESTART_PHASE: &str = "run a phase again";

/// Options for resuming a run.
#[derive(Clone, Default)]
pub struct Resume {
    /// Preset answers.
    pub answers: Vec<PresetAnswer>,
    /// Reruns interrupted tasks without asking.
    pub rerun: bool,
    /// Approves the open checkpoint, so that the run continues.
    pub approve: bool,
    /// Restarts the current phase of a pipeline.
    pub restart: bool,
    /// How to resume a pipeline. [`PipelineResume::settle`](crate::pipeline::PipelineResume::settle) translates it to the other
    /// fields.
    pub pipeline: Option<ResumeChoice>,
    /// The changed definition that was accepted, if any.
    pub accepted: Option<Box<Frozen>>,
}

/// Where a run was resumed.
pub enum Resumed {
    /// In this process.
    Here {
        /// The driver of the run.
        driver: Box<Driver>,
        /// Whether `rerun` was set, but no task was interrupted.
        nothing_to_rerun: bool,
    },
    /// In the process that already drives it.
    Elsewhere(DriverInfo),
}

impl Project {
    /// Resumes a run and leaves it to a worker of this or another process.
    pub async fn resume(&self, run: &RunId, mut resume: Resume, choice: Option<Choice>, caller: Caller) -> Result<(), Error> {
        let state = load(self.store(), run).await?;
        if let Some(pipeline) = self.resumable(&state, &resume, &caller).await? {
            pipeline.settle(&mut resume)?;
        }
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

    /// Checks that a run can be resumed. For a pipeline, returns what must be decided first.
    pub async fn resumable(&self, run: &Run, resume: &Resume, caller: &Caller) -> Result<Option<PipelineResume>, Error> {
        if let Some(pipeline) = self.pipeline_resume(run, caller).await? {
            return Ok(Some(pipeline));
        }
        if resume.pipeline.is_some() {
            return Err(Refusal::NotAPipeline.into());
        }
        match run.end.as_ref().map(End::status).filter(|status| !status.is_unfinished()) {
            Some(status) => Err(already_ended(self, &run.id, status).await?),
            None => Ok(None),
        }
    }

    /// Takes over a loaded run, unless another process drives it.
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
        if resume.restart {
            self.restart_phase(&run, caller.clone()).await?;
        }
        self.restore_knowledge(&read.run).await;
        // The definition must be accepted before the takeover, which already retries failed tasks.
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
            let rerun = answer_all(&mut driver, caller.clone(), HoldKind::Interrupted, option_ids::RERUN).await?;
            nothing_to_rerun = rerun == 0 && !resume.approve;
        }
        if resume.approve {
            answer_all(&mut driver, caller, HoldKind::Checkpoint, option_ids::CONTINUE).await?;
        }
        Ok(Resumed::Here { driver: Box::new(driver), nothing_to_rerun })
    }

    /// Checks the caller first, so that a caller who may not decide does not start the run either.
    pub async fn may_resume(&self, run: &RunId, resume: &Resume, caller: &Caller) -> Result<(), Error> {
        if resume.rerun || resume.approve {
            self.may_decide(caller, run, "answer a hold").await?;
        }
        if !resume.answers.is_empty() {
            self.may_decide(caller, run, ANSWER_IN_ADVANCE).await?;
        }
        if resume.restart {
            self.may_decide(caller, run, RESTART_PHASE).await?;
        }
        Ok(())
    }

    /// Leaves a run to a worker. Returns whether `rerun` was set, but no task was interrupted.
    pub async fn leave(&self, run: &RunId, resume: Resume, caller: Caller) -> Result<bool, Error> {
        let state = load(self.store(), run).await?;
        self.may_resume(run, &resume, &caller).await?;
        if !resume.answers.is_empty() {
            let presets = preset_answers::resolve(resume.answers, &state.workflow, Some(&state))?;
            submit(&self.runtime, run, caller.clone(), CommandKind::PresetAnswers { presets }).await?;
        }
        if resume.restart {
            self.restart_phase(run, caller.clone()).await?;
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

    /// Selects another agent for the remaining tasks. Fails if a process drives the run, because it would keep its agent.
    pub async fn change_agent(&self, run: &RunId, agent: &str, caller: Caller) -> Result<(), Error> {
        self.may_decide(&caller, run, CHOOSE_AGENT).await?;
        if let Some(by) = self.store().driver_of(run).await? {
            return Err(DriveError::DrivenBy { run: run.clone(), by }.into());
        }
        submit(&self.runtime, run, caller, CommandKind::ChangeAgent { agent: agent.to_owned() }).await?;
        Ok(())
    }

    /// Restarts the current phase of a pipeline.
    pub async fn restart_phase(&self, run: &RunId, caller: Caller) -> Result<(), Error> {
        self.may_decide(&caller, run, RESTART_PHASE).await?;
        submit(&self.runtime, run, caller, CommandKind::Pipeline(Box::new(PipelineCommand::Restart))).await?;
        Ok(())
    }
}

/// Refuses a run whose remaining tasks need an agent that is not configured, because it would only fail later.
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
                let message = format!("task {}/{} needs an agent, but none is configured", phase.id, task.id);
                return Err(Error::new(Code::AgentNotConfigured, message)
                    .help("configure one in .lockgate/config.yaml, such as `agents: { default: claude }`, then resume"));
            }
        }
    }
    Ok(())
}

/// The answers to the open holds of a run that no process drives: interrupted tasks rerun, and the checkpoint is approved.
fn remaining_answers(state: &Run, rerun: bool, approve: bool) -> Vec<CommandKind> {
    let said = [(rerun, HoldKind::Interrupted, option_ids::RERUN), (approve, HoldKind::Checkpoint, option_ids::CONTINUE)];
    let answers = state.open_holds().into_iter().filter_map(|hold| {
        let (_, _, option) = said.iter().find(|(is_said, kind, _)| *is_said && *kind == hold.kind)?;
        let option = (*option).to_owned();
        Some(CommandKind::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option, feedback: None })
    });
    // A driver has not opened holds for these tasks yet.
    let unasked = state.current.iter().filter(|_| rerun).flat_map(|phase| {
        let cut_off = phase
            .failed_or_interrupted()
            .filter(|at| phase.tasks[*at].state == TaskState::Interrupted && phase.tasks[*at].hold.is_none());
        cut_off.map(|at| CommandKind::RetryTask { step: StepKey::Task(phase.key(at)), cut_off: None })
    });
    answers.chain(unasked).collect()
}

/// Accepts a changed definition for a run.
async fn accept_definition(project: &Project, run: &RunId, caller: &Caller, frozen: &Frozen) -> Result<(), Error> {
    project.may_decide(caller, run, "accept a changed definition").await?;
    match accept(&project.runtime, run, caller.clone(), frozen).await {
        Ok(_) => Ok(()),
        Err(DriveError::Refused(refusal)) => Err(Error::refused_in(run, refusal)),
        Err(error) => Err(error.into()),
    }
}

/// Answers all open holds of a kind, and returns their number.
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

/// Finds the run to resume. A pipeline is found even if its run has ended, so that errors can describe the pipeline.
pub async fn resumable(project: &Project, named: &str) -> Result<ListedRun, Error> {
    if let Some(newest) = runs_of(project.store(), named).await?.into_iter().next()
        && load(project.store(), &newest.row.run).await?.pipeline.is_some()
    {
        return Ok(newest);
    }
    select::run(project.store(), named).await
}

/// The final status of a run, if it has ended for good.
pub fn ended(status: &OpenEnum<Status>) -> Option<Status> {
    status.known().filter(|status| !status.is_unfinished())
}

/// The error for resuming a run that has ended for good.
pub async fn already_ended(project: &Project, run: &RunId, status: Status) -> Result<Error, Error> {
    let why = match status {
        Status::Complete => ": all its phases are done".to_owned(),
        Status::Aborted => {
            let state = load(project.store(), run).await?;
            let aborted = Aborted::of(project.store(), &state).await?;
            aborted.map(|aborted| format!(": {}", aborted.why())).unwrap_or_default()
        }
        Status::Cancelled => ": it was cancelled".to_owned(),
        Status::Running | Status::Waiting | Status::Failed => String::new(),
    };
    let message = format!("run {run} is {status}{why}; there is nothing to resume");
    Ok(Error::new(Code::RunEnded, message).help(format!("see what it did with `lockgate log {run}`, or start a new run")))
}

/// Converts the refusal to resume a run. If a deadline has just aborted the run, the error says so.
async fn refused(project: &Project, caller: &Caller, run: &RunId, refusal: Refusal) -> Result<Error, Error> {
    match refusal {
        Refusal::Ended { status } => already_ended(project, run, status).await,
        refusal => {
            let what = refusal.refused_action().unwrap_or(RETRY_FAILED).to_owned();
            Ok(project.refuse(caller.actor(), run, &what, None, refusal).await)
        }
    }
}
