//! Commands: what is asked of a run, by whom and when. Everything that happens to a run begins as one.

pub use crate::run::actor::{Actor, Authority, Caller, Channel, Credential, TerminalRule};

use crate::digest::Digest;
use crate::hold::{Authentication, PresentedFile};
use crate::id::{CommandId, DriverId, GateId, HoldId, PhaseId, StepKey, TaskKey, TimerId};
use crate::run::agent::AgentReport;
use crate::run::event::{ConditionOutcome, Created, Failure, FrozenFile, OutputFile, PresetAnswer, RefusedAttempt, Requester};
use crate::run::handover::Handover;
use crate::run::pipeline::PipelineCommand;
use crate::spec::subagent::Subagent;
use crate::spec::workflow::{Check, GapAction, Question, Workflow};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use std::sync::Arc;

/// Who sends a command and when: what every command has, whatever it asks for.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Given by whoever sends it, so that sending it again changes nothing; outcomes of effects need none.
    pub id: Option<CommandId>,
    /// Who asks, and what they may do.
    pub caller: Caller,
    pub at: Timestamp,
    /// Random bytes from which the ids of new things are made.
    pub seed: [u8; 16],
    /// Whether the sender also drives the run, so that what follows from the command starts in the same commit.
    pub driving: bool,
}

/// A command on a run that exists.
#[derive(Clone, Debug)]
pub struct Command {
    pub envelope: Envelope,
    pub kind: CommandKind,
}

#[derive(Clone, Debug)]
pub enum CommandKind {
    /// A process begins to drive the run: what was cut off is found and dealt with.
    TakeOver {
        driver: DriverId,
        /// Whether the run is left to whichever process drives in the background from now on.
        detached: bool,
    },
    /// An attempt of a task has ended.
    TaskEnded {
        key: TaskKey,
        attempt: u32,
        outcome: TaskOutcome,
        /// What its agent said about itself.
        agent: Option<Box<AgentReport>>,
        /// The commit that holds what it changed, where it was to be committed.
        commit: Option<String>,
    },
    /// The agent of a task that runs named the session that it works in.
    SessionNamed {
        key: TaskKey,
        attempt: u32,
        session: String,
        /// The folder that it began in, relative to the root.
        dir: Option<String>,
    },
    /// A task's `when` was evaluated.
    WhenEvaluated {
        key: TaskKey,
        outcome: ConditionOutcome,
    },
    /// It was found out whether the work of a phase is whole.
    GapsChecked {
        phase: PhaseId,
        iteration: u32,
        /// Which check it was, counted from 1.
        round: u32,
        found: GapsFound,
    },
    /// An agent was asked what it thinks.
    AgentQueryAnswered {
        requester: Requester,
        /// What it said, as a JSON text; or why it said nothing.
        text: Result<StoredValue, Failure>,
        /// What the agent said about itself.
        agent: Option<Box<AgentReport>>,
    },
    /// What is made from the context in the end was made, or could not be.
    Finalized {
        /// The file, or why there is none.
        made: Result<OutputFile, Failure>,
    },
    /// A person accepts that the files of the definition have changed.
    AcceptDefinition {
        definition: Digest,
        workflow: Arc<Workflow>,
        /// The files that it was made from.
        files: Vec<FrozenFile>,
    },
    /// A person chooses another agent for what remains.
    ChangeAgent {
        /// The command of the agent that works whatever else is configured.
        agent: String,
    },
    /// An attempt of a gate has ended.
    GateEnded {
        phase: PhaseId,
        iteration: u32,
        gate: GateId,
        attempt: u32,
        /// Why it failed, when it did.
        failure: Option<Failure>,
    },
    /// A checkpoint's condition was evaluated.
    ConditionEvaluated {
        phase: PhaseId,
        iteration: u32,
        outcome: ConditionOutcome,
    },
    /// A checkpoint was made ready to be shown.
    Shown {
        phase: PhaseId,
        iteration: u32,
        shown: Box<Presentation>,
    },
    /// What must succeed before an answer is believed was tried.
    Checked {
        hold: HoldId,
        /// The revision that was answered.
        revision: u32,
        /// Why it failed, when it did.
        failure: Option<Failure>,
    },
    /// A person changes an answer that no person gave.
    ChangeAnswer(AnswerChange),
    /// The files of an answered hold were looked at again.
    Rechecked {
        hold: HoldId,
        /// The revision that was answered.
        revision: u32,
        /// The files as they are now.
        files: Vec<PresentedFile>,
        /// The differences, for people.
        differences: Vec<String>,
    },
    /// A moment has come.
    TimerDue {
        timer: TimerId,
    },
    /// Whoever drives has seen what others recorded; what follows from it may begin.
    Advance,
    /// An answer to a hold.
    Answer {
        hold: HoldId,
        /// The revision that was seen; absent where the hold was shown first, or shows no files.
        revision: Option<u32>,
        /// The option: its id, its label or its number.
        option: String,
        /// What is said with it.
        feedback: Option<String>,
    },
    PresetAnswers {
        /// The answers, in order.
        presets: Vec<PresetAnswer>,
    },
    /// The process that drives is being stopped; what was under way has been ended.
    Interrupt {
        /// The signal's name.
        signal: String,
    },
    /// End the run for good.
    Cancel {
        reason: Option<String>,
    },
    /// A person asks for a new attempt of a task or gate that failed or was cut off.
    RetryTask {
        step: StepKey,
        /// The attempt that the history shows as running although nobody drives the run and nothing of it lives.
        cut_off: Option<u32>,
    },
    /// A person lets a task count as done, or waives a gate.
    SkipTask {
        step: StepKey,
        reason: String,
        /// The attempt that the history shows as running although nobody drives the run and nothing of it lives.
        cut_off: Option<u32>,
    },
    /// Somebody tried what they may not do.
    RecordRefusal(RefusedAttempt),
    /// Something about a pipeline.
    Pipeline(Box<PipelineCommand>),
}

