//! What notifications say: how something ended, what was answered, what is worth a line.

use lockgate_engine::id::{HoldId, OptionId, PhaseId, TaskId};
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::budget::BudgetScope;
use lockgate_engine::run::event::{Failure, GapsChecked, OutputFile, PlannedTask, RefusedAttempt};
use lockgate_engine::run::handover::Handover;
use lockgate_engine::run::pipeline::PipelineEvent;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_engine::time::Timestamp;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd<'e> {
    /// All phases are done.
    Completed,
    /// It failed; resuming it tries again what failed.
    Failed,
    /// It was aborted at a hold.
    Aborted,
    /// It was cancelled.
    Cancelled {
        /// Why, as far as the canceller said so.
        reason: Option<&'e str>,
    },
}

/// How a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseEnd<'e> {
    /// All its work is done.
    Completed {
        /// The execution of the phase, counted from 1.
        iteration: u32,
    },
    /// The run goes back to a phase.
    Repeated {
        /// The phase that starts again.
        target: &'e PhaseId,
        /// What a person said with it.
        feedback: Option<&'e str>,
        /// Whether a failure asked for it, not a person.
        by_failure: bool,
        /// Tasks of the target that keep their outcome.
        carry: &'e [TaskId],
    },
    /// It was on the skip list and did not start.
    Skipped,
}

/// How an attempt of a task or gate ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepOutcome<'e> {
    /// A task is done.
    Done {
        /// The files that it left behind.
        outputs: &'e [OutputFile],
        /// The commit with its changes.
        commit: Option<&'e str>,
    },
    /// A gate passed.
    Passed,
    /// It succeeded, and the task runs again because its `until` is not met.
    Repeated {
        /// The files that it left behind.
        outputs: &'e [OutputFile],
    },
    /// The task became several.
    FannedOut {
        /// The tasks.
        tasks: &'e [PlannedTask],
    },
    /// Its agent reached a checkpoint and handed over.
    HandedOver(&'e Handover),
    /// It failed.
    Failed(&'e Failure),
    /// It was cut off.
    Interrupted,
    /// It was ended because something else failed first, or its budget was exhausted.
    Stopped {
        /// Why.
        reason: &'e str,
    },
}

impl<'e> StepOutcome<'e> {
    /// The status of the attempt.
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

    /// Why it did not succeed, where that is recorded.
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

    /// The files that it left behind.
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
    /// A task counts as done.
    CountsAsDone {
        /// Why.
        reason: &'e str,
    },
    /// A task does not run.
    Omitted {
        /// Why.
        reason: &'e str,
    },
    /// A task failed, and the workflow tolerates it.
    Tolerated,
    /// A gate counts as passed.
    Waived {
        /// Why, where that was said.
        reason: Option<&'e str>,
        /// Whether a person said so; else it had passed before the run was imported.
        by_person: bool,
    },
}

/// When a task or gate is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After its backoff.
    Scheduled {
        /// When its backoff ends.
        due: Timestamp,
    },
    /// As soon as possible, because a person asked for it.
    Requested,
}

/// Where a query to an agent is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AgentQuery<'e> {
    /// It was sent.
    Started,
    /// The agent answered, and reported this about itself.
    Answered {
        /// What it reported about itself.
        agent: Option<&'e AgentReport>,
    },
}

/// What became of a gap check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapCheck<'e> {
    /// It ended, with or without gaps.
    Ended(&'e GapsChecked),
    /// A person waived its gaps.
    Waived {
        /// Its phase.
        phase: &'e PhaseId,
        /// The execution of the phase.
        iteration: u32,
    },
}

/// What was answered to a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'e> {
    /// The hold.
    pub hold: &'e HoldId,
    /// The option.
    pub option: &'e OptionId,
    /// What people read on the option.
    pub label: String,
    /// What was said with it.
    pub feedback: Option<&'e str>,
}

/// Something worth a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note<'e> {
    /// A checkpoint was not shown, because its condition is not met.
    CheckpointSkipped {
        /// Its phase.
        phase: &'e PhaseId,
        /// The execution of the phase.
        iteration: u32,
    },
    /// The check that an answer depends on passed.
    CheckPassed,
    /// No one answered a hold before its deadline.
    DeadlinePassed {
        /// The hold.
        hold: &'e HoldId,
        /// What happens then.
        then: &'e OnDeadline,
    },
    /// A hold still waits.
    Reminder {
        /// The hold.
        hold: &'e HoldId,
    },
    /// A budget was raised.
    BudgetRaised {
        /// Whose.
        scope: &'e BudgetScope,
    },
    /// The finalization wrote its file.
    Finalized {
        /// The file.
        file: &'e OutputFile,
    },
    /// A review, a note or artifacts of a pipeline were recorded.
    Pipeline(&'e PipelineEvent),
    /// A person chose another agent.
    AgentChanged {
        /// Its command.
        agent: &'e str,
    },
    /// A person accepted a changed definition.
    DefinitionAccepted,
    /// Phases were put on the skip list.
    PhasesSkipListed {
        /// The phases.
        phases: &'e [PhaseId],
    },
}

/// Something that deserves attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warning<'e> {
    /// The condition of a checkpoint could not be evaluated, so the checkpoint is shown.
    ConditionFailed {
        /// Its phase.
        phase: &'e PhaseId,
        /// The execution of the phase.
        iteration: u32,
        /// Why.
        error: &'e str,
    },
    /// A process tried what it may not do.
    AttemptRefused(&'e RefusedAttempt),
}
