//! Batches: the layers of the longest path through a phase's dependencies.

use super::{PhaseRun, ended};
use std::collections::VecDeque;

/// The batches of a phase, and how far they have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// The batch of each task, counted from 1. Tasks of a fan-out share the batch of their parent.
    pub of_task: Vec<u32>,
    /// How many tasks of each batch have not ended.
    open: Vec<usize>,
    has_ended: Vec<bool>,
}

impl Batches {
    /// How many batches are complete: every task of them and of all batches before them has ended.
    pub fn completed(&self) -> u32 {
        self.open.iter().take_while(|open| **open == 0).count() as u32
    }

    pub fn count(&self) -> u32 {
        self.open.len() as u32
    }

    /// Takes note of a task whose state may have changed. Returns false if the tasks themselves are no longer the same.
    pub fn update(&mut self, phase: &PhaseRun, index: usize) -> bool {
        if self.has_ended.len() != phase.tasks.len() {
            return false;
        }
        let now = phase.ending(index).is_some();
        let before = std::mem::replace(&mut self.has_ended[index], now);
        let open = &mut self.open[self.of_task[index] as usize - 1];
        *open = *open + usize::from(before) - usize::from(now);
        true
    }
}

impl PhaseRun {
    /// The batches of this execution of the phase.
    pub fn batches(&self) -> Batches {
        let links = &self.lookup.links;
        let mut of_task = vec![1u32; self.tasks.len()];
        let mut missing = vec![0usize; self.tasks.len()];
        links.iter().flat_map(|links| &links.dependents).for_each(|dependent| missing[*dependent] += 1);
        let mut next: VecDeque<usize> = (0..self.tasks.len()).filter(|index| missing[*index] == 0).collect();
        while let Some(index) = next.pop_front() {
            for dependent in &links[index].dependents {
                of_task[*dependent] = of_task[*dependent].max(of_task[index] + 1);
                missing[*dependent] -= 1;
                if missing[*dependent] == 0 {
                    next.push_back(*dependent);
                }
            }
        }
        for index in 0..self.tasks.len() {
            if let Some(parent) = links[index].parent {
                of_task[index] = of_task[parent];
            }
        }
        let mut open = vec![0; of_task.iter().max().map_or(0, |last| *last as usize)];
        let has_ended: Vec<bool> = (0..self.tasks.len()).map(|index| self.ending(index).is_some()).collect();
        for (index, batch) in of_task.iter().enumerate() {
            open[*batch as usize - 1] += usize::from(!has_ended[index]);
        }
        Batches { of_task, open, has_ended }
    }

    /// Whether a task has ended, so that the run continues from it.
    pub fn task_has_ended(&self, index: usize) -> bool {
        ended(&self.tasks[index].state).is_some()
    }
}
