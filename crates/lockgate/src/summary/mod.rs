//! The summary of a run: its work, decisions and outputs, what was left out, and how long it took.
//!
//! The summary is derived from the history, because the state of a run contains only the current phase.
//!
//! | module | contents |
//! | --- | --- |
//! | `collect` | collects events into the summary |
//! | `clock` | measures how long a run took, waited for people and was idle |
//! | [`markdown`] | renders the summary as Markdown |
//! | [`plan`] | renders the summary of a single plan |
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

/// How many commits to read per page.
const COMMITS: usize = 1000;

/// Summarizes the current state of a run, without its worktrees.
pub async fn of(store: &dyn Store, state: &Run, driven: bool, now: Timestamp) -> Result<Summary, Error> {
    let (mut reporter, mut collector) = (Reporter::default(), Collector::default());
    let mut after = 0;
    // Later commits belong to a later summary.
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

/// The summary of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub run: String,
    pub workflow: String,
    pub feature: Option<String>,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it was cancelled, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<CancelledView>,
    pub started_at: Timestamp,
    /// When it ended; absent while it is running or waiting.
    pub ended_at: Option<Timestamp>,
    pub duration_ms: u64,
    /// How long it could not continue without an answer.
    pub waited_ms: u64,
    /// How long it had failed, or no process drove it.
    pub idle_ms: u64,
    pub phases: Vec<PhaseSummary>,
    pub decisions: Vec<HoldSummary>,
    pub deliverables: Vec<OutputSummary>,
    /// The file that finalization wrote.
    pub finalization: Option<WrittenFile>,
    pub gap_checks: Vec<GapCheckSummary>,
    pub omitted: Vec<Omission>,
    pub tolerated: Vec<Omission>,
    pub usage: UsageView,
    /// Its existing git worktrees.
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

/// The outcome of one execution of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseOutcome {
    /// Used only while the history is being read.
    InProgress,
    Complete,
    Repeated,
    Skipped,
    /// The run is in this phase and has this status.
    Current(RunStatus),
}

impl PhaseOutcome {
    /// The name of the outcome.
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

/// The outcome of a task or gate.
#[derive(Clone, Debug, Serialize)]
pub struct StepSummary {
    pub id: String,
    /// The task that fanned out into this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub status: StepStatus,
    /// Why it was left out or skipped, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The total duration of its attempts.
    pub duration_ms: u64,
    pub attempts: Vec<AttemptSummary>,
    /// The usage of its agents.
    pub usage: UsageView,
    /// The commit with its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commits of all its executions.
    #[serde(skip)]
    pub commits: Vec<String>,
}

/// The outcome of an attempt.
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

/// A question to people.
#[derive(Clone, Debug, Serialize)]
pub struct HoldSummary {
    pub hold: String,
    pub kind: HoldKind,
    pub phase: Option<String>,
    /// The addresses of the tasks or the gate that it concerns.
    pub tasks: Vec<String>,
    /// The title of the asking task, if the question has its own format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The task whose agent asked, with its title.
    #[serde(skip)]
    pub agent: Option<String>,
    /// The step that resolves a missing login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    pub question: String,
    pub state: HoldOutcome,
    /// The label of the selected option.
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    pub by: Option<WhoView>,
    pub opened_at: Timestamp,
    pub answered_at: Option<Timestamp>,
    pub waited_ms: u64,
    /// The revision of the hold, from 1.
    pub revision: u32,
    /// The git change that the answer is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<ApprovedDiffView>,
}

/// The outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOutcome {
    Open,
    Answered,
    Void,
}

/// An output file of a task.
#[derive(Clone, Debug, Serialize)]
pub struct OutputSummary {
    pub path: String,
    pub size_bytes: u64,
    /// The address of the task.
    pub task: String,
    pub iteration: u32,
}

/// A written file.
#[derive(Clone, Debug, Serialize)]
pub struct WrittenFile {
    pub path: String,
    pub size_bytes: u64,
}

/// The result of a gap check.
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
    /// The tasks of the agents that it started.
    pub agents: Vec<String>,
    /// Whether a person waived the gaps.
    pub waived: bool,
}

/// Something that the run continued without.
#[derive(Clone, Debug, Serialize)]
pub struct Omission {
    /// Its address.
    pub what: String,
    pub iteration: u32,
    pub reason: String,
}
