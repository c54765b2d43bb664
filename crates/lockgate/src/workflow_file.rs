//! Workflow files as people name them: only regular files are opened, and what is wrong with a path is said with what may be meant.

use crate::code::Code;
use crate::error::Error;
use lockgate_engine::plural::counted;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::problem::{Problem, Severity};
use lockgate_runner::git::git;
use lockgate_runner::start::{DonePlans, WorkflowFile, WorkflowFileError, read_text, read_workflow_with};
use std::io::ErrorKind;
use std::path::Path;

/// How many workflow files a help lists.
const LISTED: usize = 8;

const SHOW_DIFF: &str = "show_diff";

/// Reads and checks a workflow file, or the plans of a folder.
pub fn read(path: &Path) -> Result<WorkflowFile, Error> {
    read_with(path, &DonePlans::Skip)
}

/// The same, with a choice of the plans of a directory that are done.
pub fn read_with(path: &Path, done: &DonePlans) -> Result<WorkflowFile, Error> {
    if path.is_dir() {
        match read_workflow_with(path, done) {
            // It holds no plans.
            Err(WorkflowFileError::Folder { .. }) => {}
            plans => return Ok(plans?),
        }
    }
    is_regular(path)?;
    Ok(read_workflow_with(path, done)?)
}

/// Warns where a workflow shows a git change and its file is in no repository. It may still be run where there is one.
pub fn missing_repository(file: &WorkflowFile) -> Option<Problem> {
    file.workflow.as_ref().filter(|workflow| workflow.shows_diff())?;
    let dir = file.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    git(dir, &["rev-parse", "--is-inside-work-tree"]).err()?;
    let start = file.source.find(SHOW_DIFF)?;
    let (line, column) = position(&file.source[..start]);
    Some(Problem {
        code: ProblemCode::NoRepository,
        severity: Severity::Warning,
        message: "`show_diff` shows a git change, and this file is not in a git repository".to_owned(),
        span: start..start + SHOW_DIFF.len(),
        line,
        column,
        help: Some("run `git init`, or run the workflow in a project that is a git repository".to_owned()),
        file: None,
        untold: 0,
    })
}

/// Line and column, counted from 1, of what follows a text.
fn position(before: &str) -> (usize, usize) {
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// Reads the text of another file that people name.
pub fn text(path: &Path) -> Result<String, Error> {
    is_regular(path)?;
    Ok(read_text(path)?)
}

/// Pipes and devices are not opened: reading them may wait for ever or do something.
fn is_regular(path: &Path) -> Result<(), Error> {
    let named = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(found) if found.is_dir() => {
            Err(Error::new(Code::NotAFile, format!("{named} is a folder without plans, and a workflow is a file"))
                .help(files_in(path)))
        }
        Ok(_) => Err(Error::new(Code::NotAFile, format!("{named} is no regular file, and only such are read"))
            .help("write the workflow to a file and name that")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Err(Error::new(Code::UnreadableFile, format!("{named} cannot be read: there is no such file")).help(files_in(folder)))
        }
        Err(error) => Err(Error::new(Code::UnreadableFile, format!("{named} cannot be read: {error}"))
            .help("name a workflow file that you may read")),
    }
}

/// What may be meant instead.
fn files_in(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return "name a workflow file; the path is looked up from the current folder".to_owned();
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

/// How many problems of each kind there are.
pub fn summary<'p>(problems: impl IntoIterator<Item = &'p Problem>) -> String {
    let (mut errors, mut warnings, mut untold) = (0, 0, 0);
    for problem in problems {
        match (problem.untold, problem.severity) {
            (0, Severity::Error) => errors += 1,
            (0, Severity::Warning) => warnings += 1,
            (count, _) => untold += count,
        }
    }
    let told = match (errors, warnings) {
        (0, 0) => "fine".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (errors, 0) => counted(errors, "error"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    if untold == 0 { told } else { format!("{told} and {}", counted(untold, "more problem")) }
}
