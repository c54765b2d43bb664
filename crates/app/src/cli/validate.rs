//! `lockgate validate`: check workflow files without running them.

use crate::exit::Exit;
use crate::trouble::TroubleView;
use crate::{diagnose, neutral, print, workflow_file};
use lockgate_engine::spec::problem::Problem;
use serde::Serialize;
use std::path::PathBuf;

/// Checks workflow files without running them
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The workflow files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FileLine {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TroubleView>,
    problems: Vec<Problem>,
}

pub(super) fn run(arguments: &Arguments) -> Exit {
    let mut lines = Vec::new();
    for path in &arguments.files {
        let file = path.to_string_lossy().into_owned();
        let line = match workflow_file::read(path) {
            Err(trouble) => {
                if !arguments.json {
                    trouble.tell();
                    print::data(&format!("{}: cannot be read\n", neutral::line(&file)));
                    lines.push(FileLine { file, valid: false, error: None, problems: Vec::new() });
                    continue;
                }
                FileLine { file, valid: false, error: Some(trouble.view()), problems: Vec::new() }
            }
            Ok(read) => {
                if !arguments.json {
                    diagnose::tell(&read);
                    let verdict = if read.workflow.is_some() { "valid" } else { "invalid" };
                    print::data(&format!("{}: {verdict}\n", neutral::line(&file)));
                }
                FileLine { file, valid: read.workflow.is_some(), error: None, problems: read.problems }
            }
        };
        lines.push(line);
    }
    if arguments.json {
        print::json(&lines);
    }
    if lines.iter().all(|line| line.valid) { Exit::Done } else { Exit::Misuse }
}