/// Another answer in the place of one that no person gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerChange {
    pub hold: HoldId,
    /// The option: its id, its label or its number.
    pub option: String,
    /// What is said with it.
    pub feedback: Option<String>,
}

/// How a run starts. This is no kind of command, because a command needs a run.
#[derive(Clone, Debug)]
pub struct Create {
    pub created: Created,
    pub presets: Vec<PresetAnswer>,
}

/// How an attempt of a task ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskOutcome {
    /// Well.
    Finished {
        result: Option<StoredValue>,
        /// The files it left behind.
        outputs: Vec<OutputFile>,
    },
    /// Badly.
    Failed(Failure),
    /// Well, and it is to be done once more.
    Again {
        /// What a script or agent returned.
        result: Option<StoredValue>,
        /// The files it left behind.
        outputs: Vec<OutputFile>,
        /// What is still wrong, where a command said so.
        why: String,
    },
    /// It becomes one task for each item.
    Items(Vec<Item>),
    /// It becomes the tasks of these agents.
    Agents(Vec<Subagent>),
    /// Its script wants to know what an agent thinks of this, a JSON text; it is evaluated again with the answer.
    QueriesAgent(StoredValue),
    /// It is a question, ready to be shown.
    Asks(Box<Presentation>),
    /// A login is missing.
    Unauthenticated {
        missing: Box<Authentication>,
        /// The command that finds out whether it is there.
        probe: Option<Check>,
    },
    /// Its agent reached a checkpoint and handed over.
    HandsOver(Box<Handover>),
    /// Commits that the agent before named are not there.
    CommitsMissing(Vec<String>),
}

/// A checkpoint, ready to be shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Presentation {
    /// The question in short, with values filled in.
    pub prompt: String,
    /// The question itself, with values filled in, where it is more than the prompt.
    pub question: Option<Question>,
    /// The files as they are now.
    pub files: Vec<PresentedFile>,
    /// What else must be said.
    pub notes: Vec<String>,
    /// Whether the condition of the workflow's policy holds.
    pub automatic: bool,
}

/// An item of a list that a task is done for.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What tells it apart from others; the same whenever the list is the same.
    pub key: String,
    pub value: StoredValue,
}

/// What a gap check found.
#[derive(Clone, Debug, PartialEq)]
pub enum GapsFound {
    /// The work is whole.
    Whole {
        /// The word that the check gave.
        status: String,
        /// What it said besides.
        message: Option<String>,
    },
    /// Something is missing.
    Gaps {
        /// The word that the check gave.
        status: String,
        gaps: Vec<String>,
        /// What it says should happen.
        action: Option<GapAction>,
        /// Who should be called.
        agents: Vec<Subagent>,
        /// What it said besides.
        message: Option<String>,
    },
    /// It could not be found out.
    Error(String),
    /// The script wants to know what an agent thinks of this, a JSON text.
    QueriesAgent(StoredValue),
}
