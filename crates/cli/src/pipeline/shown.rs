//! What people see of a pipeline: phases, workstreams side by side with their state and time, gates, artifacts.

use crate::print::{ERROR, FAINT, HELP, STRONG, WARNING, styled};
use crate::view::{lockgate, status_style};
use crate::{moment, neutral};
use lockgate_engine::formats::pipeline::document::{Document, document};
use lockgate_engine::id::TaskId;
use lockgate_engine::run::Run;
use lockgate_engine::run::pipeline::Worked;
use lockgate_engine::run::state::GateState;
use lockgate_engine::spec::workflow::{Phase, Pipeline, PipelinePhase};
use lockgate_engine::time::Timestamp;
use lockgate_runner::projection::StateFile;
use lockgate_runner::root::{Root, Step};
use serde::Serialize;

/// So many artifacts of a workstream are shown in a text.
const FEW: usize = 5;

/// A pipeline as it stands.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PipelineView {
    pub(crate) prd: String,
    pub(crate) title: String,
    /// As its state file says it.
    pub(crate) status: &'static str,
    pub(crate) current_phase: u32,
    /// The state file.
    pub(crate) file: String,
    pub(crate) phases: Vec<PipelinePhaseView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<ReviewView>,
    /// Whether it waits for a review that lets it begin.
    pub(crate) waits_for_review: bool,
}

/// A phase of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PipelinePhaseView {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) workstreams: Vec<WorkstreamView>,
    /// The gates of the phase itself.
    pub(crate) gates: Vec<GateView>,
}

/// A workstream.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WorkstreamView {
    pub(crate) id: String,
    pub(crate) name: String,
    /// `completed`, `in_progress`, `pending` or `failed`; `interrupted` where nobody goes on with what is in progress.
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Timestamp>,
    pub(crate) gates: Vec<GateView>,
    pub(crate) artifacts: Vec<String>,
}

/// A gate.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GateView {
    pub(crate) name: String,
    pub(crate) status: &'static str,
    pub(crate) attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took_ms: Option<u64>,
    /// The file with all that its last attempt printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
}

/// Why a pipeline failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorView {
    pub(crate) workstream: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
}

/// A review.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReviewView {
    pub(crate) verdict: &'static str,
    pub(crate) p0: u32,
    pub(crate) p1: u32,
    pub(crate) attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) findings: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) override_reason: Option<String>,
}

impl PipelineView {
    /// What `resume` needs to hear where the pipeline stands so.
    pub(crate) fn resume_flag(&self) -> &'static str {
        match self.status {
            "paused" | "in_progress" => " --continue",
            "failed" => " --fixed",
            _ => "",
        }
    }

    /// A pipeline; nothing where the run is none.
    pub(crate) fn of(run: &Run, root: &Root, driven: bool) -> Option<Self> {
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
            status: document.status.word(),
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
                verdict: review.verdict.word(),
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
    /// Whether somebody goes on with what is under way.
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
                began: worked.map(|worked| worked.began),
                ended: worked.and_then(|worked| worked.ended),
                gates: self.gates(phase, said, Some(&id)),
                artifacts: artifacts.map(|(_, paths)| paths.clone()).unwrap_or_default(),
                id,
            }
        });
        let (number, name, workstreams) = (position + 1, said.name.clone(), workstreams.collect());
        PipelinePhaseView { number, name, workstreams, gates: self.gates(phase, said, None) }
    }

    fn status(&self, id: &str) -> &'static str {
        let document = self.document;
        let failed = document.error.as_ref().is_some_and(|error| error.workstream == id);
        match id {
            _ if document.completed.iter().any(|known| known == id) => "completed",
            _ if document.in_progress.iter().any(|known| known == id) => {
                if self.driven {
                    "in_progress"
                } else {
                    "interrupted"
                }
            }
            _ if failed => "failed",
            _ => "pending",
        }
    }

    /// The gates of a workstream, or those of the phase itself; those that nobody runs come last.
    fn gates(&self, phase: &Phase, said: &PipelinePhase, workstream: Option<&str>) -> Vec<GateView> {
        let current = self.run.current.as_ref().filter(|current| current.id == phase.id);
        // Until it moves, an imported pipeline has what its file says, which may name a gate without its workstream.
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
                Some(GateState::Running) if self.driven => "running",
                Some(GateState::Running) => "interrupted",
                Some(GateState::Failed(_)) => "failed",
                Some(GateState::Waived) => "waived",
                Some(GateState::Passed) => "passed",
                Some(GateState::Waiting) | None => {
                    if passed(gate.title(), gate.task.as_ref()) {
                        "passed"
                    } else {
                        "pending"
                    }
                }
            };
            let address = format!("{}/{}", phase.id, gate.id);
            let checked = self.run.pipeline.as_deref().and_then(|known| known.checked.get(&address));
            let log = checked.and_then(|checked: &Worked| {
                let step = Step::Gate { phase: &phase.id, iteration: checked.iteration, gate: &gate.id };
                let path = self.root.log_file(&self.run.id, step, checked.attempt);
                path.is_file().then(|| path.to_string_lossy().into_owned())
            });
            GateView {
                name: gate.title().to_owned(),
                status,
                attempts: checked.map_or(0, |checked| checked.attempt),
                took_ms: checked.and_then(|checked| u64::try_from(checked.ended?.since(checked.began).as_millis()).ok()),
                log,
            }
        });
        let suffix = workstream.map(|workstream| format!(" ({workstream})"));
        let by_hand = self.pipeline.by_hand.iter().filter(|gate| gate.phase == phase.id);
        let by_hand = by_hand.filter(|gate| match &suffix {
            Some(suffix) => gate.title.ends_with(suffix.as_str()),
            None => !said.workstreams.iter().any(|id| gate.title.ends_with(&format!(" ({id})"))),
        });
        let by_hand = by_hand.map(|gate| {
            let status = if passed(&gate.title, gate.task.as_ref()) { "passed" } else { "by hand" };
            GateView { name: gate.title.clone(), status, attempts: 0, took_ms: None, log: None }
        });
        run_ones.chain(by_hand).collect()
    }
}

