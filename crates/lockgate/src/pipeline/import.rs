//! Importing a pipeline from a state file that another tool wrote. Workstreams that are done in the file never run again.

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

/// The action, as it completes "may not …".
pub const IMPORT: &str = "import a state file";

/// Options for importing a state file.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// The path of the state file.
    pub file: PathBuf,
    /// Whether to replace an existing run of the same pipeline. Its state file is archived.
    pub replace: bool,
    /// The agent for the remaining work. Overrides the configuration.
    pub agent: Option<String>,
}

/// A parsed state file.
pub struct ImportedFile {
    text: String,
    state: StateFile,
    prd: String,
    /// Deviations from the format that the parser tolerated.
    pub leniencies: Vec<String>,
}

/// The EXECUTION-SPEC that defines the remaining work.
pub enum SpecFile {
    /// The path of the file.
    At(PathBuf),
    /// The state file names this path, but the file does not exist.
    Missing(String),
    /// The state file names none.
    None,
}

/// The result of importing a state file.
#[derive(Debug)]
pub struct ImportedRun {
    /// The run, which is parked until someone resumes it.
    pub run: Run,
    /// The id of the pipeline.
    pub prd: String,
    /// The status according to the state file.
    pub status: Lifecycle,
    /// The path of the EXECUTION-SPEC that defines the remaining work.
    pub spec: Option<String>,
    /// Whether agents get the state file as their prompt, because there is no EXECUTION-SPEC.
    pub without_spec: bool,
    /// Pending gates without a command. A person decides them at the end.
    pub left_to_a_person: Vec<String>,
    /// Notes about an earlier run, to show to people.
    pub notes: Vec<String>,
    /// Files that were moved aside to make room for the state file.
    pub moved_aside: PutAside,
}

/// An imported run, as JSON.
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
    /// Reads a state file, tolerating deviations from its format.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = workflow_file::text(path)?;
        let (state, leniencies) = lenient(&text).map_err(|error| not_json(path, &text, &error))?;
        let prd = known_by(&state, path)?;
        Ok(Self { text, state, prd, leniencies })
    }

    /// Finds the EXECUTION-SPEC that the file names, relative to the root or to the file.
    pub fn spec(&self, project: &Project, path: &Path) -> SpecFile {
        let Some(named) = &self.state.spec else { return SpecFile::None };
        let next_to_it = path.parent().map(|directory| directory.join(named));
        let mut candidates = [Some(project.root.dir().join(named)), next_to_it].into_iter().flatten();
        candidates.find(|path| path.is_file()).map_or_else(|| SpecFile::Missing(named.clone()), SpecFile::At)
    }
}

impl Project {
    /// Creates a run from a state file. `spec` is the EXECUTION-SPEC that defines the remaining work. Work that is done in the
    /// file is never repeated or checked, so an import has the weight of many answers: a task may not import, and only a person
    /// may replace a run.
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
            let (taken, noted) = reserve(self, pipeline, existing).await?;
            (lock, notes) = (Some(taken), noted);
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
            // The state file is derived from the run and does not define it.
            prepared.create.created.files.clear();
        }
        self.root.prepare_run(&prepared.create.created.run)?;
        let run = start_parked(&self.runtime, caller, prepared).await?;
        drop(lock);
        let moved_aside = self.write_state_file(&run, false).await;
        Ok(ImportedRun { run, prd, status, spec, without_spec, left_to_a_person, notes, moved_aside })
    }
}

/// The id of the pipeline, from the file's contents or its name.
fn known_by(state: &StateFile, path: &Path) -> Result<String, Error> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).filter(|stem| is_plain(stem));
    state.prd.clone().or(stem).ok_or_else(|| {
        Error::new(Code::InvalidStateFile, format!("{} does not identify its pipeline", path.display()))
            .help("give it a `prd` of letters, digits, `-`, `_` and `.`, such as PRD-009")
    })
}

fn is_plain(id: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    !id.is_empty() && id.len() <= 64 && id.starts_with(|first: char| first.is_ascii_alphanumeric()) && id.chars().all(allowed)
}

/// Checks that the EXECUTION-SPEC belongs to the same pipeline.
fn of_spec(mut file: WorkflowFile, prd: &str, state_file: &Path) -> Result<(WorkflowFile, Workflow), Error> {
    let Some(workflow) = file.workflow.take().filter(|workflow| workflow.pipeline.is_some()) else {
        let path = file.path.display();
        let message = format!("{path} is not a valid EXECUTION-SPEC: {}", workflow_file::summary(&file.problems));
        let validate = lockgate(["validate", &file.path.to_string_lossy()]);
        return Err(Error::new(Code::InvalidWorkflow, message).help(format!("list its problems with `{validate}`")));
    };
    let about = workflow.pipeline.as_ref().map(|pipeline| pipeline.prd.clone()).unwrap_or_default();
    if about == prd {
        return Ok((file, workflow));
    }
    let message = format!("{} is for {prd}, but the EXECUTION-SPEC is for {about}", state_file.display());
    Err(Error::new(Code::InvalidUsage, message).help("pass the EXECUTION-SPEC of the same pipeline"))
}

/// Refuses unfinished workstreams that the workflow does not define.
fn refuse_unknown(workflow: &Workflow, state: &StateFile, file: &Path) -> Result<(), Error> {
    let Some(pipeline) = &workflow.pipeline else { return Ok(()) };
    let known = |id: &str| pipeline.phase_of(id).is_some() || pipeline.deferred.iter().any(|deferred| deferred.as_str() == id);
    let left = state.in_progress.iter().chain(&state.pending).filter(|id| !known(id));
    let unknown: Vec<String> = left.map(|id| sanitize::line(id).into_owned()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let (unknown, file) = (unknown.join(", "), file.display());
    let message = format!("{file} has unfinished workstreams that are not defined: {unknown}");
    Err(Error::new(Code::InvalidStateFile, message).help(
        "pass the EXECUTION-SPEC that defines them, or edit the file; without one, ids may contain letters, digits, - and _",
    ))
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

/// A pipeline without an EXECUTION-SPEC: a single phase in which agents do the unfinished workstreams.
fn alone(state: &StateFile, prd: &str, text: &str) -> Workflow {
    let title = state.title.clone().unwrap_or_else(|| prd.to_owned());
    let all = state.completed.iter().chain(&state.in_progress).chain(&state.pending);
    let known: Vec<&String> = all.filter(|id| is_plain(id)).collect();
    let task = |id: &&String| {
        let work = if state.completed.contains(id) {
            Work::Pass
        } else {
            let prompt = format!(
                "Do workstream {id} of {prd} ({title}). The only description of it is the pipeline's state file:\n\n{text}\n"
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
