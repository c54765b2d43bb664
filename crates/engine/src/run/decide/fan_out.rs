//! Fan-out: tasks that are split into one per item or agent.

use crate::id::TaskId;
use crate::run::command::Item;
use crate::run::event::{Event, PlannedTask};
use crate::run::phase::PhaseRun;
use crate::run::state::Run;
use crate::spec::subagent::{Subagent, free_id};
use crate::spec::workflow::{Phase, Task, Workflow};
use std::collections::BTreeSet;

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
