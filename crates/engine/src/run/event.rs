//! Events: the facts of a run. The history of them is the truth; everything else is a view.
//!
//! They are stored in a compact form where fields are told apart by their place: new fields go to the end and have a default.

mod created;
mod task;

pub use created::{Created, Forked, FrozenFile, Origin, PresetAnswer, RunKind};
pub use task::{
    AttemptReason, ConditionOutcome, Failure, FailureKind, GapsChecked, OutputFile, PlannedTask, Requester, SessionStart,
};

use crate::digest::Digest;
use crate::hold::{Answer, Choice, Due, HoldKind, HoldQuestion, PresentedFile, Remind, Scope, Terms};
use crate::id::{CommandId, DriverId, GateId, HoldId, OptionId, PhaseId, TaskId, TaskKey, TimerId};
use crate::run::agent::AgentReport;
use crate::run::budget::BudgetScope;
use crate::run::command::Actor;
use crate::run::handover::Handover;
use crate::run::pipeline::PipelineEvent;
use crate::spec::workflow::OnDeadline;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// An event with who caused it and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    /// Who; nobody but Lockgate itself when absent.
    pub actor: Option<Box<Actor>>,
    /// The command that it follows from, where that had an id.
    pub cause: Option<CommandId>,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    Created(Box<Created>),
    /// Answers were given in advance.
    AnswersPreset {
        /// The answers, in order.
        presets: Vec<PresetAnswer>,
    },
    /// A process took the run over.
    Resumed {
        driver: DriverId,
        /// Whether it is left to whichever process drives in the background from now on.
        #[serde(default)]
        detached: bool,
    },
    /// The process that drove was stopped.
    Interrupted {
        /// The signal's name.
        signal: String,
    },
    /// A phase was passed over, being on the skip list.
    PhaseSkipped {
        phase: PhaseId,
    },
    /// A phase began.
    PhaseStarted {
        phase: PhaseId,
        /// Its execution, counted from 1.
        iteration: u32,
        /// What was said when it was asked for again.
        feedback: Option<String>,
    },
    TasksPlanned {
        phase: PhaseId,
        iteration: u32,
        tasks: Vec<PlannedTask>,
    },
    /// An attempt of a task began.
    TaskStarted {
        key: TaskKey,
        /// Which attempt, counted from 1.
        attempt: u32,
        reason: AttemptReason,
        /// The id of the session that its agent works in, chosen before it begins; for agents only.
        #[serde(default)]
        session: Option<SessionStart>,
    },
    TaskFinished {
        key: TaskKey,
        attempt: u32,
        result: Option<StoredValue>,
        /// The files it left behind.
        outputs: Vec<OutputFile>,
        /// What its agent said about itself.
        #[serde(default)]
        agent: Option<Box<AgentReport>>,
        /// The commit that holds what it changed, where it was to be committed.
        #[serde(default)]
        commit: Option<String>,
    },
    /// An attempt of a task failed.
    TaskFailed {
        key: TaskKey,
        attempt: u32,
        failure: Failure,
        /// What its agent said about itself.
        #[serde(default)]
        agent: Option<Box<AgentReport>>,
    },
    /// A failed task will be tried again.
    RetryScheduled {
        key: TaskKey,
        /// The timer that wakes it.
        timer: TimerId,
        due: Timestamp,
    },
    /// The backoff of a failed task is over: it starts again as soon as there is room for it.
    RetryDue {
        key: TaskKey,
    },
    /// The agent of a task named the session that it works in, so that it can be resumed whatever becomes of this attempt.
    SessionNamed {
        key: TaskKey,
        attempt: u32,
        session: String,
        /// The folder that it began in, relative to the root.
        dir: Option<String>,
    },
    /// An attempt of a task was cut off.
    TaskInterrupted {
        key: TaskKey,
        attempt: u32,
    },
    /// A task counts as done without having finished.
    TaskSkipped {
        key: TaskKey,
        reason: String,
    },
    /// An attempt of a gate began.
    GateStarted {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        attempt: u32,
    },
    GatePassed {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        attempt: u32,
    },
    GateFailed {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        attempt: u32,
        failure: Failure,
    },
    /// A gate that did not pass counts as passed, because a person said so.
    GateWaived {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        /// Why, where the person said so.
        #[serde(default)]
        reason: Option<String>,
    },
    /// A checkpoint's condition was evaluated.
    ConditionEvaluated {
        phase: PhaseId,
        iteration: u32,
        outcome: ConditionOutcome,
    },
    /// A question waits.
    HoldOpened(Box<HoldOpened>),
    /// A question was answered.
    Answered {
        hold: HoldId,
        option: OptionId,
        /// What was said with it.
        feedback: Option<String>,
        /// The revision that was answered.
        revision: u32,
    },
    /// What was shown had changed before the answer took effect, or its check failed: the question waits again.
    HoldReopened {
        hold: HoldId,
        /// Its new revision.
        revision: u32,
        /// The files as they are now.
        files: Vec<PresentedFile>,
        /// The differences, for people.
        differences: Vec<String>,
        /// Whether it waits again because its check failed, not because something changed.
        #[serde(default)]
        by_check: bool,
        /// Its new deadline, where it has one. Histories from before deadlines were renewed lack it: the old one stays.
        #[serde(default)]
        deadline: Option<Box<Due>>,
        /// Its next reminder, where it has reminders; the same applies.
        #[serde(default)]
        remind: Option<Box<Remind>>,
    },
    /// An answer took effect.
    HoldSettled {
        hold: HoldId,
    },
    /// A question no longer matters.
    HoldVoided {
        hold: HoldId,
        reason: String,
    },
    /// Somebody tried what they may not do.
    AttemptRefused(RefusedAttempt),
    PhaseCompleted {
        phase: PhaseId,
        iteration: u32,
    },
    /// The run goes back to a phase.
    PhaseRepeated {
        /// The phase that it leaves.
        from: PhaseId,
        /// The phase that it goes back to.
        target: PhaseId,
        /// What was said with it.
        feedback: Option<String>,
        /// Whether a failure asked for it, not a person.
        by_failure: bool,
        /// Whether a gap check asked for it.
        #[serde(default)]
        gaps: bool,
        /// Tasks of the phase that stay as they ended.
        #[serde(default)]
        carry: Vec<TaskId>,
        /// Later phases that are no longer passed over, because they came from the same workflow file as the target.
        #[serde(default)]
        restores: Vec<PhaseId>,
    },
    /// Phases were put on the skip list.
    PhasesSkipListed {
        phases: Vec<PhaseId>,
    },
    /// The run failed; resuming it tries again what failed.
    Failed {
        message: String,
    },
    /// A person ended the run at a hold.
    Aborted {
        hold: HoldId,
    },
    /// Somebody ended the run.
    Cancelled {
        reason: Option<String>,
    },
    /// All phases are done.
    Completed,
    /// An attempt of a task was ended because something else failed first; it is tried again with it.
    TaskStopped {
        key: TaskKey,
        attempt: u32,
        reason: String,
        /// What its agent said about itself.
        #[serde(default)]
        agent: Option<Box<AgentReport>>,
        /// Whether its budget ended it, so that it goes on when a person allows more.
        #[serde(default)]
        by_budget: bool,
    },
    /// A person asked for a new attempt of a task; a run that had failed goes on.
    RetryRequested {
        key: TaskKey,
    },
    /// A person asked for a new attempt of a gate; a run that had failed goes on.
    GateRetryRequested {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
    },
    /// A task's condition is true: it may start.
    TaskAdmitted {
        key: TaskKey,
    },
    /// A task is not done, and the run goes on without it.
    TaskOmitted {
        key: TaskKey,
        reason: String,
        /// Whether that is because something that it needs failed.
        failed: bool,
    },
    /// A task has failed for good, and the run goes on all the same.
    FailureTolerated {
        key: TaskKey,
    },
    /// A task became several.
    TaskFannedOut {
        key: TaskKey,
        attempt: u32,
        /// What it became.
        tasks: Vec<PlannedTask>,
    },
    /// A task is done once more, because what it is done for does not hold yet.
    TaskRepeated {
        key: TaskKey,
        attempt: u32,
        /// What a script or agent returned.
        result: Option<StoredValue>,
        /// The files it left behind.
        outputs: Vec<OutputFile>,
        /// What its agent said about itself.
        agent: Option<Box<AgentReport>>,
        /// What is still wrong, where a command said so.
        #[serde(default)]
        why: String,
    },
    /// A script wants to know what an agent thinks.
    AgentQueryStarted {
        requester: Requester,
        /// What is asked, as a JSON text.
        prompt: StoredValue,
    },
    /// An agent said what it thinks.
    AgentQueryAnswered {
        requester: Requester,
        /// What it said, as a JSON text.
        text: StoredValue,
        /// What the agent said about itself.
        agent: Option<Box<AgentReport>>,
    },
    /// It was found out whether the work of a phase is whole.
    GapsChecked(Box<GapsChecked>),
    /// Gaps count as closed, because a person said so.
    GapsWaived {
        phase: PhaseId,
        iteration: u32,
    },
    /// A budget was raised by as much again.
    BudgetRaised {
        scope: BudgetScope,
    },
    /// Tasks wait for the answer to a question about a budget that others wait for already.
    TasksBlocked {
        keys: Vec<TaskKey>,
        hold: HoldId,
    },
    /// What is made from the context in the end was made.
    Finalized {
        file: OutputFile,
    },
    /// A changed definition was accepted: the run goes on with it.
    DefinitionAccepted {
        /// Digest of the compiled definition, which is a stored value.
        definition: Digest,
        /// The files that it was made from.
        files: Vec<FrozenFile>,
    },
    /// A person chose another agent for what remains.
    AgentChanged {
        /// The command of the agent that works whatever else is configured.
        agent: String,
    },
    /// It was found out that a person did what they said.
    CheckPassed {
        hold: HoldId,
    },
    /// A person found issues: work is done again, and then they are asked again.
    ReworkRequested {
        /// The tasks that are done again.
        keys: Vec<TaskKey>,
        by: TaskKey,
        issues: String,
        /// What was built on these tasks and is done again after them; questions among it are asked again.
        #[serde(default)]
        stale: Vec<TaskKey>,
        /// What must have ended before the question is asked again.
        #[serde(default)]
        after: Vec<TaskId>,
    },
    /// Nobody had answered in time.
    DeadlinePassed {
        hold: HoldId,
        then: OnDeadline,
    },
    /// People were reminded of a question.
    Reminded {
        hold: HoldId,
        /// Which reminder it was, counted from 1.
        number: u32,
        /// The timer of the next one.
        timer: TimerId,
        next: Timestamp,
    },
    /// A person changed an answer that no person had given.
    AnswerChanged {
        hold: HoldId,
        option: OptionId,
        /// What was said with it.
        feedback: Option<String>,
    },
    /// An agent reached a checkpoint and handed over what it had done.
    HandedOver {
        key: TaskKey,
        attempt: u32,
        handover: Box<Handover>,
        agent: Option<Box<AgentReport>>,
    },
    /// Something about a pipeline.
    Pipeline(Box<PipelineEvent>),
}

