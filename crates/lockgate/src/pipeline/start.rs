//! Beginning a pipeline: its settings, and room for its state file.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::view::{lockgate, resume_command};
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::run::Status;
use lockgate_engine::spec::workflow::{Automatic, OnInterrupt, Phase, Pipeline, Task, Work, Workflow};
use lockgate_formats::execution_spec::with_gate_commands;
use lockgate_runner::config::Config;
use lockgate_runner::projection::{archive, is_there, runs_of};
use lockgate_store::ListedRun;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The phase in which the command runs that a pipeline ends with.
const ON_COMPLETE: &str = "on-complete";

/// The workflow with what the settings say of pipelines, where it is one.
pub fn with_settings(workflow: Workflow, config: &Config) -> Workflow {
    let mut workflow = workflow;
    with_gate_commands(&mut workflow, &config.pipelines.gates);
    let Some(pipeline) = &mut workflow.pipeline else { return workflow };
    let settings = &config.pipelines;
    pipeline.review = pipeline.review || settings.review;
    if let (None, Some(folder)) = (&pipeline.state_file, &settings.dir) {
        pipeline.state_file = Some(format!("{}/{}.json", folder.trim_end_matches('/'), pipeline.prd));
    }
    // What was left to a person is asked of one, whatever the settings say.
    let automatic = (settings.auto_continue && pipeline.manual_gates.is_empty()).then(Automatic::default);
    let command = pipeline.on_complete.clone().or_else(|| settings.on_complete.clone());
    workflow.policy.checkpoint = workflow.policy.checkpoint.take().or(automatic);
    if let Some(command) = command {
        let task = Task { on_interrupt: OnInterrupt::Ask, ..Task::new(TaskId::from("command"), Work::Run(command)) };
        workflow.phases.push(Phase { tasks: vec![task], ..Phase::new(PhaseId::from(ON_COMPLETE)) });
    }
    workflow
}

/// How room is made for a new run of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExistingRun {
    /// There must be none yet.
    Refuse,
    /// What is there is kept aside.
    Archive,
    /// There must be no run yet, and no state file but this one, which the run is made from.
    Import(PathBuf),
}

/// Keeps others from beginning a run of the same pipeline, until it is dropped.
#[derive(Debug)]
pub struct PipelineLock {
    _lock: File,
}

impl PipelineLock {
    fn take(project: &Project, prd: &str) -> io::Result<Self> {
        let folder = project.root.state_dir().join("beginning");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{prd}.lock"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        file.lock()?;
        Ok(Self { _lock: file })
    }
}

/// Makes room for a new run of a pipeline: there is one run and one state file of each, unless a new one is asked for. Gives a
/// lock to keep until the run exists, and what people should know.
pub async fn reserve(
    project: &Project,
    pipeline: &Pipeline,
    existing: ExistingRun,
) -> Result<(PipelineLock, Vec<String>), Error> {
    let pipeline_lock = PipelineLock::take(project, &pipeline.prd).map_err(|error| {
        let message = format!("it cannot be made sure that nobody else begins {} now: {error}", pipeline.prd);
        Error::new(Code::UnreadableFile, message).help("see to it that the folder `.lockgate` can be written to")
    })?;
    let notes = check_existing(project, pipeline, existing).await?;
    Ok((pipeline_lock, notes))
}

/// Gives what people should know about what became of an earlier run.
async fn check_existing(project: &Project, pipeline: &Pipeline, existing: ExistingRun) -> Result<Vec<String>, Error> {
    let prd = &pipeline.prd;
    let runs = runs_of(project.store(), prd).await?;
    if let Some(driven) = runs.iter().find(|run| run.driven) {
        let message = format!("run {} of {prd} is being driven by another process", driven.row.run);
        return Err(Error::new(Code::DrivenElsewhere, message).help(format!(
            "look at it with `{}`, or end it first with `{}`",
            lockgate(["status", prd]),
            lockgate(["cancel", driven.row.run.as_str()])
        )));
    }
    let file = is_there(&project.root, pipeline);
    if existing == ExistingRun::Archive {
        let mut notes = Vec::new();
        let open = |run: &&ListedRun| run.row.status.known().is_some_and(Status::is_unfinished);
        if let Some(open) = runs.iter().find(open) {
            let (run, status) = (&open.row.run, &open.row.status);
            notes.push(format!("run {run} of {prd} is {status} and has no state file any more; `lockgate cancel {run}` ends it"));
        }
        if let Some(kept) = archive(&project.root, pipeline, project.runtime.clock.now())? {
            notes.push(format!("the state file of the run before is kept as {}", kept.display()));
        }
        return Ok(notes);
    }
    let again = format!("begin a new one, which keeps the old file aside; go on with `{}`", resume_command(prd, []));
    if let Some(run) = runs.first() {
        let message = format!("{prd} has a run already: {}, which is {}", run.row.run, run.row.status);
        return Err(Error::new(Code::PipelineExists, message).help(again));
    }
    match file {
        Some(file) if matches!(&existing, ExistingRun::Import(same) if is_same(&file, same)) => Ok(Vec::new()),
        None => Ok(Vec::new()),
        Some(file) => {
            let message = format!("{prd} has a state file already, of a run that is not kept here: {}", file.display());
            let import = lockgate(["import", &file.to_string_lossy()]);
            let import = format!("make a run of it with `{import}`, or begin anew");
            Err(Error::new(Code::PipelineExists, message).help(import))
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}
