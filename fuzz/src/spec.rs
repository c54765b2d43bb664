//! Workflow files: any text gives problems with places inside it, or a workflow that can be frozen with a run.

use lockgate_engine::spec::problem::{MAX_PROBLEMS, Problem, Severity};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::spec::{Read, read};

/// More than anybody reads of one message.
const LONGEST_MESSAGE: usize = 2000;

/// Reads a workflow file.
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

/// Reads a workflow and checks all that is claimed of what comes back.
pub(crate) fn checked(text: &str) -> Option<Workflow> {
    let Read { workflow, problems } = read(text);
    assert!(problems.len() <= MAX_PROBLEMS + 1, "{} problems are told", problems.len());
    problems.iter().for_each(|problem| well_told(text, problem));
    let failed = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(workflow.is_none(), failed, "a workflow comes back if and only if no problem is an error: {problems:?}");
    if let Some(workflow) = &workflow {
        can_be_frozen(workflow);
    }
    workflow
}

/// The place lies inside the file and is what line and column say; the words can be shown anywhere.
pub(crate) fn well_told(text: &str, problem: &Problem) {
    let span = &problem.span;
    assert!(span.start <= span.end && span.end <= text.len(), "{problem:?} lies outside the file");
    let (before, told) = (&text[..span.start], &text[span.clone()]);
    assert!(!told.contains('\n'), "{problem:?} is about more than one line");
    assert_eq!(problem.line, 1 + before.matches('\n').count(), "{problem:?}");
    let line = before.rsplit('\n').next().unwrap_or(before);
    let mark = usize::from(problem.line == 1 && line.starts_with('\u{feff}'));
    assert_eq!(problem.column, 1 + line.chars().count() - mark, "{problem:?}");
    can_be_shown(&problem.message);
    problem.help.iter().for_each(|help| can_be_shown(help));
}

/// One line without control characters, of a length that somebody reads.
pub(crate) fn can_be_shown(message: &str) {
    assert!(!message.trim().is_empty(), "a message says nothing");
    assert!(!message.contains(char::is_control), "{message:?} holds control characters");
    assert!(message.chars().count() <= LONGEST_MESSAGE, "a message of {} bytes: {message:.200}", message.len());
}

/// What is frozen with a run reads back as the same.
pub(crate) fn can_be_frozen(workflow: &Workflow) {
    let bytes = workflow.to_bytes();
    let again = Workflow::from_bytes(&bytes).unwrap_or_else(|error| panic!("a definition that was written: {error}"));
    assert_eq!(*workflow, again, "a definition reads back as another");
    assert_eq!(bytes, again.to_bytes(), "a definition has two stored forms");
}
