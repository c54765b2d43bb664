//! Starting a pipeline: applying its settings, and checking for existing runs and state files.

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

/// The phase that runs the command configured as `on_complete`.
const ON_COMPLETE: &str = "on-complete";

/// Applies the project's pipeline settings, if the workflow is a pipeline.
pub fn with_settings(workflow: Workflow, config: &Config) -> Workflow {
    let mut workflow = workflow;
    with_gate_commands(&mut workflow, &config.pipelines.gates);
    let Some(pipeline) = &mut workflow.pipeline else { return workflow };
    let settings = &config.pipelines;
    pipeline.review = pipeline.review || settings.review;
    if let (None, Some(folder)) = (&pipeline.state_file, &settings.dir) {
        pipeline.state_file = Some(format!("{}/{}.json", folder.trim_end_matches('/'), pipeline.prd));
    }
    // Manual gates require a person, so they disable automatic continuation.
    let automatic = (settings.auto_continue && pipeline.manual_gates.is_empty()).then(Automatic::default);
    let command = pipeline.on_complete.clone().or_else(|| settings.on_complete.clone());
    workflow.policy.checkpoint = workflow.policy.checkpoint.take().or(automatic);
    if let Some(command) = command {
        let task = Task { on_interrupt: OnInterrupt::Ask, ..Task::new(TaskId::from("command"), Work::Run(command)) };
        workflow.phases.push(Phase { tasks: vec![task], ..Phase::new(PhaseId::from(ON_COMPLETE)) });
    }
    workflow
}

/// How to treat an existing run or state file of the same pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExistingRun {
    /// Fail if there is one.
    Refuse,
    /// Archive it.
    Archive,
    /// Fail if there is a run, or a state file other than this one, which is being imported.
    Import(PathBuf),
}

/// Prevents other processes from starting the same pipeline until it is dropped.
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

/// Checks for an existing run or state file of a pipeline, and archives it on request. Returns a lock to hold until the new run
/// is recorded, and notes to show to people.
pub async fn reserve(
    project: &Project,
    pipeline: &Pipeline,
    existing: ExistingRun,
) -> Result<(PipelineLock, Vec<String>), Error> {
    let pipeline_lock = PipelineLock::take(project, &pipeline.prd).map_err(|error| {
        let message = format!("cannot lock {} against concurrent starts: {error}", pipeline.prd);
        Error::new(Code::UnreadableFile, message).help("make the directory `.lockgate` writable")
    })?;
    let notes = check_existing(project, pipeline, existing).await?;
    Ok((pipeline_lock, notes))
}

/// Returns notes about an earlier run, to show to people.
async fn check_existing(project: &Project, pipeline: &Pipeline, existing: ExistingRun) -> Result<Vec<String>, Error> {
    let prd = &pipeline.prd;
    let runs = runs_of(project.store(), prd).await?;
    if let Some(driven) = runs.iter().find(|run| run.driven) {
        let message = format!("run {} of {prd} is being driven by another process", driven.row.run);
        return Err(Error::new(Code::DrivenElsewhere, message).help(format!(
            "see its state with `{}`, or cancel it first with `{}`",
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
            notes.push(format!(
                "run {run} of {prd} is {status} and no longer has a state file; cancel it with `lockgate cancel {run}`"
            ));
        }
        if let Some(kept) = archive(&project.root, pipeline, project.runtime.clock.now())? {
            notes.push(format!("the state file of the previous run is kept as {}", kept.display()));
        }
        return Ok(notes);
    }
    if let Some(run) = runs.first() {
        let again = match run.row.status.is(Status::Complete) {
            true => "start a new run, which archives the old state file".to_owned(),
            false => {
                format!("continue it with `{}`, or start a new run, which archives the old state file", resume_command(prd, []))
            }
        };
        let message = format!("{prd} already has a run: {}, which is {}", run.row.run, run.row.status);
        return Err(Error::new(Code::PipelineExists, message).help(again));
    }
    match file {
        Some(file) if matches!(&existing, ExistingRun::Import(same) if is_same(&file, same)) => Ok(Vec::new()),
        None => Ok(Vec::new()),
        Some(file) => {
            let message = format!("{prd} already has a state file, from a run that is not in this project: {}", file.display());
            let import = lockgate(["pipeline", "import", &file.to_string_lossy()]);
            let import = format!("import it with `{import}`, or start a new run");
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
