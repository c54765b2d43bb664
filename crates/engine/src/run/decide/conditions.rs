//! Conditions of tasks (`when`).

use crate::id::TaskKey;
use crate::run::event::{ConditionOutcome, Event, Failure, FailureKind};
use crate::run::state::{Run, TaskState};

/// A task's `when` was evaluated: the task may start, or is left out. A condition that cannot be evaluated is a failure, never a
/// consent.
pub(super) fn when_evaluated(run: &Run, key: &TaskKey, outcome: &ConditionOutcome) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    let Some(index) = phase.find(key) else { return Vec::new() };
    let task = &phase.tasks[index];
    // Its dependencies may have been requested again since; then `when` is evaluated again after them.
    if task.state != TaskState::Waiting || task.admitted || !phase.is_ready(index) {
        return Vec::new();
    }
    let key = key.clone();
    vec![match outcome {
        ConditionOutcome::True => Event::TaskAdmitted { key },
        ConditionOutcome::False => Event::TaskOmitted { key, reason: "its `when` is false".to_owned(), failed: false },
        ConditionOutcome::Error(error) => {
            let message = format!("its `when` could not be evaluated: {error}");
            let failure = Failure { kind: FailureKind::Condition, message, tail: String::new() };
            Event::TaskFailed { key, attempt: task.attempts, failure, agent: None }
        }
    }]
}
