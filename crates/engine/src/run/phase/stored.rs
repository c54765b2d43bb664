//! The stored form of a phase's tasks. There may be very many, so rare fields must not cost space in every task.

use super::{Exchange, TaskRun};
use crate::id::{HoldId, TaskId};
use crate::run::agent::AgentReport;
use crate::run::event::{AttemptReason, SessionStart};
use crate::run::state::TaskState;
use crate::spec::workflow::Task;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A stored task. Add new fields at the end of [`RareFields`].
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTaskRun {
    task: TaskId,
    state: TaskState,
    attempts: u32,
    failures: u32,
    next_reason: AttemptReason,
    since: Option<Timestamp>,
    #[serde(default)]
    rare_fields: Option<Box<RareFields>>,
}

/// Fields that few tasks have.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct RareFields {
    item: Option<String>,
    hold: Option<HoldId>,
    value: Option<StoredValue>,
    spec: Option<Box<Task>>,
    parent: Option<TaskId>,
    admitted: bool,
    rounds: u32,
    previous: Option<StoredValue>,
    session: Option<SessionStart>,
    agent: Option<Box<AgentReport>>,
    exchange: Option<Box<Exchange>>,
    #[serde(default)]
    confirmed: bool,
}

impl From<TaskRun> for StoredTaskRun {
    fn from(run: TaskRun) -> Self {
        let TaskRun { task, state, attempts, failures, next_reason, since, .. } = run;
        let TaskRun { item, hold, value, spec, parent, admitted, rounds, previous, session, agent, exchange, confirmed, .. } =
            run;
        let rare_fields =
            RareFields { item, hold, value, spec, parent, admitted, rounds, previous, session, agent, exchange, confirmed };
        let rare_fields = (rare_fields != RareFields::default()).then(|| Box::new(rare_fields));
        Self { task, state, attempts, failures, next_reason, since, rare_fields }
    }
}

impl From<StoredTaskRun> for TaskRun {
    fn from(stored: StoredTaskRun) -> Self {
        let StoredTaskRun { task, state, attempts, failures, next_reason, since, rare_fields } = stored;
        let RareFields { item, hold, value, spec, parent, admitted, rounds, previous, session, agent, exchange, confirmed } =
            rare_fields.map(|rare_fields| *rare_fields).unwrap_or_default();
        Self {
            task,
            item,
            state,
            attempts,
            failures,
            next_reason,
            hold,
            since,
            value,
            spec,
            parent,
            admitted,
            rounds,
            previous,
            session,
            agent,
            exchange,
            confirmed,
        }
    }
}
