//! Commands: requests to a run. Everything that happens to a run starts as a command.

pub use crate::run::actor::{Actor, Authority, Caller, Channel, Credential, TerminalRule};

use crate::digest::Digest;
use crate::hold::{Authentication, PresentedFile, ShownDiff};
use crate::id::{CommandId, DriverId, GateId, HoldId, PhaseId, SnapshotId, StepKey, TaskKey, TimerId};
use crate::run::agent::AgentReport;
use crate::run::event::{
    ConditionOutcome, Created, DiffBase, Failure, FrozenFile, OutputFile, PresetAnswer, RefusedAttempt, Requester,
};
use crate::run::handover::Handover;
use crate::run::pipeline::PipelineCommand;
use crate::run::state::Run;
use crate::run::team::TeamCommand;
use crate::spec::subagent::Subagent;
use crate::spec::workflow::{Check, GapAction, Question, Workflow};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use std::sync::Arc;

/// The sender and time of a command, common to every kind of command.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Chosen by the sender, so that sending a command twice has no further effect. Outcomes of effects do not need one.
    pub id: Option<CommandId>,
    /// The sender and their authority.
    pub caller: Caller,
    pub at: Timestamp,
    /// Random bytes used to generate ids.
    pub seed: [u8; 16],
    /// Whether the sender also drives the run. If so, whatever the command makes possible starts in the same commit.
    pub driving: bool,
}

/// A command for an existing run.
#[derive(Clone, Debug)]
pub struct Command {
    pub envelope: Envelope,
    pub kind: CommandKind,
}

#[derive(Clone, Debug)]
pub enum CommandKind {
    /// A process takes over the run. Interrupted attempts are found and handled.
    TakeOver {
        driver: DriverId,
        /// Whether the run is left to a background driver from now on.
        detached: bool,
    },
    /// An attempt of a task ended.
    TaskEnded {
        key: TaskKey,
        attempt: u32,
        outcome: TaskOutcome,
        agent: Option<Box<AgentReport>>,
        /// The commit with the task's changes, if the task commits its work.
        commit: Option<String>,
    },
    /// The agent of a running task reported its session id.
    SessionNamed {
        key: TaskKey,
        attempt: u32,
        session: String,
        /// The directory in which the session started, relative to the root.
        dir: Option<String>,
    },
    /// A task's `when` was evaluated.
    WhenEvaluated {
        key: TaskKey,
        outcome: ConditionOutcome,
    },
    /// A gap check checked whether the work of a phase is complete.
    GapsChecked {
        phase: PhaseId,
        iteration: u32,
        /// The number of the check, counted from 1.
        round: u32,
        found: GapsFound,
    },
    /// An agent replied to a query from a script.
    AgentQueryAnswered {
        requester: Requester,
        /// The reply as JSON, or why the query failed.
        text: Result<StoredValue, Failure>,
        agent: Option<Box<AgentReport>>,
    },
    /// The finalization wrote its file, or failed.
    Finalized {
        made: Result<OutputFile, Failure>,
    },
    /// A person accepts the changed definition files.
    AcceptDefinition {
        definition: Digest,
        workflow: Arc<Workflow>,
        /// The files from which the definition was compiled.
        files: Vec<FrozenFile>,
    },
    /// A person switches the remaining work to another agent.
    ChangeAgent {
        /// The agent's command; it overrides every other agent setting.
        agent: String,
    },
    /// An attempt of a gate ended.
    GateEnded {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        attempt: u32,
        /// The reason, if the gate failed.
        failure: Option<Failure>,
    },
    /// A checkpoint's condition was evaluated.
    ConditionEvaluated {
        phase: PhaseId,
        iteration: u32,
        outcome: ConditionOutcome,
    },
    /// A checkpoint is ready to be shown.
    Shown {
        phase: PhaseId,
        iteration: u32,
        shown: Box<Presentation>,
    },
    /// The check that must succeed before an answer counts was run.
    Checked {
        hold: HoldId,
        revision: u32,
        /// The reason, if the check failed.
        failure: Option<Failure>,
    },
    /// A person changes an answer that was given automatically.
    ChangeAnswer(AnswerChange),
    /// The files of an answered hold were digested again.
    Rechecked {
        hold: HoldId,
        revision: u32,
        /// The current files.
        files: Vec<PresentedFile>,
        /// The current git change, if one was shown.
        diff: Option<Box<ShownDiff>>,
        /// The differences, as shown to people.
        differences: Vec<String>,
    },
    /// The files were recorded at the start of a phase.
    DiffBaseRecorded {
        phase: PhaseId,
        iteration: u32,
        /// The starting point, or why there is none.
        base: DiffBase,
    },
    /// A timer fired.
    TimerDue {
        timer: TimerId,
    },
    /// The driver has read what other processes recorded, and starts whatever that made possible.
    Advance,
    Answer {
        hold: HoldId,
        /// The revision that the person saw. Absent if the hold was shown with the question or shows no files.
        revision: Option<u32>,
        /// The id, label or number of the option.
        option: String,
        feedback: Option<String>,
    },
    PresetAnswers {
        presets: Vec<PresetAnswer>,
    },
    /// The driver is shutting down and has stopped everything that was running.
    Interrupt {
        signal: String,
    },
    /// Ends the run for good.
    Cancel {
        reason: Option<String>,
    },
    /// A person requests a new attempt of a task or gate that failed or was interrupted.
    RetryTask {
        step: StepKey,
        /// The attempt that the history shows as running although the run has no driver and none of its processes are alive.
        cut_off: Option<u32>,
    },
    /// A person marks a task as done, or waives a gate.
    SkipTask {
        step: StepKey,
        reason: String,
        /// The attempt that the history shows as running although the run has no driver and none of its processes are alive.
        cut_off: Option<u32>,
    },
    /// A caller attempted something that they are not allowed to do.
    RecordRefusal(RefusedAttempt),
    Pipeline(Box<PipelineCommand>),
    /// A person lets the run continue from an earlier snapshot. Only a process that has claimed the run may send this, because
    /// nothing of the run may be running.
    Rewind(Rewind),
    /// A request of a member of the team.
    Team(Box<TeamCommand>),
}

