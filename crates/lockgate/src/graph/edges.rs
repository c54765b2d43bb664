//! The edges of a diagram.

use super::{Drawing, OptionBox, OptionTarget, PhaseBox, layers};

/// A node in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// The task at this index.
    Task(usize),
    /// The gate at this index.
    Gate(usize),
    Checkpoint,
}

/// The edges within a phase: from needed tasks to their dependents, from tasks to gates, and finally to the checkpoint.
pub(super) fn within(phase: &PhaseBox) -> Vec<(Node, Node)> {
    let needs: Vec<Vec<usize>> = phase.tasks.iter().map(|task| task.needs.clone()).collect();
    let needs = layers::reduced(&needs);
    let mut links: Vec<(Node, Node)> = Vec::new();
    for (task, needed) in needs.iter().enumerate() {
        links.extend(needed.iter().map(|need| (Node::Task(*need), Node::Task(task))));
    }
    // Tasks that no other task needs lead to the first gate or the checkpoint.
    let mut waited_for = vec![false; phase.tasks.len()];
    needs.iter().flatten().for_each(|need| waited_for[*need] = true);
    let mut last: Vec<Node> = (0..phase.tasks.len()).filter(|task| !waited_for[*task]).map(Node::Task).collect();
    for (at, gate) in phase.gates.iter().enumerate() {
        let node = Node::Gate(at);
        if let Some(task) = gate.task {
            links.push((Node::Task(task), node));
            let dependents = needs.iter().enumerate().filter(|(_, needed)| needed.contains(&task));
            links.extend(dependents.map(|(dependent, _)| (node, Node::Task(dependent))));
            last.retain(|known| *known != Node::Task(task));
            last.extend((!waited_for[task]).then_some(node));
            continue;
        }
        links.extend(last.drain(..).map(|before| (before, node)));
        last = vec![node];
    }
    if phase.checkpoint.is_some() {
        links.extend(last.into_iter().map(|before| (before, Node::Checkpoint)));
    }
    links
}

/// The options of a phase that lead to a phase other than the next one, with its index.
pub(super) fn options(drawing: &Drawing, at: usize) -> impl Iterator<Item = (&OptionBox, usize)> {
    let options = drawing.phases[at].checkpoint.iter().flat_map(|checkpoint| &checkpoint.options);
    options.filter_map(move |option| {
        let to = match &option.leads {
            OptionTarget::Next | OptionTarget::End => None,
            OptionTarget::Back(to) => Some(*to),
            // The run continues with the first phase that is not skipped.
            OptionTarget::Skip(skipped) => (at + 1..drawing.phases.len()).find(|next| !skipped.contains(next)),
        };
        to.map(|to| (option, to))
    })
}
