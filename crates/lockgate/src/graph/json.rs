//! The diagram as JSON: its nodes and edges.

use super::edges::{self, Node};
use super::{Drawing, Mark, OptionTarget, PhaseBox};
use crate::view::RunStatus;
use serde::Serialize;

/// The contents of a diagram.
#[derive(Debug, Serialize)]
pub struct GraphView<'d> {
    title: &'d str,
    /// The run, if the diagram shows one.
    run: Option<&'d str>,
    /// The status of the run.
    status: Option<RunStatus>,
    nodes: Vec<NodeView<'d>>,
    edges: Vec<EdgeView<'d>>,
}

#[derive(Debug, Serialize)]
struct NodeView<'d> {
    id: String,
    kind: &'static str,
    /// The phase that the node belongs to, or is.
    phase: &'d str,
    label: &'d str,
    /// The state of the node in the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// How many times a phase was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<u32>,
    /// The selected option of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    chosen: Option<&'d str>,
}

#[derive(Debug, Serialize)]
struct EdgeView<'d> {
    from: String,
    to: String,
    kind: &'static str,
    /// The option of a checkpoint that leads along this edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    option: Option<&'d str>,
}

impl<'d> GraphView<'d> {
    /// Creates the view of a diagram.
    pub fn of(drawing: &'d Drawing) -> Self {
        let nodes = drawing.phases.iter().flat_map(|phase| nodes(phase, drawing.run.is_some())).collect();
        let edges = (0..drawing.phases.len()).flat_map(|at| edges(drawing, at)).collect();
        Self { title: &drawing.title, run: drawing.run.as_deref(), status: drawing.status, nodes, edges }
    }
}

fn nodes(phase: &PhaseBox, of_run: bool) -> Vec<NodeView<'_>> {
    let node = |id: String, kind: &'static str, label, mark: Option<Mark>| {
        let state = mark.map(Mark::as_str);
        NodeView { id, kind, phase: &phase.id, label, state, iteration: None, chosen: None }
    };
    let name = phase.name.as_deref().unwrap_or(&phase.id);
    let whole = NodeView { iteration: of_run.then_some(phase.iteration), ..node(phase.id.clone(), "phase", name, phase.mark) };
    let tasks = phase.tasks.iter().enumerate().map(|(at, task)| node(id(phase, Node::Task(at)), "task", &task.label, task.mark));
    let gates = phase.gates.iter().enumerate().map(|(at, gate)| {
        let kind = if gate.id.is_some() { "gate" } else { "gap_check" };
        node(id(phase, Node::Gate(at)), kind, &gate.label, gate.mark)
    });
    let checkpoint = phase.checkpoint.as_ref().map(|checkpoint| NodeView {
        chosen: checkpoint.chosen.as_deref(),
        ..node(id(phase, Node::Checkpoint), "checkpoint", &checkpoint.prompt, checkpoint.mark)
    });
    std::iter::once(whole).chain(tasks).chain(gates).chain(checkpoint).collect()
}

/// Ids of phases, tasks and gates contain no slash, so node ids are unique.
fn id(phase: &PhaseBox, node: Node) -> String {
    match node {
        Node::Task(at) => format!("{}/task/{}", phase.id, phase.tasks[at].id),
        Node::Gate(at) => match &phase.gates[at].id {
            Some(gate) => format!("{}/gate/{gate}", phase.id),
            None => format!("{}/gap_check", phase.id),
        },
        Node::Checkpoint => format!("{}/checkpoint", phase.id),
    }
}

fn edges(drawing: &Drawing, at: usize) -> Vec<EdgeView<'_>> {
    let phase = &drawing.phases[at];
    let within = edges::within(phase).into_iter();
    let within = within.map(|(from, to)| EdgeView { from: id(phase, from), to: id(phase, to), kind: "then", option: None });
    let next = drawing.phases.get(at + 1);
    let next = next.map(|next| EdgeView { from: phase.id.clone(), to: next.id.clone(), kind: "then", option: None });
    let options = edges::options(drawing, at).map(|(option, to)| EdgeView {
        from: id(phase, Node::Checkpoint),
        to: drawing.phases[to].id.clone(),
        kind: match &option.leads {
            OptionTarget::Back(_) => "back",
            OptionTarget::Skip(_) => "past",
            OptionTarget::Next | OptionTarget::End => "then",
        },
        option: Some(&option.label),
    });
    within.chain(next).chain(options).collect()
}
