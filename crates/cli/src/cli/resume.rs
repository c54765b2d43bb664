//! `lockgate resume`: continue a run where it stopped.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::definition::{self, Changed, Continues};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::pipeline::{self, PipelineResumeFlags};
use crate::preset_arguments::PresetArguments;
use crate::progress::Progress;
use crate::run_argument::RunArgument;
use crate::{drive, print, snapshot_prompt};
use lockgate::code::Code;
use lockgate::definition::difference;
use lockgate::recovery::REWIND;
use lockgate::resume::{CHOOSE_AGENT, RESTART_PHASE, RETRY_FAILED, Resume, Resumed, refuse_without_agent, resumable};
use lockgate::start::ANSWER_IN_ADVANCE;
use lockgate::{sanitize, select};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Caller, Channel};
use lockgate_runner::driver::{DriveError, Halt};
use lockgate_runner::load::{load, load_with_sizes};
use lockgate_store::DriverInfo;
use std::path::Path;

const NOTHING_TO_RERUN: &str = "no interrupted task waits for an answer, so there is nothing to rerun";

/// Continue a run where it stopped
///
/// Finished tasks stay finished. Failed tasks are tried again.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate resume",
    "lockgate resume d12cbewf --rerun",
    "lockgate resume login --detach",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Rerun interrupted tasks instead of asking
    #[arg(long)]
    rerun: bool,
    #[command(flatten)]
    continue_run: PipelineResumeFlags,
    #[command(flatten)]
    presets: PresetArguments,
    /// Which definition to use if the workflow files have changed since the start
    #[arg(long, value_name = "WHICH")]
    changed: Option<Changed>,
    /// Continue with another agent: a preset such as claude, or a command that reads the prompt
    #[arg(long, value_name = "COMMAND")]
    agent: Option<String>,
    /// Go back to a snapshot first: its id, the start of it, or `latest`
    #[arg(long, value_name = "CP-…")]
    from: Option<String>,
    /// Continue although the project has changed since the snapshot, and go back without asking
    #[arg(long, conflicts_with = "start_fresh")]
    accept_changes: bool,
    /// Start a new run of the same workflow instead
    #[arg(long)]
    start_fresh: bool,
    /// Continue in the background, and return immediately
    #[arg(long)]
    detach: bool,
    /// Print the final state as JSON, without prompting
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        let decide = |what: &'static str| Decision::about_run(what, self.run.name());
        if self.from.is_some() {
            return Authority::Person(decide(REWIND));
        }
        if self.accept_changes {
            return Authority::Person(decide("accept changes since a snapshot"));
        }
        if self.continue_run.restart {
            return Authority::Person(decide(RESTART_PHASE));
        }
        if self.rerun || self.continue_run.continue_run {
            return Authority::Person(decide("answer a hold"));
        }
        if self.presets.is_given() {
            return Authority::Person(decide(ANSWER_IN_ADVANCE));
        }
        if self.agent.is_some() {
            return Authority::Person(decide(CHOOSE_AGENT));
        }
        match self.changed {
            Some(Changed::Accept) => Authority::Person(decide("accept a changed definition")),
            Some(Changed::Keep) | None if self.continue_run.fixed => Authority::OutsideTasks(decide(RETRY_FAILED)),
            // Nested workflows are resumed from inside tasks. A person must still answer the holds of the run itself.
            Some(Changed::Keep) | None => Authority::Anyone,
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let caller = project.caller(Channel::Command);
    let may_ask = !arguments.json && !arguments.detach;
    if arguments.start_fresh {
        return start_fresh(root, &project, arguments.run.name(), arguments.json, arguments.detach).await;
    }
    if let Some(from) = &arguments.from
        && let Some(exit) =
            snapshot_prompt::go_back(&project, arguments.run.name(), from, arguments.accept_changes, may_ask).await?
    {
        return Ok(exit);
    }
    let found = resumable(&project, arguments.run.name()).await?;
    let run = found.row.run;
    if arguments.from.is_none()
        && let Some(exit) = snapshot_prompt::check(&project, &run, arguments.accept_changes, may_ask).await?
    {
        return Ok(exit);
    }
    let mut resume = Resume {
        answers: arguments.presets.presets()?,
        rerun: arguments.rerun,
        pipeline: arguments.continue_run.choice(),
        ..Resume::default()
    };
    settle_pipeline(&project, &run, &mut resume, &caller, !arguments.json && !arguments.detach).await?;
    if let Some(agent) = arguments.agent.as_deref().map(str::trim).filter(|agent| !agent.is_empty()) {
        project.change_agent(&run, agent, caller).await?;
    }
    refuse_without_agent(&load(project.store(), &run).await?, project.config())?;
    let options = ResumeOptions { changed: arguments.changed, json: arguments.json };
    if arguments.detach {
        return leave(&project, &run, resume, options).await;
    }
    match continue_run(&project, &run, resume, options).await? {
        ResumeOutcome::Here(exit) => Ok(exit),
        ResumeOutcome::Elsewhere(by) => Err(DriveError::DrivenBy { run, by }.into()),
    }
}

