//! `lockgate test`: rehearse the cases of a file, and hold what comes against what is expected.

use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::print::{self, ERROR, FAINT, GOOD, STRONG, styled};
use crate::{diagnostics, inputs, signals};
use lockgate::code::Code;
use lockgate::dry_run::{self, DryRunInput};
use lockgate::preset_answers::{self, nearest};
use lockgate::{sanitize, workflow_file};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::words::counted;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::dry_run::{Case, CaseFile, DryRunReport, SourcePosition, StepKind, read_cases};
use lockgate_runner::root::Root;
use lockgate_runner::start::{StartOptions, WorkflowFile};
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

#[derive(Serialize)]
struct CaseView {
    name: String,
    line: usize,
    passed: bool,
    status: &'static str,
    path: Vec<String>,
    failures: Vec<String>,
}

/// A file of cases whose workflow is there and whose answers fit.
struct Ready {
    cases: Vec<Case>,
    file: WorkflowFile,
    workflow: Workflow,
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
        let (error, cases) = match ready(path) {
            Ok(ready) => match all(&root, &config, &halt, ready, !arguments.json).await {
                Ok(cases) => (None, cases),
                Err(error) => (Some(error), Vec::new()),
            },
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

/// Reads a file of cases and the workflow that they are about, and checks what can be checked before anything is walked.
fn ready(path: &Path) -> Result<Ready, CommandError> {
    let source = text(path)?;
    let CaseFile { workflow, mut cases } = read_cases(&source).map_err(|problem| {
        let message = format!("{}:{}:{}: {}", path.display(), problem.line, problem.column, problem.message);
        let error = CommandError::new(Code::InvalidTestFile, message);
        let error = problem.help.iter().cloned().fold(error, CommandError::help);
        diagnostics::print_problem(&path.to_string_lossy(), &source, &problem);
        error.reported()
    })?;
    let beside = path.parent().unwrap_or(Path::new("")).join(&workflow);
    let mut file = workflow_file::read(&beside)?;
    let Some(workflow) = file.workflow.take() else {
        diagnostics::report(&file);
        let message = format!("{} is no valid workflow: {}", beside.display(), workflow_file::summary(&file.problems));
        return Err(CommandError::new(Code::InvalidWorkflow, message).reported());
    };
    for case in &mut cases {
        inputs::complete(&mut case.vars, &workflow, false).map_err(|error| {
            error
                .placed(Code::InvalidTestFile, &at(path, case.place))
                .help("in a file of cases, inputs stand under the `vars` of a case")
        })?;
        for (preset, place) in &mut case.answers {
            let mut resolved = preset_answers::resolve(vec![preset.clone()], &workflow, None)
                .map_err(|error| error.placed(Code::InvalidTestFile, &at(path, *place)))?;
            if let Some(resolved) = resolved.pop() {
                *preset = resolved;
            }
        }
        for (address, (_, place)) in &case.outputs {
            let phase = address.split('/').next().unwrap_or_default();
            if workflow.phase(phase).is_none() {
                let error = CommandError::new(
                    Code::InvalidTestFile,
                    format!("{}: the workflow has no phase {phase:?}", at(path, *place)),
                );
                let known = workflow.phases.iter().map(|phase| phase.id.as_str());
                return Err(match nearest(phase, known.clone()) {
                    Some(meant) => error.help(format!("did you mean {meant:?}?")),
                    None => error.help(format!("its phases are {}", known.collect::<Vec<_>>().join(", "))),
                });
            }
        }
    }
    Ok(Ready { cases, file, workflow })
}

fn at(path: &Path, place: SourcePosition) -> String {
    format!("{}:{}:{}", path.display(), place.line, place.column)
}

fn text(path: &Path) -> Result<String, CommandError> {
    let unreadable = |why: String| CommandError::new(Code::UnreadableFile, format!("{} cannot be read: {why}", path.display()));
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => {
            return Err(CommandError::new(Code::NotAFile, format!("{} is no file, and cases are read from one", path.display()))
                .help("name the file of cases"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(unreadable("there is no such file".into())
                .help("`lockgate explain invalid-test-file` shows what such a file looks like"));
        }
        Err(error) => return Err(unreadable(error.to_string())),
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

async fn all(root: &Root, config: &Config, halt: &Halt, ready: Ready, report: bool) -> Result<Vec<CaseView>, CommandError> {
    let Ready { cases, file, workflow } = ready;
    let mut views = Vec::new();
    for case in cases {
        let Case { name, place, feature, flags, vars, answers, outputs, expect } = case;
        let start_options = StartOptions {
            feature,
            flags,
            vars,
            presets: answers.into_iter().map(|(preset, _)| preset).collect(),
            detached: false,
            agent: None,
        };
        let given = outputs.into_iter().map(|(address, (given, _))| (address, given)).collect();
        let input = DryRunInput { file: &file, workflow: workflow.clone(), start_options, given };
        let done = dry_run::execute(root, config, &crate::open::script_worker(), halt, input).await?;
        if halt.is_halted() {
            break;
        }
        let mut failures = expect.compare(&done.result);
        failures.extend(unexpected(&done.result));
        let view = CaseView {
            name,
            line: place.line,
            passed: failures.is_empty(),
            status: done.result.status.word(),
            path: done.result.path.clone(),
            failures,
        };
        if report {
            print::data(&reported(&view));
        }
        views.push(view);
    }
    Ok(views)
}

/// What is wrong whatever was expected: a walk without an end, and what was given in vain.
fn unexpected(result: &DryRunReport) -> Vec<String> {
    let mut wrong: Vec<String> = result.truncated.iter().map(|why| format!("cut short: {why}")).collect();
    let holds: Vec<String> = result.holds.iter().map(|hold| hold.names().join(" and ")).collect();
    for (selector, option) in &result.unused_answers {
        let asked = if holds.is_empty() { "nothing asked".to_owned() } else { format!("asked: {}", holds.join(", ")) };
        wrong.push(format!("the answer {selector}: {option} was never asked for\n  {asked}"));
    }
    let work = || {
        let steps = result.steps.iter().filter(|step| matches!(step.kind, StepKind::Task | StepKind::Gate));
        steps.filter(|step| step.attempt.is_some()).filter_map(|step| step.address.as_deref())
    };
    for unused in &result.unused_stubs {
        let meant =
            nearest(unused, work()).filter(|meant| *meant != unused.as_str() && !unused.starts_with(&format!("{meant},")));
        let meant = meant.map(|meant| format!("\n  did you mean {meant}?")).unwrap_or_default();
        wrong.push(format!("the output given for {unused} was never needed{meant}"));
    }
    wrong
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
