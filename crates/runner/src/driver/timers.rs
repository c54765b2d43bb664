//! Deadlines and reminders of questions: fired by whoever looks at the clock, whether anybody drives the run or not.

use super::DriveError;
use super::submit::submit_timer;
use crate::runtime::Runtime;
use lockgate_engine::id::{RunId, TimerId};
use lockgate_engine::run::Run;
use lockgate_engine::run::index::{OpenEnum, TimerKind};
use lockgate_engine::time::Timestamp;
use lockgate_store::StoreError;
use serde::Serialize;

/// A deadline or reminder that has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Fired {
    /// The run.
    pub run: RunId,
    /// What it was.
    pub kind: HoldTimer,
    /// The hold.
    pub hold: String,
    /// The run as it stands now.
    pub now: Run,
}

/// The timers that a hold has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldTimer {
    /// Its deadline.
    Deadline,
    /// Its next reminder.
    Remind,
}

impl HoldTimer {
    /// The timers of holds among all timers.
    fn of(kind: &OpenEnum<TimerKind>) -> Option<Self> {
        match kind.known()? {
            TimerKind::Deadline => Some(Self::Deadline),
            TimerKind::Remind => Some(Self::Remind),
            TimerKind::Retry | TimerKind::Drive => None,
        }
    }
}

/// Fires what is due of the runs that are ours. What was answered before stands; of two who fire at once, one does.
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

/// The next moment that an open question of a run waits for.
pub fn next_hold_timer(run: &Run) -> Option<Timestamp> {
    let open = run.open_holds();
    let moments = open.iter().flat_map(|hold| {
        let deadline = hold.terms.deadline.as_ref().filter(|due| !due.over).map(|due| due.at);
        deadline.into_iter().chain(hold.terms.remind.as_ref().map(|remind| remind.at))
    });
    moments.min()
}
