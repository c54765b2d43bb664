//! How long a run took, and how long of that it waited for people or lay still.

use lockgate_engine::id::HoldId;
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::{Answer, Kind, Retry, RunEnd, StepOutcome};
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

    /// Adds what happened at a time.
    pub(super) fn take(&mut self, kind: &Kind<'_>, at: Timestamp) {
        let doing = match (self.doing(), kind) {
            // Nothing was running, and another process took it over: no process drove it since the last thing that happened.
            (Doing::Working, Kind::RunResumed) if self.under_way.is_empty() => Doing::Stopped,
            (doing, _) => doing,
        };
        self.count(at, doing);
        match kind {
            Kind::StepStarted { step, .. } | Kind::StepRetry { step, retry: Retry::Scheduled { .. } } => {
                self.under_way.insert(step.address());
            }
            // It asks, or starts again: both are reported by themselves.
            Kind::StepEnded { outcome: StepOutcome::HandedOver(_), .. } => {}
            Kind::StepEnded { step, .. } | Kind::StepSkipped { step, .. } => {
                self.under_way.remove(&step.address());
            }
            Kind::HoldOpened(opened) => {
                // A task that asks does nothing until it is answered.
                for address in opened.scope.addresses() {
                    self.under_way.remove(&address);
                }
                self.open.insert(opened.hold.clone(), opened.blocking);
            }
            Kind::HoldReopened { hold, .. } => {
                self.open.insert((*hold).clone(), true);
            }
            Kind::HoldAnswered { answer: Answer { hold, .. }, .. } | Kind::HoldVoided { hold, .. } => {
                self.open.remove(*hold);
            }
            Kind::RunResumed | Kind::StepRetry { retry: Retry::Requested, .. } => self.stopped = false,
            Kind::RunInterrupted | Kind::RunEnded(RunEnd::Failed) => {
                self.stopped = true;
                self.under_way.clear();
            }
            Kind::RunEnded(RunEnd::Completed | RunEnd::Aborted | RunEnd::Cancelled { .. }) => {
                self.under_way.clear();
                self.open.clear();
                self.stopped = false;
            }
            Kind::PhaseStarted { .. } => self.under_way.clear(),
            Kind::RunStarted { .. }
            | Kind::PhaseEnded { .. }
            | Kind::TasksPlanned { .. }
            | Kind::ReworkRequested { .. }
            | Kind::AgentQuery { .. }
            | Kind::GapCheck(_)
            | Kind::AnswerChanged(_)
            | Kind::Note(_)
            | Kind::Warning(_)
            | Kind::Recorded { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_engine::hold::{HoldKind, Scope};
    use lockgate_engine::id::{OptionId, PhaseId, TaskId, TaskKey};
    use lockgate_engine::run::event::HoldOpened;
    use lockgate_runner::root::Step;

    fn key() -> TaskKey {
        TaskKey { phase: PhaseId::new("p"), iteration: 1, task: TaskId::new("t"), item: None }
    }

    fn asked() -> HoldOpened {
        HoldOpened {
            hold: HoldId::new("h"),
            kind: HoldKind::Checkpoint,
            scope: Scope::Run,
            prompt: "?".into(),
            files: Vec::new(),
            options: Vec::new(),
            notes: Vec::new(),
            blocking: true,
            quorum: 1,
            question: None,
            terms: Default::default(),
            previous: None,
            diff: None,
        }
    }

    fn answered<'e>(hold: &'e HoldId, option: &'e OptionId) -> Kind<'e> {
        let answer = Answer { hold, option, label: "Go".into(), feedback: None };
        Kind::HoldAnswered { answer, revision: 1 }
    }

    fn told(happened: &[(i64, Kind<'_>)], until: i64) -> (u64, u64) {
        let mut clock = Clock::default();
        happened.iter().for_each(|(at, kind)| clock.take(kind, Timestamp::from_millis(at * 1000)));
        clock.until(Timestamp::from_millis(until * 1000));
        (clock.waited.as_secs(), clock.lay_still.as_secs())
    }

    #[test]
    fn a_question_adds_no_waiting_time_while_other_work_runs() {
        let (key, asked, go) = (key(), asked(), OptionId::new("go"));
        let step = Step::Task(&key);
        let started = Kind::StepStarted { step, attempt: 1, reason: None };
        let outcome = StepOutcome::Done { outputs: &[], commit: None };
        let finished = Kind::StepEnded { step, attempt: 1, took: None, outcome, agent: None };
        let opened = Kind::HoldOpened(&asked);
        assert_eq!(told(&[(0, started), (10, opened), (30, finished), (35, answered(&asked.hold, &go))], 50), (5, 0));
    }

    #[test]
    fn time_without_a_driver_or_after_a_failure_counts_as_idle() {
        let (asked, go) = (asked(), OptionId::new("go"));
        let opened = || Kind::HoldOpened(&asked);
        let failed = || Kind::RunEnded(RunEnd::Failed);
        assert_eq!(told(&[(0, opened()), (20, answered(&asked.hold, &go)), (100, Kind::RunResumed)], 110), (20, 80));
        assert_eq!(told(&[(0, failed()), (60, Kind::RunResumed)], 70), (0, 60));
        assert_eq!(told(&[(0, failed()), (60, opened())], 70), (10, 60));
    }
}
