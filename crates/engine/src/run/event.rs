//! Events: the facts of a run. The history of events is the source of truth; everything else is derived from it.
//!
//! The stored form identifies fields by position. Add new fields at the end, with a default.

mod created;
mod rewound;
mod task;

pub use created::{Created, Forked, FrozenFile, Origin, PresetAnswer, RecoveredFrom, RunKind};
pub use rewound::Rewound;
pub use task::{
    AttemptReason, ConditionOutcome, Failure, FailureKind, GapsChecked, OutputFile, PlannedTask, Requester, SessionStart,
};

use crate::digest::Digest;
use crate::hold::{Answer, Choice, Due, HoldKind, HoldQuestion, PresentedFile, Remind, Scope, ShownDiff, Terms};
use crate::id::{CommandId, DriverId, GateId, HoldId, OptionId, PhaseId, RunId, TaskId, TaskKey, TimerId};
use crate::run::agent::AgentReport;
use crate::run::budget::BudgetScope;
use crate::run::command::Actor;
use crate::run::handover::Handover;
use crate::run::pipeline::PipelineEvent;
use crate::run::team::TeamEvent;
use crate::spec::workflow::OnDeadline;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// An event, who caused it, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    /// Absent if Lockgate itself caused the event.
    pub actor: Option<Box<Actor>>,
    /// The command that caused the event, if the command had an id.
    pub cause: Option<CommandId>,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The run was created.
    Created(Box<Created>),
    /// Answers were given in advance.
    AnswersPreset {
        presets: Vec<PresetAnswer>,
    },
    /// A process took over the run.
    Resumed {
        driver: DriverId,
        /// Whether the run is left to a background driver from now on.
        #[serde(default)]
        detached: bool,
    },
    /// The driver was stopped by a signal.
    Interrupted {
        signal: String,
    },
    /// A phase was skipped because it is on the skip list.
    PhaseSkipped {
        phase: PhaseId,
    },
    PhaseStarted {
        phase: PhaseId,
        /// Counted from 1.
        iteration: u32,
        /// The feedback with which the phase was repeated.
        feedback: Option<String>,
    },
    TasksPlanned {
        phase: PhaseId,
        iteration: u32,
        tasks: Vec<PlannedTask>,
    },
    TaskStarted {
        key: TaskKey,
        /// Counted from 1.
        attempt: u32,
        reason: AttemptReason,
        /// For agents only: the session id, chosen before the agent starts.
        #[serde(default)]
        session: Option<SessionStart>,
    },
    TaskFinished {
        key: TaskKey,
        attempt: u32,
        result: Option<StoredValue>,
        outputs: Vec<OutputFile>,
        #[serde(default)]
        agent: Option<Box<AgentReport>>,
        /// The commit with the task's changes, if the task commits its work.
        #[serde(default)]
        commit: Option<String>,
    },
    TaskFailed {
        key: TaskKey,
        attempt: u32,
        failure: Failure,
        #[serde(default)]
        agent: Option<Box<AgentReport>>,
    },
    /// A failed task will be retried.
    RetryScheduled {
        key: TaskKey,
        timer: TimerId,
        due: Timestamp,
    },
    /// The backoff of a failed task is over. The task starts as soon as there is capacity.
    RetryDue {
        key: TaskKey,
    },
    /// The agent of a task reported its session id, so that the session can be resumed even if this attempt fails.
    SessionNamed {
        key: TaskKey,
        attempt: u32,
        session: String,
        /// The directory in which the session started, relative to the root.
        dir: Option<String>,
    },
    /// An attempt of a task was interrupted.
    TaskInterrupted {
        key: TaskKey,
        attempt: u32,
    },
    /// A task was marked as done without finishing.
    TaskSkipped {
        key: TaskKey,
        reason: String,
    },
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
    /// A person waived a gate that did not pass.
    GateWaived {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        #[serde(default)]
        reason: Option<String>,
    },
    ConditionEvaluated {
        phase: PhaseId,
        iteration: u32,
        outcome: ConditionOutcome,
    },
    HoldOpened(Box<HoldOpened>),
    Answered {
        hold: HoldId,
        option: OptionId,
        feedback: Option<String>,
        revision: u32,
    },
    /// A shown file changed before the answer took effect, or the check failed. The hold waits for another answer.
    HoldReopened {
        hold: HoldId,
        revision: u32,
        /// The current files.
        files: Vec<PresentedFile>,
        /// The differences, as shown to people.
        differences: Vec<String>,
        /// Whether the check failed, as opposed to a file having changed.
        #[serde(default)]
        by_check: bool,
        /// The new deadline, if the hold has one. Absent in histories written before deadlines were renewed; the old deadline
        /// then applies.
        #[serde(default)]
        deadline: Option<Box<Due>>,
        /// The next reminder, if the hold has reminders. The same applies.
        #[serde(default)]
        remind: Option<Box<Remind>>,
        /// The git change as it is now, where one is shown.
        #[serde(default)]
        diff: Option<Box<ShownDiff>>,
        /// Whether the run continues from a snapshot, as opposed to a file having changed.
        #[serde(default)]
        restored: bool,
    },
    /// An answer took effect.
    HoldSettled {
        hold: HoldId,
    },
    /// A hold no longer applies.
    HoldVoided {
        hold: HoldId,
        reason: String,
    },
    /// A caller attempted something that they are not allowed to do.
    AttemptRefused(RefusedAttempt),
    PhaseCompleted {
        phase: PhaseId,
        iteration: u32,
    },
    /// The run goes back to an earlier phase, or repeats this one.
    PhaseRepeated {
        from: PhaseId,
        target: PhaseId,
        feedback: Option<String>,
        /// Whether a failure caused the repeat, not a person.
        by_failure: bool,
        /// Whether a gap check caused the repeat.
        #[serde(default)]
        gaps: bool,
        /// Tasks of the phase that keep their result.
        #[serde(default)]
        carry: Vec<TaskId>,
        /// Later phases that are taken off the skip list, because they come from the same workflow file as the target.
        #[serde(default)]
        restores: Vec<PhaseId>,
    },
    /// Phases were added to the skip list.
    PhasesSkipListed {
        phases: Vec<PhaseId>,
    },
    /// The run failed. Resuming it retries what failed.
    Failed {
        message: String,
    },
    /// A person ended the run at a hold.
    Aborted {
        hold: HoldId,
    },
    Cancelled {
        reason: Option<String>,
    },
    Completed,
    /// An attempt was stopped because something else failed first. It is retried together with that.
    TaskStopped {
        key: TaskKey,
        attempt: u32,
        reason: String,
        #[serde(default)]
        agent: Option<Box<AgentReport>>,
        /// Whether the budget stopped the attempt. It continues when a person allows more.
        #[serde(default)]
        by_budget: bool,
    },
    /// A person requested a new attempt of a task. A failed run resumes.
    RetryRequested {
        key: TaskKey,
    },
    /// A person requested a new attempt of a gate. A failed run resumes.
    GateRetryRequested {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
    },
    /// A task's condition is true, so the task may start.
    TaskAdmitted {
        key: TaskKey,
    },
    /// A task is left out, and the run continues without it.
    TaskOmitted {
        key: TaskKey,
        reason: String,
        /// Whether a dependency of the task failed.
        failed: bool,
    },
    /// A task failed for good, and the run continues despite that.
    FailureTolerated {
        key: TaskKey,
    },
    /// A task was split into several.
    TaskFannedOut {
        key: TaskKey,
        attempt: u32,
        tasks: Vec<PlannedTask>,
    },
    /// A task runs again because its `until` condition does not hold yet.
    TaskRepeated {
        key: TaskKey,
        attempt: u32,
        /// The return value of a script or agent.
        result: Option<StoredValue>,
        outputs: Vec<OutputFile>,
        agent: Option<Box<AgentReport>>,
        /// What the `until` command reported, if there is one.
        #[serde(default)]
        why: String,
    },
    /// A script queries an agent.
    AgentQueryStarted {
        requester: Requester,
        /// The query as JSON.
        prompt: StoredValue,
    },
    /// An agent replied to a script's query.
    AgentQueryAnswered {
        requester: Requester,
        /// The reply as JSON.
        text: StoredValue,
        agent: Option<Box<AgentReport>>,
    },
    /// A gap check checked whether the work of a phase is complete.
    GapsChecked(Box<GapsChecked>),
    /// A person accepted the gaps of a phase.
    GapsWaived {
        phase: PhaseId,
        iteration: u32,
    },
    /// A budget was raised by its original amount.
    BudgetRaised {
        scope: BudgetScope,
    },
    /// Tasks wait for an open question about a budget that already blocks other tasks.
    TasksBlocked {
        keys: Vec<TaskKey>,
        hold: HoldId,
    },
    /// The finalization wrote its file.
    Finalized {
        file: OutputFile,
    },
    /// A changed definition was accepted. The run continues with it.
    DefinitionAccepted {
        /// The compiled definition, which is a stored value.
        definition: Digest,
        /// The files from which the definition was compiled.
        files: Vec<FrozenFile>,
    },
    /// A person switched the remaining work to another agent.
    AgentChanged {
        /// The agent's command; it overrides every other agent setting.
        agent: String,
    },
    /// The check confirmed a person's answer.
    CheckPassed {
        hold: HoldId,
    },
    /// A person found issues. The work is redone, and then the question is asked again.
    ReworkRequested {
        /// The tasks to redo.
        keys: Vec<TaskKey>,
        by: TaskKey,
        issues: String,
        /// Tasks that depend on those. They are redone afterwards, and questions among them are asked again.
        #[serde(default)]
        stale: Vec<TaskKey>,
        /// Tasks that must end before the question is asked again.
        #[serde(default)]
        after: Vec<TaskId>,
    },
    /// No one answered before the deadline.
    DeadlinePassed {
        hold: HoldId,
        then: OnDeadline,
    },
    /// People were reminded of an open hold.
    Reminded {
        hold: HoldId,
        /// Counted from 1.
        number: u32,
        /// The timer for the next reminder.
        timer: TimerId,
        next: Timestamp,
    },
    /// A person changed an answer that was given automatically.
    AnswerChanged {
        hold: HoldId,
        option: OptionId,
        feedback: Option<String>,
    },
    /// An agent reached a checkpoint and handed over its work so far.
    HandedOver {
        key: TaskKey,
        attempt: u32,
        handover: Box<Handover>,
        agent: Option<Box<AgentReport>>,
    },
    Pipeline(Box<PipelineEvent>),
    /// The files were recorded at the start of a phase, because a question will show what changed since then.
    DiffBaseRecorded {
        /// The phase.
        phase: PhaseId,
        /// Its execution.
        iteration: u32,
        /// The starting point of the change.
        base: DiffBase,
        /// Whether the run started with this phase.
        starts_run: bool,
    },
    /// A person let the run continue from an earlier snapshot. What happened since no longer counts, but stays in the history.
    Rewound(Box<Rewound>),
    /// A message, a conflict or knowledge of the run's agents.
    Team(Box<TeamEvent>),
}

