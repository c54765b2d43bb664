//! Starting runs: from a workflow file that was read to a run that is recorded.

use crate::code::Code;
use crate::error::Error;
use crate::inputs;
use crate::pipeline::{self, ExistingRun, PipelineLock};
use crate::preset_answers;
use crate::project::Project;
use crate::sanitize;
use crate::view::lockgate;
use crate::workflow_file::{self, summary};
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::spec::problem::Severity;
use lockgate_engine::spec::workflow::{Commit, Workflow};
use lockgate_runner::agent::AgentSources;
use lockgate_runner::config::Config;
use lockgate_runner::driver::{DriveError, Driver, Listener, start_detached};
use lockgate_runner::git::git;
use lockgate_runner::start::{Prepared, StartOptions, WorkflowFile, prepare};
use serde_json::Value;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

/// What giving answers in advance is, as it completes "may not …".
pub const ANSWER_IN_ADVANCE: &str = "answer in advance";

/// So many problems of a workflow file are part of an error.
const FEW: usize = 5;

/// What a run starts with, next to its workflow file.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// What the run is about.
    pub feature: Option<String>,
    /// Flags that the workflow knows, with or without their dashes.
    pub flags: Vec<String>,
    /// Values for the inputs and variables of the workflow.
    pub vars: BTreeMap<String, Value>,
    /// Answers given in advance.
    pub answers: Vec<PresetAnswer>,
    /// The agent that works, whatever else is configured.
    pub agent: Option<String>,
    /// Commits with git what each task of an agent changed.
    pub commit: bool,
    /// Starts another run of a pipeline that has one already, and keeps its old state file aside.
    pub replace: bool,
    /// Starts a pipeline only after a review permits it.
    pub review: bool,
}

/// A workflow file with what its run starts with: everything that can be checked without a project is right.
pub struct Checked {
    file: WorkflowFile,
    workflow: Workflow,
    start: Start,
}

impl Start {
    /// Checks everything that can be checked without a project.
    pub fn check(mut self, mut file: WorkflowFile) -> Result<Checked, Error> {
        if self.feature.as_deref().is_some_and(|feature| feature.trim().is_empty()) {
            return Err(Error::new(Code::InvalidUsage, "what the run is about is empty").help("name it, or leave it out"));
        }
        let Some(mut workflow) = file.workflow.take() else {
            let problems = file.problems.iter().filter(|problem| problem.severity == Severity::Error).take(FEW);
            return Err(problems.fold(invalid(&file), |error, problem| {
                error.help(format!("line {}, column {}: {}", problem.line, problem.column, problem.message))
            }));
        };
        if self.commit {
            commit_each(&mut workflow);
        }
        if let Some((name, input)) = inputs::complete(&mut self.vars, &workflow)?.first() {
            return Err(inputs::missing(name, input));
        }
        self.answers = preset_answers::resolve(self.answers, &workflow, None)?;
        refuse_unfit(&self, &workflow)?;
        self.agent = self.agent.filter(|agent| !agent.trim().is_empty());
        Ok(Checked { file, workflow, start: self })
    }
}

/// The error for a workflow file with errors.
pub fn invalid(file: &WorkflowFile) -> Error {
    let message = format!("{} is no valid workflow: {}", file.path.display(), summary(&file.problems));
    let help = format!("`{}` lists what is wrong", lockgate(["validate", &file.path.to_string_lossy(), "--json"]));
    Error::new(Code::InvalidWorkflow, message).help(help)
}

impl Checked {
    /// The file, the workflow and what a run starts with, for a dry run.
    pub fn into_parts(self) -> (WorkflowFile, Workflow, StartOptions) {
        let Self { file, workflow, start } = self;
        let Start { feature, flags, vars, answers, agent, commit: _, replace: _, review: _ } = start;
        (file, workflow, StartOptions { feature, flags, vars, presets: answers, detached: false, agent })
    }
}

/// A run that can be recorded now.
pub struct Ready {
    prepared: Prepared,
    /// Keeps other processes from starting the same pipeline until the run is recorded.
    lock: Option<PipelineLock>,
    /// What people should know about earlier runs of the same pipeline.
    pub notes: Vec<String>,
}

impl Project {
    /// Starts a run of a workflow file. The run is recorded; a [worker](crate::worker::Worker) of this or another process
    /// drives it.
    pub async fn start(&self, file: &Path, start: Start, caller: Caller) -> Result<RunId, Error> {
        let ready = self.prepare(start.check(workflow_file::read(file)?)?).await?;
        self.start_detached(ready, caller).await
    }

