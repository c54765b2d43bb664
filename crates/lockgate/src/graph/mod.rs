//! Diagrams of workflows and runs: phases, tasks and their dependencies, gates and checkpoints, with their states.
//!
//! | module | contents |
//! | --- | --- |
//! | `layers` | assigns tasks to layers |
//! | `state` | the state of each node in a run |
//! | `edges` | the edges between nodes |
//! | [`svg`], [`mermaid`], [`json`] | the output formats |
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

mod edges;
pub mod json;
mod layers;
pub mod mermaid;
mod state;
pub mod svg;
mod truncate;

pub use state::{Mark, gap_mark, tally};
pub use truncate::truncate;

use crate::pipeline::{gate_title, task_title};
use crate::sanitize;
use crate::view::RunStatus;
use lockgate_engine::hold::{Action, Choice};
use lockgate_engine::run::Run;
use lockgate_engine::spec::workflow::{Checkpoint, GapCheck, Gate, ItemSource, Phase, Task, Work, Workflow};
use std::collections::BTreeMap;

/// The id of the node for finalization, after all phases.
const FINALIZATION: &str = "finalization";

/// A diagram. All its texts are safe to print to a terminal.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The title.
    pub title: String,
    /// The run, if the diagram shows one.
    pub run: Option<String>,
    /// The status of the run.
    pub status: Option<RunStatus>,
    pub phases: Vec<PhaseBox>,
}

/// A phase.
#[derive(Clone, Debug)]
pub struct PhaseBox {
    pub id: String,
    pub name: Option<String>,
    pub mark: Option<Mark>,
    /// How many times it was executed.
    pub iteration: u32,
    pub tasks: Vec<TaskBox>,
    pub gates: Vec<GateBox>,
    pub checkpoint: Option<CheckpointBox>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct TaskBox {
    pub id: String,
    /// Its id and, where useful, its kind.
    pub label: String,
    /// The indexes of the tasks that it needs.
    pub needs: Vec<usize>,
    /// One more than the highest layer that it needs.
    pub layer: usize,
    pub mark: Option<Mark>,
}

/// A gate, or the gap check before the gates.
#[derive(Clone, Debug)]
pub struct GateBox {
    /// Absent for the gap check.
    pub id: Option<String>,
    pub label: String,
    pub mark: Option<Mark>,
    /// The index of the task that it follows, or `None` if it follows all of them.
    pub task: Option<usize>,
}

/// A checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointBox {
    pub prompt: String,
    /// Whether it opens only under a condition.
    pub conditional: bool,
    pub options: Vec<OptionBox>,
    pub mark: Option<Mark>,
    /// The label of the selected option.
    pub chosen: Option<String>,
}

/// An option of a checkpoint.
#[derive(Clone, Debug)]
pub struct OptionBox {
    pub label: String,
    pub leads: OptionTarget,
}

/// The consequence of selecting an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionTarget {
    /// Continue with the next phase.
    Next,
    /// Return to the phase with this index.
    Back(usize),
    /// Skip the phases with these indexes.
    Skip(Vec<usize>),
    /// End the run.
    End,
}

impl Drawing {
    /// Creates the diagram of a workflow.
    pub fn of_workflow(workflow: &Workflow) -> Self {
        let phases = workflow.phases.iter().map(|phase| phase_box(phase, workflow)).chain(finalization(workflow)).collect();
        Self { title: text(&workflow.name), run: None, status: None, phases }
    }

    /// Creates the diagram of a run with this status.
    pub fn of_run(run: &Run, status: RunStatus) -> Self {
        let mut drawing = Self::of_workflow(&run.workflow);
        let about = run.feature.as_deref().map(|feature| format!(" ({})", text(feature))).unwrap_or_default();
        drawing.title = format!("{}{about}, run {}", drawing.title, run.id);
        drawing.run = Some(run.id.to_string());
        let fill = |text: &str| filled(&one_line(text), &|name| run.feature.clone().filter(|_| name == "feature.name"));
        for (drawn, phase) in drawing.phases.iter_mut().zip(&run.workflow.phases) {
            if let (Some(drawn), Some(checkpoint)) = (&mut drawn.checkpoint, &phase.checkpoint) {
                drawn.prompt = fill(&checkpoint.prompt);
            }
            let added = run.added_gates(phase).iter();
            drawn.gates.extend(added.map(|gate| gate_box(gate, &run.workflow, &BTreeMap::new())));
        }
        state::mark(&mut drawing, run, status);
        drawing
    }

    /// Describes the consequence of an option.
    pub fn words(&self, leads: &OptionTarget) -> Option<String> {
        let id = |at: &usize| self.phases[*at].id.as_str();
        match leads {
            OptionTarget::Next => None,
            OptionTarget::Back(at) => Some(format!("back to {}", id(at))),
            OptionTarget::Skip(places) => Some(format!("skips {}", places.iter().map(id).collect::<Vec<_>>().join(", "))),
            OptionTarget::End => Some("ends the run".to_owned()),
        }
    }
}

/// A text of the workflow, with template variables shown as their names.
fn text(text: &str) -> String {
    filled(text.trim(), &|_| None)
}

