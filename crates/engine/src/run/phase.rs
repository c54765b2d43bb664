//! The phase under way: its tasks, its gates and its checkpoint, and which tasks can start.

use crate::id::{HoldId, PhaseId, TaskId, TaskKey};
use crate::run::event::{AttemptReason, PlannedTask};
use crate::run::state::{CheckpointRun, GateRun, GateState, TaskState};
use crate::spec::workflow::{Phase, Task};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The phase under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRun {
    /// The phase.
    pub id: PhaseId,
    /// Its place in the definition.
    pub position: usize,
    /// Its execution, counted from 1.
    pub iteration: u32,
    /// What was said when it was asked for again.
    pub feedback: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// Its tasks, once they are planned.
    pub tasks: Vec<TaskRun>,
    /// Its gates.
    pub gates: Vec<GateRun>,
    /// Its checkpoint.
    pub checkpoint: CheckpointRun,
    /// Which tasks stand where; made from `tasks` and the definition.
    #[serde(skip)]
    lookup: Lookup,
}

/// A task of the phase under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRun {
    /// The task.
    pub task: TaskId,
    /// The item of a fan-out that it works on.
    pub item: Option<String>,
    /// Where it stands.
    pub state: TaskState,
    /// How many attempts there were.
    pub attempts: u32,
    /// How many of them failed since it was last asked for.
    pub failures: u32,
    /// Why there will be a next attempt.
    pub next_reason: AttemptReason,
    /// The hold that asks about it.
    pub hold: Option<HoldId>,
    /// When its last attempt began or ended.
    pub since: Option<Timestamp>,
}

/// Which tasks stand where, so that no step looks at all of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lookup {
    by_name: BTreeMap<TaskId, Vec<usize>>,
    declared: Vec<Option<usize>>,
    dependents: Vec<Vec<usize>>,
    missing: Vec<usize>,
    ready: BTreeSet<usize>,
    running: BTreeSet<usize>,
    troubled: BTreeSet<usize>,
    unfinished: usize,
}

impl PhaseRun {
    pub(super) fn begin(phase: &Phase, position: usize, iteration: u32, feedback: Option<String>, at: Timestamp) -> Self {
        let gates = phase.gates.iter();
        Self {
            id: phase.id.clone(),
            position,
            iteration,
            feedback,
            started_at: at,
            tasks: Vec::new(),
            gates: gates
                .map(|gate| GateRun { gate: gate.id.clone(), attempts: 0, state: GateState::Waiting, hold: None })
                .collect(),
            checkpoint: CheckpointRun::default(),
            lookup: Lookup::default(),
        }
    }

    pub(super) fn plan(&mut self, phase: &Phase, planned: &[PlannedTask]) {
        let tasks = planned.iter();
        self.tasks = tasks
            .map(|planned| TaskRun {
                task: planned.task.clone(),
                item: planned.item.clone(),
                state: TaskState::Waiting,
                attempts: 0,
                failures: 0,
                next_reason: AttemptReason::First,
                hold: None,
                since: None,
            })
            .collect();
        self.look_up(phase);
    }

    /// Makes the lookup anew, after the tasks were planned or the state was loaded.
    pub(super) fn look_up(&mut self, phase: &Phase) {
        let declared: BTreeMap<&str, usize> =
            phase.tasks.iter().enumerate().map(|(index, task)| (task.id.as_str(), index)).collect();
        let mut lookup = Lookup { unfinished: self.tasks.len(), ..Lookup::default() };
        for (index, task) in self.tasks.iter().enumerate() {
            lookup.by_name.entry(task.task.clone()).or_default().push(index);
            lookup.declared.push(declared.get(task.task.as_str()).copied());
        }
        lookup.dependents = vec![Vec::new(); self.tasks.len()];
        lookup.missing = vec![0; self.tasks.len()];
        for index in 0..self.tasks.len() {
            let Some(spec) = lookup.declared[index].map(|at| &phase.tasks[at]) else { continue };
            for need in spec.needs.iter().flat_map(|need| lookup.by_name.get(need.as_str()).into_iter().flatten()) {
                lookup.dependents[*need].push(index);
                lookup.missing[index] += 1;
            }
        }
        lookup.ready = (0..self.tasks.len()).filter(|index| lookup.missing[*index] == 0).collect();
        self.lookup = lookup;
        let states: Vec<TaskState> = self.tasks.iter().map(|task| task.state.clone()).collect();
        for (index, state) in states.into_iter().enumerate() {
            self.tasks[index].state = TaskState::Waiting;
            self.set(index, state);
        }
    }

