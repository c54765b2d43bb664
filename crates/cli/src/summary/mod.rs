//! The summary of a run: what was done, decided and produced, what was left out, and how long it took and waited.
//!
//! It is made from the history, because the state of a run keeps only the phase under way.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`collect`] | folds the events into the summary |
//! | [`clock`] | how long a run took, waited for people and lay still |
//! | [`markdown`] | the summary as text |
//! | [`plan`] | what stands beside a plan when it is done |

mod clock;
mod collect;
mod markdown;
pub(crate) mod plan;

pub(crate) use markdown::markdown;

use crate::trouble::Trouble;
use crate::view::{self, AgentView, CancelledView, UsedView, WhoView, WorktreeView};
use collect::Collector;
use lockgate_engine::run::Run;
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;
use serde::Serialize;

/// How many commits are read at once.
const COMMITS: usize = 1000;

/// The summary of a run as it is now, without its worktrees.
pub(crate) async fn of(store: &dyn Store, state: &Run, driven: bool, now: Timestamp) -> Result<Summary, Trouble> {
    let mut collector = Collector::default();
    let mut after = 0;
    // As far as the state was read: what is committed meanwhile belongs to a later summary.
    while after < state.version {
        let commits = store.commits(&state.id, after, COMMITS).await?;
        let Some(last) = commits.last() else { break };
        after = last.version;
        for sealed in commits.iter().filter(|sealed| sealed.version <= state.version) {
            sealed.open()?.entries.iter().for_each(|entry| collector.take(entry));
        }
    }
    let status = view::status_word(state.status().word(), driven);
    Ok(collector.summary(state, status, now))
}

/// What a run amounts to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) feature: Option<String>,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// How it was cancelled, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled: Option<CancelledView>,
    pub(crate) started_at: Timestamp,
    /// When it ended; none while it can go on by itself or waits.
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) took_ms: u64,
    /// How long of that nothing could go on before a person had answered.
    pub(crate) waited_ms: u64,
    /// How long of that it had failed or nothing drove it.
    pub(crate) stopped_ms: u64,
    pub(crate) phases: Vec<PhaseDone>,
    pub(crate) decisions: Vec<Asked>,
    pub(crate) deliverables: Vec<Produced>,
    /// The file that the finalization made.
    pub(crate) finalization: Option<FileMade>,
    pub(crate) gap_checks: Vec<GapCheck>,
    pub(crate) left_out: Vec<Without>,
    pub(crate) tolerated: Vec<Without>,
    pub(crate) used: UsedView,
    /// Its git worktrees that are there.
    pub(crate) worktrees: Vec<WorktreeView>,
    pub(crate) warnings: Vec<String>,
}

/// One execution of a phase.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseDone {
    pub(crate) id: String,
    pub(crate) iteration: u32,
    /// `complete`, `repeated`, `skipped`, or where the run stands in it.
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) feedback: Option<String>,
    pub(crate) started_at: Timestamp,
    pub(crate) took_ms: u64,
    pub(crate) tasks: Vec<TaskDone>,
    pub(crate) gates: Vec<TaskDone>,
}

/// What became of a task or gate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TaskDone {
    pub(crate) id: String,
    /// The task that became this one and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    pub(crate) status: &'static str,
    /// Why it was left out, skipped, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// How long its attempts took together.
    pub(crate) took_ms: u64,
    pub(crate) attempts: Vec<AttemptDone>,
    /// What its agents used.
    pub(crate) used: UsedView,
    /// The commit that holds what it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// The commits of all the times that it was done.
    #[serde(skip)]
    pub(crate) commits: Vec<String>,
}

/// What became of an attempt.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AttemptDone {
    pub(crate) attempt: u32,
    pub(crate) status: &'static str,
    pub(crate) started_at: Timestamp,
    pub(crate) took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentView>,
}

/// A question that people were asked.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Asked {
    pub(crate) hold: String,
    pub(crate) kind: &'static str,
    pub(crate) phase: Option<String>,
    /// The addresses of the tasks or the gate that it is about.
    pub(crate) tasks: Vec<String>,
    /// What people call the task that asks, where the question has a form of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The task whose agent asks this of its own accord, with what people call it.
    #[serde(skip)]
    pub(crate) agent: Option<String>,
    /// What mends a missing login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) login: Option<String>,
    pub(crate) question: String,
    /// `open`, `answered`, or `void`.
    pub(crate) state: &'static str,
    /// What people read on the option that was taken.
    pub(crate) answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) feedback: Option<String>,
    pub(crate) by: Option<WhoView>,
    pub(crate) opened_at: Timestamp,
    pub(crate) answered_at: Option<Timestamp>,
    pub(crate) waited_ms: u64,
    /// Which opening of it this is.
    pub(crate) revision: u32,
}

/// A file that a task left behind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Produced {
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    /// The address of the task.
    pub(crate) task: String,
    pub(crate) iteration: u32,
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileMade {
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
}

/// What a gap check found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GapCheck {
    pub(crate) phase: String,
    pub(crate) iteration: u32,
    pub(crate) round: u32,
    pub(crate) status: String,
    pub(crate) gaps: Vec<String>,
    pub(crate) action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// The tasks of the agents that were called.
    pub(crate) agents: Vec<String>,
    /// Whether a person let its gaps pass.
    pub(crate) waived: bool,
}

/// Something that the run went on without.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Without {
    /// Its address.
    pub(crate) what: String,
    pub(crate) iteration: u32,
    pub(crate) reason: String,
}
