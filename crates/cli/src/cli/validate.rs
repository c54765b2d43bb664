//! `lockgate validate`: check workflow files of every kind without running them.

use super::help::examples;
use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::{diagnostics, print};
use lockgate::validate::FileReport;
use lockgate::{sanitize, workflow_file};
use serde::Serialize;
use std::path::PathBuf;

/// Check workflow files
///
/// It reads workflows, plans, directories of plans and EXECUTION-SPECs, and runs nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate validate workflow.yaml",
    "lockgate validate plans/ --json",
]))]
pub(super) struct Arguments {
    /// Workflows, plans, directories of plans, EXECUTION-SPECs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the contents and problems of each file as JSON
    #[arg(long)]
    json: bool,
}

/// A file and the result of reading it.
#[derive(Default, Serialize)]
struct FileLine {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CommandErrorView>,
    #[serde(flatten)]
    report: FileReport,
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
                let report = FileReport::of(read);
                FileLine { file, valid: report.valid, error: None, report }
            }
        };
        lines.push(line);
    }
    if arguments.json {
        print::json(&lines);
    }
    if lines.iter().all(|line| line.valid) { Exit::Done } else { Exit::Misuse }
}
