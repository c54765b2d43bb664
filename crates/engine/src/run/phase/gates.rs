//! Gates of the current phase. Gates of a task run as soon as the task is done, in parallel with other tasks; gates of the phase
//! run when all tasks are done.

use super::{Ended, PhaseRun, ended};
use crate::id::{GateId, TaskId};
use crate::run::state::{GateRun, GateState, TaskState};
use crate::spec::workflow::Phase;
use std::collections::{BTreeMap, BTreeSet};

/// An index over the gates, so that no step has to scan all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GateLookup {
    task_of: Vec<Option<usize>>,
    by_task: BTreeMap<usize, Vec<usize>>,
    pub(super) running: BTreeSet<usize>,
    /// Gates of tasks that are done. They can start.
    pub(super) ready: BTreeSet<usize>,
    /// Gates of tasks, that failed.
    failed: BTreeSet<usize>,
}

impl GateLookup {
    pub(super) fn of(gates: &[GateRun], phase: &Phase, whole: &impl Fn(&TaskId) -> Option<usize>) -> Self {
        let mut lookup = Self::default();
        for (index, gate) in gates.iter().enumerate() {
            let declared = phase.gate(gate.gate.as_str());
            let task = declared.and_then(|gate| gate.task.as_ref()).and_then(whole);
            if let Some(task) = task {
                lookup.by_task.entry(task).or_default().push(index);
            }
            lookup.task_of.push(task);
            if gate.state == GateState::Running {
                lookup.running.insert(index);
            }
        }
        lookup
    }
}

impl PhaseRun {
    pub(super) fn gates_of(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.by_task.get(&task).into_iter().flatten().copied()
    }

    /// The index of the task to which a gate belongs.
    pub fn gated_task(&self, gate: usize) -> Option<usize> {
        self.lookup.gates.task_of.get(gate).copied().flatten()
    }

    /// The index of the task to which the gate with this id belongs.
    pub(in crate::run) fn task_gated_by(&self, gate: &GateId) -> Option<usize> {
        self.gated_task(self.gates.iter().position(|known| known.gate == *gate)?)
    }

    /// Resets the gates of a task that is redone, whatever their results.
    pub(in crate::run) fn gates_again(&mut self, task: usize) {
        let gates: Vec<usize> = self.gates_of(task).collect();
        for gate in gates {
            self.gates[gate].hold = None;
            self.set_gate(gate, GateState::Waiting);
        }
    }

    /// Sets the state of a gate, and makes the tasks ready that only waited for it.
    pub(in crate::run) fn set_gate(&mut self, gate: usize, state: GateState) {
        let task = self.gated_task(gate);
        let before = task.and_then(|task| self.ending(task));
        self.gates[gate].state = state;
        self.sort_in(gate);
        if let Some(task) = task {
            let now = self.ending(task);
            if before != now {
                self.notify_dependents(task, before, now);
            }
        }
    }

    /// Updates the gates of a task after its state changed: a redone task is checked again.
    pub(super) fn gates_follow(&mut self, task: usize) {
        let Some(gates) = self.lookup.gates.by_task.get(&task) else { return };
        let again = self.tasks[task].state == TaskState::Running;
        for gate in gates.clone() {
            if again {
                self.gates[gate].state = GateState::Waiting;
            }
            self.sort_in(gate);
        }
    }

    fn sort_in(&mut self, gate: usize) {
        let task = self.gated_task(gate);
        let due = task.is_some_and(|task| ended(&self.tasks[task].state) == Some(Ended::Well));
        let lookup = &mut self.lookup.gates;
        for set in [&mut lookup.running, &mut lookup.ready, &mut lookup.failed] {
            set.remove(&gate);
        }
        match (&self.gates[gate].state, due) {
            (GateState::Running, _) => drop(lookup.running.insert(gate)),
            (GateState::Waiting, true) => drop(lookup.ready.insert(gate)),
            (GateState::Failed(_), true) => drop(lookup.failed.insert(gate)),
            (GateState::Waiting | GateState::Failed(_), false) | (GateState::Passed | GateState::Waived, _) => {}
        }
    }

    pub fn running_gates(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.running.iter().copied()
    }

    /// Gates of tasks that are done. They can start.
    pub fn ready_gates(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.ready.iter().copied()
    }

    /// Gates of tasks, that failed.
    pub fn failed_gates(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.failed.iter().copied()
    }

    /// The first gate of the phase itself that has not passed. Gates of tasks that were left out do not run.
    pub fn next_gate(&self) -> Option<&GateRun> {
        let own = self.gates.iter().enumerate().filter(|(index, _)| self.gated_task(*index).is_none());
        own.map(|(_, gate)| gate).find(|gate| !gate.state.is_settled())
    }
}
