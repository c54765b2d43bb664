//! `lockgate pipeline import`: create a run from the state file of another tool.

use super::super::help::examples;
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

/// Create a run from the state file of another tool
///
/// Work that the file lists as done never runs again.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate pipeline import checkpoints/PRD-009.json",
    "lockgate pipeline import old.json --spec specs/EXEC-009.md --agent claude",
]))]
pub(super) struct Arguments {
    /// State file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// EXECUTION-SPEC with the remaining work [default: the one that the file names]
    #[arg(long, value_name = "SPEC")]
    spec: Option<PathBuf>,
    /// Replace the existing run of this pipeline; its state file is moved aside
    #[arg(long)]
    new: bool,
    /// Agent for the remaining work: a preset such as claude, or a command that reads the prompt
    #[arg(long, value_name = "COMMAND")]
    agent: Option<String>,
    /// Print the new run as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Work that the file lists as done is never run or checked again, so an import weighs as much as many answers.
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
            .help_for(&[Code::InvalidWorkflow, Code::InvalidStateFile], "name another EXECUTION-SPEC with --spec")
    })?;
    report(&project, &imported);
    if arguments.json {
        let ImportedRun { run, prd, status, spec, .. } = imported;
        print::json(&ImportedView { run: run.id.to_string(), prd, status, notes: leniencies, spec });
    }
    Ok(Exit::Done)
}

/// The EXECUTION-SPEC given on the command line, or the one that the file names if it exists.
fn spec(project: &Project, arguments: &Arguments, read: &ImportedFile) -> Result<Option<WorkflowFile>, CommandError> {
    let named = arguments.spec.clone().map_or_else(|| read.spec(project, &arguments.file), SpecFile::At);
    let path = match named {
        SpecFile::At(path) => path,
        SpecFile::Missing(named) => {
            print::note(format_args!("the file names the EXECUTION-SPEC {}, which does not exist", sanitize::line(&named)));
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
        print::warn(
            "no EXECUTION-SPEC describes the remaining work, so agents only get the contents of the file; name one with --spec",
        );
    }
    for gate in left_to_a_person {
        let gate = sanitize::line(gate).into_owned();
        print::note(format_args!("the pending gate {gate} has no command; a person decides it at the end"));
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
    print::say(format_args!("continue with: {}", resume_command(prd, flag)));
}
