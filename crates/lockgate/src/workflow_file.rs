//! Reads workflow files. Only regular files are opened, and errors suggest files that may be meant.

use crate::code::Code;
use crate::error::Error;
use lockgate_engine::plural::counted;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::problem::{Problem, Severity};
use lockgate_runner::git::git;
use lockgate_runner::start::{DonePlans, WorkflowFile, WorkflowFileError, read_text, read_workflow_with};
use std::io::ErrorKind;
use std::path::Path;

/// How many workflow files an error lists.
const LISTED: usize = 8;

const SHOW_DIFF: &str = "show_diff";

/// Reads and checks a workflow file, or the plans in a directory.
pub fn read(path: &Path) -> Result<WorkflowFile, Error> {
    read_with(path, &DonePlans::Skip)
}

/// Like [`read()`], with a choice of which finished plans to include.
pub fn read_with(path: &Path, done: &DonePlans) -> Result<WorkflowFile, Error> {
    if path.is_dir() {
        match read_workflow_with(path, done) {
            // The directory contains no plans.
            Err(WorkflowFileError::Folder { .. }) => {}
            plans => return Ok(plans?),
        }
    }
    is_regular(path)?;
    Ok(read_workflow_with(path, done)?)
}

/// Warns if a workflow shows git changes but its file is outside any repository. The workflow may still run inside one.
pub fn missing_repository(file: &WorkflowFile) -> Option<Problem> {
    file.workflow.as_ref().filter(|workflow| workflow.shows_diff())?;
    let dir = file.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    git(dir, &["rev-parse", "--is-inside-work-tree"]).err()?;
    let start = file.source.find(SHOW_DIFF)?;
    let (line, column) = position(&file.source[..start]);
    Some(Problem {
        code: ProblemCode::NoRepository,
        severity: Severity::Warning,
        message: "`show_diff` shows git changes, but this file is not in a git repository".to_owned(),
        span: start..start + SHOW_DIFF.len(),
        line,
        column,
        help: Some("run `git init`, or run the workflow in a project that is a git repository".to_owned()),
        file: None,
        untold: 0,
    })
}

/// The line and column, from 1, that follow a text.
fn position(before: &str) -> (usize, usize) {
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// Reads another text file.
pub fn text(path: &Path) -> Result<String, Error> {
    is_regular(path)?;
    Ok(read_text(path)?)
}

/// Refuses pipes and devices, because reading them may block or have side effects.
fn is_regular(path: &Path) -> Result<(), Error> {
    let named = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(found) if found.is_dir() => {
            Err(Error::new(Code::NotAFile, format!("{named} is a directory without plans, not a workflow file"))
                .help(files_in(path)))
        }
        Ok(_) => Err(Error::new(Code::NotAFile, format!("{named} is not a regular file")).help("write the workflow to a file")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Err(Error::new(Code::UnreadableFile, format!("{named} cannot be read: there is no such file")).help(files_in(folder)))
        }
        Err(error) => Err(Error::new(Code::UnreadableFile, format!("{named} cannot be read: {error}"))
            .help("name a workflow file that you may read")),
    }
}

/// Suggests workflow files in a directory.
fn files_in(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return "name a workflow file; paths are relative to the current directory".to_owned();
    };
    let is_yaml = |path: &Path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| is_yaml(path) && path.is_file());
    let mut names: Vec<String> =
        paths.map(|path| path.strip_prefix(".").unwrap_or(&path).to_string_lossy().into_owned()).collect();
    names.sort();
    if names.is_empty() {
        return format!(
            "name a workflow file; there are neither YAML files nor plans (.md files with `<task>`) in {}",
            folder.display()
        );
    }
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    format!("YAML files there: {}", names.join(", "))
}

/// Counts errors and warnings.
pub fn summary<'p>(problems: impl IntoIterator<Item = &'p Problem>) -> String {
    let (mut errors, mut warnings, mut untold) = (0, 0, 0);
    for problem in problems {
        match (problem.untold, problem.severity) {
            (0, Severity::Error) => errors += 1,
            (0, Severity::Warning) => warnings += 1,
            (count, _) => untold += count,
        }
    }
    let counts = match (errors, warnings) {
        (0, 0) => "fine".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    if untold == 0 { counts } else { format!("{counts} and {}", counted(untold, "more problem")) }
}
