//! EXECUTION-SPEC files: any text gives problems with positions inside it, or a consistent workflow that can be frozen.

use crate::spec::{can_be_frozen, has_a_position};
use lockgate_engine::spec::Read;
use lockgate_engine::spec::includes::NoIncludes;
use lockgate_engine::spec::problem::{MAX_PROBLEMS, Severity};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::template;
use lockgate_formats::execution_spec::read_with_includes;
use lockgate_formats::file_format::detect;
use serde_json::json;
use std::collections::BTreeSet;

/// Detects the format of a file, and reads it as an EXECUTION-SPEC regardless.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    detect(text);
    let Read { workflow, problems } = read_with_includes(text, &mut NoIncludes);
    assert!(problems.len() <= MAX_PROBLEMS + 1, "{} problems are reported", problems.len());
    problems.iter().for_each(|problem| has_a_position(text, problem));
    let failed = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(workflow.is_none(), failed, "a workflow comes back if and only if no problem is an error: {problems:?}");
    if let Some(workflow) = &workflow {
        can_be_frozen(workflow);
        is_consistent(workflow);
    }
}

fn is_consistent(workflow: &Workflow) {
    let pipeline = workflow.pipeline.as_deref().expect("a pipeline");
    assert_eq!(pipeline.phases.len(), workflow.phases.len(), "the phases match");
    let phases: BTreeSet<&str> = workflow.phases.iter().map(|phase| phase.id.as_str()).collect();
    assert_eq!(phases.len(), workflow.phases.len(), "two phases have the same id");
    let mut placed = BTreeSet::new();
    for phase in &workflow.phases {
        assert!(is_safe(phase.id.as_str()), "{:?}", phase.id);
        let mut steps = BTreeSet::new();
        for task in &phase.tasks {
            assert!(
                is_safe(task.id.as_str()) && placed.insert(task.id.as_str()) && steps.insert(task.id.as_str()),
                "{:?}",
                task.id
            );
            assert!(task.needs.iter().all(|need| phase.task(need.as_str()).is_some()), "{:?}", task.needs);
        }
        for gate in &phase.gates {
            assert!(is_safe(gate.id.as_str()) && steps.insert(gate.id.as_str()), "{:?}", gate.id);
            assert!(gate.task.as_ref().is_none_or(|task| phase.task(task.as_str()).is_some()), "{:?}", gate.task);
        }
        if let Some(checkpoint) = &phase.checkpoint {
            template::render(&checkpoint.prompt, &json!({}), template::Escape::None)
                .expect("it contains no template expressions");
        }
    }
    assert!(is_safe(&pipeline.prd), "{:?}", pipeline.prd);
    assert!(pipeline.workstreams.iter().all(|stream| placed.contains(stream.id.as_str())), "a workstream is not a task");
    for path in pipeline.workstreams.iter().flat_map(|stream| &stream.outputs).filter_map(|output| output.path.as_deref()) {
        assert!(!path.starts_with('/') && path.split('/').all(|part| part != ".."), "{path:?} is outside of the root");
    }
}

fn is_safe(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '-']) && name.len() < 200 && !name.contains(['/', '\\', '\0', ' ', '\n'])
}

/// The example, and shapes of real files.
pub fn seeds() -> Vec<Vec<u8>> {
    let other = "---\nprd_id: PRD-001\nworkstreams:\n  - {id: A, depends_on: none, outputs: [{path: a/{TS}.sql, change: x}, 'b.ts (new)', some words]}\n  - {id: B, agent: x, gates: [g, h], deferred: true}\nexecution_phases:\n  phase_1: {workstreams: [A], parallel: false, gate: g, blocked: true}\ngates: [{id: g, commands: [a, b], files_required: [c]}, h]\n---\n### A\n{{x}}\n";
    let broken = "prd: ..\nworkstreams: {A: {depends_on: [A, B, C]}, B: {depends_on: A, gate: no}}\nexecution_phases: [[A], [A, D], B]\ngates: x\n";
    [include_str!("../../examples/pipeline/EXEC-001-changelog-page.md"), other, broken, "---\n---\n", "{}"]
        .iter()
        .map(|seed| seed.as_bytes().to_vec())
        .collect()
}
