//! Views of a run, which front ends show as JSON and as text.
//!
//! | module | contents |
//! | --- | --- |
//! | `agent` | agents, their sessions and usage |
//! | `hold` | holds, their options and files, and answers that have not taken effect |
//! | `diff` | git changes that questions show |
//! | `deadline` | deadlines of holds and their consequences |
//! | `status` | the statuses of runs and phases |
//! | `step` | tasks and gates, with their failures and logs |
//! | `aborted` | who or what aborted a run |
//! | `cancelled` | who cancelled a run, and why |
//! | `command` | commands to show to people |
//! | `worktree` | git worktrees and the work in them |
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

mod aborted;
mod agent;
mod cancelled;
mod command;
mod deadline;
mod diff;
mod hold;
mod status;
mod step;
mod worktree;

pub use aborted::Aborted;
pub use agent::{AgentView, UsageView};
pub use cancelled::CancelledView;
pub use command::{lockgate, resume_command, run_command, shell_word, worktree_command};
pub use deadline::Deadline;
pub use diff::{ApprovedDiffView, ChangedFileView, DiffView};
pub use hold::{AnswerView, FileView, HoldView, OptionView, WhoView, option_line, patch};
pub use status::{PhaseStatus, RunStatus};
pub use step::{GapView, StepView};
pub use worktree::{WorktreeView, is_meant};

use crate::error::Error;
use crate::pipeline::PipelineView;
use crate::project::Project;
use crate::snapshots::SnapshotView;
use crate::worktrees;
use lockgate_engine::hold::Hold;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_engine::spec::workflow::{Phase, Reads};
use lockgate_engine::time::Timestamp;
use lockgate_store::{DriverInfo, Store};
use serde::Serialize;
use serde_json::Value;

/// A run and its current state.
#[derive(Clone, Debug, Serialize)]
pub struct RunView {
    pub run: String,
    pub workflow: String,
    pub feature: Option<String>,
    pub status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How it was cancelled, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<CancelledView>,
    /// How it was aborted, if it was, for people.
    #[serde(skip)]
    pub aborted: Option<Aborted>,
    pub current_phase: Option<String>,
    pub phases: Vec<PhaseView>,
    pub tasks: Vec<StepView>,
    /// The gap check of the current phase, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_check: Option<GapView>,
    pub gates: Vec<StepView>,
    pub holds: Vec<HoldView>,
    pub warnings: Vec<String>,
    /// Its existing git worktrees.
    pub worktrees: Vec<WorktreeView>,
    /// Its latest snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotView>,
    /// The view of the pipeline, if the run is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineView>,
    /// Whether it is detached, so that any background process may drive it.
    pub detached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverView>,
    pub started_at: Timestamp,
    pub output_dir: String,
    pub context: Value,
}

/// A phase and its current state.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseView {
    pub id: String,
    pub name: String,
    pub status: PhaseStatus,
    pub iteration: u32,
}

/// The process that drives a run.
#[derive(Clone, Debug, Serialize)]
pub struct DriverView {
    pub pid: u32,
    pub host: String,
    pub since: Timestamp,
    /// When its lease expires unless it is renewed; only if the database is on a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl From<DriverInfo> for DriverView {
    fn from(info: DriverInfo) -> Self {
        Self { pid: info.pid, host: info.host, since: info.since, until: info.until }
    }
}

impl RunView {
    /// Creates the view. `driver` is the live process that drives the run.
    pub async fn of(run: &Run, driver: Option<DriverInfo>, project: &Project) -> Result<Self, Error> {
        let status = RunStatus::of(run.status(), driver.is_some());
        let current = run.current.as_ref();
        let driven = status != RunStatus::Interrupted;
        let mut warnings = run.warnings.clone();
        let worktrees = worktrees::of_run(project, run).await.unwrap_or_else(|why| {
            warnings.push(why.message().to_owned());
            Vec::new()
        });
        let snapshot = latest_snapshot(run, project, &mut warnings);
        Ok(Self {
            run: run.id.to_string(),
            workflow: run.workflow.name.clone(),
            feature: run.feature.clone(),
            status,
            error: match &run.end {
                Some(End::Failed(message)) => Some(message.clone()),
                Some(End::Complete | End::Aborted | End::Cancelled) | None => None,
            },
            cancelled: CancelledView::of(project.store(), run).await?,
            aborted: Aborted::of(project.store(), run).await?,
            current_phase: current.map(|phase| phase.id.to_string()),
            phases: phases(run, status),
            tasks: current.map(|phase| step::tasks(run, phase, &project.root, driven)).unwrap_or_default(),
            gap_check: current.and_then(|phase| step::gap_check(run, phase, driven)),
            gates: current.map(|phase| step::gates(run, phase, &project.root, driven)).unwrap_or_default(),
            holds: holds(run, project.store()).await?,
            warnings,
            worktrees,
            snapshot,
            pipeline: PipelineView::of(run, &project.root, driven),
            detached: run.detached,
            // The driver of an ended run may still hold its claim, but has nothing left to do.
            driver: driver.filter(|_| run.end.is_none()).map(DriverView::from),
            started_at: run.started_at,
            output_dir: run.output_dir.clone(),
            context: context(run, project.store()).await?,
        })
    }
}

/// The latest snapshot of a run, which need not be one from which it can resume.
fn latest_snapshot(run: &Run, project: &Project, warnings: &mut Vec<String>) -> Option<SnapshotView> {
    match project.snapshots_of(run) {
        Ok(mut listed) => {
            warnings.extend(listed.unreadable.iter().map(|error| error.message().to_owned()));
            listed.snapshots.pop()
        }
        Err(error) => {
            warnings.push(error.message().to_owned());
            None
        }
    }
}

async fn context(run: &Run, store: &dyn Store) -> Result<Value, Error> {
    let digests: Vec<_> = run.context(&Reads::All).stored.into_iter().map(|(_, digest)| digest).collect();
    let texts = if digests.is_empty() { Vec::new() } else { store.values(&digests).await? };
    Ok(run.full_context(&|wanted| {
        let at = digests.iter().position(|digest| digest == wanted)?;
        serde_json::from_slice(texts.get(at)?.as_deref()?).ok()
    }))
}

fn phases(run: &Run, status: RunStatus) -> Vec<PhaseView> {
    let view = |(position, phase): (usize, &Phase)| PhaseView {
        id: phase.id.to_string(),
        name: phase.title().to_owned(),
        status: PhaseStatus::of(run, position, &phase.id, status),
        iteration: run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0),
    };
    run.workflow.phases.iter().enumerate().map(view).collect()
}

async fn holds(run: &Run, store: &dyn Store) -> Result<Vec<HoldView>, Error> {
    let mut holds: Vec<&Hold> = run.holds.values().collect();
    holds.sort_by_key(|hold| (hold.opened_at, hold.id.clone()));
    let mut views = Vec::new();
    for hold in holds {
        views.push(HoldView::with_previews(hold, store).await?);
    }
    Ok(views)
}
