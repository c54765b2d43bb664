//! Importing a pipeline: a run from the state file that another tool wrote. What the file says is done never runs again.

use super::check::not_json;
use super::{ExistingRun, PutAside, reserve};
use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::sanitize;
use crate::start::with_limits;
use crate::view::lockgate;
use crate::workflow_file;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::event::{FrozenFile, Origin};
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::spec::workflow::{AgentWork, Phase, Pipeline, PipelinePhase, Prompt, Task, Work, Workflow, Workstream};
use lockgate_formats::file_format::Format;
use lockgate_formats::state_file::import::{StateFile, lenient};
use lockgate_formats::state_file::manual_gates::leave_to_a_person;
use lockgate_runner::driver::start_parked;
use lockgate_runner::start::{StartOptions, WorkflowFile, prepare};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What importing a state file is, as it completes "may not …".
pub const IMPORT: &str = "import a state file";

/// How a state file is imported.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// The state file.
    pub file: PathBuf,
    /// Whether the run takes the place of another run of the same pipeline; its state file is put aside.
    pub replace: bool,
    /// The agent that does what remains, whatever else is configured.
    pub agent: Option<String>,
}

/// A state file that was read.
pub struct ImportedFile {
    text: String,
    state: StateFile,
    prd: String,
    /// What was read leniently: how the file differs from its format.
    pub leniencies: Vec<String>,
}

/// The EXECUTION-SPEC that says what remains to be done.
pub enum SpecFile {
    /// It is in this file.
    At(PathBuf),
    /// The state file names this one, and it is not there.
    Missing(String),
    /// None is named.
    None,
}

/// A run that was made from a state file.
#[derive(Debug)]
pub struct ImportedRun {
    /// The run, which rests until somebody resumes it.
    pub run: Run,
    /// What it is known by.
    pub prd: String,
    /// Where the file says that it is.
    pub status: Lifecycle,
    /// The EXECUTION-SPEC that says what remains to be done.
    pub spec: Option<String>,
    /// Whether agents are given the file itself, because no EXECUTION-SPEC says what remains to be done.
    pub without_spec: bool,
    /// Gates that the file has as pending and that no command decides; a person is asked in the end.
    pub left_to_a_person: Vec<String>,
    /// What people should know about an earlier run.
    pub notes: Vec<String>,
    /// What was put aside to make room for its state file.
    pub moved_aside: PutAside,
}

/// The same for programs.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct ImportedView {
    pub run: String,
    pub prd: String,
    pub status: Lifecycle,
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
}

impl ImportedFile {
    /// Reads a state file, also where it differs from its format.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = workflow_file::text(path)?;
        let (state, leniencies) = lenient(&text).map_err(|error| not_json(path, &text, &error))?;
        let prd = known_by(&state, path)?;
        Ok(Self { text, state, prd, leniencies })
    }

    /// The EXECUTION-SPEC that the file names, looked up from the root and from the directory of the file.
    pub fn spec(&self, project: &Project, path: &Path) -> SpecFile {
        let Some(named) = &self.state.spec else { return SpecFile::None };
        let next_to_it = path.parent().map(|directory| directory.join(named));
        let mut candidates = [Some(project.root.dir().join(named)), next_to_it].into_iter().flatten();
        candidates.find(|path| path.is_file()).map_or_else(|| SpecFile::Missing(named.clone()), SpecFile::At)
    }
}

impl Project {
    /// Makes a run from a state file. `spec` is the EXECUTION-SPEC that says what remains to be done, already read. What the file says is
    /// done is never done or checked again, so importing it is worth as much as many answers: it is not for tasks, and only a person
    /// replaces a run.
    pub async fn import(
        &self,
        import: &Import,
        read: ImportedFile,
        spec: Option<WorkflowFile>,
        caller: Caller,
    ) -> Result<ImportedRun, Error> {
        if import.replace {
            self.may_decide_about_project(&caller, IMPORT).await?;
        } else {
            self.must_be_outside_tasks(&caller, IMPORT).await?;
        }
        let ImportedFile { text, state, prd, .. } = read;
        let (file, mut workflow) = match spec {
            Some(file) => of_spec(file, &prd, &import.file)?,
            None => (without_spec(&import.file, &text), alone(&state, &prd, &text)),
        };
        let spec = (file.format == Format::ExecutionSpec).then(|| file.path.display().to_string());
        let mut left_to_a_person = Vec::new();
        if state.status != Lifecycle::Complete {
            refuse_unknown(&workflow, &state, &import.file)?;
            left_to_a_person = leave_to_a_person(&mut workflow, &state);
        }
        let workflow = with_limits(workflow, &self.config);
        let (mut lock, mut notes) = (None, Vec::new());
        if let Some(pipeline) = &workflow.pipeline {
            let existing = if import.replace { ExistingRun::Archive } else { ExistingRun::Import(import.file.clone()) };
            let (taken, told) = reserve(self, pipeline, existing).await?;
            (lock, notes) = (Some(taken), told);
        }
        let (status, without_spec) =
            (state.status, spec.is_none() && !(state.pending.is_empty() && state.in_progress.is_empty()));
        let absolute = std::path::absolute(&import.file).unwrap_or_else(|_| import.file.clone());
        let path = absolute.strip_prefix(self.root.dir()).unwrap_or(&absolute).to_string_lossy().into_owned();
        let imported = state.imported(FrozenFile { path, digest: Digest::of(text.as_bytes()) });
        let beginning = StartOptions { feature: Some(prd.clone()), agent: import.agent.clone(), ..StartOptions::default() };
        let (driver, seed) = (self.store().driver().clone(), self.runtime.clock.seed());
        let mut prepared = prepare(&self.root, &driver, seed, &file, workflow, beginning)
            .map_err(|error| Error::new(Code::InvalidOutputDir, error.to_string()))?;
        prepared.values.push((imported.file.digest, text.into_bytes()));
        prepared.create.created.origin = Origin::Imported(Box::new(imported));
        if spec.is_none() {
            // The state file changes with the run, and does not define it.
            prepared.create.created.files.clear();
        }
        self.root.prepare_run(&prepared.create.created.run)?;
        let run = start_parked(&self.runtime, caller, prepared).await?;
        drop(lock);
        let moved_aside = self.write_state_file(&run, false).await;
        Ok(ImportedRun { run, prd, status, spec, without_spec, left_to_a_person, notes, moved_aside })
    }
}

