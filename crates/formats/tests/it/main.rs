//! Tests of the formats through their public interface.

mod execution_spec;
mod state_documents;
mod state_files;

use lockgate_engine::spec::Read;
use lockgate_engine::spec::problem::Severity;

/// Everything that is wrong with a file, one line each: `line:column code: message (help)`.
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