/// An earlier state of a run, from a snapshot.
#[derive(Clone, Debug)]
pub struct Rewind {
    pub snapshot: SnapshotId,
    /// The number of the snapshot's last event.
    pub seq: u64,
    /// The state in the snapshot, with its definition attached.
    pub base: Arc<Run>,
    /// The digest of the state's bytes, which are a stored value.
    pub state: Digest,
}

impl Rewind {
    /// Returns the stored value too, which must be stored with the events of the command.
    pub fn new(snapshot: SnapshotId, seq: u64, base: Run) -> (Self, (Digest, Vec<u8>)) {
        let bytes = base.to_bytes();
        let state = Digest::of(&bytes);
        (Self { snapshot, seq, base: Arc::new(base), state }, (state, bytes))
    }
}

/// A new answer that replaces an automatic one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerChange {
    pub hold: HoldId,
    /// The id, label or number of the option.
    pub option: String,
    pub feedback: Option<String>,
}

/// How a run starts. This is not a [`CommandKind`], because a command needs a run.
#[derive(Clone, Debug)]
pub struct Create {
    pub created: Created,
    pub presets: Vec<PresetAnswer>,
}

/// How an attempt of a task ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskOutcome {
    Finished {
        result: Option<StoredValue>,
        outputs: Vec<OutputFile>,
    },
    Failed(Failure),
    /// The attempt succeeded, but the `until` condition does not hold yet, so the task runs again.
    Again {
        /// The return value of a script or agent.
        result: Option<StoredValue>,
        outputs: Vec<OutputFile>,
        /// What the `until` command reported, if there is one.
        why: String,
        /// The position of the failed check, if there are several and it is known.
        failed_check: Option<usize>,
    },
    /// The task fans out into one task per item.
    Items(Vec<Item>),
    /// The task fans out into the tasks of these agents.
    Agents(Vec<Subagent>),
    /// The script queries an agent with this JSON. It is evaluated again with the reply.
    QueriesAgent(StoredValue),
    /// The task is a question, ready to be shown.
    Asks(Box<Presentation>),
    /// The task needs a login that is missing.
    Unauthenticated {
        missing: Box<Authentication>,
        /// The command that checks whether the person is logged in.
        probe: Option<Check>,
    },
    /// The agent reached a checkpoint and handed over.
    HandsOver(Box<Handover>),
    /// The commits named by the previous agent do not exist.
    CommitsMissing(Vec<String>),
}

/// A checkpoint, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Presentation {
    /// The short form of the question, rendered.
    pub prompt: String,
    /// The full question, rendered, if there is more to it than the prompt.
    pub question: Option<Question>,
    /// The current files.
    pub files: Vec<PresentedFile>,
    /// Notes shown with the question.
    pub notes: Vec<String>,
    /// Whether the condition of the workflow's policy is true.
    pub automatic: bool,
    /// The git change as it is now, where one is to be shown.
    pub diff: Option<Box<ShownDiff>>,
}

/// One item of a fan-out.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Identifies the item within its list. The same list always yields the same keys.
    pub key: String,
    pub value: StoredValue,
}

/// What a gap check found.
#[derive(Clone, Debug, PartialEq)]
pub enum GapsFound {
    Whole {
        /// The status reported by the check.
        status: String,
        message: Option<String>,
    },
    Gaps {
        /// The status reported by the check.
        status: String,
        gaps: Vec<String>,
        /// The action that the check requests.
        action: Option<GapAction>,
        /// Agents that the check asks to start.
        agents: Vec<Subagent>,
        message: Option<String>,
    },
    /// The check itself failed.
    Error(String),
    /// The script queries an agent with this JSON.
    QueriesAgent(StoredValue),
}