/// A text with the known template variables of a run filled in.
fn filled(text: &str, known: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else { break };
        let name = name.trim_matches(['{', ' ']);
        filled += before;
        filled += &known(name).unwrap_or_else(|| format!("‹{name}›"));
        rest = behind.strip_prefix('}').unwrap_or(behind);
    }
    sanitize::line(&(filled + rest)).into_owned()
}

fn phase_box(phase: &Phase, workflow: &Workflow) -> PhaseBox {
    let places: BTreeMap<&str, usize> = phase.tasks.iter().enumerate().map(|(at, task)| (task.id.as_str(), at)).collect();
    let needs: Vec<Vec<usize>> = phase
        .tasks
        .iter()
        .map(|task| task.needs.iter().filter_map(|need| places.get(need.as_str()).copied()).collect())
        .collect();
    let layers = layers::layers(&needs);
    let tasks = phase.tasks.iter().zip(needs).zip(layers);
    PhaseBox {
        id: text(phase.id.as_str()),
        name: phase.name.as_deref().map(text).filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(phase.id.as_str())),
        mark: None,
        iteration: 0,
        tasks: tasks
            .map(|((task, needs), layer)| TaskBox {
                id: text(task.id.as_str()),
                label: text(&label(task, workflow)),
                needs,
                layer,
                mark: None,
            })
            .collect(),
        gates: phase
            .gap_check
            .iter()
            .map(gap_label)
            .map(|label| GateBox { id: None, label, mark: None, task: None })
            .chain(phase.gates.iter().map(|gate| gate_box(gate, workflow, &places)))
            .collect(),
        checkpoint: phase.checkpoint.as_ref().map(|checkpoint| checkpoint_box(checkpoint, workflow)),
    }
}

fn gate_box(gate: &Gate, workflow: &Workflow, places: &BTreeMap<&str, usize>) -> GateBox {
    let task = gate.task.as_ref().and_then(|task| places.get(task.as_str()).copied());
    GateBox { id: Some(text(gate.id.as_str())), label: format!("gate {}", text(&gate_title(workflow, gate))), mark: None, task }
}

/// The label of a task, which also identifies agents, lists and adaptive scripts.
fn label(task: &Task, workflow: &Workflow) -> String {
    let id = task_title(workflow, task.id.as_str());
    let over = task.for_each.as_ref().map(|each| match &each.over {
        ItemSource::List(items) => format!(" × each of {}", items.len()),
        ItemSource::Var(name) => format!(" × each of vars.{name}"),
        ItemSource::Script(_) => " × each item from a script".to_owned(),
        ItemSource::Lines(path) => format!(" × each line of {path}"),
    });
    let over = over.unwrap_or_default();
    match &task.work {
        Work::Adaptive(_) => format!("{id} → agents chosen by its script{over}"),
        Work::Agent(work) => match work.agent.as_deref().filter(|agent| *agent != task.id.as_str()) {
            Some(agent) => format!("{id} (agent {agent}){over}"),
            None => format!("{id} (agent){over}"),
        },
        Work::Checkpoint(checkpoint) => format!("{id} ({}?)", checkpoint.as_str()),
        Work::Run(_) | Work::Script(_) | Work::Pass => format!("{id}{over}"),
    }
}

fn gap_label(check: &GapCheck) -> String {
    format!("gap check, else {}", check.on_failure.as_str().replace('_', " "))
}

/// The node for finalization, which runs after all phases.
fn finalization(workflow: &Workflow) -> Option<PhaseBox> {
    let made = workflow.finalization.as_ref()?;
    let (tasks, gates) = (Vec::new(), Vec::new());
    let name = Some(text(&format!("writes {}", made.output)));
    Some(PhaseBox { id: FINALIZATION.to_owned(), name, mark: None, iteration: 0, tasks, gates, checkpoint: None })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn checkpoint_box(checkpoint: &Checkpoint, workflow: &Workflow) -> CheckpointBox {
    let option = |choice: &Choice| OptionBox {
        label: text(&choice.label),
        leads: match &choice.action {
            Action::RepeatPhase(phase) => workflow.position(phase.as_str()).map_or(OptionTarget::Next, OptionTarget::Back),
            Action::SkipPhases(phases) => {
                OptionTarget::Skip(phases.iter().filter_map(|phase| workflow.position(phase.as_str())).collect())
            }
            Action::Abort | Action::Fail => OptionTarget::End,
            Action::Continue
            | Action::Rerun
            | Action::CountAsDone
            | Action::RaiseBudget(_)
            | Action::RerunRest
            | Action::Reply => OptionTarget::Next,
            Action::Redo(tasks) => {
                let holds = |phase: &Phase| tasks.iter().any(|task| phase.task(task.as_str()).is_some());
                workflow.phases.iter().position(holds).map_or(OptionTarget::Next, OptionTarget::Back)
            }
        },
    };
    CheckpointBox {
        prompt: text(&one_line(&checkpoint.prompt)),
        conditional: checkpoint.condition.is_some(),
        options: checkpoint.options.iter().map(option).collect(),
        mark: None,
        chosen: None,
    }
}
