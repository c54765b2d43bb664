//! Workflow files: any text gives problems with positions inside it, or a workflow that can be frozen with a run.

use lockgate_engine::spec::problem::{MAX_PROBLEMS, Problem, Severity};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::spec::{Read, read};

/// The maximum length of a message.
const LONGEST_MESSAGE: usize = 2000;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    checked(text);
}

/// The examples of the format.
pub fn seeds() -> Vec<Vec<u8>> {
    let examples = [
        include_str!("../../examples/conditional-quality-gate.yaml"),
        include_str!("../../examples/early-exit-on-issues.yaml"),
        include_str!("../../examples/review-before-changes.yaml"),
        include_str!("../../examples/ship-a-feature.yaml"),
        include_str!("../../examples/skip-optional-phases.yaml"),
        crate::play::WORKFLOW,
    ];
    examples.iter().map(|example| example.as_bytes().to_vec()).collect()
}

/// Reads a workflow and checks all properties of the result.
pub(crate) fn checked(text: &str) -> Option<Workflow> {
    let Read { workflow, problems } = read(text);
    assert!(problems.len() <= MAX_PROBLEMS + 1, "{} problems are reported", problems.len());
    problems.iter().for_each(|problem| has_a_position(text, problem));
    let failed = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(workflow.is_none(), failed, "a workflow comes back if and only if no problem is an error: {problems:?}");
    if let Some(workflow) = &workflow {
        can_be_frozen(workflow);
    }
    workflow
}

/// The position is inside the file and matches line and column; the message can be shown anywhere.
pub(crate) fn has_a_position(text: &str, problem: &Problem) {
    let span = &problem.span;
    assert!(span.start <= span.end && span.end <= text.len(), "{problem:?} is outside of the file");
    let (before, marked) = (&text[..span.start], &text[span.clone()]);
    assert!(!marked.contains('\n'), "{problem:?} spans more than one line");
    assert_eq!(problem.line, 1 + before.matches('\n').count(), "{problem:?}");
    let line = before.rsplit('\n').next().unwrap_or(before);
    let mark = usize::from(problem.line == 1 && line.starts_with('\u{feff}'));
    assert_eq!(problem.column, 1 + line.chars().count() - mark, "{problem:?}");
    can_be_shown(&problem.message);
    problem.help.iter().for_each(|help| can_be_shown(help));
}

/// The message is one line without control characters, and of readable length.
pub(crate) fn can_be_shown(message: &str) {
    assert!(!message.trim().is_empty(), "a message is empty");
    assert!(!message.contains(char::is_control), "{message:?} contains control characters");
    assert!(message.chars().count() <= LONGEST_MESSAGE, "a message of {} bytes: {message:.200}", message.len());
}

/// A frozen definition round-trips.
pub(crate) fn can_be_frozen(workflow: &Workflow) {
    let bytes = workflow.to_bytes();
    let again = Workflow::from_bytes(&bytes).unwrap_or_else(|error| panic!("a stored definition: {error}"));
    assert_eq!(*workflow, again, "a definition does not round-trip");
    assert_eq!(bytes, again.to_bytes(), "a definition has two stored forms");
}
