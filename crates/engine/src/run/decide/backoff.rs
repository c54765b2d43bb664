//! Retries with exponential backoff.

use crate::id::{IdSource, TimerId};
use crate::run::event::Event;
use crate::run::state::Run;
use crate::spec::workflow::Retry;
use crate::time::Timestamp;
use std::time::Duration;

/// The next attempt of a task whose current attempt fails, if its `retry` allows one.
pub(super) fn next_try(run: &Run, index: usize, at: Timestamp, ids: &mut IdSource) -> Option<Event> {
    let phase = run.current.as_ref()?;
    let declared = phase.declared(&run.workflow.phases[phase.position], index);
    let retry = declared.map_or_else(Retry::default, |task| task.retry);
    let failures = phase.tasks[index].failures + 1;
    let due = at.plus(backoff(retry.backoff, failures));
    (failures < retry.attempts).then(|| Event::RetryScheduled { key: phase.key(index), timer: TimerId::new(ids.next_id()), due })
}

/// The backoff after this many failures: it doubles each time.
fn backoff(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX))
}
