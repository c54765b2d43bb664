//! Turns events into notifications, with information from earlier events.

use super::{Answer, Kind, Notification, StepOutcome, from_event};
use lockgate_engine::hold::{Choice, Hold};
use lockgate_engine::id::{HoldId, OptionId};
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::state::TaskState;
use lockgate_engine::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Turns the events of one run into notifications.
#[derive(Debug, Default)]
pub struct Reporter {
    /// When the last attempt of each task and gate started, by address.
    started: BTreeMap<String, Timestamp>,
    /// A settled hold leaves the state of its run, but its answer is reported afterwards.
    options: BTreeMap<HoldId, Vec<Choice>>,
}

impl Reporter {
    /// The notifications of one or more commits; `run` is the state after them.
    pub fn report<'e>(&mut self, run: &'e Run, entries: &'e [Entry]) -> Vec<Notification<'e>> {
        let notifications = entries.iter().map(|entry| self.notification(run, entry)).collect();
        for hold in run.holds.values() {
            self.options.entry(hold.id.clone()).or_insert_with(|| hold.options.clone());
        }
        notifications
    }

    /// Processes earlier events without reporting them.
    pub fn recall(&mut self, run: &Run, entries: &[Entry]) {
        self.report(run, entries);
        let Some(phase) = &run.current else { return };
        for (index, task) in phase.tasks.iter().enumerate() {
            if let (TaskState::Running, Some(since)) = (&task.state, task.since) {
                self.started.insert(phase.key(index).address(), since);
            }
        }
    }

    fn notification<'e>(&mut self, run: &'e Run, entry: &'e Entry) -> Notification<'e> {
        let mut kind = from_event::kind(run, entry);
        self.complete(run, entry.at, &mut kind);
        Notification { at: entry.at, actor: entry.actor.as_deref(), kind }
    }

    /// Adds what the event itself does not contain.
    fn complete(&mut self, run: &Run, at: Timestamp, kind: &mut Kind<'_>) {
        match kind {
            Kind::StepStarted { step, .. } => {
                self.started.insert(step.address(), at);
            }
            Kind::StepEnded { step, took, outcome, .. } => *took = self.took(&step.address(), *outcome, at),
            Kind::HoldOpened(opened) => {
                self.options.insert(opened.hold.clone(), opened.options.clone());
            }
            Kind::HoldAnswered { answer, .. } | Kind::AnswerChanged(answer) => self.label(run, answer),
            Kind::RunStarted { .. }
            | Kind::RunResumed
            | Kind::RunInterrupted
            | Kind::RunEnded(_)
            | Kind::PhaseStarted { .. }
            | Kind::PhaseEnded { .. }
            | Kind::TasksPlanned { .. }
            | Kind::StepSkipped { .. }
            | Kind::StepRetry { .. }
            | Kind::ReworkRequested { .. }
            | Kind::AgentQuery { .. }
            | Kind::GapCheck(_)
            | Kind::HoldReopened { .. }
            | Kind::HoldVoided { .. }
            | Kind::Note(_)
            | Kind::Warning(_)
            | Kind::Recorded { .. } => {}
        }
    }

    fn took(&mut self, address: &str, outcome: StepOutcome<'_>, at: Timestamp) -> Option<Duration> {
        let started = match outcome {
            StepOutcome::Done { .. }
            | StepOutcome::Passed
            | StepOutcome::Repeated { .. }
            | StepOutcome::HandedOver(_)
            | StepOutcome::Failed(_) => self.started.remove(address),
            // Another end may follow without another start: a fanned-out task ends with its items, and an interrupted one may
            // fail.
            StepOutcome::FannedOut { .. } | StepOutcome::Interrupted | StepOutcome::Stopped { .. } => {
                self.started.get(address).copied()
            }
        };
        started.map(|started| at.since(started))
    }

    fn label(&self, run: &Run, answer: &mut Answer<'_>) {
        let own = self.options.get(answer.hold).and_then(|options| label(options, answer.option));
        let decided = || run.decisions.iter().rev().find(|decision| decision.hold == *answer.hold);
        if let Some(label) = own.or_else(|| decided().map(|decision| decision.label.as_str())) {
            answer.label = label.to_owned();
        }
    }
}

fn label<'o>(options: &'o [Choice], option: &OptionId) -> Option<&'o str> {
    let stop = Hold::stop_choice();
    options.iter().chain([stop]).find(|choice| choice.id == *option).map(|choice| choice.label.as_str())
}
