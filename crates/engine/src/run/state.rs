//! The state of a run, derived from its history. Only `apply` changes it.

mod steps;

pub use steps::{AgentQuery, CheckpointRun, GapRun, GapState, GateRun, GateState, StepStatus, TaskState};

use crate::digest::Digest;
use crate::hold::{ApprovedDiff, Hold, HoldKind, HoldState, PolicyKind, Scope};
use crate::id::{DriverId, HoldId, OptionId, PhaseId, RunId, SnapshotId, TaskId, TaskKey, TimerId};
use crate::run::agent::Usage;
use crate::run::budget::{BudgetScope, Spent};
use crate::run::command::Actor;
use crate::run::event::{DiffBase, FrozenFile, OutputFile, PresetAnswer, RecoveredFrom, RunKind};
use crate::run::index::{NamedVariants, TimerKind};
use crate::run::issue::Issue;
use crate::run::phase::{PhaseRun, TaskRun};
use crate::run::pipeline::PipelineRun;
use crate::run::team::TeamState;
use crate::spec::workflow::{GapAction, Task, Workflow};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run, as far as its history has been applied. It may be one commit ahead of the store while that commit is being appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub kind: RunKind,
    /// The digest of the frozen definition.
    pub definition: Digest,
    /// The definition itself. It is a stored value, so it is not part of the materialized state.
    #[serde(skip)]
    pub workflow: Arc<Workflow>,
    /// The files from which the definition was compiled.
    pub files: Vec<FrozenFile>,
    pub feature: Option<String>,
    /// Flags, without their dashes.
    pub flags: Vec<String>,
    /// Values available to scripts, conditions and templates.
    pub vars: BTreeMap<String, StoredValue>,
    /// The output directory, relative to the root.
    pub output_dir: String,
    /// The current or last driver.
    pub driver: DriverId,
    pub started_at: Timestamp,
    /// The number of commits in the history.
    pub version: u64,
    /// The number of the next event.
    pub next_seq: u64,
    /// The hash of the last commit.
    pub head: Digest,
    /// The index of the current phase in the definition.
    pub position: usize,
    pub current: Option<PhaseRun>,
    /// Completed phases, in order of completion.
    pub completed: Vec<PhaseId>,
    /// How many times each phase was executed.
    pub iteration_counts: BTreeMap<PhaseId, u32>,
    pub skip_list: Vec<PhaseId>,
    /// The feedback with which a phase was repeated, until that phase starts.
    pub feedback: Option<String>,
    /// How many times the current phase was repeated without a person requesting it.
    pub repeats_by_failure: u32,
    /// For each phase, how many times in a row an automatic answer to its question repeated a phase.
    #[serde(default)]
    pub automatic_repeats: BTreeMap<PhaseId, u32>,
    /// How many tasks were started, main scripts excluded. Workflow files call them subagents.
    pub subagents_spawned: u32,
    /// Return values of scripts, by phase and task.
    pub outputs: BTreeMap<PhaseId, BTreeMap<TaskId, StoredValue>>,
    /// Files that tasks wrote.
    pub deliverables: Vec<Deliverable>,
    /// Holds that are open, or whose answer has not taken effect yet.
    pub holds: BTreeMap<HoldId, Hold>,
    /// Holds whose answer took effect.
    pub decisions: Vec<Decision>,
    /// Preset answers that have not been used yet.
    pub presets: Vec<GivenPresetAnswer>,
    /// Warnings about this run, shown to people.
    pub warnings: Vec<String>,
    /// How many times a caller attempted something that they are not allowed to do.
    pub refused_attempts: u32,
    /// Whether the driver is shutting down, so that nothing new may start.
    pub stopping: bool,
    pub end: Option<End>,
    /// The content of its index rows.
    pub listed: Listed,
    /// Whether the run is left to a background driver.
    #[serde(default)]
    pub detached: bool,
    /// The agent's command; it overrides every other agent setting.
    #[serde(default)]
    pub agent: Option<String>,
    /// How many checks in a row found gaps in the current phase.
    #[serde(default)]
    pub gap_rounds: u32,
    /// The results of gap checks, in order.
    #[serde(default)]
    pub gap_checks: Vec<GapRecord>,
    #[serde(default)]
    pub spent: Vec<(BudgetScope, Spent)>,
    /// The latest session of each agent and of each task address.
    #[serde(default)]
    pub sessions: Sessions,
    /// Return values of fan-out tasks, by phase, task and item.
    #[serde(default)]
    pub item_outputs: BTreeMap<PhaseId, BTreeMap<TaskId, BTreeMap<String, StoredValue>>>,
    /// The file that the finalization wrote.
    #[serde(default)]
    pub finalized: Option<OutputFile>,
    /// Tasks that keep their result when the next phase starts.
    #[serde(default)]
    pub carry: Vec<EndedTask>,
    /// How many questions of each kind policy answered in a row, without a person.
    #[serde(default)]
    pub consecutive_automatic: ConsecutiveAutomatic,
    /// The pipeline's own state, if the run is a pipeline.
    #[serde(default)]
    pub pipeline: Option<Box<PipelineRun>>,
    /// How many times in a row a person found issues at the end of the current phase.
    #[serde(default)]
    pub phase_issues: u32,
    /// The run from which this one was forked.
    #[serde(default)]
    pub parent: Option<RunId>,
    /// Tasks of completed phases that did not simply succeed, and how they ended.
    #[serde(default)]
    pub not_done: BTreeMap<PhaseId, Vec<EndedTask>>,
    #[serde(default)]
    pub voided: Vec<VoidedHold>,
    /// What git changes are compared with.
    #[serde(default)]
    pub diff_bases: DiffBases,
    /// The issue that the run works on.
    #[serde(default)]
    pub issue: Option<Box<Issue>>,
    /// Whether any task that the run would start may already have run, because its history was lost. A person is asked about each
    /// of them first, until one says otherwise.
    #[serde(default)]
    pub unverified: bool,
    /// The snapshot from which the run was recovered.
    #[serde(default)]
    pub recovered: Option<Box<RecoveredFrom>>,
    /// The messages, conflicts and knowledge of its agents, if there are any.
    #[serde(default)]
    pub team: Option<Box<TeamState>>,
    /// The snapshot from which the run last continued.
    #[serde(default)]
    pub resume_point: Option<SnapshotId>,
    /// A definition that the next event may refer to.
    #[serde(skip)]
    pub(super) offered: Option<(Digest, Arc<Workflow>)>,
    /// An earlier state that the next event may refer to.
    #[serde(skip)]
    pub(super) offered_state: Option<(Digest, Box<Run>)>,
    /// Index changes of the commit that is being built.
    #[serde(skip)]
    pub(super) touched: Touched,
}

