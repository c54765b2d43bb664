//! The dependency graph of a phase: every need must name a task, and there must be no cycles.

use super::Checker;
use super::task::RawTask;
use crate::id::TaskId;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use std::collections::{BTreeMap, VecDeque};

impl Checker<'_, '_> {
    /// Resolves the needs of each task. In a sequential phase, a task without `needs` needs the one before it.
    pub(super) fn needs(&mut self, tasks: &mut [RawTask<'_, '_>], in_order: bool) {
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        for position in 0..tasks.len() {
            let id = tasks[position].task.id.as_str().to_owned();
            if let Some(first) = positions.get(&id) {
                let (node, first) = (tasks[position].id, tasks[*first].id.span.start);
                self.repeated_id("task", node, &id, first);
            } else {
                positions.insert(id, position);
            }
        }
        let mut graph: Vec<Vec<usize>> = Vec::with_capacity(tasks.len());
        for position in 0..tasks.len() {
            let mut needed: Vec<usize> = Vec::new();
            match tasks[position].needs {
                Some(node) => {
                    for item in self.one_or_more(node) {
                        let Some(name) = self.text(item, "`needs`") else { continue };
                        match positions.get(name) {
                            Some(other) if needed.contains(other) => {}
                            Some(other) => needed.push(*other),
                            None => {
                                let message = format!("task `{}` is not defined in this phase", shown(name));
                                let own = tasks[position].task.id.as_str();
                                let others = positions.keys().map(String::as_str).filter(|other| *other != own);
                                self.none_of(ProblemCode::UnknownTask, &item.span, message, name, others);
                            }
                        }
                    }
                }
                None if in_order && position > 0 => needed.push(position - 1),
                None => {}
            }
            tasks[position].task.needs = needed.iter().map(|other| tasks[*other].task.id.clone()).collect();
            graph.push(needed);
        }
        for cycle in cycles(&graph) {
            let first = cycle[0];
            let names: Vec<&TaskId> = cycle.iter().chain(Some(&first)).map(|position| &tasks[*position].task.id).collect();
            let cycle = cycle_text(names.iter().map(|id| id.as_str()));
            let span = tasks[first].needs.map_or(&tasks[first].id.span, |node| &node.span);
            let message = format!("these tasks need each other: {cycle}");
            self.error(ProblemCode::DependencyCycle, span, message).help("remove one of these needs");
        }
    }
}

/// A cycle for messages; the middle of a long one is omitted.
pub fn cycle_text<'c>(names: impl Iterator<Item = &'c str>) -> String {
    let shown: Vec<String> = names.map(shown).collect();
    if shown.len() > 12 {
        format!("{} → … → {}", shown[..6].join(" → "), shown[shown.len() - 5..].join(" → "))
    } else {
        shown.join(" → ")
    }
}

/// Disjoint cycles in the graph. Each starts with its lowest node and follows the dependencies.
pub fn cycles(graph: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut waiting: Vec<usize> = graph.iter().map(Vec::len).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    for (position, needed) in graph.iter().enumerate() {
        for other in needed {
            dependents[*other].push(position);
        }
    }
    let mut done = vec![false; graph.len()];
    let mut ready: VecDeque<usize> = (0..graph.len()).filter(|position| waiting[*position] == 0).collect();
    let mut cycles = Vec::new();
    let mut lowest = 0;
    loop {
        while let Some(position) = ready.pop_front() {
            if std::mem::replace(&mut done[position], true) {
                continue;
            }
            for dependent in &dependents[position] {
                waiting[*dependent] -= 1;
                if waiting[*dependent] == 0 {
                    ready.push_back(*dependent);
                }
            }
        }
        while lowest < graph.len() && done[lowest] {
            lowest += 1;
        }
        if lowest == graph.len() {
            return cycles;
        }
        // Every remaining node needs another remaining node, so this walk must meet itself.
        let mut trail: Vec<usize> = Vec::new();
        let mut place_in_trail: BTreeMap<usize, usize> = BTreeMap::new();
        let mut at = lowest;
        while !place_in_trail.contains_key(&at) {
            place_in_trail.insert(at, trail.len());
            trail.push(at);
            match graph[at].iter().find(|other| !done[**other]) {
                Some(next) => at = *next,
                None => break,
            }
        }
        let mut cycle = trail.split_off(place_in_trail.get(&at).copied().unwrap_or(0));
        let lead = cycle.iter().enumerate().min_by_key(|(_, position)| **position).map_or(0, |(index, _)| index);
        cycle.rotate_left(lead);
        ready.extend(&cycle);
        cycles.push(cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dependency_cycle_is_reported_once() {
        assert_eq!(cycles(&[vec![], vec![0], vec![0, 1]]), Vec::<Vec<usize>>::new());
        assert_eq!(cycles(&[vec![0]]), [vec![0]]);
        assert_eq!(cycles(&[vec![1], vec![0], vec![3], vec![2, 1]]), [vec![0, 1], vec![2, 3]]);
        assert_eq!(cycles(&[vec![1], vec![2], vec![1]]), [vec![1, 2]]);
    }

    #[test]
    fn a_long_dependency_chain_does_not_overflow_the_stack() {
        let chain: Vec<Vec<usize>> =
            (0..50_000).map(|position| if position == 0 { vec![] } else { vec![position - 1] }).collect();
        assert_eq!(cycles(&chain).len(), 0);
    }
}