/// Starts the workflow of a run again, with the same inputs. The run itself stays as it is.
async fn start_fresh(
    root: Option<&Path>,
    project: &Project,
    named: &str,
    json: bool,
    detach: bool,
) -> Result<Exit, CommandError> {
    let found = select::run_or_ended(project.store(), named).await?.row.run;
    let run = load(project.store(), &found).await?;
    let (file, start) = project.start_again(&run).await?;
    print::note(format_args!("run {found} stays as it is; a new run of {} starts", sanitize::line(&file.to_string_lossy())));
    super::run::start(root, &file, start, json, detach).await
}

/// Chooses how a pipeline continues. Other runs need no choice.
async fn settle_pipeline(
    project: &Project,
    run: &RunId,
    resume: &mut Resume,
    caller: &Caller,
    may_ask: bool,
) -> Result<(), CommandError> {
    let state = load(project.store(), run).await?;
    let pipeline = match project.resumable(&state, resume, caller).await {
        Ok(Some(pipeline)) => pipeline,
        Ok(None) => return Ok(()),
        Err(error) if error.code() == Code::NotAPipeline => {
            return Err(CommandError::from(error).help("--fixed, --continue and --restart are for pipelines"));
        }
        Err(error) => return Err(error.into()),
    };
    resume.pipeline = pipeline::ask(&pipeline, resume.pipeline, may_ask)?;
    pipeline.settle(resume)?;
    pipeline::report(&pipeline);
    Ok(())
}

async fn leave(project: &Project, run: &RunId, resume: Resume, options: ResumeOptions) -> Result<Exit, CommandError> {
    match detach(project, run, resume, options).await? {
        Some(halted) => Ok(halted),
        None => super::run::left(project, run, options.json).await,
    }
}

/// Hands a run to a worker. Returns an exit if a signal stops the program first.
pub(super) async fn detach(
    project: &Project,
    run: &RunId,
    mut resume: Resume,
    options: ResumeOptions,
) -> Result<Option<Exit>, CommandError> {
    let caller = project.caller(Channel::Command);
    project.may_resume(run, &resume, &caller).await?;
    // Nothing listens for signals here, so they end the program as usual.
    let halt = Halt::default();
    match settle(project, &load(project.store(), run).await?, options, &halt).await? {
        Continues::With(accepted) => resume.accepted = accepted,
        Continues::Halted(exit) => return Ok(Some(exit)),
    }
    if project.leave(run, resume, caller).await? {
        print::note(NOTHING_TO_RERUN);
    }
    Ok(None)
}

/// Chooses the definition that a run continues with if its files have changed.
async fn settle(project: &Project, run: &Run, options: ResumeOptions, halt: &Halt) -> Result<Continues, CommandError> {
    match difference(project, run) {
        Some(difference) => definition::settle(run, difference, options.changed, (!options.json).then_some(halt)).await,
        None => Ok(Continues::With(None)),
    }
}

/// Where a run continued.
pub(super) enum ResumeOutcome {
    /// In this process, which exits with this code.
    Here(Exit),
    /// In the process that already drives it.
    Elsewhere(DriverInfo),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResumeOptions {
    /// Which definition to use if the files have changed.
    pub(super) changed: Option<Changed>,
    /// Do not prompt, and print JSON at the end.
    pub(super) json: bool,
}

/// Drives a run, unless another process does.
pub(super) async fn continue_run(
    project: &Project,
    run: &RunId,
    mut resume: Resume,
    options: ResumeOptions,
) -> Result<ResumeOutcome, CommandError> {
    let caller = project.caller(Channel::Command);
    let read = load_with_sizes(project.store(), run).await?;
    project.may_resume(run, &resume, &caller).await?;
    let halt = drive::make_ready(project)?;
    if let Some(by) = project.store().driver_of(run).await? {
        return Ok(ResumeOutcome::Elsewhere(by));
    }
    match settle(project, &read.run, options, &halt).await? {
        Continues::With(accepted) => resume.accepted = accepted,
        Continues::Halted(exit) => return Ok(ResumeOutcome::Here(exit)),
    }
    let progress = Box::new(Progress::new(options.json, project.config().notify.terminal));
    match project.take_over(read, resume, caller, progress).await? {
        Resumed::Elsewhere(by) => Ok(ResumeOutcome::Elsewhere(by)),
        Resumed::Here { driver, nothing_to_rerun } => {
            if nothing_to_rerun {
                print::note(NOTHING_TO_RERUN);
            }
            drive::drive(project, *driver, &halt, options.json).await.map(ResumeOutcome::Here)
        }
    }
}
