//! Starting runs of workflow files.

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
use lockgate_runner::start::{GivenIssue, Prepared, StartOptions, WorkflowFile, prepare};
use serde_json::Value;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

/// The action, as it completes "may not …".
pub const ANSWER_IN_ADVANCE: &str = "answer in advance";

/// How many problems of a workflow file an error lists.
const FEW: usize = 5;

/// Options for starting a run.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The feature that the run works on.
    pub feature: Option<String>,
    /// Flags that the workflow declares, with or without leading dashes.
    pub flags: Vec<String>,
    /// Values for the inputs and variables of the workflow.
    pub vars: BTreeMap<String, Value>,
    /// Preset answers.
    pub answers: Vec<PresetAnswer>,
    /// The agent to use. Overrides the configuration.
    pub agent: Option<String>,
    /// Commits the changes of each agent task with git.
    pub commit: bool,
    /// Replaces an existing run of the same pipeline, and archives its state file.
    pub replace: bool,
    /// Starts the pipeline only after a review permits it.
    pub review: bool,
    /// The issue that the run works on; [`issue::read`](crate::issue::read) reads one from a file.
    pub issue: Option<GivenIssue>,
}

/// A workflow file and start options that have passed all checks that need no project.
pub struct Checked {
    file: WorkflowFile,
    workflow: Workflow,
    start: Start,
}

impl Start {
    /// Performs all checks that need no project.
    pub fn check(mut self, mut file: WorkflowFile) -> Result<Checked, Error> {
        if self.feature.as_deref().is_some_and(|feature| feature.trim().is_empty()) {
            return Err(Error::new(Code::InvalidUsage, "the feature is empty").help("name the feature, or leave it out"));
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
    let message = format!("{} is not a valid workflow: {}", file.path.display(), summary(&file.problems));
    let help = format!("list its problems with `{}`", lockgate(["validate", &file.path.to_string_lossy(), "--json"]));
    Error::new(Code::InvalidWorkflow, message).help(help)
}

impl Checked {
    /// Returns the file, the workflow and the start options, for a dry run.
    pub fn into_parts(self) -> (WorkflowFile, Workflow, StartOptions) {
        let Self { file, workflow, start } = self;
        let Start { feature, flags, vars, answers, agent, issue, commit: _, replace: _, review: _ } = start;
        (file, workflow, StartOptions { feature, flags, vars, presets: answers, detached: false, agent, issue })
    }
}

/// A run that is ready to be recorded.
pub struct Ready {
    prepared: Prepared,
    /// Prevents other processes from starting the same pipeline until the run is recorded.
    lock: Option<PipelineLock>,
    /// Notes about earlier runs of the same pipeline, to show to people.
    pub notes: Vec<String>,
}

impl Project {
    /// Starts a run of a workflow file. This records the run; a [worker](crate::worker::Worker) of this or another process drives
    /// it.
    pub async fn start(&self, file: &Path, start: Start, caller: Caller) -> Result<RunId, Error> {
        let ready = self.prepare(start.check(workflow_file::read(file)?)?).await?;
        self.start_detached(ready, caller).await
    }

    /// Performs all remaining checks and prepares a run, without recording it.
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
            let (taken, noted) = pipeline::reserve(self, pipeline, existing).await?;
            (lock, notes, feature) = (Some(taken), noted, Some(pipeline.prd.clone()));
        }
        let (driver, seed) = (self.store().driver().clone(), self.runtime.clock.seed());
        let start_options = StartOptions { feature, ..start_options };
        let prepared = prepare(&self.root, &driver, seed, &file, workflow, start_options)
            .map_err(|error| Error::new(Code::InvalidOutputDir, error.to_string()))?;
        let created = &prepared.create.created;
        let issue = created.issue.as_ref().map(|issue| issue.name.as_str());
        self.config.checkpoint.location(&self.root, &created.run, issue)?;
        self.root.prepare_run(&created.run)?;
        Ok(Ready { prepared, lock, notes })
    }

    /// Records a run and leaves it to a worker.
    pub async fn start_detached(&self, ready: Ready, caller: Caller) -> Result<RunId, Error> {
        match start_detached(&self.runtime, caller.clone(), ready.prepared).await {
            Ok(run) => {
                drop(ready.lock);
                Ok(run.id)
            }
            Err(error) => Err(self.not_started(&caller, error).await),
        }
    }

    /// Records a run and returns its driver.
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

    /// Converts the error of recording a run. Only preset answers can be refused because of the caller.
    async fn not_started(&self, caller: &Caller, error: DriveError) -> Error {
        match error {
            DriveError::Refused(refusal) => self.refuse_about_project(caller.actor(), ANSWER_IN_ADVANCE, refusal).await,
            error => error.into(),
        }
    }
}

/// Commits the changes of each agent task. Tasks run one at a time, because parallel tasks would commit each other's changes.
fn commit_each(workflow: &mut Workflow) {
    workflow.max_parallel = Some(1);
    for task in workflow.phases.iter_mut().flat_map(|phase| &mut phase.tasks) {
        if task.agent().is_some() && task.commit.is_none() {
            task.commit = Some(Commit::default());
        }
    }
}

/// Refuses options that only a pipeline has, or that a pipeline sets itself.
fn refuse_unfit(start: &Start, workflow: &Workflow) -> Result<(), Error> {
    match (&workflow.pipeline, &start.feature) {
        (Some(pipeline), Some(feature)) if *feature != pipeline.prd => {
            let message = format!("the feature of a pipeline is its PRD, {}, not {feature:?}", pipeline.prd);
            Err(Error::new(Code::InvalidUsage, message).help("leave out the feature"))
        }
        (None, _) if start.replace || start.review => Err(Error::new(
            Code::InvalidUsage,
            "only a pipeline can be replaced or reviewed, and this workflow is not a pipeline",
        )
        .help("leave out the option")),
        (Some(_) | None, _) => Ok(()),
    }
}

/// Checks for git before the start, so that the error does not appear only after an agent has worked.
fn refuse_commits_without_git(workflow: &Workflow, root: &Path) -> Result<(), Error> {
    if !workflow.commits() || git(root, &["rev-parse", "--git-dir"]).is_ok() {
        return Ok(());
    }
    let message = format!("the workflow commits changes, but {} is not in a git repository", root.display());
    Err(Error::new(Code::GitError, message).help("run `git init` there, or remove `commits: true`"))
}

/// Refuses a run whose agents are not configured, because it would only fail later.
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

/// Applies the limits of the project where the workflow has none.
pub fn with_limits(workflow: Workflow, config: &Config) -> Workflow {
    let mut workflow = pipeline::with_settings(workflow, config);
    workflow.apply_policy(&config.policy);
    workflow.shell = workflow.shell.or_else(|| config.shell.clone());
    for commit in workflow.phases.iter_mut().flat_map(|phase| &mut phase.tasks).filter_map(|task| task.commit.as_mut()) {
        *commit = std::mem::take(commit).or(&config.commit);
    }
    Workflow { max_parallel: workflow.max_parallel.or(config.max_parallel.map(NonZeroU32::get)), ..workflow }
}