/// What the pipeline is known by: as the file says it, else as it is called.
fn known_by(state: &StateFile, path: &Path) -> Result<String, Error> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).filter(|stem| is_plain(stem));
    state.prd.clone().or(stem).ok_or_else(|| {
        Error::new(Code::InvalidStateFile, format!("{} does not say what it is about", path.display()))
            .help("give it a `prd` of letters, digits, `-`, `_` and `.`, such as PRD-009")
    })
}

fn is_plain(id: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    !id.is_empty() && id.len() <= 64 && id.starts_with(|first: char| first.is_ascii_alphanumeric()) && id.chars().all(allowed)
}

/// The EXECUTION-SPEC of the same pipeline.
fn of_spec(mut file: WorkflowFile, prd: &str, state_file: &Path) -> Result<(WorkflowFile, Workflow), Error> {
    let Some(workflow) = file.workflow.take().filter(|workflow| workflow.pipeline.is_some()) else {
        let path = file.path.display();
        let message = format!("{path} is no valid EXECUTION-SPEC: {}", workflow_file::summary(&file.problems));
        let validate = lockgate(["validate", &file.path.to_string_lossy()]);
        return Err(Error::new(Code::InvalidWorkflow, message).help(format!("`{validate}` says what is wrong")));
    };
    let about = workflow.pipeline.as_ref().map(|pipeline| pipeline.prd.clone()).unwrap_or_default();
    if about == prd {
        return Ok((file, workflow));
    }
    let message = format!("{} is about {prd}, and the EXECUTION-SPEC about {about}", state_file.display());
    Err(Error::new(Code::InvalidUsage, message).help("name the EXECUTION-SPEC of the same pipeline"))
}

/// What the file says is still to be done must be something that can be.
fn refuse_unknown(workflow: &Workflow, state: &StateFile, file: &Path) -> Result<(), Error> {
    let Some(pipeline) = &workflow.pipeline else { return Ok(()) };
    let known = |id: &str| pipeline.phase_of(id).is_some() || pipeline.deferred.iter().any(|deferred| deferred.as_str() == id);
    let left = state.in_progress.iter().chain(&state.pending).filter(|id| !known(id));
    let unknown: Vec<String> = left.map(|id| sanitize::line(id).into_owned()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let (unknown, file) = (unknown.join(", "), file.display());
    let message = format!("{file} has workstreams as not done that nothing here can do: {unknown}");
    Err(Error::new(Code::InvalidStateFile, message)
        .help("name the EXECUTION-SPEC that has them, or change the file; without one, their ids have letters, digits, - and _"))
}

fn without_spec(path: &Path, text: &str) -> WorkflowFile {
    WorkflowFile {
        path: path.to_owned(),
        format: Format::PipelineState,
        source: text.to_owned(),
        workflow: None,
        problems: Vec::new(),
        includes: BTreeMap::new(),
        skipped: Vec::new(),
    }
}

/// A pipeline of which only the state file is known: one phase, in which agents do what is not done.
fn alone(state: &StateFile, prd: &str, text: &str) -> Workflow {
    let title = state.title.clone().unwrap_or_else(|| prd.to_owned());
    let all = state.completed.iter().chain(&state.in_progress).chain(&state.pending);
    let known: Vec<&String> = all.filter(|id| is_plain(id)).collect();
    let task = |id: &&String| {
        let work = if state.completed.contains(id) {
            Work::Pass
        } else {
            let prompt = format!(
                "Do workstream {id} of {prd} ({title}). All that is known of it is what the pipeline's state file says:\n\n{text}\n"
            );
            Work::Agent(Box::new(AgentWork { prompt: Prompt::Document(prompt), ..AgentWork::default() }))
        };
        Task::new(TaskId::new(id.as_str()), work)
    };
    let id = |id: &&String| TaskId::new(id.as_str());
    let workstream = |known: &&String| Workstream {
        id: id(known),
        name: String::new(),
        executor: None,
        outputs: Vec::new(),
        gates: Vec::new(),
    };
    let phase =
        Phase { name: Some("Phase 1".into()), tasks: known.iter().map(task).collect(), ..Phase::new(PhaseId::from("phase-1")) };
    let said = PipelinePhase { name: "Phase 1".into(), workstreams: known.iter().map(id).collect(), gates: Vec::new() };
    let workstreams = known.iter().map(workstream).collect();
    let pipeline = Pipeline { prd: prd.to_owned(), title: title.clone(), phases: vec![said], workstreams, ..Pipeline::default() };
    Workflow {
        name: prd.to_owned(),
        description: Some(title),
        phases: vec![phase],
        pipeline: Some(Box::new(pipeline)),
        ..Workflow::default()
    }
}
