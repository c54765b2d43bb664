//! `lockgate check`: whether state files of pipelines keep the rules of their format.

use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::{diagnostics, print};
use lockgate::code::Code;
use lockgate::{sanitize, workflow_file};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::words::counted;
use lockgate_formats::json::{JsonError, place};
use lockgate_formats::pipeline::check::check;
use lockgate_formats::pipeline::rule::Finding;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Checks state files of pipelines: required keys, patterns, status, and agreement with their EXECUTION-SPEC
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The state files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The EXECUTION-SPEC whose workstreams and gates they must have
    #[arg(long, value_name = "SPEC")]
    spec: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FileLine {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CommandErrorView>,
    findings: Vec<Finding>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, CommandError> {
    let spec = arguments.spec.as_deref().map(spec).transpose()?;
    let mut lines = Vec::new();
    let mut unreadable = false;
    for path in &arguments.files {
        let file = path.to_string_lossy().into_owned();
        let line = match checked(path, spec.as_ref()) {
            Ok(findings) => FileLine { file, valid: findings.is_empty(), error: None, findings },
            Err(error) => {
                unreadable = true;
                if !arguments.json {
                    error.report();
                }
                FileLine { file, valid: false, error: Some(error.view()), findings: Vec::new() }
            }
        };
        if !arguments.json {
            print::data(&reported(&line));
        }
        lines.push(line);
    }
    if arguments.json {
        print::json(&lines);
    }
    Ok(match (unreadable, lines.iter().all(|line| line.valid)) {
        (true, _) => Exit::Misuse,
        (false, false) => Exit::Failed,
        (false, true) => Exit::Done,
    })
}

fn spec(path: &Path) -> Result<Workflow, CommandError> {
    let file = workflow_file::read(path)?;
    if file.workflow.is_none() {
        diagnostics::report(&file);
    }
    let named = path.display();
    let Some(workflow) = file.workflow else {
        let message = format!("{named} is no valid {}: {}", file.format.noun(), workflow_file::summary(&file.problems));
        return Err(CommandError::new(Code::InvalidWorkflow, message)
            .help("mend it, or check the state files without `--spec`")
            .reported());
    };
    if workflow.pipeline.is_none() {
        let message = format!("{named} is a {}, and no EXECUTION-SPEC", file.format.noun());
        return Err(
            CommandError::new(Code::InvalidWorkflow, message).help("name the file with `workstreams` and `execution_phases`")
        );
    }
    Ok(workflow)
}

fn checked(path: &Path, spec: Option<&Workflow>) -> Result<Vec<Finding>, CommandError> {
    let text = workflow_file::text(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    check(&text, stem.as_deref(), spec).map_err(|error| not_json(path, &text, &error))
}

/// A file that cannot be read as JSON, with the place.
pub(super) fn not_json(path: &Path, text: &str, error: &JsonError) -> CommandError {
    let (line, column) = place(text, error.at);
    let message = format!("{}:{line}:{column} is not JSON: {error}", path.display());
    CommandError::new(Code::NotJson, message).help("mend the file there; a state file is one JSON object")
}

fn reported(line: &FileLine) -> String {
    let file = sanitize::line(&line.file);
    if line.error.is_some() {
        return format!("{file}: cannot be read\n");
    }
    let mut text = String::new();
    for Finding { rule, line, column, message, help } in &line.findings {
        text += &format!("{file}:{line}:{column}: {rule}: {}\n  help: {}\n", sanitize::line(message), sanitize::line(help));
    }
    match line.findings.len() {
        0 => text += &format!("{file}: clean\n"),
        count => text += &format!("{file}: {}\n", counted(count, "finding")),
    }
    text
}
