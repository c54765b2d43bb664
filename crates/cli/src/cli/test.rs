//! `lockgate test`: rehearse the cases of a file, and hold what comes against what is expected.

use crate::exit::Exit;
use crate::print::{self, ERROR, FAINT, GOOD, STRONG, styled};
use crate::trouble::{Trouble, TroubleView};
use crate::{diagnose, inputs, signals};
use lockgate::code::Code;
use lockgate::preset_answers::{self, nearest};
use lockgate::rehearsal::{self, Piece};
use lockgate::{neutral, workflow_file};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::words::counted;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::rehearse::{Case, Cases, Place, Rehearsed, StepKind, read_cases};
use lockgate_runner::root::Root;
use lockgate_runner::start::{Beginning, WorkflowFile};
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
    error: Option<TroubleView>,
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

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let (root, config) = crate::open::settings(root)?;
    let halt = Halt::default();
    signals::listen(&halt)?;
    let mut files = Vec::new();
    for path in &arguments.files {
        let name = path.to_string_lossy().into_owned();
        if !arguments.json {
            print::data(&format!("{}\n", styled(STRONG, neutral::line(&name))));
        }
        let (error, cases) = match ready(path) {
            Ok(ready) => match all(&root, &config, &halt, ready, !arguments.json).await {
                Ok(cases) => (None, cases),
                Err(trouble) => (Some(trouble), Vec::new()),
            },
            Err(trouble) => (Some(trouble), Vec::new()),
        };
        if let Some(trouble) = &error {
            trouble.tell();
        }
        files.push(FileView { file: name, error: error.as_ref().map(Trouble::view), cases });
        if halt.is_halted() {
            return Ok(Exit::by_signal(halt.signal()));
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
fn ready(path: &Path) -> Result<Ready, Trouble> {
    let source = text(path)?;
    let Cases { workflow, mut cases } = read_cases(&source).map_err(|problem| {
        let message = format!("{}:{}:{}: {}", path.display(), problem.line, problem.column, problem.message);
        let trouble = Trouble::new(Code::BadCases, message);
        let trouble = problem.help.iter().cloned().fold(trouble, Trouble::help);
        diagnose::tell_problem(&path.to_string_lossy(), &source, &problem);
        trouble.told()
    })?;
    let beside = path.parent().unwrap_or(Path::new("")).join(&workflow);
    let mut file = workflow_file::read(&beside)?;
    let Some(workflow) = file.workflow.take() else {
        diagnose::tell(&file);
        let message = format!("{} is no valid workflow: {}", beside.display(), workflow_file::summary(&file.problems));
        return Err(Trouble::new(Code::InvalidWorkflow, message).told());
    };
    for case in &mut cases {
        inputs::complete(&mut case.vars, &workflow, false).map_err(|trouble| {
            trouble
                .placed(Code::BadCases, &at(path, case.place))
                .help("in a file of cases, inputs stand under the `vars` of a case")
        })?;
        for (preset, place) in &mut case.answers {
            let mut resolved = preset_answers::resolve(vec![preset.clone()], &workflow, None)
                .map_err(|trouble| trouble.placed(Code::BadCases, &at(path, *place)))?;
            if let Some(resolved) = resolved.pop() {
                *preset = resolved;
            }
        }
        for (address, (_, place)) in &case.outputs {
            let phase = address.split('/').next().unwrap_or_default();
            if workflow.phase(phase).is_none() {
                let trouble = Trouble::new(Code::BadCases, format!("{}: the workflow has no phase {phase:?}", at(path, *place)));
                let known = workflow.phases.iter().map(|phase| phase.id.as_str());
                return Err(match nearest(phase, known.clone()) {
                    Some(meant) => trouble.help(format!("did you mean {meant:?}?")),
                    None => trouble.help(format!("its phases are {}", known.collect::<Vec<_>>().join(", "))),
                });
            }
        }
    }
    Ok(Ready { cases, file, workflow })
}

fn at(path: &Path, place: Place) -> String {
    format!("{}:{}:{}", path.display(), place.line, place.column)
}

fn text(path: &Path) -> Result<String, Trouble> {
    let unreadable = |why: String| Trouble::new(Code::UnreadableFile, format!("{} cannot be read: {why}", path.display()));
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => {
            return Err(Trouble::new(Code::NotAFile, format!("{} is no file, and cases are read from one", path.display()))
                .help("name the file of cases"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(
                unreadable("there is no such file".into()).help("`lockgate explain bad-cases` shows what such a file looks like")
            );
        }
        Err(error) => return Err(unreadable(error.to_string())),
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

async fn all(root: &Root, config: &Config, halt: &Halt, ready: Ready, tell: bool) -> Result<Vec<CaseView>, Trouble> {
    let Ready { cases, file, workflow } = ready;
    let mut views = Vec::new();
    for case in cases {
        let Case { name, place, feature, flags, vars, answers, outputs, expect } = case;
        let beginning = Beginning {
            feature,
            flags,
            vars,
            presets: answers.into_iter().map(|(preset, _)| preset).collect(),
            detached: false,
            agent: None,
        };
        let given = outputs.into_iter().map(|(address, (given, _))| (address, given)).collect();
        let piece = Piece { file: &file, workflow: workflow.clone(), beginning, given };
        let done = rehearsal::walk(root, config, &crate::open::script_worker(), halt, piece).await?;
        if halt.is_halted() {
            break;
        }
        let mut failures = expect.compare(&done.came);
        failures.extend(unexpected(&done.came));
        let view = CaseView {
            name,
            line: place.line,
            passed: failures.is_empty(),
            status: done.came.status.word(),
            path: done.came.path.clone(),
            failures,
        };
        if tell {
            print::data(&told(&view));
        }
        views.push(view);
    }
    Ok(views)
}

/// What is wrong whatever was expected: a walk without an end, and what was given in vain.
fn unexpected(came: &Rehearsed) -> Vec<String> {
    let mut wrong: Vec<String> = came.cut_short.iter().map(|why| format!("cut short: {why}")).collect();
    let holds: Vec<String> = came.holds.iter().map(|hold| hold.names().join(" and ")).collect();
    for (selector, option) in &came.unused_answers {
        let asked = if holds.is_empty() { "nothing asked".to_owned() } else { format!("asked: {}", holds.join(", ")) };
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
        wrong.push(format!("the output given for {unused} was never needed{meant}"));
    }
    wrong
}

fn told(case: &CaseView) -> String {
    let name = neutral::line(&case.name).into_owned();
    if case.passed {
        let path: Vec<String> = case.path.iter().map(|phase| neutral::line(phase).into_owned()).collect();
        return format!("  {} {name} {}\n", styled(GOOD, "ok    "), styled(FAINT, format_args!("({})", path.join(" → "))));
    }
    let mut text = format!("  {} {name} (line {})\n", styled(ERROR, "FAILED"), case.line);
    for failure in &case.failures {
        for line in neutral::lines(failure).lines() {
            text += &format!("         {line}\n");
        }
    }
    text
}
