//! The stored form of a phase's tasks. There may be very many, and what few of them have must not cost all of them.

use super::{Exchange, TaskRun};
use crate::datum::Datum;
use crate::id::{HoldId, TaskId};
use crate::run::agent::AgentReport;
use crate::run::event::{AttemptReason, SessionStart};
use crate::run::state::TaskState;
use crate::spec::workflow::Task;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A task as it is stored; fields only ever grow at the end of [`Seldom`].
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTaskRun {
    task: TaskId,
    state: TaskState,
    attempts: u32,
    failures: u32,
    next_reason: AttemptReason,
    since: Option<Timestamp>,
    #[serde(default)]
    seldom: Option<Box<Seldom>>,
}

/// What few tasks have.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Seldom {
    item: Option<String>,
    hold: Option<HoldId>,
    value: Option<Datum>,
    spec: Option<Box<Task>>,
    parent: Option<TaskId>,
    admitted: bool,
    rounds: u32,
    previous: Option<Datum>,
    session: Option<SessionStart>,
    agent: Option<Box<AgentReport>>,
    exchange: Option<Box<Exchange>>,
}

impl From<TaskRun> for StoredTaskRun {
    fn from(run: TaskRun) -> Self {
        let TaskRun { task, state, attempts, failures, next_reason, since, .. } = run;
        let TaskRun { item, hold, value, spec, parent, admitted, rounds, previous, session, agent, exchange, .. } = run;
        let seldom = Seldom { item, hold, value, spec, parent, admitted, rounds, previous, session, agent, exchange };
        let seldom = (seldom != Seldom::default()).then(|| Box::new(seldom));
        Self { task, state, attempts, failures, next_reason, since, seldom }
    }
}

impl From<StoredTaskRun> for TaskRun {
    fn from(stored: StoredTaskRun) -> Self {
        let StoredTaskRun { task, state, attempts, failures, next_reason, since, seldom } = stored;
        let Seldom { item, hold, value, spec, parent, admitted, rounds, previous, session, agent, exchange } =
            seldom.map(|seldom| *seldom).unwrap_or_default();
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
        }
    }
}
