//! `lockgate import`: a run from the state file of another tool, to go on with.

use super::check::not_json;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::{diagnostics, pipeline, print};
use lockgate::code::Code;
use lockgate::pipeline::ExistingRun;
use lockgate::view::{lockgate, resume_command};
use lockgate::{sanitize, workflow_file};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::event::{FrozenFile, Origin};
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::spec::workflow::{AgentWork, Phase, Pipeline, PipelinePhase, Prompt, Task, Work, Workflow, Workstream};
use lockgate_formats::file_format::Format;
use lockgate_formats::pipeline::import::{StateFile, lenient};
use lockgate_formats::pipeline::manual_gates::leave_to_a_person;
use lockgate_runner::driver::start_parked;
use lockgate_runner::start::{StartOptions, WorkflowFile, prepare};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Makes a run from the state file of a pipeline that another tool wrote; what it says is done never runs again
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The state file
    file: PathBuf,
    /// The EXECUTION-SPEC that says what remains to be done; the one that the file names when absent
    #[arg(long, value_name = "SPEC")]
    spec: Option<PathBuf>,
    /// Takes the place of a run of the same pipeline that is there already; its state file is kept aside
    #[arg(long)]
    new: bool,
    /// The command of the agent that does what remains, whatever else is configured
    #[arg(long, value_name = "COMMAND")]
    agent: Option<String>,
    /// Prints what was made as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ImportView {
    run: String,
    prd: String,
    status: &'static str,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
}

impl Arguments {
    /// What the file says is done is never done or checked again, so importing it is worth as much as many answers.
    pub(super) fn authority(&self) -> Authority<'_> {
        let decision = Decision::about_project("import a state file");
        if self.new { Authority::Person(decision) } else { Authority::OutsideTasks(decision) }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let text = workflow_file::text(&arguments.file)?;
    let (state, notes) = lenient(&text).map_err(|error| not_json(&arguments.file, &text, &error))?;
    let prd = known_by(&state, &arguments.file)?;
    let project = crate::open::open_or_create(root)?;
    let caller = project.caller(Channel::Command);
    let spec = spec(&project, &arguments, &state)?;
    let (file, mut workflow) = match spec {
        Some((file, workflow)) => (file, of_spec(workflow, &prd, &arguments.file)?),
        None => (without_spec(&arguments.file, &text), alone(&state, &prd, &text)),
    };
    let spec = (file.format == Format::ExecutionSpec).then(|| file.path.display().to_string());
    for notes in &notes {
        print::note(format_args!("read leniently: {}", sanitize::line(notes)));
    }
    if spec.is_none() && !(state.pending.is_empty() && state.in_progress.is_empty()) {
        print::warn("no EXECUTION-SPEC says what remains to be done, so agents are told what the file says; --spec names one");
    }
    if state.status != Lifecycle::Complete {
        refuse_unknown(&workflow, &state, &arguments.file)?;
        for gate in leave_to_a_person(&mut workflow, &state) {
            let gate = sanitize::line(&gate).into_owned();
            print::note(format_args!(
                "no command decides the gate {gate} that the file has as pending; a person is asked in the end"
            ));
        }
    }
    let workflow = lockgate::start::with_limits(workflow, &project.config);
    let mut pipeline_lock = None;
    if let Some(pipeline) = &workflow.pipeline {
        let existing = if arguments.new { ExistingRun::Archive } else { ExistingRun::Import(arguments.file.clone()) };
        let (lock, notes) = lockgate::pipeline::reserve(&project, pipeline, existing).await?;
        notes.iter().for_each(print::note);
        pipeline_lock = Some(lock);
    }
    let status = state.status;
    let absolute = std::path::absolute(&arguments.file).unwrap_or_else(|_| arguments.file.clone());
    let path = absolute.strip_prefix(project.root.dir()).unwrap_or(&absolute).to_string_lossy().into_owned();
    let imported = state.imported(FrozenFile { path, digest: Digest::of(text.as_bytes()) });
    let start_options = StartOptions { feature: Some(prd.clone()), agent: arguments.agent.clone(), ..StartOptions::default() };
    let (driver, seed) = (project.store().driver().clone(), project.runtime.clock.seed());
    let mut prepared = prepare(&project.root, &driver, seed, &file, workflow, start_options)
        .map_err(|error| CommandError::new(Code::InvalidOutputDir, error.to_string()))?;
    prepared.values.push((imported.file.digest, text.into_bytes()));
    prepared.create.created.origin = Origin::Imported(Box::new(imported));
    if spec.is_none() {
        // The state file changes with the run, and is no definition of it.
        prepared.create.created.files.clear();
    }
    project.root.prepare_run(&prepared.create.created.run)?;
    let run = start_parked(&project.runtime, caller, prepared).await?;
    drop(pipeline_lock);
    pipeline::refresh(&project, &run, false).await;
    print::say(format_args!("run {} is {prd}, {}", run.id, status.word()));
    let how = match status {
        Lifecycle::Complete => None,
        Lifecycle::Initialized => Some(None),
        Lifecycle::Paused | Lifecycle::InProgress => Some(Some("--continue")),
        Lifecycle::Failed => Some(Some("--fixed")),
    };
    if let Err(missing) = lockgate::resume::refuse_without_agent(&run, &project.config) {
        print::warn(sanitize::line(missing.message()));
        print::note(
            "choose an agent in .lockgate/config.yaml, such as `agents: { default: claude }`, or import with --agent COMMAND",
        );
    }
    if let Some(how) = how {
        print::say(format_args!("go on with: {}", resume_command(&prd, how)));
    }
    if arguments.json {
        print::json(&ImportView { run: run.id.to_string(), prd, status: status.word(), notes, spec });
    }
    Ok(Exit::Done)
}

