//! Continuing from a state that was taken at any point, also between two events of one commit.

use super::ApplyError;
use crate::id::TaskKey;
use crate::run::event::{AttemptReason, PlannedTask};
use crate::run::pipeline::PipelineRun;
use crate::run::state::{GateState, Run, TaskState};
use crate::time::Timestamp;

impl Run {
    /// Sets every task that was running to another state, and on request also every one that was backing off.
    pub(in crate::run) fn no_longer_running(&mut self, now: TaskState, backoffs: bool) {
        let Some(phase) = &mut self.current else { return };
        for index in phase.running().collect::<Vec<_>>() {
            let task = &mut phase.tasks[index];
            let was_running = task.state == TaskState::Running;
            if was_running {
                task.next_reason = AttemptReason::Interrupted;
            }
            if was_running || backoffs {
                phase.set(index, now.clone());
            }
        }
        for index in phase.running_gates().collect::<Vec<_>>() {
            phase.set_gate(index, GateState::Waiting);
        }
    }

    /// Completes a state that lacks the rest of its commit: the tasks of a phase that had just started are planned, and a question
    /// whose answer had only half taken effect is asked again.
    pub(in crate::run) fn complete_commit(&mut self) -> Result<(), ApplyError> {
        self.reopen_questions();
        let Some(phase) = &mut self.current else { return Ok(()) };
        if phase.checkpoint.hold.as_ref().is_some_and(|hold| !self.holds.contains_key(hold)) {
            phase.checkpoint.hold = None;
        }
        let declared = self.workflow.phases.get(phase.position).ok_or_else(|| ApplyError("no such phase".into()))?;
        if phase.tasks.is_empty() && !declared.tasks.is_empty() {
            let planned: Vec<PlannedTask> = declared.tasks.iter().map(|task| PlannedTask::declared(task.id.clone())).collect();
            self.plan(&planned)?;
        }
        Ok(())
    }

    /// Whether a task may already have run before the history was lost, and no person has said yet that it may run.
    pub(in crate::run) fn may_have_run(&self, key: &TaskKey) -> bool {
        self.unverified && self.task_run(key).is_some_and(|task| !task.confirmed)
    }
}

impl PipelineRun {
    /// Nothing of the pipeline is running any more.
    pub(in crate::run) fn stopped(&mut self, at: Timestamp) {
        self.changed_at = at;
        let attempts = self.worked.values_mut().chain(self.checked.values_mut());
        attempts.filter(|attempt| attempt.ended.is_none()).for_each(|attempt| attempt.ended = Some(at));
    }
}
