//! The state of a run: what its history amounts to. Only `apply` changes it.

mod steps;

pub use steps::{AgentQuery, CheckpointRun, GapRun, GapState, GateRun, GateState, StepStatus, TaskState};

use crate::digest::Digest;
use crate::hold::{Hold, HoldKind, HoldState, PolicyKind, Scope};
use crate::id::{DriverId, HoldId, OptionId, PhaseId, RunId, TaskId, TaskKey, TimerId};
use crate::run::agent::Usage;
use crate::run::budget::{BudgetScope, Spent};
use crate::run::command::Actor;
use crate::run::event::{FrozenFile, OutputFile, PresetAnswer, RunKind};
use crate::run::index::{NamedVariants, TimerKind};
use crate::run::phase::{PhaseRun, TaskRun};
use crate::run::pipeline::PipelineRun;
use crate::spec::workflow::{GapAction, Task, Workflow};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run, as far as its history has been applied. It may be ahead of the store by the commit that is being appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub kind: RunKind,
    /// Digest of the definition that is frozen with it.
    pub definition: Digest,
    /// The definition itself; a stored value, so not part of the folded state.
    #[serde(skip)]
    pub workflow: Arc<Workflow>,
    /// The files that the definition was made from.
    pub files: Vec<FrozenFile>,
    pub feature: Option<String>,
    /// Flags, without their dashes.
    pub flags: Vec<String>,
    /// Values that scripts, conditions and templates see.
    pub vars: BTreeMap<String, StoredValue>,
    /// Where outputs go, relative to the root.
    pub output_dir: String,
    /// Who drives it, or drove it last.
    pub driver: DriverId,
    pub started_at: Timestamp,
    /// How many commits its history has.
    pub version: u64,
    /// The number of the next event.
    pub next_seq: u64,
    /// The hash of the last commit.
    pub head: Digest,
    /// Where in the definition's order the run is.
    pub position: usize,
    /// The phase under way.
    pub current: Option<PhaseRun>,
    /// Phases that are done, in the order in which they were.
    pub completed: Vec<PhaseId>,
    /// How often each phase was executed.
    pub iteration_counts: BTreeMap<PhaseId, u32>,
    /// Phases to be passed over.
    pub skip_list: Vec<PhaseId>,
    /// What was said when a phase was asked for again, until that phase starts.
    pub feedback: Option<String>,
    /// How often the present phase was repeated without a person asking for it.
    pub repeats_by_failure: u32,
    /// How often in a row the question of a phase was answered without a person in such a way that a phase ran again.
    #[serde(default)]
    pub automatic_repeats: BTreeMap<PhaseId, u32>,
    /// How many tasks were begun, main scripts left out; the sources call them subagents.
    pub subagents_spawned: u32,
    /// What scripts returned, by phase and task.
    pub outputs: BTreeMap<PhaseId, BTreeMap<TaskId, StoredValue>>,
    /// Files that tasks left behind.
    pub deliverables: Vec<Deliverable>,
    /// Questions that wait or are being settled.
    pub holds: BTreeMap<HoldId, Hold>,
    /// Questions that were settled, and how.
    pub decisions: Vec<Decision>,
    /// Answers in advance that were not used yet.
    pub presets: Vec<GivenPresetAnswer>,
    /// What people should know about this run.
    pub warnings: Vec<String>,
    /// How often somebody tried what they may not do.
    pub refused_attempts: u32,
    /// Whether the process that drove it is being stopped, so that nothing new may start.
    pub stopping: bool,
    pub end: Option<End>,
    /// What its rows in lists say.
    pub listed: Listed,
    /// Whether it is left to whichever process drives in the background.
    #[serde(default)]
    pub detached: bool,
    /// The command of the agent that works whatever else is configured.
    #[serde(default)]
    pub agent: Option<String>,
    /// How many checks in a row found gaps in the present phase.
    #[serde(default)]
    pub gap_rounds: u32,
    /// What gap checks found, in order.
    #[serde(default)]
    pub gap_checks: Vec<GapRecord>,
    /// What agents used, by budget.
    #[serde(default)]
    pub spent: Vec<(BudgetScope, Spent)>,
    /// The sessions in which agents worked last, by agent and by the address of the task.
    #[serde(default)]
    pub sessions: Sessions,
    /// What tasks that are done for each item of a list returned, by phase, task and item.
    #[serde(default)]
    pub item_outputs: BTreeMap<PhaseId, BTreeMap<TaskId, BTreeMap<String, StoredValue>>>,
    /// The file that was made from the context in the end.
    #[serde(default)]
    pub finalized: Option<OutputFile>,
    /// Tasks that stay as they ended when the next phase starts.
    #[serde(default)]
    pub carry: Vec<EndedTask>,
    /// How many questions of each kind in a row policy answered without a person.
    #[serde(default)]
    pub consecutive_automatic: ConsecutiveAutomatic,
    /// What it knows beyond phases and tasks, where it is a pipeline.
    #[serde(default)]
    pub pipeline: Option<Box<PipelineRun>>,
    /// How often in a row a person found issues at the end of the present phase.
    #[serde(default)]
    pub phase_issues: u32,
    /// The run that it was forked from.
    #[serde(default)]
    pub parent: Option<RunId>,
    /// Tasks of phases that were completed which are not simply done, and how they ended.
    #[serde(default)]
    pub not_done: BTreeMap<PhaseId, Vec<EndedTask>>,
    /// Questions that were taken back.
    #[serde(default)]
    pub voided: Vec<VoidedHold>,
    /// A definition that the next event may name.
    #[serde(skip)]
    pub(super) offered: Option<(Digest, Arc<Workflow>)>,
    /// What the commit that is being made changes in the index.
    #[serde(skip)]
    pub(super) touched: Touched,
}

