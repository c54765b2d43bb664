//! Notifications: what happens to a run, as a small set of things that people are told.
//!
//! Everything that reports progress reads these instead of events, so a new event changes one match, in `from_event`. The layer prints
//! nothing and knows no terminal; `log --json` keeps carrying the events themselves.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | the notifications |
//! | `details` | what they say: how something ended, what was answered |
//! | `from_event` | which notification each event becomes |
//! | `reporter` | what a notification needs from earlier events: when a step started, what an option is called |

mod details;
mod from_event;
mod reporter;
#[cfg(test)]
mod tests;

pub use details::{AgentQuery, Answer, GapCheck, Note, PhaseEnd, Retry, RunEnd, Skip, StepOutcome, Warning};
pub use reporter::Reporter;

use crate::root::Step;
use lockgate_engine::id::{HoldId, PhaseId, TaskKey};
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{AttemptReason, HoldOpened, PlannedTask, Requester};
use lockgate_engine::time::Timestamp;
use std::time::Duration;

/// Something that happened to a run, with who caused it and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification<'e> {
    /// When it was recorded.
    pub at: Timestamp,
    /// Who caused it; Lockgate itself when absent.
    pub actor: Option<&'e Actor>,
    /// What happened.
    pub kind: Kind<'e>,
}

impl<'e> Notification<'e> {
    /// The hold that waits for an answer from now on.
    pub fn opened_hold(&self) -> Option<&'e HoldId> {
        if let Kind::HoldOpened(opened) = &self.kind {
            Some(&opened.hold)
        } else if let Kind::HoldReopened { hold, .. } = &self.kind {
            Some(hold)
        } else {
            None
        }
    }

    /// The task whose state changed, where the state of nothing else did.
    pub fn only_task(&self) -> Option<&'e TaskKey> {
        match &self.kind {
            // The new tasks appear next to it.
            Kind::StepEnded { outcome: StepOutcome::FannedOut { .. }, .. } => None,
            Kind::StepStarted { step, .. }
            | Kind::StepEnded { step, .. }
            | Kind::StepSkipped { step, .. }
            | Kind::StepRetry { step, .. } => step.task(),
            Kind::Recorded { task } => *task,
            Kind::RunStarted { .. }
            | Kind::RunResumed
            | Kind::RunInterrupted
            | Kind::RunEnded(_)
            | Kind::PhaseStarted { .. }
            | Kind::PhaseEnded { .. }
            | Kind::TasksPlanned { .. }
            | Kind::ReworkRequested { .. }
            | Kind::AgentQuery { .. }
            | Kind::GapCheck(_)
            | Kind::HoldOpened(_)
            | Kind::HoldAnswered { .. }
            | Kind::AnswerChanged(_)
            | Kind::HoldReopened { .. }
            | Kind::HoldVoided { .. }
            | Kind::Note(_)
            | Kind::Warning(_) => None,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'e> {
    /// A run was created.
    RunStarted {
        /// The name of its workflow.
        workflow: &'e str,
        /// What it is about.
        feature: Option<&'e str>,
    },
    /// A process took the run over.
    RunResumed,
    /// The process that drove the run was stopped.
    RunInterrupted,
    /// The run ended.
    RunEnded(RunEnd<'e>),
    /// A phase started.
    PhaseStarted {
        /// The phase.
        phase: &'e PhaseId,
        /// Counted from 1.
        iteration: u32,
        /// Why a person asked for the phase again.
        feedback: Option<&'e str>,
    },
    /// A phase was completed, repeated or skipped.
    PhaseEnded {
        /// The phase.
        phase: &'e PhaseId,
        /// How.
        end: PhaseEnd<'e>,
    },
    /// The tasks of a phase are known.
    TasksPlanned {
        /// The phase.
        phase: &'e PhaseId,
        /// The execution of the phase, counted from 1.
        iteration: u32,
        /// The tasks.
        tasks: &'e [PlannedTask],
    },
    /// An attempt of a task or gate started.
    StepStarted {
        /// The task or gate.
        step: Step<'e>,
        /// Counted from 1.
        attempt: u32,
        /// Why there is this attempt. Gates record no reason.
        reason: Option<AttemptReason>,
    },
    /// An attempt of a task or gate ended.
    StepEnded {
        /// The task or gate.
        step: Step<'e>,
        /// Which attempt, counted from 1.
        attempt: u32,
        /// How long the attempt took; absent where its start is not known.
        took: Option<Duration>,
        /// How.
        outcome: StepOutcome<'e>,
        /// What the agent of the attempt reported about itself.
        agent: Option<&'e AgentReport>,
    },
    /// The run continues although a task or gate did not succeed.
    StepSkipped {
        /// The task or gate.
        step: Step<'e>,
        /// Why.
        skip: Skip<'e>,
    },
    /// A task or gate will be tried again.
    StepRetry {
        /// The task or gate.
        step: Step<'e>,
        /// When.
        retry: Retry,
    },
    /// A person found issues, so tasks run again before the person is asked again.
    ReworkRequested {
        /// The tasks with the issues.
        tasks: &'e [TaskKey],
        /// Tasks that depend on them and therefore run again as well.
        stale: &'e [TaskKey],
        /// The task that asked.
        question: &'e TaskKey,
        /// What the person said.
        issues: &'e str,
    },
    /// A script asked an agent, or has its answer.
    AgentQuery {
        /// Whose script.
        by: &'e Requester,
        /// Where the query is.
        query: AgentQuery<'e>,
    },
    /// A gap check of a phase ended, or a person waived its gaps.
    GapCheck(GapCheck<'e>),
    /// A hold opened.
    HoldOpened(&'e HoldOpened),
    /// A hold was answered.
    HoldAnswered {
        /// The answer.
        answer: Answer<'e>,
        /// The revision that was answered.
        revision: u32,
    },
    /// A person changed an answer that no person had given.
    AnswerChanged(Answer<'e>),
    /// An answer did not take effect: the hold is open again.
    HoldReopened {
        /// The hold.
        hold: &'e HoldId,
        /// Its new revision.
        revision: u32,
        /// What changed, for people.
        differences: &'e [String],
        /// Whether its check failed; else a presented file has changed.
        by_check: bool,
    },
    /// A hold no longer matters.
    HoldVoided {
        /// The hold.
        hold: &'e HoldId,
        /// Why.
        reason: &'e str,
    },
    /// Something worth a line that changes neither steps nor holds.
    Note(Note<'e>),
    /// Something that deserves attention.
    Warning(Warning<'e>),
    /// Something that only the history shows.
    Recorded {
        /// The task whose state changed, where nothing else did.
        task: Option<&'e TaskKey>,
    },
}
