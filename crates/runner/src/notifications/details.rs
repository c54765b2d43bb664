//! Details of notifications: how something ended, what was answered, and notes.

use lockgate_engine::id::{HoldId, OptionId, PhaseId, TaskId};
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::budget::BudgetScope;
use lockgate_engine::run::event::{Failure, GapsChecked, OutputFile, PlannedTask, RefusedAttempt, Rewound};
use lockgate_engine::run::handover::Handover;
use lockgate_engine::run::pipeline::PipelineEvent;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::run::team::TeamEvent;
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_engine::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd<'e> {
    /// All phases are done.
    Completed,
    /// It failed; resuming it retries what failed.
    Failed,
    /// It was aborted at a hold.
    Aborted,
    /// It was cancelled.
    Cancelled {
        /// The canceller's reason, if given.
        reason: Option<&'e str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseEnd<'e> {
    /// All its work is done.
    Completed {
        /// The iteration of the phase, counted from 1.
        iteration: u32,
    },
    /// The run goes back to a phase.
    Repeated {
        /// The phase that starts again.
        target: &'e PhaseId,
        /// The person's feedback.
        feedback: Option<&'e str>,
        /// Whether a failure caused it, rather than a person.
        by_failure: bool,
        /// Tasks of the target that keep their outcome.
        carry: &'e [TaskId],
    },
    /// It was on the skip list and did not start.
    Skipped,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepOutcome<'e> {
    Done {
        outputs: &'e [OutputFile],
        /// The commit with its changes.
        commit: Option<&'e str>,
    },
    Passed,
    /// It succeeded, but the task runs again because its `until` condition is not met.
    Repeated {
        outputs: &'e [OutputFile],
    },
    /// The task fanned out.
    FannedOut {
        tasks: &'e [PlannedTask],
    },
    /// Its agent reached a checkpoint and handed over.
    HandedOver(&'e Handover),
    Failed(&'e Failure),
    Interrupted,
    /// It was stopped because something else failed first, or its budget was exhausted.
    Stopped {
        reason: &'e str,
    },
}

impl<'e> StepOutcome<'e> {
    pub fn status(self) -> StepStatus {
        match self {
            Self::Done { .. } => StepStatus::Done,
            Self::Passed => StepStatus::Passed,
            Self::Repeated { .. } => StepStatus::Repeated,
            Self::FannedOut { .. } => StepStatus::FannedOut,
            Self::HandedOver(_) => StepStatus::HandedOver,
            Self::Failed(_) => StepStatus::Failed,
            Self::Interrupted => StepStatus::Interrupted,
            Self::Stopped { .. } => StepStatus::Stopped,
        }
    }

    /// Why it did not succeed, if recorded.
    pub fn error(self) -> Option<&'e str> {
        match self {
            Self::Failed(failure) => Some(&failure.message),
            Self::Stopped { reason } => Some(reason),
            Self::Done { .. }
            | Self::Passed
            | Self::Repeated { .. }
            | Self::FannedOut { .. }
            | Self::HandedOver(_)
            | Self::Interrupted => None,
        }
    }

    pub fn outputs(self) -> &'e [OutputFile] {
        match self {
            Self::Done { outputs, .. } | Self::Repeated { outputs } => outputs,
            Self::Passed
            | Self::FannedOut { .. }
            | Self::HandedOver(_)
            | Self::Failed(_)
            | Self::Interrupted
            | Self::Stopped { .. } => &[],
        }
    }
}

/// Why the run continues although a task or gate did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip<'e> {
    CountsAsDone {
        reason: &'e str,
    },
    Omitted {
        reason: &'e str,
    },
    /// A task failed, but the workflow tolerates it.
    Tolerated,
    Waived {
        /// The reason, if given.
        reason: Option<&'e str>,
        /// Whether a person waived it; otherwise it had passed before the run was imported.
        by_person: bool,
    },
}

/// When a task or gate is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    Scheduled {
        /// When its backoff ends.
        due: Timestamp,
    },
    /// Immediately, because a person asked for it.
    Requested,
}

/// The state of an agent query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AgentQuery<'e> {
    Started,
    Answered {
        /// The agent's report about itself.
        agent: Option<&'e AgentReport>,
    },
}

/// The result of a gap check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapCheck<'e> {
    Ended(&'e GapsChecked),
    /// A person waived its gaps.
    Waived {
        phase: &'e PhaseId,
        /// The iteration of the phase.
        iteration: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'e> {
    pub hold: &'e HoldId,
    pub option: &'e OptionId,
    /// The label of the option.
    pub label: String,
    pub feedback: Option<&'e str>,
}

/// Something worth reporting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note<'e> {
    /// A checkpoint was not shown because its condition is not met.
    CheckpointSkipped {
        phase: &'e PhaseId,
        /// The iteration of the phase.
        iteration: u32,
    },
    /// The check that an answer depends on passed.
    CheckPassed,
    /// No one answered a hold before its deadline.
    DeadlinePassed {
        hold: &'e HoldId,
        then: &'e OnDeadline,
    },
    /// A hold is still waiting.
    Reminder {
        hold: &'e HoldId,
    },
    /// A budget was raised.
    BudgetRaised {
        scope: &'e BudgetScope,
    },
    /// The finalization wrote its file.
    Finalized {
        file: &'e OutputFile,
    },
    /// A review, a note or artifacts of a pipeline were recorded.
    Pipeline(&'e PipelineEvent),
    /// Agents sent a message, voted in a conflict or captured knowledge.
    Team(&'e TeamEvent),
    /// A person chose another agent.
    AgentChanged {
        agent: &'e str,
    },
    /// A person accepted a changed definition.
    DefinitionAccepted,
    PhasesSkipListed {
        phases: &'e [PhaseId],
    },
    /// A person let the run continue from an earlier snapshot.
    Rewound(&'e Rewound),
}

/// Something that deserves attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning<'e> {
    /// The condition of a checkpoint could not be evaluated, so the checkpoint is shown.
    ConditionFailed {
        phase: &'e PhaseId,
        /// The iteration of the phase.
        iteration: u32,
        error: &'e str,
    },
    /// A process tried something that it may not do.
    AttemptRefused(&'e RefusedAttempt),
}
