//! Tests of the engine through its public API.

mod checkpoints;
mod hostile_input;
mod mustache;
mod positions;
mod references;
mod reuse;
mod shell;
mod shown_diffs;
mod templates;
mod validation;
mod workflow_file;

use lockgate_engine::spec::problem::Severity;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::spec::{Read, read};

/// All problems of a file, one line each: `line:column code: message (help)`.
fn diagnostics(source: &str) -> Vec<String> {
    lines(read(source))
}

fn lines(read: Read) -> Vec<String> {
    let Read { workflow, problems } = read;
    let errors = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(workflow.is_none(), errors, "a workflow and an error exclude each other: {problems:?}");
    problems
        .iter()
        .map(|problem| {
            let warning = if problem.severity == Severity::Warning { "warning " } else { "" };
            let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{}:{} {warning}{}: {}{help}", problem.line, problem.column, problem.code, problem.message)
        })
        .collect()
}

/// The workflow of a file without problems.
fn workflow(source: &str) -> Workflow {
    assert_eq!(diagnostics(source), [] as [&str; 0], "{source}");
    read(source).workflow.expect("a workflow")
}

/// A file whose only phase is `one` with these lines, indented by four.
fn in_phase(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("name: test\nphases:\n  - id: one\n{lines}")
}

/// A file whose only task is `a` with these lines, which start on line 6.
fn in_task(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    in_phase(&format!("tasks:\n  - id: a\n{lines}"))
}

/// A file with phases `before`, `here` and `after`, where `here` has a checkpoint with these lines, which start on line 8.
fn in_checkpoint(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "name: test\nphases:\n  - id: before\n    gates: []\n  - id: here\n    gates: []\n    checkpoint:\n{lines}  - id: after\n    gates: []\n"
    )
}