/// The files at the start of a phase or run, which a change is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffBase {
    /// They are a git tree, uncommitted and untracked files included.
    Tree {
        /// The id of the tree.
        tree: String,
        /// The run that keeps the git objects of the tree; not this run where this one is a fork.
        kept_by: RunId,
    },
    /// They could not be recorded, and why.
    Missing(String),
}

/// The content of a hold as it opens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldOpened {
    pub hold: HoldId,
    pub kind: HoldKind,
    pub scope: Scope,
    pub prompt: String,
    /// The files that the answer is bound to.
    pub files: Vec<PresentedFile>,
    pub options: Vec<Choice>,
    /// Notes shown with the question.
    pub notes: Vec<String>,
    /// Whether the run waits for the answer.
    pub blocking: bool,
    /// How many people must approve.
    pub quorum: u32,
    /// The full question, if there is more to it than the prompt.
    #[serde(default)]
    pub question: Option<Box<HoldQuestion>>,
    /// How the answer is checked, and what may answer instead of a person.
    #[serde(default)]
    pub terms: Terms,
    /// The answer given when the same question was asked before.
    #[serde(default)]
    pub previous: Option<Box<Answer>>,
    /// The git change that the answer is about.
    #[serde(default)]
    pub diff: Option<Box<ShownDiff>>,
}

/// An attempt to do something that the caller is not allowed to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedAttempt {
    /// Completes "may not …": `answer a hold`, `cancel a run`, `retry a task`.
    pub what: String,
    pub hold: Option<HoldId>,
    pub reason: String,
    /// The number of the refused attempt on this run, counted from 1. There are gaps where attempts were only counted.
    #[serde(default)]
    pub number: u32,
}

impl RefusedAttempt {
    /// The first attempt on a run as far as the caller knows; the run continues its own numbering.
    pub fn new(what: &str, hold: Option<HoldId>, reason: String) -> Self {
        Self { what: what.to_owned(), hold, reason, number: 1 }
    }
}
