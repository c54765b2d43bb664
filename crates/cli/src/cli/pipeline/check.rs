//! `lockgate pipeline check`: check pipeline state files against the rules of their format.

use super::super::help::examples;
use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::{diagnostics, print};
use lockgate::pipeline::{check_state_file, execution_spec};
use lockgate::{sanitize, workflow_file};
use lockgate_engine::plural::counted;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_formats::state_file::rule::Finding;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Check pipeline state files against the rules of their format
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate pipeline check checkpoints/PRD-009.json",
    "lockgate pipeline check checkpoints/PRD-009.json --spec specs/EXEC-009.md",
]))]
pub(super) struct Arguments {
    /// State files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// EXECUTION-SPEC whose workstreams and gates the files must list
    #[arg(long, value_name = "SPEC")]
    spec: Option<PathBuf>,
    /// Print JSON
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
        let line = match check_state_file(path, spec.as_ref()).map_err(CommandError::from) {
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
    if file.workflow.is_some() {
        return Ok(execution_spec(file)?);
    }
    diagnostics::report(&file);
    let help = "fix it, or check the state files without `--spec`";
    execution_spec(file).map_err(|error| CommandError::from(error).help(help).reported())
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
