//! The summary of a run: what was done, decided and produced, what was left out, and how long it took and waited.
//!
//! It is made from the history, because the state of a run keeps only the phase under way.
//!
//! | module | what it does |
//! | --- | --- |
//! | `collect` | collects what happened into the summary |
//! | `clock` | how long a run took, waited for people and lay still |
//! | [`markdown`] | the summary as text |
//! | [`plan`] | what stands beside a plan when it is done |
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

mod clock;
mod collect;
mod markdown;
pub mod plan;

pub use markdown::markdown;

use crate::error::Error;
use crate::view::{AgentView, ApprovedDiffView, CancelledView, RunStatus, UsageView, WhoView, WorktreeView};
use collect::Collector;
use lockgate_engine::hold::HoldKind;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::spec::workflow::GapAction;
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::Reporter;
use lockgate_store::Store;
use serde::{Serialize, Serializer};

/// How many commits are read at once.
const COMMITS: usize = 1000;

/// The summary of a run as it is now, without its worktrees.
pub async fn of(store: &dyn Store, state: &Run, driven: bool, now: Timestamp) -> Result<Summary, Error> {
    let (mut reporter, mut collector) = (Reporter::default(), Collector::default());
    let mut after = 0;
    // As far as the state was read: what is committed meanwhile belongs to a later summary.
    while after < state.version {
        let commits = store.commits(&state.id, after, COMMITS).await?;
        let Some(last) = commits.last() else { break };
        after = last.version;
        for sealed in commits.iter().filter(|sealed| sealed.version <= state.version) {
            let entries = sealed.open()?.entries;
            reporter.report(state, &entries).iter().for_each(|notification| collector.take(notification));
        }
    }
    let status = RunStatus::of(state.status(), driven);
    Ok(collector.summary(state, status, now))
}

/// What a run amounts to.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub run: String,
    pub workflow: String,
    pub feature: Option<String>,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it was cancelled, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<CancelledView>,
    pub started_at: Timestamp,
    /// When it ended; none while it can go on by itself or waits.
    pub ended_at: Option<Timestamp>,
    pub duration_ms: u64,
    /// How long of that nothing could go on before a person had answered.
    pub waited_ms: u64,
    /// How long of that it had failed or nothing drove it.
    pub idle_ms: u64,
    pub phases: Vec<PhaseSummary>,
    pub decisions: Vec<HoldSummary>,
    pub deliverables: Vec<OutputSummary>,
    /// The file that the finalization made.
    pub finalization: Option<WrittenFile>,
    pub gap_checks: Vec<GapCheckSummary>,
    pub omitted: Vec<Omission>,
    pub tolerated: Vec<Omission>,
    pub usage: UsageView,
    /// Its git worktrees that are there.
    pub worktrees: Vec<WorktreeView>,
    pub warnings: Vec<String>,
}

/// One execution of a phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseSummary {
    pub id: String,
    pub iteration: u32,
    pub status: PhaseOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    pub started_at: Timestamp,
    pub duration_ms: u64,
    pub tasks: Vec<StepSummary>,
    pub gates: Vec<StepSummary>,
}

/// What became of one execution of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseOutcome {
    /// It has not been left yet; only while the history is read.
    InProgress,
    Complete,
    Repeated,
    Skipped,
    /// The run is in it, and has this status.
    Current(RunStatus),
}

impl PhaseOutcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Complete => "complete",
            Self::Repeated => "repeated",
            Self::Skipped => "skipped",
            Self::Current(status) => status.as_str(),
        }
    }
}

impl Serialize for PhaseOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What became of a task or gate.
#[derive(Clone, Debug, Serialize)]
pub struct StepSummary {
    pub id: String,
    /// The task that became this one and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub status: StepStatus,
    /// Why it was left out, skipped, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long its attempts took together.
    pub duration_ms: u64,
    pub attempts: Vec<AttemptSummary>,
    /// What its agents used.
    pub usage: UsageView,
    /// The commit that holds what it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commits of all the times that it was done.
    #[serde(skip)]
    pub commits: Vec<String>,
}

/// What became of an attempt.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptSummary {
    pub attempt: u32,
    pub status: StepStatus,
    pub started_at: Timestamp,
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentView>,
}

/// A question that people were asked.
#[derive(Clone, Debug, Serialize)]
pub struct HoldSummary {
    pub hold: String,
    pub kind: HoldKind,
    pub phase: Option<String>,
    /// The addresses of the tasks or the gate that it is about.
    pub tasks: Vec<String>,
    /// What people call the task that asks, where the question has a form of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The task whose agent asks this of its own accord, with what people call it.
    #[serde(skip)]
    pub agent: Option<String>,
    /// What mends a missing login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    pub question: String,
    pub state: HoldOutcome,
    /// What people read on the option that was taken.
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    pub by: Option<WhoView>,
    pub opened_at: Timestamp,
    pub answered_at: Option<Timestamp>,
    pub waited_ms: u64,
    /// Which opening of it this is.
    pub revision: u32,
    /// The git change that the answer is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<ApprovedDiffView>,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    Open,
    Answered,
    Void,
}

/// A file that a task left behind.
#[derive(Clone, Debug, Serialize)]
pub struct OutputSummary {
    pub path: String,
    pub size_bytes: u64,
    /// The address of the task.
    pub task: String,
    pub iteration: u32,
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenFile {
    pub path: String,
    pub size_bytes: u64,
}

/// What a gap check found.
#[derive(Clone, Debug, Serialize)]
pub struct GapCheckSummary {
    pub phase: String,
    pub iteration: u32,
    pub round: u32,
    pub status: String,
    pub gaps: Vec<String>,
    pub action: Option<GapAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tasks of the agents that were called.
    pub agents: Vec<String>,
    /// Whether a person let its gaps pass.
    pub waived: bool,
}

/// Something that the run went on without.
#[derive(Clone, Debug, Serialize)]
pub struct Omission {
    /// Its address.
    pub what: String,
    pub iteration: u32,
    pub reason: String,
}
