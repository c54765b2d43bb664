//! What a run looks like from outside. One model, shown as JSON and as text.
//!
//! | module | what it shows |
//! | --- | --- |
//! | [`agent`] | agents, their sessions and what they used |
//! | [`hold`] | questions, their options and files, and answers that have not taken effect |
//! | [`deadline`] | until when a hold waits, and what happens then |
//! | [`step`] | tasks and gates, with how they failed and where their logs are |
//! | [`aborted`] | who or what aborted a run |
//! | [`cancelled`] | who cancelled a run, and why |
//! | [`command`] | the commands that people are told to type |
//! | [`worktree`] | git worktrees and what would be lost with them |
//! | [`text`] | all of it as text |

mod aborted;
mod agent;
mod cancelled;
mod command;
mod deadline;
mod hold;
mod step;
mod text;
mod worktree;

pub(crate) use aborted::Aborted;
pub(crate) use agent::{AgentView, UsedView};
pub(crate) use cancelled::CancelledView;
pub(crate) use command::{lockgate, resume_command, run_command, shell_word, worktree_command};
pub(crate) use deadline::Deadline;
pub(crate) use hold::{AnswerView, FileView, HoldView, WhoView, option_line};
pub(crate) use step::{GapView, StepView};
pub(crate) use text::{answered, failure_text, file_text, hanging, previously, run_text, shown_text, status_style, tail_text};
pub(crate) use worktree::{WorktreeView, is_meant};

use crate::open::Project;
use crate::pipeline::PipelineView;
use crate::trouble::Trouble;
use crate::worktrees;
use lockgate_engine::hold::Hold;
use lockgate_engine::id::PhaseId;
use lockgate_engine::run::state::End;
use lockgate_engine::run::{Run, Status};
use lockgate_engine::spec::workflow::{Phase, Reads};
use lockgate_engine::time::Timestamp;
use lockgate_store::{DriverInfo, Store};
use serde::Serialize;
use serde_json::Value;

/// A run as it stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunView {
    pub(crate) run: String,
    pub(crate) workflow: String,
    pub(crate) feature: Option<String>,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// How it was cancelled, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled: Option<CancelledView>,
    /// How it was aborted, where it was, for people.
    #[serde(skip)]
    pub(crate) aborted: Option<Aborted>,
    pub(crate) current_phase: Option<String>,
    pub(crate) phases: Vec<PhaseView>,
    pub(crate) tasks: Vec<StepView>,
    /// The gap check of the current phase, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gap_check: Option<GapView>,
    pub(crate) gates: Vec<StepView>,
    pub(crate) holds: Vec<HoldView>,
    pub(crate) warnings: Vec<String>,
    /// Its git worktrees that are there.
    pub(crate) worktrees: Vec<WorktreeView>,
    /// What it looks like as a pipeline, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pipeline: Option<PipelineView>,
    /// Whether it was left to whichever process drives in the background.
    pub(crate) detached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) driver: Option<DriverView>,
    pub(crate) started_at: Timestamp,
    pub(crate) output_dir: String,
    pub(crate) context: Value,
}

/// A phase as it stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: &'static str,
    pub(crate) iteration: u32,
}

/// The process that drives a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DriverView {
    pub(crate) pid: u32,
    pub(crate) host: String,
    pub(crate) since: Timestamp,
    /// Until when it is believed to be alive without being heard of; only where the database is on a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
}

impl From<DriverInfo> for DriverView {
    fn from(info: DriverInfo) -> Self {
        Self { pid: info.pid, host: info.host, since: info.since, until: info.until }
    }
}

/// The word for where a run stands: one that should run and that nobody drives was interrupted.
pub(crate) fn status_word(status: &str, driven: bool) -> &'static str {
    match status {
        "running" if driven => "running",
        "running" => "interrupted",
        "waiting" => "waiting",
        "failed" => "failed",
        "aborted" => "aborted",
        "cancelled" => "cancelled",
        "complete" => "complete",
        _ => "unknown",
    }
}

impl RunView {
    /// What a run looks like; `driver` is the living process that drives it, unless that is about to end.
    pub(crate) async fn of(run: &Run, driver: Option<DriverInfo>, project: &Project) -> Result<Self, Trouble> {
        let status = status_word(run.status().word(), driver.is_some());
        let current = run.current.as_ref();
        let driven = status != "interrupted";
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
            warnings: run.warnings.clone(),
            worktrees: worktrees::of_run(project, run).await,
            pipeline: PipelineView::of(run, &project.root, driven),
            detached: run.detached,
            // A process that still has its claim has nothing left to do with it.
            driver: driver.filter(|_| run.end.is_none()).map(DriverView::from),
            started_at: run.started_at,
            output_dir: run.output_dir.clone(),
            context: context(run, project.store()).await?,
        })
    }
}

async fn context(run: &Run, store: &dyn Store) -> Result<Value, Trouble> {
    let digests: Vec<_> = run.context(&Reads::All).stored.into_iter().map(|(_, digest)| digest).collect();
    let texts = if digests.is_empty() { Vec::new() } else { store.values(&digests).await? };
    Ok(run.full_context(&|wanted| {
        let at = digests.iter().position(|digest| digest == wanted)?;
        serde_json::from_slice(texts.get(at)?.as_deref()?).ok()
    }))
}

fn phases(run: &Run, status: &'static str) -> Vec<PhaseView> {
    let view = |(position, phase): (usize, &Phase)| PhaseView {
        id: phase.id.to_string(),
        name: phase.title().to_owned(),
        status: phase_status(run, position, &phase.id, status),
        iteration: run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0),
    };
    run.workflow.phases.iter().enumerate().map(view).collect()
}

/// The word for where a phase stands.
pub(crate) fn phase_status(run: &Run, position: usize, phase: &PhaseId, status: &'static str) -> &'static str {
    if run.current.as_ref().is_some_and(|current| current.id == *phase) {
        return match run.status() {
            Status::Complete => "complete",
            Status::Running | Status::Waiting | Status::Failed | Status::Aborted | Status::Cancelled => status,
        };
    }
    if run.completed.contains(phase) {
        "complete"
    } else if run.skip_list.contains(phase) && (position < run.position || run.end.is_none()) {
        "skipped"
    } else {
        "pending"
    }
}

async fn holds(run: &Run, store: &dyn Store) -> Result<Vec<HoldView>, Trouble> {
    let mut holds: Vec<&Hold> = run.holds.values().collect();
    holds.sort_by_key(|hold| (hold.opened_at, hold.id.clone()));
    let mut views = Vec::new();
    for hold in holds {
        views.push(HoldView::with_previews(hold, store).await?);
    }
    Ok(views)
}
