//! Measures how long a run took, waited for people, and was idle.

use lockgate_engine::id::HoldId;
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::{Answer, Kind, Retry, RunEnd, StepOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Working,
    Waiting,
    Stopped,
}

/// Adds up times from event to event.
#[derive(Debug, Default)]
pub(super) struct Clock {
    last: Option<Timestamp>,
    running: BTreeSet<String>,
    /// Open holds, and whether they block the run.
    open: BTreeMap<HoldId, bool>,
    stopped: bool,
    /// How long the run could not continue without an answer.
    pub(super) waited: Duration,
    /// How long the run had failed, or no process drove it.
    pub(super) idle: Duration,
}

impl Clock {
    /// Counts the time up to a timestamp.
    pub(super) fn until(&mut self, at: Timestamp) {
        self.count(at, self.doing());
    }

    fn count(&mut self, at: Timestamp, doing: Doing) {
        let passed = self.last.map_or(Duration::ZERO, |last| at.since(last));
        match doing {
            Doing::Working => {}
            Doing::Waiting => self.waited += passed,
            Doing::Stopped => self.idle += passed,
        }
        self.last = Some(at);
    }

    fn doing(&self) -> Doing {
        if self.running.is_empty() && self.open.values().any(|blocking| *blocking) {
            Doing::Waiting
        } else if self.stopped {
            Doing::Stopped
        } else {
            Doing::Working
        }
    }

    /// Processes an event.
    pub(super) fn take(&mut self, kind: &Kind<'_>, at: Timestamp) {
        let doing = match (self.doing(), kind) {
            // Nothing was running before the takeover, so no process drove the run since the previous event.
            (Doing::Working, Kind::RunResumed) if self.running.is_empty() => Doing::Stopped,
            (doing, _) => doing,
        };
        self.count(at, doing);
        match kind {
            Kind::StepStarted { step, .. } | Kind::StepRetry { step, retry: Retry::Scheduled { .. } } => {
                self.running.insert(step.address());
            }
            // The hold or restart that follows is an event of its own.
            Kind::StepEnded { outcome: StepOutcome::HandedOver(_), .. } => {}
            Kind::StepEnded { step, .. } | Kind::StepSkipped { step, .. } => {
                self.running.remove(&step.address());
            }
            Kind::HoldOpened(opened) => {
                // A task that asks is idle until it is answered.
                for address in opened.scope.addresses() {
                    self.running.remove(&address);
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
                self.running.clear();
            }
            Kind::RunEnded(RunEnd::Completed | RunEnd::Aborted | RunEnd::Cancelled { .. }) => {
                self.running.clear();
                self.open.clear();
                self.stopped = false;
            }
            Kind::PhaseStarted { .. } => self.running.clear(),
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

    fn measured(happened: &[(i64, Kind<'_>)], until: i64) -> (u64, u64) {
        let mut clock = Clock::default();
        happened.iter().for_each(|(at, kind)| clock.take(kind, Timestamp::from_millis(at * 1000)));
        clock.until(Timestamp::from_millis(until * 1000));
        (clock.waited.as_secs(), clock.idle.as_secs())
    }

    #[test]
    fn a_question_adds_no_waiting_time_while_other_work_runs() {
        let (key, asked, go) = (key(), asked(), OptionId::new("go"));
        let step = Step::Task(&key);
        let started = Kind::StepStarted { step, attempt: 1, reason: None };
        let outcome = StepOutcome::Done { outputs: &[], commit: None };
        let finished = Kind::StepEnded { step, attempt: 1, took: None, outcome, agent: None };
        let opened = Kind::HoldOpened(&asked);
        assert_eq!(measured(&[(0, started), (10, opened), (30, finished), (35, answered(&asked.hold, &go))], 50), (5, 0));
    }

    #[test]
    fn time_without_a_driver_or_after_a_failure_counts_as_idle() {
        let (asked, go) = (asked(), OptionId::new("go"));
        let opened = || Kind::HoldOpened(&asked);
        let failed = || Kind::RunEnded(RunEnd::Failed);
        assert_eq!(measured(&[(0, opened()), (20, answered(&asked.hold, &go)), (100, Kind::RunResumed)], 110), (20, 80));
        assert_eq!(measured(&[(0, failed()), (60, Kind::RunResumed)], 70), (0, 60));
        assert_eq!(measured(&[(0, failed()), (60, opened())], 70), (10, 60));
    }
}
