//! Test files: dry runs of a workflow, each compared with expectations.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::code::Code;
use crate::dry_run::{self, DryRunInput};
use crate::error::Error;
use crate::inputs;
use crate::preset_answers::{self, nearest};
use crate::script_worker::ScriptWorker;
use crate::start::invalid;
use crate::workflow_file;
use lockgate_engine::run::Status;
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::dry_run as cases_format;
use lockgate_runner::dry_run::{Case, DryRunReport, SourcePosition, StepKind, read_cases};
use lockgate_runner::root::Root;
use lockgate_runner::start::{StartOptions, WorkflowFile};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How deep [`find`] descends, and how many directories it visits, before it gives up on a tree that is not a project.
const MAX_DEPTH: usize = 32;
const MAX_DIRECTORIES: usize = 100_000;

/// Finds the `*.test.yaml` and `*.test.yml` files in a directory and below it, in order. Hidden directories, `node_modules` and `target`
/// are left out, and links are not followed.
pub fn find(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut found, mut visited) = (Vec::new(), 0);
    let mut left = vec![(dir.to_path_buf(), 0)];
    while let Some((dir, depth)) = left.pop() {
        visited += 1;
        if visited > MAX_DIRECTORIES {
            let message = format!("{} has too many directories to search", dir.display());
            return Err(Error::new(Code::UnreadableFile, message).help("name the test files, or a smaller directory"));
        }
        let unreadable = |error: std::io::Error| Error::new(Code::UnreadableFile, format!("{}: {error}", dir.display()));
        for entry in std::fs::read_dir(&dir).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(unreadable)?);
            let name = name.to_string_lossy();
            let skipped = name.starts_with('.') || ["node_modules", "target"].contains(&name.as_ref());
            if kind.is_dir() && !skipped && depth < MAX_DEPTH {
                left.push((entry.path(), depth + 1));
            } else if kind.is_file() && (name.ends_with(".test.yaml") || name.ends_with(".test.yml")) {
                let path = entry.path();
                found.push(path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The result of a test case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseView {
    pub name: String,
    pub line: usize,
    pub passed: bool,
    pub status: Status,
    pub path: Vec<String>,
    pub failures: Vec<String>,
}

/// A test file whose workflow exists and whose answers match the workflow.
pub struct CaseFile {
    cases: Vec<Case>,
    file: WorkflowFile,
    workflow: Workflow,
}

/// Why a test file cannot be used.
pub enum CaseError {
    /// The test file has an error at a position.
    CaseFile {
        error: Error,
        /// The text of the file, to show the position.
        source: String,
        problem: Box<Problem>,
    },
    /// The workflow under test has errors.
    Workflow { error: Error, file: Box<WorkflowFile> },
    /// Any other error.
    Other(Error),
}

impl From<Error> for CaseError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl CaseFile {
    /// Reads a test file and its workflow, and checks inputs, answers and outputs before any case runs.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let source = workflow_file::text(path)?;
        let cases_format::CaseFile { workflow, mut cases } = match read_cases(&source) {
            Ok(cases) => cases,
            Err(problem) => {
                let message = format!("{}:{}:{}: {}", path.display(), problem.line, problem.column, problem.message);
                let error = problem.help.iter().cloned().fold(Error::new(Code::InvalidTestFile, message), Error::help);
                return Err(CaseError::CaseFile { error, source, problem: Box::new(problem) });
            }
        };
        let mut file = workflow_file::read(&path.parent().unwrap_or(Path::new("")).join(&workflow))?;
        let Some(workflow) = file.workflow.take() else {
            return Err(CaseError::Workflow { error: invalid(&file), file: Box::new(file) });
        };
        for case in &mut cases {
            check(path, case, &workflow)?;
        }
        Ok(Self { cases, file, workflow })
    }

    /// Runs the cases in order until halted, and calls `finished` after each.
    pub async fn run(
        self,
        root: &Root,
        config: &Config,
        worker: &ScriptWorker,
        halt: &Halt,
        finished: &mut dyn FnMut(&CaseView),
    ) -> Result<Vec<CaseView>, Error> {
        let Self { cases, file, workflow } = self;
        let mut views = Vec::new();
        for case in cases {
            let Case { name, place, feature, flags, vars, answers, outputs, expect } = case;
            let presets = answers.into_iter().map(|(preset, _)| preset).collect();
            let start_options = StartOptions { feature, flags, vars, presets, detached: false, agent: None, issue: None };
            let given = outputs.into_iter().map(|(address, (given, _))| (address, given)).collect();
            let input = DryRunInput { file: &file, workflow: workflow.clone(), start_options, given };
            let done = dry_run::execute(root, config, worker, halt, input).await?;
            if halt.is_halted() {
                break;
            }
            let mut failures = expect.compare(&done.result);
            failures.extend(unexpected(&done.result));
            let (passed, status, path) = (failures.is_empty(), done.result.status, done.result.path.clone());
            let view = CaseView { name, line: place.line, passed, status, path, failures };
            finished(&view);
            views.push(view);
        }
        Ok(views)
    }
}

/// Completes the inputs of a case, and checks its answers and outputs against the workflow.
fn check(path: &Path, case: &mut Case, workflow: &Workflow) -> Result<(), Error> {
    let completed = inputs::complete(&mut case.vars, workflow).and_then(|missing| match missing.first() {
        Some((name, input)) => Err(inputs::missing(name, input)),
        None => Ok(()),
    });
    completed.map_err(|error| {
        error.placed(Code::InvalidTestFile, &at(path, case.place)).help("in a test file, set inputs under `vars` of the case")
    })?;
    for (preset, place) in &mut case.answers {
        let mut resolved = preset_answers::resolve(vec![preset.clone()], workflow, None)
            .map_err(|error| error.placed(Code::InvalidTestFile, &at(path, *place)))?;
        if let Some(resolved) = resolved.pop() {
            *preset = resolved;
        }
    }
    for (address, (_, place)) in &case.outputs {
        let phase = address.split('/').next().unwrap_or_default();
        if workflow.phase(phase).is_none() {
            let error = Error::new(Code::InvalidTestFile, format!("{}: the workflow has no phase {phase:?}", at(path, *place)));
            let known = workflow.phases.iter().map(|phase| phase.id.as_str());
            return Err(match nearest(phase, known.clone()) {
                Some(meant) => error.help(format!("did you mean {meant:?}?")),
                None => error.help(format!("its phases are {}", known.collect::<Vec<_>>().join(", "))),
            });
        }
    }
    Ok(())
}

fn at(path: &Path, place: SourcePosition) -> String {
    format!("{}:{}:{}", path.display(), place.line, place.column)
}

/// Failures that need no expectation: a dry run that was cut short, and stub answers and outputs that were never used.
fn unexpected(came: &DryRunReport) -> Vec<String> {
    let mut wrong: Vec<String> = came.truncated.iter().map(|why| format!("cut short: {why}")).collect();
    let holds: Vec<String> = came.holds.iter().map(|hold| hold.names().join(" and ")).collect();
    for (selector, option) in &came.unused_answers {
        let asked = if holds.is_empty() { "no hold was opened".to_owned() } else { format!("asked: {}", holds.join(", ")) };
        wrong.push(format!("the answer {selector}: {option} was never asked for\n  {asked}"));
    }
    let work = || {
        let steps = came.steps.iter().filter(|step| matches!(step.kind, StepKind::Task | StepKind::Gate));
        steps.filter(|step| step.attempt.is_some()).filter_map(|step| step.address.as_deref())
    };
    for unused in &came.unused_stubs {
        let meant =
            nearest(unused, work()).filter(|meant| *meant != unused.as_str() && !unused.starts_with(&format!("{meant},")));
        let meant = meant.map(|meant| format!("\n  did you mean {meant}?")).unwrap_or_default();
        wrong.push(format!("the stub output for {unused} was never used{meant}"));
    }
    wrong
}