/// This many refused attempts are recorded individually, so that a task that keeps trying cannot fill the history. After that,
/// one is recorded each time the count reaches a power of two.
pub const REFUSED_ATTEMPTS_KEPT: u32 = 100;

/// Whether to record a refused attempt, given the number of the last recorded one.
pub(super) fn keeps_refused_attempt(last: u32, number: u32) -> bool {
    number <= REFUSED_ATTEMPTS_KEPT || number.checked_ilog2() > last.checked_ilog2()
}

/// The starting points of git changes, where questions show such changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffBases {
    /// The files when the run started.
    pub run: Option<DiffBase>,
    /// The files when the current phase started.
    pub phase: Option<DiffBase>,
    /// Set while the current phase has just started and its files are to be recorded: nothing may change them before that.
    pub awaited: Option<AwaitedBase>,
}

/// What a starting point is recorded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwaitedBase {
    /// The phase that started.
    Phase,
    /// The run, which started with this phase.
    RunAndPhase,
}

/// The result of a gap check, and what happened next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRecord {
    pub phase: PhaseId,
    /// The number of the check in a row, counted from 1.
    pub round: u32,
    /// The status reported by the check.
    pub status: String,
    pub gaps: Vec<String>,
    pub action: Option<GapAction>,
    /// The types of the agents that were started.
    pub agents: Vec<String>,
    pub at: Timestamp,
}

/// The latest sessions of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sessions {
    pub by_agent: BTreeMap<String, KnownSession>,
    /// Keyed by task address.
    pub by_task: BTreeMap<String, KnownSession>,
}

/// A session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSession {
    pub id: String,
    /// The directory in which the session started, relative to the root.
    pub dir: Option<String>,
    /// Whether the agent itself reported the id. Otherwise it was only asked to use it.
    pub confirmed: bool,
    /// The total usage reported by the agent, if it reports usage per session.
    #[serde(default)]
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Complete,
    /// Something failed. Resuming the run retries it.
    Failed(String),
    Aborted,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Something is running or can start.
    Running,
    /// A blocking hold is open, and nothing is running or can start.
    Waiting,
    Failed,
    /// A person ended it at a hold.
    Aborted,
    Cancelled,
    Complete,
}

impl Status {
    pub fn as_str(self) -> &'static str {
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

    /// Whether the run may still continue. A failed run can be resumed.
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
        self.as_str()
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(self.as_str())
    }
}

impl End {
    pub fn status(&self) -> Status {
        match self {
            Self::Complete => Status::Complete,
            Self::Failed(_) => Status::Failed,
            Self::Aborted => Status::Aborted,
            Self::Cancelled => Status::Cancelled,
        }
    }
}

/// A file that a task wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliverable {
    pub key: TaskKey,
    pub file: OutputFile,
    pub at: Timestamp,
}

