//! Tasks of the phase under way that are done again because a person found issues.

use super::{Ended, Links, PhaseRun, TaskRun, ended};
use crate::id::{TaskId, TaskKey};
use crate::run::event::{AttemptReason, PlannedTask};
use crate::run::state::TaskState;
use crate::spec::workflow::{Join, Phase};
use std::collections::{BTreeMap, BTreeSet};

impl TaskRun {
    /// It is done again with what a person found. What was found before and has not been dealt with yet still counts.
    pub(in crate::run) fn again(&mut self, issues: Option<&str>) {
        let dealt_with = ended(&self.state) == Some(Ended::Well);
        self.failures = 0;
        self.rounds = 0;
        self.hold = None;
        if self.attempts > 0 {
            self.next_reason = AttemptReason::Feedback;
        }
        let Some(issues) = issues.filter(|_| self.attempts > 0) else { return };
        let exchange = self.exchange_mut();
        let before = exchange.issues.take().filter(|before| !dealt_with && before != issues);
        let all = before.map_or_else(|| issues.to_owned(), |before| format!("{before}\n\n{issues}"));
        exchange.feedback = Some(all.clone());
        exchange.issues = Some(all);
    }

    /// It depends on what is done again: its `when` counts anew, and what a person skipped before it ever ran stays skipped.
    pub(in crate::run) fn stale(&mut self, issues: Option<&str>) {
        let stays_skipped = self.state == TaskState::Skipped && self.attempts == 0;
        self.again(issues);
        self.admitted = false;
        if stays_skipped {
            self.exchange_mut().skipped = true;
        }
    }

    /// Its list was made again, and it is still in it.
    pub(super) fn listed_again(&mut self, planned: &PlannedTask) {
        self.state = TaskState::Waiting;
        self.admitted = false;
        self.value.clone_from(&planned.value);
    }

    /// Whether it counts as done when its turn comes.
    pub(in crate::run) fn stays_skipped(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.skipped)
    }
}

impl PhaseRun {
    /// Whether it is a task of its own, and not one of several that a task became.
    pub(in crate::run) fn is_whole(&self, index: usize) -> bool {
        self.parent(index).is_none()
    }

    /// The list of a task was made again: until they are found in it, its former items are left out. The lookup is made anew after this.
    pub(in crate::run) fn drop_items(&mut self, key: &TaskKey) {
        for index in self.find(key).map(|parent| self.children(parent)).unwrap_or_default() {
            self.tasks[index].state = TaskState::Omitted { reason: "it is no longer in the list".to_owned(), failed: false };
        }
    }

    /// The tasks for items of a list that are there already, where the list is made once more.
    pub(super) fn known_items(&self, planned: &[PlannedTask]) -> BTreeMap<(TaskId, String), usize> {
        let relisted = planned.iter().find(|planned| planned.item.is_some()).map(|planned| &planned.task);
        let known = relisted.and_then(|task| self.lookup.by_name.get(task)).into_iter().flatten();
        let with_item =
            |(item, index): (&Option<String>, &usize)| Some(((self.tasks[*index].task.clone(), item.clone()?), *index));
        known.filter_map(with_item).collect()
    }

    /// Tasks of which one need is enough wait for all that is done again of what they need, and for the question that asked for it.
    /// Only the tasks that it names do not wait for the question itself: it wants them done.
    pub(in crate::run) fn await_rework(&mut self, phase: &Phase, by: &TaskKey, named: &[TaskId], stale: &[TaskId]) {
        let asking = self.find(by);
        let waiting = |index: &usize| Some(*index) != asking && self.tasks[*index].state == TaskState::Waiting;
        for index in (0..self.tasks.len()).filter(waiting).collect::<Vec<_>>() {
            let is_named = named.contains(&self.tasks[index].task);
            let Some(declared) = self.declared(phase, index).filter(|task| task.join == Join::Any) else { continue };
            let is_redone = |need: &&TaskId| named.contains(need) || stale.contains(need) || (**need == by.task && !is_named);
            let redone: Vec<TaskId> = declared.needs.iter().filter(is_redone).cloned().collect();
            if !redone.is_empty() {
                let after = &mut self.tasks[index].exchange_mut().after;
                after.retain(|task| !redone.contains(task));
                after.extend(redone);
            }
        }
    }

    /// What cannot start before some tasks have ended, because it needs them or waits for them to be done again, by places.
    pub(in crate::run) fn blocked_by(&self, tasks: &[usize]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open: Vec<usize> = tasks.to_vec();
        while let Some(index) = open.pop() {
            let Links { dependents, awaited_by, .. } = &self.lookup.links[index];
            let next = dependents.iter().chain(awaited_by).copied();
            open.extend(next.filter(|blocked| found.insert(*blocked)));
        }
        found
    }

    /// A task starts or was dealt with, so that it no longer waits for what is done again.
    pub(in crate::run) fn clear_awaited(&mut self, index: usize) {
        let Some(exchange) = &mut self.tasks[index].exchange else { return };
        exchange.skipped = false;
        if std::mem::take(&mut exchange.after).is_empty() {
            return;
        }
        self.lookup.links[index].rework = 0;
        self.lookup.links.iter_mut().for_each(|links| links.awaited_by.retain(|waiting| *waiting != index));
    }

    /// Nothing waits for what, since the definition was changed, comes after it.
    pub(super) fn drop_cycles(&mut self) {
        for index in 0..self.tasks.len() {
            if self.tasks[index].exchange.as_ref().is_none_or(|exchange| exchange.after.is_empty()) {
                continue;
            }
            let root = self.parent(index).unwrap_or(index);
            let later: Vec<TaskId> = self.blocked_by(&[root]).into_iter().map(|index| self.tasks[index].task.clone()).collect();
            self.tasks[index].exchange_mut().after.retain(|task| !later.contains(task));
        }
    }
}