/// So many refused attempts are recorded one by one; a task that tries again and again must not fill the history. Of those that
/// follow one is recorded each time their number reaches the next power of two.
pub const REFUSED_ATTEMPTS_KEPT: u32 = 100;

/// Whether a refused attempt is recorded, where the last one that was recorded had this number.
pub(super) fn keeps_refused_attempt(last: u32, number: u32) -> bool {
    number <= REFUSED_ATTEMPTS_KEPT || number.checked_ilog2() > last.checked_ilog2()
}

/// What a gap check found, and what followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRecord {
    pub phase: PhaseId,
    /// Which check in a row it was, counted from 1.
    pub round: u32,
    /// The word that the check gave.
    pub status: String,
    pub gaps: Vec<String>,
    pub action: Option<GapAction>,
    /// The types of the agents that were called.
    pub agents: Vec<String>,
    pub at: Timestamp,
}

/// The sessions in which agents worked last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    /// By the name of the agent.
    pub by_agent: BTreeMap<String, KnownSession>,
    /// By the address of the task.
    pub by_task: BTreeMap<String, KnownSession>,
}

/// A session that can be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSession {
    pub id: String,
    /// The folder that it began in, relative to the root.
    pub dir: Option<String>,
    /// Whether the agent itself named it; else it was only asked to use this id.
    pub confirmed: bool,
    /// What the agent says that it used in all, where it speaks of whole sessions.
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All phases are done.
    Complete,
    /// Something failed; resuming tries it again.
    Failed(String),
    /// A person ended it at a hold.
    Aborted,
    /// Somebody ended it.
    Cancelled,
}

/// Where a run stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Something runs or can start.
    Running,
    /// A blocking hold is open, and nothing runs or can start.
    Waiting,
    /// Something failed.
    Failed,
    /// A person ended it at a hold.
    Aborted,
    /// Somebody ended it.
    Cancelled,
    /// All phases are done.
    Complete,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
            Self::Complete => "complete",
        }
    }

    /// Whether nothing more happens unless a person resumes the run.
    pub fn has_ended(self) -> bool {
        match self {
            Self::Complete | Self::Failed | Self::Aborted | Self::Cancelled => true,
            Self::Running | Self::Waiting => false,
        }
    }

    /// Whether the run may still continue: a failed one can be resumed.
    pub fn is_unfinished(self) -> bool {
        match self {
            Self::Running | Self::Waiting | Self::Failed => true,
            Self::Complete | Self::Aborted | Self::Cancelled => false,
        }
    }
}

impl NamedVariants for Status {
    const ALL: &'static [Self] = &[Self::Running, Self::Waiting, Self::Failed, Self::Aborted, Self::Cancelled, Self::Complete];

    fn as_str(self) -> &'static str {
        self.word()
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.word())
    }
}

impl End {
    /// The status of a run that has ended so.
    pub fn status(&self) -> Status {
        match self {
            Self::Complete => Status::Complete,
            Self::Failed(_) => Status::Failed,
            Self::Aborted => Status::Aborted,
            Self::Cancelled => Status::Cancelled,
        }
    }
}

/// A file that a task left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliverable {
    pub key: TaskKey,
    pub file: OutputFile,
    pub at: Timestamp,
}

/// A question that was settled, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub hold: HoldId,
    /// Whether it was a declared checkpoint.
    pub checkpoint: bool,
    /// The phase that it lay in.
    pub phase: Option<PhaseId>,
    pub option: OptionId,
    pub label: String,
    /// The word for what it did.
    pub action: String,
    /// The phase that was gone back to.
    pub target: Option<PhaseId>,
    /// The phases that were put on the skip list.
    pub skipped: Vec<PhaseId>,
    /// What was said with it.
    pub feedback: Option<String>,
    /// The revision that was answered.
    pub revision: u32,
    /// Who answered, and by which way.
    pub actor: Actor,
    pub at: Timestamp,
    /// The option's number, counted from 1.
    pub number: usize,
    /// What kind of question it was.
    #[serde(default)]
    pub kind: Option<HoldKind>,
    /// The task that asked, where a task did.
    #[serde(default)]
    pub task: Option<TaskKey>,
    /// The question, where no person answered it, so that one may change the answer.
    #[serde(default)]
    pub changeable: Option<Box<Hold>>,
    /// Whether it no longer counts, because it or an earlier answer was changed.
    #[serde(default)]
    pub void: bool,
    /// The answer that was changed so that this one no longer counts.
    #[serde(default)]
    pub superseded: Option<Superseded>,
    /// Further phases that were taken off the skip list with the target.
    #[serde(default)]
    pub restores: Vec<PhaseId>,
}

