//! Notifications: the events of a run, reduced to a small set of things that people are informed of.
//!
//! Everything that reports progress reads these instead of events, so a new event changes one match, in `from_event`. This
//! layer prints nothing and is independent of the terminal; `log --json` still prints the events themselves.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | the notifications |
//! | `details` | how something ended, what was answered |
//! | `from_event` | the notification for each event |
//! | `reporter` | adds information from earlier events: when a step started, the label of an option |

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

/// Something that happened to a run, with its time and cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification<'e> {
    pub at: Timestamp,
    /// Who caused it; `None` for Lockgate itself.
    pub actor: Option<&'e Actor>,
    pub kind: Kind<'e>,
}

impl<'e> Notification<'e> {
    /// The hold that now waits for an answer.
    pub fn opened_hold(&self) -> Option<&'e HoldId> {
        if let Kind::HoldOpened(opened) = &self.kind {
            Some(&opened.hold)
        } else if let Kind::HoldReopened { hold, .. } = &self.kind {
            Some(hold)
        } else {
            None
        }
    }

    /// The task whose state changed, if nothing else did.
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

#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'e> {
    /// A run was created.
    RunStarted {
        /// The name of its workflow.
        workflow: &'e str,
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
        phase: &'e PhaseId,
        /// Counted from 1.
        iteration: u32,
        /// Why a person asked for the phase again.
        feedback: Option<&'e str>,
    },
    /// A phase was completed, repeated or skipped.
    PhaseEnded { phase: &'e PhaseId, end: PhaseEnd<'e> },
    TasksPlanned {
        phase: &'e PhaseId,
        /// The iteration of the phase, counted from 1.
        iteration: u32,
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
        attempt: u32,
        /// How long the attempt took; `None` if its start is not known.
        took: Option<Duration>,
        outcome: StepOutcome<'e>,
        /// The agent's report about itself.
        agent: Option<&'e AgentReport>,
    },
    /// The run continues although a task or gate did not succeed.
    StepSkipped {
        /// The task or gate.
        step: Step<'e>,
        skip: Skip<'e>,
    },
    /// A task or gate will be retried.
    StepRetry {
        /// The task or gate.
        step: Step<'e>,
        retry: Retry,
    },
    /// A person found issues, so tasks run again before the person is asked again.
    ReworkRequested {
        /// The tasks with the issues.
        tasks: &'e [TaskKey],
        /// Tasks that depend on them and therefore run again too.
        stale: &'e [TaskKey],
        /// The task that asked.
        question: &'e TaskKey,
        /// What the person said.
        issues: &'e str,
    },
    /// A script queried an agent, or got its reply.
    AgentQuery { by: &'e Requester, query: AgentQuery<'e> },
    /// A gap check of a phase ended, or a person waived its gaps.
    GapCheck(GapCheck<'e>),
    /// A hold opened.
    HoldOpened(&'e HoldOpened),
    /// A hold was answered.
    HoldAnswered {
        answer: Answer<'e>,
        /// The revision that was answered.
        revision: u32,
    },
    /// A person changed an answer that no person had given.
    AnswerChanged(Answer<'e>),
    /// An answer did not take effect: the hold is open again.
    HoldReopened {
        hold: &'e HoldId,
        /// Its new revision.
        revision: u32,
        /// What changed, for people.
        differences: &'e [String],
        /// Whether its check failed; otherwise a shown file has changed.
        by_check: bool,
        /// Whether the run continues from a snapshot, and nothing has changed.
        restored: bool,
    },
    /// A hold no longer matters.
    HoldVoided { hold: &'e HoldId, reason: &'e str },
    /// Something worth reporting that changes neither steps nor holds.
    Note(Note<'e>),
    /// Something that deserves attention.
    Warning(Warning<'e>),
    /// Something that only the history shows.
    Recorded {
        /// The task whose state changed, if nothing else did.
        task: Option<&'e TaskKey>,
    },
}
