//! Gates of the phase under way: those that belong to a task run as soon as it is done, beside other tasks; the others when all are.

use super::{Ended, PhaseRun, ended};
use crate::id::{GateId, TaskId};
use crate::run::state::{GateRun, GateState, TaskState};
use crate::spec::workflow::Phase;
use std::collections::{BTreeMap, BTreeSet};

/// Which gates stand where, so that no step looks at all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GateLookup {
    /// The task that each gate belongs to.
    task_of: Vec<Option<usize>>,
    /// The gates of each task that has any.
    by_task: BTreeMap<usize, Vec<usize>>,
    pub(super) running: BTreeSet<usize>,
    /// Gates of tasks that are done, which can start.
    pub(super) ready: BTreeSet<usize>,
    /// Gates of tasks that failed.
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
    /// The gates that belong to a task.
    pub(super) fn gates_of(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.by_task.get(&task).into_iter().flatten().copied()
    }

    /// Where the task stands that a gate belongs to.
    pub fn gated_task(&self, gate: usize) -> Option<usize> {
        self.lookup.gates.task_of.get(gate).copied().flatten()
    }

    /// Where the task stands that the gate of this id belongs to.
    pub(in crate::run) fn task_gated_by(&self, gate: &GateId) -> Option<usize> {
        self.gated_task(self.gates.iter().position(|known| known.gate == *gate)?)
    }

    /// The gates of a task run again, whatever they had found: what they looked at is done again.
    pub(in crate::run) fn gates_again(&mut self, task: usize) {
        let gates: Vec<usize> = self.gates_of(task).collect();
        for gate in gates {
            self.gates[gate].hold = None;
            self.set_gate(gate, GateState::Waiting);
        }
    }

    /// Puts a gate into a state, and lets those tasks start that only waited for it.
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

    /// The gates of a task follow what becomes of it: what it does once more is checked once more.
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

    /// Gates of tasks that are done, which can start.
    pub fn ready_gates(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.ready.iter().copied()
    }

    /// Gates of tasks that failed.
    pub fn failed_gates(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.gates.failed.iter().copied()
    }

    /// The first gate of the phase itself that has not passed. Those of tasks that were left out are asked of nobody.
    pub fn next_gate(&self) -> Option<&GateRun> {
        let own = self.gates.iter().enumerate().filter(|(index, _)| self.gated_task(*index).is_none());
        own.map(|(_, gate)| gate).find(|gate| !gate.state.is_settled())
    }
}