/// A pipeline as text.
pub(crate) fn text(view: &PipelineView, now: Timestamp) -> String {
    let title = neutral::line(&format!("{} {}", view.prd, view.title)).into_owned();
    let status = styled(style(view.status), view.status);
    let mut text = format!("{} is {status}, in phase {} of {}\n", styled(STRONG, title), view.current_phase, view.phases.len());
    text += &format!("  file {}\n", styled(FAINT, neutral::line(&view.file)));
    if let Some(review) = &view.review {
        let why = review.override_reason.as_deref().map(|why| format!(": {}", neutral::line(why))).unwrap_or_default();
        let (verdict, p0, p1) = (review.verdict, review.p0, review.p1);
        text += &format!("  review {verdict} (attempt {}, {p0} P0, {p1} P1){why}\n", review.attempt);
    }
    if view.waits_for_review {
        let command = lockgate(["review", &view.prd, "--verdict", "ship", "--p0", "0", "--p1", "0"]);
        let waits = styled(WARNING, "nothing begins before a review lets it");
        text += &format!("  {waits}: {}\n", styled(HELP, neutral::line(&command)));
    }
    if let Some(error) = &view.error {
        let place = error.file.as_ref().map(|file| match error.line {
            Some(line) => format!(" ({file}:{line})"),
            None => format!(" ({file})"),
        });
        let told = format!("{}: {}{}", error.workstream, error.message, place.unwrap_or_default());
        text += &format!("  {} {}\n", styled(ERROR, "failed:"), neutral::line(&told));
    }
    for phase in &view.phases {
        let numbered = phase.name.to_lowercase().starts_with("phase");
        let name = if numbered { phase.name.clone() } else { format!("Phase {}: {}", phase.number, phase.name) };
        text += &format!("  {}\n", neutral::line(&name));
        for workstream in &phase.workstreams {
            text += &workstream_text(workstream, now);
        }
        for gate in &phase.gates {
            text += &gate_text(gate, "    ");
        }
    }
    text
}

fn workstream_text(view: &WorkstreamView, now: Timestamp) -> String {
    let status = styled(style(view.status), format_args!("{:<11}", view.status.replace('_', " ")));
    let name = if view.name.is_empty() { view.id.clone() } else { format!("{}: {}", view.id, view.name) };
    let time = match (view.began, view.ended, view.status) {
        (Some(began), Some(ended), _) => format!("  {}", moment::duration(ended.since(began))),
        (Some(began), None, "in_progress") => format!("  for {}", moment::duration(now.since(began))),
        (Some(_), None, _) | (None, _, _) => String::new(),
    };
    let mut text = format!("    {status} {}{}\n", neutral::line(&name), styled(FAINT, time));
    for gate in &view.gates {
        text += &gate_text(gate, "      ");
    }
    if !view.artifacts.is_empty() {
        let more = view.artifacts.len().saturating_sub(FEW);
        let mut names: Vec<String> = view.artifacts.iter().take(FEW).map(|path| neutral::line(path).into_owned()).collect();
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        text += &format!("      {}\n", styled(FAINT, names.join(", ")));
    }
    text
}

fn gate_text(gate: &GateView, indent: &str) -> String {
    let status = styled(style(gate.status), format_args!("{:<9}", gate.status));
    let took =
        gate.took_ms.map(|took| format!("  {}", moment::duration(std::time::Duration::from_millis(took)))).unwrap_or_default();
    let again = if gate.attempts > 1 { format!(" (attempt {})", gate.attempts) } else { String::new() };
    format!("{indent}{status} gate {}{again}{}\n", neutral::line(&gate.name), styled(FAINT, took))
}

fn style(status: &str) -> anstyle::Style {
    match status {
        "completed" | "waived" => status_style("done"),
        "in_progress" => status_style("running"),
        "paused" | "by hand" => status_style("waiting"),
        _ => status_style(status),
    }
}