/// What the pipeline is known by: as the file says it, else as it is called.
fn known_by(state: &StateFile, path: &Path) -> Result<String, CommandError> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).filter(|stem| is_plain(stem));
    state.prd.clone().or(stem).ok_or_else(|| {
        CommandError::new(Code::InvalidStateFile, format!("{} does not say what it is about", path.display()))
            .help("give it a `prd` of letters, digits, `-`, `_` and `.`, such as PRD-009")
    })
}

fn is_plain(id: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    !id.is_empty() && id.len() <= 64 && id.starts_with(|first: char| first.is_ascii_alphanumeric()) && id.chars().all(allowed)
}

/// The EXECUTION-SPEC that was named, or that the file names and that is there.
fn spec(project: &Project, arguments: &Arguments, state: &StateFile) -> Result<Option<(WorkflowFile, Workflow)>, CommandError> {
    let path = match (&arguments.spec, &state.spec) {
        (Some(path), _) => path.clone(),
        (None, Some(named)) => {
            let beside = arguments.file.parent().map(|folder| folder.join(named));
            let candidates = [Some(project.root.dir().join(named)), beside];
            match candidates.into_iter().flatten().find(|path| path.is_file()) {
                Some(path) => path,
                None => {
                    print::note(format_args!("the EXECUTION-SPEC {} that the file names is not there", sanitize::line(named)));
                    return Ok(None);
                }
            }
        }
        (None, None) => return Ok(None),
    };
    let mut file = workflow_file::read(&path)?;
    diagnostics::report(&file);
    match file.workflow.take().filter(|workflow| workflow.pipeline.is_some()) {
        Some(workflow) => Ok(Some((file, workflow))),
        None => {
            let message = format!("{} is no valid EXECUTION-SPEC: {}", path.display(), workflow_file::summary(&file.problems));
            Err(CommandError::new(Code::InvalidWorkflow, message).help(format!(
                "`{}` says what is wrong; --spec names another one",
                lockgate(["validate", &path.to_string_lossy()])
            )))
        }
    }
}

fn of_spec(workflow: Workflow, prd: &str, file: &Path) -> Result<Workflow, CommandError> {
    let about = workflow.pipeline.as_ref().map(|pipeline| pipeline.prd.clone()).unwrap_or_default();
    if about == prd {
        return Ok(workflow);
    }
    let message = format!("{} is about {prd}, and the EXECUTION-SPEC about {about}", file.display());
    Err(CommandError::new(Code::InvalidUsage, message).help("name the EXECUTION-SPEC of the same pipeline with --spec"))
}

/// What the file says is still to be done must be something that can be.
fn refuse_unknown(workflow: &Workflow, state: &StateFile, file: &Path) -> Result<(), CommandError> {
    let Some(pipeline) = &workflow.pipeline else { return Ok(()) };
    let known = |id: &str| pipeline.phase_of(id).is_some() || pipeline.deferred.iter().any(|deferred| deferred.as_str() == id);
    let left = state.in_progress.iter().chain(&state.pending).filter(|id| !known(id));
    let unknown: Vec<String> = left.map(|id| sanitize::line(id).into_owned()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let (unknown, file) = (unknown.join(", "), file.display());
    let message = format!("{file} has workstreams as not done that nothing here can do: {unknown}");
    Err(CommandError::new(Code::InvalidStateFile, message).help(
        "name the EXECUTION-SPEC that has them with --spec, or change the file; without one, their ids have letters, digits, - and _",
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
