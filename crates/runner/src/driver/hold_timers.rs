//! Deadlines and reminders of holds. Any process can fire them, whether or not the run is driven.

use super::DriveError;
use super::submit::submit_timer;
use crate::runtime::Runtime;
use lockgate_engine::id::{RunId, TimerId};
use lockgate_engine::run::Run;
use lockgate_engine::run::index::{OpenEnum, TimerKind};
use lockgate_engine::time::Timestamp;
use lockgate_store::StoreError;
use serde::Serialize;

/// A deadline or reminder that was fired.
#[derive(Clone, Debug, PartialEq)]
pub struct Fired {
    pub run: RunId,
    pub kind: HoldTimer,
    pub hold: String,
    /// The run after the timer fired.
    pub now: Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldTimer {
    Deadline,
    Remind,
}

impl HoldTimer {
    fn of(kind: &OpenEnum<TimerKind>) -> Option<Self> {
        match kind.known()? {
            TimerKind::Deadline => Some(Self::Deadline),
            TimerKind::Remind => Some(Self::Remind),
            TimerKind::Retry | TimerKind::Drive => None,
        }
    }
}

/// Fires the due timers of the runs selected by `ours`. An answer that was recorded earlier wins; if two processes fire the
/// same timer, one of them succeeds.
pub async fn fire_due(runtime: &Runtime, ours: impl Fn(&RunId) -> bool) -> Result<Vec<Fired>, DriveError> {
    let mut fired = Vec::new();
    for (run, timer, kind, hold) in due(runtime, &ours).await? {
        if let Some(now) = submit_timer(runtime, &run, timer).await? {
            fired.push(Fired { run, kind, hold, now });
        }
    }
    Ok(fired)
}

type Due = (RunId, TimerId, HoldTimer, String);

async fn due(runtime: &Runtime, ours: &impl Fn(&RunId) -> bool) -> Result<Vec<Due>, StoreError> {
    let now = runtime.clock.now();
    let mut limit = 100;
    loop {
        let timers = runtime.store.timers(now, limit).await?;
        let all = timers.len() < limit;
        if all {
            let ours = timers.into_iter().filter(|timer| ours(&timer.run));
            let of_holds = ours.filter_map(|timer| Some((HoldTimer::of(&timer.kind)?, timer)));
            return Ok(of_holds.map(|(kind, timer)| (timer.run, timer.timer, kind, timer.target)).collect());
        }
        limit = limit.saturating_mul(4);
    }
}

/// The earliest timer of a run's open holds.
pub fn next_hold_timer(run: &Run) -> Option<Timestamp> {
    let open = run.open_holds();
    let moments = open.iter().flat_map(|hold| {
        let deadline = hold.terms.deadline.as_ref().filter(|due| !due.over).map(|due| due.at);
        deadline.into_iter().chain(hold.terms.remind.as_ref().map(|remind| remind.at))
    });
    moments.min()
}