/// A hold whose answer took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub hold: HoldId,
    /// Whether it was a declared checkpoint.
    pub checkpoint: bool,
    /// The phase of the hold.
    pub phase: Option<PhaseId>,
    pub option: OptionId,
    pub label: String,
    /// The name of the action that the answer caused.
    pub action: String,
    /// The phase that was repeated.
    pub target: Option<PhaseId>,
    /// The phases that were added to the skip list.
    pub skipped: Vec<PhaseId>,
    pub feedback: Option<String>,
    pub revision: u32,
    /// Who answered, and through which channel.
    pub actor: Actor,
    pub at: Timestamp,
    /// The option's number, counted from 1.
    pub number: usize,
    #[serde(default)]
    pub kind: Option<HoldKind>,
    /// The task that asked, if a task did.
    #[serde(default)]
    pub task: Option<TaskKey>,
    /// The hold, if it was answered automatically, so that a person can change the answer.
    #[serde(default)]
    pub changeable: Option<Box<Hold>>,
    /// Whether the decision no longer counts, because it or an earlier answer was changed.
    #[serde(default)]
    pub void: bool,
    /// The changed answer because of which this one no longer counts.
    #[serde(default)]
    pub superseded: Option<Superseded>,
    /// Other phases that were taken off the skip list together with the target.
    #[serde(default)]
    pub restores: Vec<PhaseId>,
    /// The git change that was shown with the question.
    #[serde(default)]
    pub diff: Option<Box<ApprovedDiff>>,
}

/// Why a decision no longer counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Superseded {
    pub by: HoldId,
    pub at: Timestamp,
}

/// A hold that was voided before its answer took effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoidedHold {
    pub hold: HoldId,
    pub scope: Scope,
    pub reason: String,
    pub at: Timestamp,
    /// Its last revision, so that the hold gets a higher one if it is ever opened again; 0 if it was never reopened.
    #[serde(default)]
    pub revision: u32,
}

/// The skip list that follows from these decisions: phases that were listed and not repeated since.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTask {
    pub task: TaskId,
    pub state: TaskState,
}

/// How many questions of each kind policy answered in a row, without a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsecutiveAutomatic {
    checkpoint: u32,
    verify: u32,
    decision: u32,
}

impl ConsecutiveAutomatic {
    pub fn of(mut self, kind: PolicyKind) -> u32 {
        *self.count(kind)
    }

    /// Counts one more question of this kind that policy answered.
    pub(super) fn add(&mut self, kind: PolicyKind) {
        let count = self.count(kind);
        *count = count.saturating_add(1);
    }

    /// Resets the count, because a person answered a question of this kind.
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

/// A preset answer, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenPresetAnswer {
    pub preset: PresetAnswer,
    pub actor: Actor,
}

/// The content of a run's index rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub status: Status,
    pub phase: Option<PhaseId>,
    /// When the row last changed.
    pub changed_at: Timestamp,
    /// Whether the run needs a background driver.
    #[serde(default)]
    pub wanted: bool,
}

/// Index changes of the commit that is being built.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Touched {
    pub(super) holds: Vec<HoldId>,
    pub(super) closed: Vec<Hold>,
    pub(super) timers: Vec<NewTimer>,
    pub(super) timers_removed: Vec<TimerId>,
    pub(super) referenced_values: Vec<Digest>,
}

/// A timer that the run sets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewTimer {
    pub(super) timer: TimerId,
    pub(super) due: Timestamp,
    pub(super) kind: TimerKind,
    pub(super) target: String,
}

impl Run {
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

    /// The number of tasks that are done, and the total.
    pub fn progress(&self) -> (u32, u32) {
        let declared = |phases: &[crate::spec::workflow::Phase]| phases.iter().map(|phase| phase.tasks.len()).sum::<usize>();
        let before = declared(&self.workflow.phases[..self.position.min(self.workflow.phases.len())]);
        let now = self.current.as_ref().map_or(0, |phase| phase.declared_done());
        ((before + now) as u32, declared(&self.workflow.phases) as u32)
    }

    /// The definition of a task in the current phase.
    pub fn declared(&self, key: &TaskKey) -> Option<&Task> {
        let phase = self.current.as_ref()?;
        phase.declared(self.workflow.phases.get(phase.position)?, phase.find(key)?)
    }

    /// The state of a task in the current phase.
    pub fn task_run(&self, key: &TaskKey) -> Option<&TaskRun> {
        let phase = self.current.as_ref()?;
        phase.find(key).map(|index| &phase.tasks[index])
    }

    /// The name of its issue, as part of paths.
    pub fn issue_name(&self) -> Option<&str> {
        self.issue.as_ref().map(|issue| issue.name.as_str())
    }

    /// Open holds, oldest first.
    pub fn open_holds(&self) -> Vec<&Hold> {
        let mut open: Vec<&Hold> = self.holds.values().filter(|hold| hold.state == HoldState::Open).collect();
        open.sort_by_key(|hold| (hold.opened_at, hold.id.clone()));
        open
    }
}
