//! Which tasks of the current phase can start. A fan-out may have very many items, so items that wait for capacity must not cost
//! anything.

use super::PhaseRun;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound::{Excluded, Unbounded};

/// Tasks that can start, by index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ready {
    /// Keyed by their fan-out parent, if any.
    groups: BTreeMap<Option<usize>, BTreeSet<usize>>,
    /// Tasks whose `when` must be evaluated first.
    undecided: BTreeSet<usize>,
}

impl Ready {
    pub(super) fn insert(&mut self, index: usize, parent: Option<usize>) {
        self.groups.entry(parent).or_default().insert(index);
    }

    pub(super) fn insert_undecided(&mut self, index: usize) {
        self.undecided.insert(index);
    }

    pub(super) fn remove(&mut self, index: usize, parent: Option<usize>) {
        self.undecided.remove(&index);
        if let Some(group) = self.groups.get_mut(&parent) {
            group.remove(&index);
            if group.is_empty() {
                self.groups.remove(&parent);
            }
        }
    }

    pub(super) fn contains(&self, index: usize, parent: Option<usize>) -> bool {
        self.undecided.contains(&index) || self.groups.get(&parent).is_some_and(|group| group.contains(&index))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.undecided.is_empty()
    }
}

/// Tasks that can start, in the order of the file.
pub(in crate::run) struct Queue<'p> {
    ready: &'p Ready,
    /// The first task of each group, and the group.
    heads: BinaryHeap<Reverse<(usize, Option<usize>)>>,
    /// The task that was taken last, if the rest of its group still counts.
    last: Option<(usize, Option<usize>)>,
}

impl Queue<'_> {
    /// Drops the rest of the last task's fan-out, which has no capacity for another task.
    pub(in crate::run) fn leave_list(&mut self) {
        self.last = None;
    }
}

impl Iterator for Queue<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if let Some((index, group)) = self.last.take() {
            let behind = self.ready.groups.get(&group).and_then(|group| group.range((Excluded(index), Unbounded)).next());
            self.heads.extend(behind.map(|index| Reverse((*index, group))));
        }
        let Reverse(head) = self.heads.pop()?;
        self.last = Some(head);
        Some(head.0)
    }
}

impl PhaseRun {
    /// Tasks that can start now, or can if their `when` is true.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        self.queue().chain(self.undecided())
    }

    pub(in crate::run) fn queue(&self) -> Queue<'_> {
        let ready = &self.lookup.ready;
        let heads = ready.groups.iter().filter_map(|(group, tasks)| Some(Reverse((*tasks.first()?, *group))));
        Queue { ready, heads: heads.collect(), last: None }
    }

    /// Tasks whose `when` must be evaluated before they can start.
    pub(in crate::run) fn undecided(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.ready.undecided.iter().copied()
    }

    /// Whether a task can start now, or can if its `when` is true.
    pub(in crate::run) fn is_ready(&self, index: usize) -> bool {
        self.lookup.ready.contains(index, self.parent(index))
    }
}