    /// Puts a task into a state, and lets those start that only waited for it.
    pub(super) fn set(&mut self, index: usize, state: TaskState) {
        let lookup = &mut self.lookup;
        let was_done = is_done(&self.tasks[index].state);
        lookup.ready.remove(&index);
        lookup.running.remove(&index);
        lookup.troubled.remove(&index);
        match &state {
            TaskState::Waiting => {
                if lookup.missing[index] == 0 {
                    lookup.ready.insert(index);
                }
            }
            TaskState::Running | TaskState::Backoff { .. } => {
                lookup.running.insert(index);
            }
            TaskState::Interrupted | TaskState::Failed(_) => {
                lookup.troubled.insert(index);
            }
            TaskState::Done | TaskState::Skipped => {}
        }
        match (was_done, is_done(&state)) {
            (false, true) => {
                lookup.unfinished -= 1;
                for dependent in lookup.dependents[index].clone() {
                    lookup.missing[dependent] -= 1;
                    if lookup.missing[dependent] == 0 && self.tasks[dependent].state == TaskState::Waiting {
                        lookup.ready.insert(dependent);
                    }
                }
            }
            // No rule asks for this, but a history might: what counts must count in both directions.
            (true, false) => {
                lookup.unfinished += 1;
                for dependent in lookup.dependents[index].clone() {
                    lookup.missing[dependent] += 1;
                    lookup.ready.remove(&dependent);
                }
            }
            (false, false) | (true, true) => {}
        }
        self.tasks[index].state = state;
    }

    /// Where a task of this execution stands in `tasks`.
    pub fn find(&self, key: &TaskKey) -> Option<usize> {
        if key.phase != self.id || key.iteration != self.iteration {
            return None;
        }
        let mut candidates = self.lookup.by_name.get(key.task.as_str())?.iter();
        candidates.find(|index| self.tasks[**index].item == key.item).copied()
    }

    /// The key of a task.
    pub fn key(&self, index: usize) -> TaskKey {
        let task = &self.tasks[index];
        TaskKey { phase: self.id.clone(), iteration: self.iteration, task: task.task.clone(), item: task.item.clone() }
    }

    /// What the definition says of a task.
    pub fn declared<'a>(&self, phase: &'a Phase, index: usize) -> Option<&'a Task> {
        self.lookup.declared[index].map(|at| &phase.tasks[at])
    }

    /// Tasks that can start now, in the order of the file.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.ready.iter().copied()
    }

    /// Tasks that run or wait for their next try.
    pub fn running(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.running.iter().copied()
    }

    /// Tasks that failed or were cut off.
    pub fn troubled(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.troubled.iter().copied()
    }

    /// Whether all tasks are done.
    pub fn tasks_done(&self) -> bool {
        self.lookup.unfinished == 0
    }

    /// Whether nothing runs and nothing can start until a person has answered.
    pub(super) fn is_still(&self) -> bool {
        self.lookup.ready.is_empty()
            && self.lookup.running.is_empty()
            && self.gates.iter().all(|gate| gate.state != GateState::Running)
    }
}

fn is_done(state: &TaskState) -> bool {
    matches!(state, TaskState::Done | TaskState::Skipped)
}