    /// Makes ready to start a run: everything is checked, and nothing is recorded yet.
    pub async fn prepare(&self, checked: Checked) -> Result<Ready, Error> {
        let (new, review) = (checked.start.replace, checked.start.review);
        let (file, workflow, start_options) = checked.into_parts();
        refuse_without_agent(&workflow, start_options.agent.as_deref(), &self.config)?;
        refuse_commits_without_git(&workflow, self.root.dir())?;
        let mut workflow = with_limits(workflow, &self.config);
        let (mut lock, mut notes, mut feature) = (None, Vec::new(), start_options.feature.clone());
        if let Some(pipeline) = &mut workflow.pipeline {
            pipeline.review = pipeline.review || review;
            let existing = if new { ExistingRun::Archive } else { ExistingRun::Refuse };
            let (taken, told) = pipeline::reserve(self, pipeline, existing).await?;
            (lock, notes, feature) = (Some(taken), told, Some(pipeline.prd.clone()));
        }
        let (driver, seed) = (self.store().driver().clone(), self.runtime.clock.seed());
        let start_options = StartOptions { feature, ..start_options };
        let prepared = prepare(&self.root, &driver, seed, &file, workflow, start_options)
            .map_err(|error| Error::new(Code::InvalidOutputDir, error.to_string()))?;
        self.root.prepare_run(&prepared.create.created.run)?;
        Ok(Ready { prepared, lock, notes })
    }

    /// Records a run that a worker drives.
    pub async fn start_detached(&self, ready: Ready, caller: Caller) -> Result<RunId, Error> {
        match start_detached(&self.runtime, caller.clone(), ready.prepared).await {
            Ok(run) => {
                drop(ready.lock);
                Ok(run.id)
            }
            Err(error) => Err(self.not_started(&caller, error).await),
        }
    }

    /// Records a run that the caller drives.
    pub async fn start_driven(&self, ready: Ready, caller: Caller, listener: Box<dyn Listener>) -> Result<Driver, Error> {
        let Prepared { create, workflow, values } = ready.prepared;
        match Driver::create(self.runtime.clone(), caller.clone(), create, workflow, values, listener).await {
            Ok(driver) => {
                drop(ready.lock);
                Ok(driver)
            }
            Err(error) => Err(self.not_started(&caller, error).await),
        }
    }

    /// Why a run was not recorded. Only answers given in advance are refused because of who gives them.
    async fn not_started(&self, caller: &Caller, error: DriveError) -> Error {
        match error {
            DriveError::Refused(refusal) => self.refuse_about_project(caller.actor(), ANSWER_IN_ADVANCE, refusal).await,
            error => error.into(),
        }
    }
}

/// What each task of an agent changed is committed. Two at once would find each other's changes, so there are none.
fn commit_each(workflow: &mut Workflow) {
    workflow.max_parallel = Some(1);
    for task in workflow.phases.iter_mut().flat_map(|phase| &mut phase.tasks) {
        if task.agent().is_some() && task.commit.is_none() {
            task.commit = Some(Commit::default());
        }
    }
}

/// What only a pipeline has, or has by itself.
fn refuse_unfit(start: &Start, workflow: &Workflow) -> Result<(), Error> {
    match (&workflow.pipeline, &start.feature) {
        (Some(pipeline), Some(feature)) if *feature != pipeline.prd => {
            let message = format!("a pipeline is about its PRD, {}, and {feature:?} is another thing", pipeline.prd);
            Err(Error::new(Code::InvalidUsage, message).help("leave it out"))
        }
        (None, _) if start.replace || start.review => {
            Err(Error::new(Code::InvalidUsage, "only a pipeline is replaced or waits for a review, and this is none")
                .help("leave it out"))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// What cannot be committed is better known before an agent has worked.
fn refuse_commits_without_git(workflow: &Workflow, root: &Path) -> Result<(), Error> {
    if !workflow.commits() || git(root, &["rev-parse", "--git-dir"]).is_ok() {
        return Ok(());
    }
    let message = format!("what tasks change is to be committed, and {} is not under git", root.display());
    Err(Error::new(Code::GitError, message).help("run `git init` there, or commit nothing: leave out `commits: true`"))
}

/// A run whose agents nobody has named would fail in its middle, so it does not begin.
fn refuse_without_agent(workflow: &Workflow, instead: Option<&str>, config: &Config) -> Result<(), Error> {
    let configured =
        AgentSources { instead: instead.map(str::to_owned), workflow: workflow.agents.clone(), project: config.agents.clone() };
    for phase in &workflow.phases {
        for task in &phase.tasks {
            let Some(work) = task.agent() else { continue };
            if let Err(why) = configured.select(work.agent.as_deref()) {
                let message = format!("task {}/{} needs an agent: {}", phase.id, task.id, sanitize::line(&why.to_string()));
                return Err(Error::new(Code::AgentNotConfigured, message));
            }
        }
    }
    Ok(())
}

/// The workflow with the limits of the project where it has none of its own.
pub fn with_limits(workflow: Workflow, config: &Config) -> Workflow {
    let mut workflow = pipeline::with_settings(workflow, config);
    workflow.apply_policy(&config.policy);
    workflow.shell = workflow.shell.or_else(|| config.shell.clone());
    for commit in workflow.phases.iter_mut().flat_map(|phase| &mut phase.tasks).filter_map(|task| task.commit.as_mut()) {
        *commit = std::mem::take(commit).or(&config.commit);
    }
    Workflow { max_parallel: workflow.max_parallel.or(config.max_parallel.map(NonZeroU32::get)), ..workflow }
}
