//! `lockgate import`: a run from the state file of another tool, to go on with.

use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::{diagnostics, pipeline, print};
use lockgate::code::Code;
use lockgate::pipeline::{IMPORT, Import, ImportedFile, ImportedRun, ImportedView, SpecFile};
use lockgate::view::resume_command;
use lockgate::{sanitize, workflow_file};
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_runner::start::WorkflowFile;
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

impl Arguments {
    /// What the file says is done is never done or checked again, so importing it is worth as much as many answers.
    pub(super) fn authority(&self) -> Authority<'_> {
        let decision = Decision::about_project(IMPORT);
        if self.new { Authority::Person(decision) } else { Authority::OutsideTasks(decision) }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let read = ImportedFile::read(&arguments.file)?;
    let leniencies = read.leniencies.clone();
    for leniency in &leniencies {
        print::note(format_args!("read leniently: {}", sanitize::line(leniency)));
    }
    let project = crate::open::open_or_create(root)?;
    let spec = spec(&project, &arguments, &read)?;
    let import = Import { file: arguments.file, replace: arguments.new, agent: arguments.agent };
    let imported = project.import(&import, read, spec, project.caller(Channel::Command)).await.map_err(|error| {
        CommandError::from(error)
            .help_for(&[Code::InvalidWorkflow, Code::InvalidStateFile], "--spec names another EXECUTION-SPEC")
    })?;
    report(&project, &imported);
    if arguments.json {
        let ImportedRun { run, prd, status, spec, .. } = imported;
        print::json(&ImportedView { run: run.id.to_string(), prd, status, notes: leniencies, spec });
    }
    Ok(Exit::Done)
}

/// The EXECUTION-SPEC that was named, or that the file names and that is there.
fn spec(project: &Project, arguments: &Arguments, read: &ImportedFile) -> Result<Option<WorkflowFile>, CommandError> {
    let named = arguments.spec.clone().map_or_else(|| read.spec(project, &arguments.file), SpecFile::At);
    let path = match named {
        SpecFile::At(path) => path,
        SpecFile::Missing(named) => {
            print::note(format_args!("the EXECUTION-SPEC {} that the file names is not there", sanitize::line(&named)));
            return Ok(None);
        }
        SpecFile::None => return Ok(None),
    };
    let file = workflow_file::read(&path)?;
    diagnostics::report(&file);
    Ok(Some(file))
}

fn report(project: &Project, imported: &ImportedRun) {
    let ImportedRun { run, prd, status, without_spec, left_to_a_person, notes, moved_aside, .. } = imported;
    if *without_spec {
        print::warn("no EXECUTION-SPEC says what remains to be done, so agents are told what the file says; --spec names one");
    }
    for gate in left_to_a_person {
        let gate = sanitize::line(gate).into_owned();
        print::note(format_args!(
            "no command decides the gate {gate} that the file has as pending; a person is asked in the end"
        ));
    }
    notes.iter().for_each(print::note);
    pipeline::print_put_aside(moved_aside);
    print::say(format_args!("run {} is {prd}, {}", run.id, status.as_str()));
    if let Err(missing) = lockgate::resume::refuse_without_agent(run, project.config()) {
        print::warn(sanitize::line(missing.message()));
        print::note(
            "choose an agent in .lockgate/config.yaml, such as `agents: { default: claude }`, or import with --agent COMMAND",
        );
    }
    let flag = match status {
        Lifecycle::Complete => return,
        Lifecycle::Initialized => None,
        Lifecycle::Paused | Lifecycle::InProgress => Some("--continue"),
        Lifecycle::Failed => Some("--fixed"),
    };
    print::say(format_args!("go on with: {}", resume_command(prd, flag)));
}
