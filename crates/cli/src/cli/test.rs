//! `lockgate test`: run the cases of test files and compare each path with the expected one.

use super::help::examples;
use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::print::{self, ERROR, FAINT, GOOD, STRONG, styled};
use crate::{diagnostics, signals};
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate::test_files::{CaseError, CaseFile, CaseView};
use lockgate_engine::plural::counted;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::root::Root;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Test workflows against expected paths
///
/// Each case walks a workflow with stub tasks and given answers, and compares the path with the expected one.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate test",
    "lockgate test workflow.test.yaml",
]))]
pub(super) struct Arguments {
    /// Test files, or directories to search for *.test.yaml [default: the current directory]
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct TestView {
    passed: usize,
    failed: usize,
    files: Vec<FileView>,
}

#[derive(Serialize)]
struct FileView {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CommandErrorView>,
    cases: Vec<CaseView>,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let (root, config) = crate::open::settings(root)?;
    let halt = Halt::default();
    signals::listen(&halt)?;
    let mut files = Vec::new();
    for path in &test_files(&arguments.files)? {
        let name = path.to_string_lossy().into_owned();
        if !arguments.json {
            print::data(&format!("{}\n", styled(STRONG, sanitize::line(&name))));
        }
        let (error, cases) = match execute(path, &root, &config, &halt, !arguments.json).await {
            Ok(cases) => (None, cases),
            Err(error) => (Some(error), Vec::new()),
        };
        if let Some(error) = &error {
            error.report();
        }
        files.push(FileView { file: name, error: error.as_ref().map(CommandError::view), cases });
        if halt.is_halted() {
            return Ok(Exit::halted(halt.reason()));
        }
    }
    Ok(conclude(files, arguments.json))
}

/// The named files, and the `*.test.yaml` files in the named directories, below the current one if none is named.
fn test_files(named: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let here = [PathBuf::from(".")];
    let named = if named.is_empty() { &here } else { named };
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = lockgate::test_files::find(path)?;
        if found.is_empty() {
            let message = format!("no *.test.yaml file in {}", sanitize::line(&path.to_string_lossy()));
            return Err(
                CommandError::new(Code::UnreadableFile, message).help("write one as docs/guide/testing.md shows, or name a file")
            );
        }
        files.extend(found);
    }
    Ok(files)
}

fn conclude(files: Vec<FileView>, json: bool) -> Exit {
    let cases = || files.iter().flat_map(|file| &file.cases);
    let passed = cases().filter(|case| case.passed).count();
    let failed = cases().count() - passed;
    let unusable = files.iter().filter(|file| file.error.is_some()).count();
    if json {
        print::json(&TestView { passed, failed, files });
    } else {
        let failures = format!("{failed} failed");
        let failures = if failed > 0 { styled(ERROR, failures) } else { failures };
        let unusable = if unusable > 0 { format!(", {} could not be used", counted(unusable, "file")) } else { String::new() };
        print::data(&format!("{passed} passed, {failures}{unusable}\n"));
    }
    match (unusable, failed) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Failed,
        _ => Exit::Misuse,
    }
}

/// Runs the cases of a file and reports each one.
async fn execute(path: &Path, root: &Root, config: &Config, halt: &Halt, report: bool) -> Result<Vec<CaseView>, CommandError> {
    let cases = CaseFile::read(path).map_err(|error| match error {
        CaseError::CaseFile { error, source, problem } => {
            diagnostics::print_problem(&path.to_string_lossy(), &source, &problem);
            CommandError::from(error).reported()
        }
        CaseError::Workflow { error, file } => {
            diagnostics::report(&file);
            CommandError::from(error).reported()
        }
        CaseError::Other(error) => error.into(),
    })?;
    let mut walked = |view: &CaseView| {
        if report {
            print::data(&reported(view));
        }
    };
    Ok(cases.run(root, config, &crate::open::script_worker(), halt, &mut walked).await?)
}

fn reported(case: &CaseView) -> String {
    let name = sanitize::line(&case.name).into_owned();
    if case.passed {
        let path: Vec<String> = case.path.iter().map(|phase| sanitize::line(phase).into_owned()).collect();
        return format!("  {} {name} {}\n", styled(GOOD, "ok    "), styled(FAINT, format_args!("({})", path.join(" → "))));
    }
    let mut text = format!("  {} {name} (line {})\n", styled(ERROR, "FAILED"), case.line);
    for failure in &case.failures {
        for line in sanitize::lines(failure).lines() {
            text += &format!("         {line}\n");
        }
    }
    text
}
