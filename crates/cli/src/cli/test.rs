//! `lockgate test`: rehearse the cases of a file, and hold what comes against what is expected.

use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::print::{self, ERROR, FAINT, GOOD, STRONG, styled};
use crate::{diagnostics, signals};
use lockgate::cases::{CaseError, CaseFile, CaseView};
use lockgate::sanitize;
use lockgate_engine::plural::counted;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::root::Root;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Tests workflows: walks each case of a file with stub work and given answers, and compares the path taken with what is expected
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Files of cases
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints JSON
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
    for path in &arguments.files {
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

/// Walks the cases of a file, and tells each as it ends.
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
