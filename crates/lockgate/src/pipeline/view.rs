//! A view of a pipeline: phases, workstreams, gates and artifacts.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use lockgate_engine::id::TaskId;
use lockgate_engine::run::Run;
use lockgate_engine::run::pipeline::LastAttempt;
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::run::pipeline::Verdict;
use lockgate_engine::run::state::GateState;
use lockgate_engine::spec::workflow::{Phase, Pipeline, PipelinePhase};
use lockgate_engine::time::Timestamp;
use lockgate_formats::state_file::document::{Document, document};
use lockgate_runner::projection::StateFile;
use lockgate_runner::root::{Root, Step};
use serde::Serialize;

/// A pipeline and its current state.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineView {
    pub prd: String,
    pub title: String,
    /// The status in the state file.
    pub status: Lifecycle,
    pub current_phase: u32,
    /// The path of the state file.
    pub file: String,
    pub phases: Vec<PipelinePhaseView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewView>,
    /// Whether it starts only after a review permits it.
    pub waits_for_review: bool,
}

/// A phase of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct PipelinePhaseView {
    pub number: usize,
    pub name: String,
    pub workstreams: Vec<WorkstreamView>,
    /// Gates of the phase itself.
    pub gates: Vec<GateView>,
}

/// A workstream.
#[derive(Clone, Debug, Serialize)]
pub struct WorkstreamView {
    pub id: String,
    pub name: String,
    pub status: WorkstreamStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub gates: Vec<GateView>,
    pub artifacts: Vec<String>,
}

/// The status of a workstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkstreamStatus {
    Completed,
    InProgress,
    /// It is in progress, but no process drives it.
    Interrupted,
    Pending,
    Failed,
}

impl WorkstreamStatus {
    /// The words that people read.
    pub fn words(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::InProgress => "in progress",
            Self::Interrupted => "interrupted",
            Self::Pending => "pending",
            Self::Failed => "failed",
        }
    }
}

/// The status of a gate of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    Running,
    /// It is running according to the history, but no process drives it.
    Interrupted,
    Failed,
    Waived,
    Passed,
    Pending,
    /// A person decides it, not a command.
    #[serde(rename = "manual")]
    Manual,
}

impl GateStatus {
    /// The words that people read.
    pub fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Waived => "waived",
            Self::Passed => "passed",
            Self::Pending => "pending",
            Self::Manual => "manual",
        }
    }
}

/// A gate.
#[derive(Clone, Debug, Serialize)]
pub struct GateView {
    pub name: String,
    pub status: GateStatus,
    pub attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The log of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// Why a pipeline failed.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorView {
    pub workstream: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// A review.
#[derive(Clone, Debug, Serialize)]
pub struct ReviewView {
    pub verdict: Verdict,
    pub p0: u32,
    pub p1: u32,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_reason: Option<String>,
}

impl PipelineView {
    /// The flag that `resume` needs in this state.
    pub fn resume_flag(&self) -> &'static str {
        match self.status {
            Lifecycle::Paused | Lifecycle::InProgress => " --continue",
            Lifecycle::Failed => " --fixed",
            Lifecycle::Initialized | Lifecycle::Complete => "",
        }
    }

    /// Creates the view. Returns `None` if the run is not a pipeline.
    pub fn of(run: &Run, root: &Root, driven: bool) -> Option<Self> {
        let (pipeline, known) = run.pipeline()?;
        let shown = root.dir().to_string_lossy();
        let document = document(run, Some(&shown))?;
        let look = Look { run, pipeline, document: &document, root, driven };
        let phases = pipeline.phases.iter().enumerate().filter_map(|(position, said)| {
            let phase = run.workflow.phases.get(position)?;
            Some(look.phase(position, said, phase))
        });
        Some(Self {
            prd: pipeline.prd.clone(),
            title: pipeline.title.clone(),
            status: document.status,
            current_phase: document.current_phase,
            file: StateFile::place(pipeline),
            phases: phases.collect(),
            error: document.error.as_ref().map(|error| ErrorView {
                workstream: error.workstream.clone(),
                message: error.message.clone(),
                file: error.file.clone(),
                line: error.line,
            }),
            review: known.review.as_ref().map(|review| ReviewView {
                verdict: review.verdict,
                p0: review.p0,
                p1: review.p1,
                attempt: review.attempt,
                findings: review.findings.clone(),
                override_reason: review.override_reason.clone(),
            }),
            waits_for_review: run.waits_for_review(),
        })
    }
}

struct Look<'a> {
    run: &'a Run,
    pipeline: &'a Pipeline,
    document: &'a Document,
    root: &'a Root,
    /// Whether a process drives the run.
    driven: bool,
}

