//! How long a run took, and how long of that it waited for people or lay still.

use lockgate_engine::id::HoldId;
use lockgate_engine::run::event::Event;
use lockgate_engine::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a run does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Working,
    Waiting,
    Stopped,
}

/// Adds up what a run did from event to event.
#[derive(Debug, Default)]
pub(super) struct Clock {
    last: Option<Timestamp>,
    under_way: BTreeSet<String>,
    /// Questions that wait, and whether the run waits for them.
    open: BTreeMap<HoldId, bool>,
    stopped: bool,
    /// How long nothing could go on before a person had answered.
    pub(super) waited: Duration,
    /// How long it had failed, or nothing drove it.
    pub(super) lay_still: Duration,
}

impl Clock {
    /// Counts the time until a moment.
    pub(super) fn until(&mut self, at: Timestamp) {
        self.count(at, self.doing());
    }

    fn count(&mut self, at: Timestamp, doing: Doing) {
        let passed = self.last.map_or(Duration::ZERO, |last| at.since(last));
        match doing {
            Doing::Working => {}
            Doing::Waiting => self.waited += passed,
            Doing::Stopped => self.lay_still += passed,
        }
        self.last = Some(at);
    }

    fn doing(&self) -> Doing {
        if self.under_way.is_empty() && self.open.values().any(|blocking| *blocking) {
            Doing::Waiting
        } else if self.stopped {
            Doing::Stopped
        } else {
            Doing::Working
        }
    }

    /// Takes in what happened at a moment.
    pub(super) fn take(&mut self, event: &Event, at: Timestamp) {
        let doing = match (self.doing(), event) {
            // Nothing was under way, and another process took it over: nobody drove it since the last thing that happened.
            (Doing::Working, Event::Resumed { .. }) if self.under_way.is_empty() => Doing::Stopped,
            (doing, _) => doing,
        };
        self.count(at, doing);
        match event {
            Event::TaskStarted { key, .. } | Event::RetryScheduled { key, .. } => {
                self.under_way.insert(key.address());
            }
            Event::TaskFinished { key, .. }
            | Event::TaskFailed { key, .. }
            | Event::TaskInterrupted { key, .. }
            | Event::TaskSkipped { key, .. }
            | Event::TaskStopped { key, .. }
            | Event::TaskSpread { key, .. }
            | Event::TaskRepeated { key, .. }
            | Event::FailureTolerated { key }
            | Event::TaskLeftOut { key, .. } => {
                self.under_way.remove(&key.address());
            }
            Event::GateStarted { phase, gate, .. } => {
                self.under_way.insert(format!("{phase}/{gate}"));
            }
            Event::GatePassed { phase, gate, .. }
            | Event::GateFailed { phase, gate, .. }
            | Event::GateWaived { phase, gate, .. } => {
                self.under_way.remove(&format!("{phase}/{gate}"));
            }
            Event::HoldOpened(opened) => {
                // A task that asks does nothing until it is answered.
                for address in opened.scope.addresses() {
                    self.under_way.remove(&address);
                }
                self.open.insert(opened.hold.clone(), opened.blocking);
            }
            Event::HoldReopened { hold, .. } => {
                self.open.insert(hold.clone(), true);
            }
            Event::Answered { hold, .. } | Event::HoldVoided { hold, .. } => {
                self.open.remove(hold);
            }
            Event::Resumed { .. } | Event::RetryAsked { .. } | Event::GateRetryAsked { .. } => self.stopped = false,
            Event::Failed { .. } | Event::Interrupted { .. } => {
                self.stopped = true;
                self.under_way.clear();
            }
            Event::Aborted { .. } | Event::Cancelled { .. } | Event::Completed => {
                self.under_way.clear();
                self.open.clear();
                self.stopped = false;
            }
            Event::PhaseStarted { .. } => self.under_way.clear(),
            Event::Created(_)
            | Event::PresetsGiven { .. }
            | Event::PhaseSkipped { .. }
            | Event::TasksPlanned { .. }
            | Event::RetryDue { .. }
            | Event::SessionNamed { .. }
            | Event::ConditionEvaluated { .. }
            | Event::HoldSettled { .. }
            | Event::AttemptRefused(_)
            | Event::PhaseCompleted { .. }
            | Event::PhaseRepeated { .. }
            | Event::PhasesSkipListed { .. }
            | Event::TaskAdmitted { .. }
            | Event::ThinkingBegan { .. }
            | Event::Thought { .. }
            | Event::GapsChecked(_)
            | Event::GapsWaived { .. }
            | Event::BudgetRaised { .. }
            | Event::TasksHeld { .. }
            | Event::Finalized { .. }
            | Event::DefinitionAccepted { .. }
            | Event::AgentChanged { .. }
            | Event::CheckPassed { .. }
            | Event::RedoAsked { .. }
            | Event::DeadlinePassed { .. }
            | Event::Reminded { .. }
            | Event::AnswerChanged { .. }
            | Event::HandedOver { .. }
            | Event::Pipeline(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_engine::hold::{HoldKind, Scope};
    use lockgate_engine::id::{DriverId, OptionId, PhaseId, TaskId, TaskKey};
    use lockgate_engine::run::event::{AttemptReason, HoldOpened};

    fn key() -> TaskKey {
        TaskKey { phase: PhaseId::new("p"), iteration: 1, task: TaskId::new("t"), item: None }
    }

    fn asked() -> Event {
        Event::HoldOpened(Box::new(HoldOpened {
            hold: HoldId::new("h"),
            kind: HoldKind::Checkpoint,
            scope: Scope::Run,
            prompt: "?".into(),
            files: Vec::new(),
            options: Vec::new(),
            notes: Vec::new(),
            blocking: true,
            quorum: 1,
            asked: None,
            terms: Default::default(),
            previous: None,
        }))
    }

    fn answered() -> Event {
        Event::Answered { hold: HoldId::new("h"), option: OptionId::new("go"), feedback: None, revision: 1 }
    }

    fn told(events: &[(i64, Event)], until: i64) -> (u64, u64) {
        let mut clock = Clock::default();
        events.iter().for_each(|(at, event)| clock.take(event, Timestamp::from_millis(at * 1000)));
        clock.until(Timestamp::from_millis(until * 1000));
        (clock.waited.as_secs(), clock.lay_still.as_secs())
    }

    #[test]
    fn a_question_costs_no_time_while_something_else_is_under_way() {
        let started = Event::TaskStarted { key: key(), attempt: 1, reason: AttemptReason::First, session: None };
        let finished =
            Event::TaskFinished { key: key(), attempt: 1, result: None, outputs: Vec::new(), agent: None, commit: None };
        assert_eq!(told(&[(0, started), (10, asked()), (30, finished), (35, answered())], 50), (5, 0));
    }

    #[test]
    fn what_nobody_drives_and_what_has_failed_lies_still() {
        let resumed = || Event::Resumed { driver: DriverId::from("d"), detached: false };
        let failed = || Event::Failed { message: "x".into() };
        assert_eq!(told(&[(0, asked()), (20, answered()), (100, resumed())], 110), (20, 80));
        assert_eq!(told(&[(0, failed()), (60, resumed())], 70), (0, 60));
        assert_eq!(told(&[(0, failed()), (60, asked())], 70), (10, 60));
    }
}