/// Why a decision no longer counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superseded {
    /// The hold whose answer was changed.
    pub by: HoldId,
    pub at: Timestamp,
}

/// A question that was taken back before its answer took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoidedHold {
    pub hold: HoldId,
    pub scope: Scope,
    pub reason: String,
    pub at: Timestamp,
}

/// The phases that are passed over by some answers, in their order: those that were listed and not gone back to since.
pub(super) fn skip_list_of(decisions: &[Decision]) -> Vec<PhaseId> {
    let mut listed: Vec<PhaseId> = Vec::new();
    for decision in decisions.iter().filter(|decision| !decision.void) {
        listed.retain(|phase| Some(phase) != decision.target.as_ref() && !decision.restores.contains(phase));
        for phase in &decision.skipped {
            if !listed.contains(phase) {
                listed.push(phase.clone());
            }
        }
    }
    listed
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTask {
    pub task: TaskId,
    pub state: TaskState,
}

/// How many questions of each kind in a row policy answered without a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsecutiveAutomatic {
    checkpoint: u32,
    verify: u32,
    decision: u32,
}

impl ConsecutiveAutomatic {
    /// How many of this kind.
    pub fn of(mut self, kind: PolicyKind) -> u32 {
        *self.count(kind)
    }

    /// One more of this kind was answered by policy.
    pub(super) fn add(&mut self, kind: PolicyKind) {
        let count = self.count(kind);
        *count = count.saturating_add(1);
    }

    /// A person answered one of this kind.
    pub(super) fn reset(&mut self, kind: PolicyKind) {
        *self.count(kind) = 0;
    }

    fn count(&mut self, kind: PolicyKind) -> &mut u32 {
        match kind {
            PolicyKind::Checkpoint => &mut self.checkpoint,
            PolicyKind::Verify => &mut self.verify,
            PolicyKind::Decision => &mut self.decision,
        }
    }
}

/// An answer in advance and who gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenPresetAnswer {
    pub preset: PresetAnswer,
    pub actor: Actor,
}

/// What a run's rows in lists say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub status: Status,
    pub phase: Option<PhaseId>,
    /// When the row last changed.
    pub changed_at: Timestamp,
    /// Whether a process that drives in the background is asked for.
    #[serde(default)]
    pub wanted: bool,
}

/// What the commit that is being made changes in the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Touched {
    pub(super) holds: Vec<HoldId>,
    pub(super) closed: Vec<Hold>,
    pub(super) timers: Vec<NewTimer>,
    pub(super) timers_removed: Vec<TimerId>,
    pub(super) refers_to: Vec<Digest>,
}

/// A moment that the run waits for from now on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewTimer {
    pub(super) timer: TimerId,
    pub(super) due: Timestamp,
    pub(super) kind: TimerKind,
    pub(super) target: String,
}

impl Run {
    /// Where the run stands, in one word.
    pub fn status(&self) -> Status {
        match &self.end {
            Some(end) => end.status(),
            None if self.waits_for_people() || self.waits_for_review() || self.waits_for_resume() => Status::Waiting,
            None => Status::Running,
        }
    }

    fn waits_for_people(&self) -> bool {
        let asked = self.holds.values().filter(|hold| hold.blocking).any(|hold| hold.state == HoldState::Open);
        let settling = self.holds.values().any(|hold| hold.state == HoldState::Checking);
        asked && !settling && self.current.as_ref().is_none_or(|phase| phase.is_idle())
    }

    /// How many tasks of the workflow are done, and how many there are.
    pub fn progress(&self) -> (u32, u32) {
        let declared = |phases: &[crate::spec::workflow::Phase]| phases.iter().map(|phase| phase.tasks.len()).sum::<usize>();
        let before = declared(&self.workflow.phases[..self.position.min(self.workflow.phases.len())]);
        let now = self.current.as_ref().map_or(0, |phase| phase.declared_done());
        ((before + now) as u32, declared(&self.workflow.phases) as u32)
    }

    /// What the definition says of a task of the phase under way.
    pub fn declared(&self, key: &TaskKey) -> Option<&Task> {
        let phase = self.current.as_ref()?;
        phase.declared(self.workflow.phases.get(phase.position)?, phase.find(key)?)
    }

    /// A task of the phase under way, as it stands.
    pub fn task_run(&self, key: &TaskKey) -> Option<&TaskRun> {
        let phase = self.current.as_ref()?;
        phase.find(key).map(|index| &phase.tasks[index])
    }

    /// The open holds, oldest first.
    pub fn open_holds(&self) -> Vec<&Hold> {
        let mut open: Vec<&Hold> = self.holds.values().filter(|hold| hold.state == HoldState::Open).collect();
        open.sort_by_key(|hold| (hold.opened_at, hold.id.clone()));
        open
    }
}