impl Look<'_> {
    fn phase(&self, position: usize, said: &PipelinePhase, phase: &Phase) -> PipelinePhaseView {
        let workstreams = said.workstreams.iter().map(|id| {
            let id = id.to_string();
            let known = self.run.pipeline.as_deref();
            let worked = known.and_then(|known| known.worked.get(id.as_str()));
            let artifacts = self.document.artifacts.iter().find(|(name, _)| *name == id);
            WorkstreamView {
                name: self.pipeline.workstream(&id).map(|workstream| workstream.name.clone()).unwrap_or_default(),
                status: self.status(&id),
                started_at: worked.map(|worked| worked.began),
                ended_at: worked.and_then(|worked| worked.ended),
                gates: self.gates(phase, said, Some(&id)),
                artifacts: artifacts.map(|(_, paths)| paths.clone()).unwrap_or_default(),
                id,
            }
        });
        let (number, name, workstreams) = (position + 1, said.name.clone(), workstreams.collect());
        PipelinePhaseView { number, name, workstreams, gates: self.gates(phase, said, None) }
    }

    fn status(&self, id: &str) -> WorkstreamStatus {
        let document = self.document;
        let failed = document.error.as_ref().is_some_and(|error| error.workstream == id);
        match id {
            _ if document.completed.iter().any(|known| known == id) => WorkstreamStatus::Completed,
            _ if document.in_progress.iter().any(|known| known == id) => {
                if self.driven {
                    WorkstreamStatus::InProgress
                } else {
                    WorkstreamStatus::Interrupted
                }
            }
            _ if failed => WorkstreamStatus::Failed,
            _ => WorkstreamStatus::Pending,
        }
    }

    /// The gates of a workstream, or of the phase itself. Manual gates come last.
    fn gates(&self, phase: &Phase, said: &PipelinePhase, workstream: Option<&str>) -> Vec<GateView> {
        let current = self.run.current.as_ref().filter(|current| current.id == phase.id);
        // Until it is resumed, an imported pipeline shows the gates of its file, which may name a gate without its workstream.
        let unmoved = self.run.pipeline.as_deref().filter(|known| known.imported.is_some() && !known.moved);
        let passed = |title: &str, of: Option<&TaskId>| match unmoved {
            Some(known) => known.had_passed(title, of, &said.workstreams),
            None => self.document.gates_passed.iter().any(|known| known == title),
        };
        let own = phase.gates.iter().filter(|gate| said.gates.contains(&gate.id));
        let added = self.run.added_gates(phase).iter();
        let gates = own.chain(added).filter(|gate| gate.task.as_ref().map(|task| task.as_str()) == workstream);
        let run_ones = gates.map(|gate| {
            let standing = current.and_then(|current| current.gates.iter().find(|known| known.gate == gate.id));
            let status = match standing.map(|standing| &standing.state) {
                Some(GateState::Running) if self.driven => GateStatus::Running,
                Some(GateState::Running) => GateStatus::Interrupted,
                Some(GateState::Failed(_)) => GateStatus::Failed,
                Some(GateState::Waived) => GateStatus::Waived,
                Some(GateState::Passed) => GateStatus::Passed,
                Some(GateState::Waiting) | None => {
                    if passed(gate.title(), gate.task.as_ref()) {
                        GateStatus::Passed
                    } else {
                        GateStatus::Pending
                    }
                }
            };
            let address = format!("{}/{}", phase.id, gate.id);
            let checked = self.run.pipeline.as_deref().and_then(|known| known.checked.get(&address));
            let log = checked.and_then(|checked: &LastAttempt| {
                let step = Step::Gate { phase: &phase.id, iteration: checked.iteration, gate: &gate.id };
                let path = self.root.log_file(&self.run.id, step, checked.attempt);
                path.is_file().then(|| path.to_string_lossy().into_owned())
            });
            GateView {
                name: gate.title().to_owned(),
                status,
                attempts: checked.map_or(0, |checked| checked.attempt),
                duration_ms: checked.and_then(|checked| u64::try_from(checked.ended?.since(checked.began).as_millis()).ok()),
                log,
            }
        });
        let manual_gates = self.pipeline.manual_gates.iter().filter(|gate| gate.phase == phase.id);
        let manual_gates = manual_gates.filter(|gate| gate.task.as_ref().map(TaskId::as_str) == workstream);
        let manual_gates = manual_gates.map(|gate| {
            let status = if passed(&gate.title, gate.task.as_ref()) { GateStatus::Passed } else { GateStatus::Manual };
            GateView { name: gate.title.clone(), status, attempts: 0, duration_ms: None, log: None }
        });
        run_ones.chain(manual_gates).collect()
    }
}
