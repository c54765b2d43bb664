//! `lockgate validate`: check workflow files of every kind without running them, and say what was read.

use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::{diagnostics, print};
use lockgate::{sanitize, workflow_file};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::Work;
use lockgate_runner::start::WorkflowFile;
use serde::Serialize;
use std::path::PathBuf;

/// Checks workflow files of every kind without running them
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The files: workflows, plans or folders of them, EXECUTION-SPECs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints JSON: what was read of each file, and what is wrong with it
    #[arg(long)]
    json: bool,
}

/// A file, and what was read of it.
#[derive(Default, Serialize)]
struct FileLine {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CommandErrorView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    phases: Vec<PhaseLine>,
    tasks: Vec<TaskLine>,
    gates: Vec<GateLine>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct PhaseLine {
    id: String,
    name: String,
    checkpoint: bool,
}

#[derive(Serialize)]
struct TaskLine {
    id: String,
    name: String,
    phase: String,
    kind: String,
    needs: Vec<String>,
}

#[derive(Serialize)]
struct GateLine {
    id: String,
    name: String,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    run: String,
}

pub(super) fn run(arguments: &Arguments) -> Exit {
    let mut lines = Vec::new();
    for path in &arguments.files {
        let file = path.to_string_lossy().into_owned();
        let line = match workflow_file::read(path).map_err(CommandError::from) {
            Err(error) => {
                if !arguments.json {
                    error.report();
                    print::data(&format!("{}: cannot be read\n", sanitize::line(&file)));
                }
                let error = arguments.json.then(|| error.view());
                FileLine { file, error, ..FileLine::default() }
            }
            Ok(mut read) => {
                read.problems.extend(workflow_file::missing_repository(&read));
                if !arguments.json {
                    diagnostics::report(&read);
                    let verdict = if read.workflow.is_some() { "valid" } else { "invalid" };
                    print::data(&format!("{}: {verdict} {}\n", sanitize::line(&file), read.format.noun()));
                }
                FileLine::new(file, read)
            }
        };
        lines.push(line);
    }
    if arguments.json {
        print::json(&lines);
    }
    if lines.iter().all(|line| line.valid) { Exit::Done } else { Exit::Misuse }
}

impl FileLine {
    fn new(file: String, read: WorkflowFile) -> Self {
        let mut line = Self { file, format: Some(read.format.word()), problems: read.problems, ..Self::default() };
        let Some(workflow) = read.workflow else { return line };
        line.valid = true;
        for phase in &workflow.phases {
            let (id, name) = (phase.id.to_string(), phase.title().to_owned());
            line.phases.push(PhaseLine { id, name, checkpoint: phase.checkpoint.is_some() });
            line.tasks.extend(phase.tasks.iter().map(|task| TaskLine {
                id: task.id.to_string(),
                name: task.name.clone().unwrap_or_else(|| task.id.to_string()),
                phase: phase.id.to_string(),
                kind: kind(&task.work),
                needs: task.needs.iter().map(ToString::to_string).collect(),
            }));
            line.gates.extend(phase.gates.iter().map(|gate| GateLine {
                id: gate.id.to_string(),
                name: gate.title().to_owned(),
                phase: phase.id.to_string(),
                task: gate.task.as_ref().map(ToString::to_string),
                run: gate.run.clone(),
            }));
        }
        line
    }
}

/// What a task does, with questions named as such.
fn kind(work: &Work) -> String {
    match work {
        Work::Checkpoint(checkpoint) => match &checkpoint.question {
            None => checkpoint.word().to_owned(),
            Some(question) => format!("checkpoint:{}", question.word()),
        },
        Work::Run(_) | Work::Script(_) | Work::Pass | Work::Agent(_) | Work::Adaptive(_) => work.word().to_owned(),
    }
}