/// A question that begins to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldOpened {
    pub hold: HoldId,
    pub kind: HoldKind,
    pub scope: Scope,
    pub prompt: String,
    /// The files that the answer is about.
    pub files: Vec<PresentedFile>,
    /// What may be answered.
    pub options: Vec<Choice>,
    /// What else must be said with it.
    pub notes: Vec<String>,
    /// Whether the run waits for it.
    pub blocking: bool,
    /// How many people must agree.
    pub quorum: u32,
    /// What is asked, where that is more than the prompt.
    #[serde(default)]
    pub asked: Option<Box<HoldQuestion>>,
    /// How it is checked, and what may answer it besides a person.
    #[serde(default)]
    pub terms: Terms,
    /// What was answered when the same question was asked before.
    #[serde(default)]
    pub previous: Option<Box<Answer>>,
}

/// An attempt to do what one may not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedAttempt {
    /// What was tried, as it completes "may not …": `answer a hold`, `cancel a run`, `retry a task`.
    pub what: String,
    /// The hold, where one was named.
    pub hold: Option<HoldId>,
    pub reason: String,
    /// Which refused attempt on this run it was, counted from 1. Numbers are missing where attempts were only counted.
    #[serde(default)]
    pub number: u32,
}

impl RefusedAttempt {
    /// The first attempt on a run, as far as the caller knows; the run counts on from those that it has recorded.
    pub fn new(what: &str, hold: Option<HoldId>, reason: String) -> Self {
        Self { what: what.to_owned(), hold, reason, number: 1 }
    }
}
