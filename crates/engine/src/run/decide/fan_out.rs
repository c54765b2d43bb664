//! Fan-out, and tasks that are left out.

use crate::id::{TaskId, TaskKey};
use crate::run::command::Item;
use crate::run::event::{ConditionOutcome, Event, Failure, FailureKind, PlannedTask};
use crate::run::phase::PhaseRun;
use crate::run::state::{Run, TaskState};
use crate::spec::subagent::{Subagent, free_id};
use crate::spec::workflow::{Phase, Task, Workflow};
use std::collections::BTreeSet;

/// A task's `when` was evaluated: the task may start, or is left out. A condition that cannot be evaluated is a failure, never a
/// consent.
pub(super) fn when_evaluated(run: &Run, key: &TaskKey, outcome: &ConditionOutcome) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    let Some(index) = phase.find(key) else { return Vec::new() };
    let task = &phase.tasks[index];
    // Its dependencies may have been requested again since; then `when` is evaluated again after them.
    if task.state != TaskState::Waiting || task.admitted || !phase.is_ready(index) {
        return Vec::new();
    }
    let key = key.clone();
    vec![match outcome {
        ConditionOutcome::True => Event::TaskAdmitted { key },
        ConditionOutcome::False => Event::TaskOmitted { key, reason: "its `when` is false".to_owned(), failed: false },
        ConditionOutcome::Error(error) => {
            let message = format!("its `when` could not be evaluated: {error}");
            let failure = Failure { kind: FailureKind::Condition, message, tail: String::new() };
            Event::TaskFailed { key, attempt: task.attempts, failure, agent: None }
        }
    }]
}

/// Splits a task into one per item.
pub(super) fn items(phase: &PhaseRun, index: usize, items: &[Item]) -> Vec<Event> {
    let task = &phase.tasks[index];
    let children = items.iter().map(|item| PlannedTask {
        task: task.task.clone(),
        item: Some(item.key.clone()),
        value: Some(item.value.clone()),
        spec: None,
        parent: Some(task.task.clone()),
    });
    vec![Event::TaskFannedOut { key: phase.key(index), attempt: task.attempts, tasks: children.collect() }]
}

/// Splits a task into those of the agents that its script named.
pub(super) fn agents(run: &Run, phase: &PhaseRun, index: usize, agents: &[Subagent]) -> Vec<Event> {
    let task = &phase.tasks[index];
    let tasks = planned(&run.workflow, phase, agents, Some(&task.task));
    vec![Event::TaskFannedOut { key: phase.key(index), attempt: task.attempts, tasks }]
}

/// The tasks of agents that were named at run time.
pub(super) fn planned(workflow: &Workflow, phase: &PhaseRun, agents: &[Subagent], parent: Option<&TaskId>) -> Vec<PlannedTask> {
    let tasks = with_ids(workflow, phase, agents);
    tasks.into_iter().map(|task| plan(task, parent)).collect()
}

fn with_ids(workflow: &Workflow, phase: &PhaseRun, agents: &[Subagent]) -> Vec<Task> {
    let mut taken: BTreeSet<String> = phase.tasks.iter().map(|task| task.task.to_string()).collect();
    let declared: &Phase = &workflow.phases[phase.position];
    taken.extend(declared.tasks.iter().map(|task| task.id.to_string()));
    taken.extend(declared.gates.iter().map(|gate| gate.id.to_string()));
    let mut tasks: Vec<Task> = Vec::with_capacity(agents.len());
    for agent in agents {
        let mut task = agent.task(free_id(&agent.kind, &mut taken), &workflow.prompts);
        if declared.sequential {
            task.needs = tasks.last().map(|before| before.id.clone()).into_iter().collect();
        }
        tasks.push(task);
    }
    tasks
}

pub(super) fn plan(task: Task, parent: Option<&TaskId>) -> PlannedTask {
    PlannedTask { task: task.id.clone(), item: None, value: None, spec: Some(Box::new(task)), parent: parent.cloned() }
}
