//! Work that was done before a run was imported counts as done and never runs again.

use crate::id::{TaskId, TaskKey};
use crate::run::event::Event;
use crate::run::pipeline::PipelineRun;
use crate::run::state::Run;
use crate::spec::workflow::Phase;

/// The events of a phase that follow from the imported file.
pub(super) fn done_before(run: &Run, known: &PipelineRun, phase: &Phase) -> Vec<Event> {
    let reason = "it was done before the run was imported";
    let done: Vec<_> = phase.tasks.iter().filter(|task| known.was_done(&task.id)).collect();
    let workstreams: Vec<TaskId> = phase.tasks.iter().map(|task| task.id.clone()).collect();
    let had_passed = |title: &str, of: Option<&TaskId>| known.had_passed(title, of, &workstreams);
    let passed: Vec<_> = phase.gates.iter().filter(|gate| had_passed(gate.title(), gate.task.as_ref())).collect();
    let whole = done.len() == phase.tasks.len() && passed.len() == phase.gates.len() && run.added_gates(phase).is_empty();
    let manual_gates =
        run.workflow.pipeline.iter().flat_map(|pipeline| &pipeline.manual_gates).filter(|gate| gate.phase == phase.id);
    let whole = whole && manual_gates.into_iter().all(|gate| had_passed(&gate.title, None));
    let mut events = Vec::new();
    for task in done {
        let key = TaskKey { phase: phase.id.clone(), iteration: 1, task: task.id.clone(), item: None };
        events.push(Event::TaskSkipped { key, reason: reason.to_owned() });
    }
    for gate in passed {
        let (phase, gate) = (phase.id.clone(), gate.id.clone());
        events.push(Event::GateWaived {
            phase,
            iteration: 1,
            gate,
            reason: Some("it passed before the run was imported".into()),
        });
    }
    // A person who resumes a pipeline that was paused after a phase thereby lets it continue.
    if whole && !phase.tasks.is_empty() {
        events.push(Event::PhaseCompleted { phase: phase.id.clone(), iteration: 1 });
    }
    events
}
