//! Tasks of the current phase that are redone because a person found issues.

use super::{Ended, Links, PhaseRun, TaskRun, ended};
use crate::id::{TaskId, TaskKey};
use crate::run::event::{AttemptReason, PlannedTask};
use crate::run::state::TaskState;
use crate::spec::workflow::{Join, Phase};
use std::collections::{BTreeMap, BTreeSet};

impl TaskRun {
    /// The task is redone with a person's findings. Earlier findings that have not been addressed yet still count.
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

    /// The task depends on rework: its `when` is evaluated again. If a person skipped it before it ever ran, it stays skipped.
    pub(in crate::run) fn stale(&mut self, issues: Option<&str>) {
        let stays_skipped = self.state == TaskState::Skipped && self.attempts == 0;
        self.again(issues);
        self.admitted = false;
        if stays_skipped {
            self.exchange_mut().skipped = true;
        }
    }

    /// The items were computed again, and this one is still among them.
    pub(super) fn listed_again(&mut self, planned: &PlannedTask) {
        self.state = TaskState::Waiting;
        self.admitted = false;
        self.value.clone_from(&planned.value);
    }

    /// Whether the task counts as done when its turn comes.
    pub(in crate::run) fn stays_skipped(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.skipped)
    }
}

impl PhaseRun {
    /// Whether it is a task of its own, not part of a fan-out.
    pub(in crate::run) fn is_whole(&self, index: usize) -> bool {
        self.parent(index).is_none()
    }

    /// Leaves out the items of a fan-out whose list was computed again, until they are found in the new list. The lookup must be
    /// rebuilt afterwards.
    pub(in crate::run) fn drop_items(&mut self, key: &TaskKey) {
        for index in self.find(key).map(|parent| self.children(parent)).unwrap_or_default() {
            self.tasks[index].state = TaskState::Omitted { reason: "it is no longer in the list".to_owned(), failed: false };
        }
    }

    /// The existing tasks for the items of a list that was computed again.
    pub(super) fn known_items(&self, planned: &[PlannedTask]) -> BTreeMap<(TaskId, String), usize> {
        let relisted = planned.iter().find(|planned| planned.item.is_some()).map(|planned| &planned.task);
        let known = relisted.and_then(|task| self.lookup.by_name.get(task)).into_iter().flatten();
        let with_item =
            |(item, index): (&Option<String>, &usize)| Some(((self.tasks[*index].task.clone(), item.clone()?), *index));
        known.filter_map(with_item).collect()
    }

    /// Tasks that need only one of their dependencies wait for all rework among these, and for the question that requested it.
    /// The tasks that the question names do not wait for the question.
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

    /// What cannot start before these tasks have ended, as a dependent or because it waits for their rework, by index.
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

    /// The task no longer waits for rework, because it starts or was handled.
    pub(in crate::run) fn clear_awaited(&mut self, index: usize) {
        let Some(exchange) = &mut self.tasks[index].exchange else { return };
        exchange.skipped = false;
        if std::mem::take(&mut exchange.after).is_empty() {
            return;
        }
        self.lookup.links[index].rework = 0;
        self.lookup.links.iter_mut().for_each(|links| links.awaited_by.retain(|waiting| *waiting != index));
    }

    /// Drops waits that became circular when the definition changed.
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
