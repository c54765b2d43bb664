//! Applying events about rework, and voided holds.

use super::ApplyError;
use crate::hold::HoldState;
use crate::id::{HoldId, TaskId, TaskKey};
use crate::run::event::{AttemptReason, PlannedTask};
use crate::run::phase::TaskRun;
use crate::run::state::{Run, TaskState, VoidedHold};
use crate::time::Timestamp;

/// The fields of a rework event.
pub(super) struct Redo<'e> {
    pub(super) keys: &'e [TaskKey],
    pub(super) by: &'e TaskKey,
    pub(super) issues: &'e str,
    pub(super) stale: &'e [TaskKey],
    pub(super) after: &'e [TaskId],
}

impl Run {
    /// Redoes work with a person's findings, then its dependents, and then the question is asked again.
    pub(super) fn rework_requested(&mut self, redo: &Redo<'_>, at: Timestamp) -> Result<(), ApplyError> {
        self.task(redo.by, at, |task| {
            task.hold = None;
            task.next_reason = AttemptReason::Feedback;
            let exchange = task.exchange_mut();
            exchange.rounds += 1;
            exchange.after = redo.after.to_vec();
            match &task.state {
                // Other issues cause the list to be computed again, and the item runs only if it is still listed.
                omitted @ TaskState::Omitted { .. } => omitted.clone(),
                _ => TaskState::Waiting,
            }
        })?;
        redo.keys.iter().try_for_each(|key| self.again_with_issues(key, redo.issues, at))?;
        redo.stale.iter().try_for_each(|key| self.stale(key, redo.issues, at))?;
        let ids = |keys: &[TaskKey]| keys.iter().map(|key| key.task.clone()).collect::<Vec<TaskId>>();
        let workflow = self.workflow.clone();
        let phase = self.current_phase_mut()?;
        let declared = workflow.phases.get(phase.position).ok_or_else(|| ApplyError("no such phase".into()))?;
        phase.await_rework(declared, redo.by, &ids(redo.keys), &ids(redo.stale));
        phase.look_up(declared);
        Ok(())
    }

    /// Computes a list again. Agents that a script named are redone one by one, and the task itself waits for them.
    fn again_with_issues(&mut self, key: &TaskKey, issues: &str, at: Timestamp) -> Result<(), ApplyError> {
        let children = self.taken_back(key)?;
        let again = |task: &mut TaskRun| {
            task.again(Some(issues));
            TaskState::Waiting
        };
        if self.declared(key).is_some_and(|task| task.for_each.is_some()) {
            self.list_again(&children, Some(issues), at)?;
        } else if !children.is_empty() {
            self.task(key, at, |_| TaskState::FannedOut)?;
            return children.iter().try_for_each(|child| self.task(child, at, again));
        }
        self.task(key, at, again)
    }

    /// Makes fan-out tasks wait until their list has been computed again. They run only if they are still listed.
    fn list_again(&mut self, children: &[TaskKey], issues: Option<&str>, at: Timestamp) -> Result<(), ApplyError> {
        children.iter().try_for_each(|child| {
            self.task(child, at, |task| {
                task.again(issues);
                TaskState::Omitted { reason: "its list is computed again".to_owned(), failed: false }
            })
        })
    }

    /// Fans out a task. Omits earlier items that the list no longer contains.
    pub(super) fn fan_out(&mut self, key: &TaskKey, tasks: &[PlannedTask], at: Timestamp) -> Result<(), ApplyError> {
        self.task(key, at, |_| TaskState::FannedOut)?;
        self.current_phase_mut()?.drop_items(key);
        // Results of an earlier execution do not belong to this one.
        drop(self.item_outputs.get_mut(key.phase.as_str()).and_then(|known| known.remove(key.task.as_str())));
        self.plan(tasks)
    }

    /// A task depends on rework. So does its list, which is therefore computed again.
    fn stale(&mut self, key: &TaskKey, issues: &str, at: Timestamp) -> Result<(), ApplyError> {
        let asks = self.declared(key).is_some_and(|task| task.checkpoint().is_some());
        let issues = Some(issues).filter(|_| !asks);
        let children = self.taken_back(key)?;
        self.list_again(&children, issues, at)?;
        self.task(key, at, |task| {
            task.stale(issues);
            TaskState::Waiting
        })
    }

    /// The fan-out tasks of a task; its gates run again after it.
    fn taken_back(&mut self, key: &TaskKey) -> Result<Vec<TaskKey>, ApplyError> {
        let phase = self.current_phase_mut()?;
        let index = phase.find(key).ok_or_else(|| ApplyError(format!("unknown task {}", key.address())))?;
        phase.gates_again(index);
        Ok(phase.children(index).into_iter().map(|child| phase.key(child)).collect())
    }

    /// The task no longer waits for rework, because it starts or was handled.
    pub(super) fn clear_awaited(&mut self, key: &TaskKey) -> Result<(), ApplyError> {
        let phase = self.current_phase_mut()?;
        let index = phase.find(key).ok_or_else(|| ApplyError(format!("unknown task {}", key.address())))?;
        phase.clear_awaited(index);
        Ok(())
    }

    /// Voids a hold. Tasks that waited for its answer continue, and ask again if they still have to.
    pub(super) fn voided(&mut self, hold: &HoldId, reason: &str, at: Timestamp) -> Result<(), ApplyError> {
        let hold = self.close(hold, HoldState::Void)?;
        let reopened = Some(hold.revision).filter(|revision| *revision > 1);
        let (scope, reason, revision) = (hold.scope.clone(), reason.to_owned(), reopened.unwrap_or_default());
        self.voided.push(VoidedHold { hold: hold.id.clone(), scope, reason, at, revision });
        let waiting: Vec<TaskKey> = self.current.iter().flat_map(|phase| phase.asked_about(&hold.id)).collect();
        for key in waiting {
            if self.task_run(&key).is_some_and(|task| task.state == TaskState::Blocked) {
                self.task(&key, at, |_| TaskState::Waiting)?;
            }
        }
        self.no_longer_asked(&hold.id);
        if let Some(phase) = self.current.as_mut().filter(|phase| phase.checkpoint.hold.as_ref() == Some(&hold.id)) {
            phase.checkpoint.hold = None;
        }
        Ok(())
    }
}
