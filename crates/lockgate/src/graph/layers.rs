//! Assigns tasks to layers, each after everything that it needs. The cost is linear even for hostile graphs, such as long chains
//! or thousands of tasks.

use std::collections::VecDeque;

/// Above this number of tasks, redundant edges are kept, because finding them takes quadratic time.
const MOST_REDUCED: usize = 2000;

/// The layer of each task: 0 if it needs nothing, otherwise one more than the highest layer that it needs.
pub(super) fn layers(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut layers = vec![0; needs.len()];
    for at in in_order(needs) {
        layers[at] = needs[at].iter().map(|need| layers[*need] + 1).max().unwrap_or(0);
    }
    layers
}

/// Moves each task below everything that it needs.
pub(super) fn push_down(layers: &mut [usize], needs: &[Vec<usize>]) {
    for at in in_order(needs) {
        let below = needs[at].iter().map(|need| layers[*need] + 1).max().unwrap_or(0);
        layers[at] = layers[at].max(below);
    }
}

/// The tasks in topological order. A cycle, which validation rejects, would be omitted.
fn in_order(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (at, needed) in needs.iter().enumerate() {
        needed.iter().for_each(|need| dependents[*need].push(at));
    }
    let mut ready: VecDeque<usize> = (0..needs.len()).filter(|at| missing[*at] == 0).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(at) = ready.pop_front() {
        order.push(at);
        for dependent in &dependents[at] {
            missing[*dependent] -= 1;
            if missing[*dependent] == 0 {
                ready.push_back(*dependent);
            }
        }
    }
    order
}

/// Removes redundant edges: a task that needs `b`, which needs `a`, has no edge to `a`.
pub(super) fn reduced(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    if needs.len() > MOST_REDUCED {
        return needs.to_vec();
    }
    let words = needs.len().div_ceil(64);
    // The transitive needs of each task, as bits.
    let mut behind = vec![vec![0_u64; words]; needs.len()];
    let has = |bits: &[u64], at: usize| bits[at / 64] & (1 << (at % 64)) != 0;
    let mut kept = needs.to_vec();
    for at in in_order(needs) {
        let mut all = vec![0_u64; words];
        for need in &needs[at] {
            all.iter_mut().zip(&behind[*need]).for_each(|(bits, more)| *bits |= more);
        }
        kept[at].retain(|need| !has(&all, *need));
        needs[at].iter().for_each(|need| all[need / 64] |= 1 << (need % 64));
        behind[at] = all;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_after_their_needs() {
        assert_eq!(layers(&[vec![], vec![0], vec![], vec![1, 2], vec![3, 0]]), [0, 1, 0, 2, 3]);
        assert_eq!(layers(&[vec![1], vec![]]), [1, 0]);
    }

    #[test]
    fn transitive_needs_are_omitted() {
        assert_eq!(reduced(&[vec![], vec![0], vec![0, 1], vec![2, 0, 1]]), [vec![], vec![0], vec![1], vec![2]]);
        assert_eq!(reduced(&[vec![], vec![], vec![0, 1]]), [vec![], vec![], vec![0, 1]]);
    }

    #[test]
    fn a_long_dependency_chain_does_not_overflow_the_stack() {
        let chain: Vec<Vec<usize>> = (0..50_000).map(|at| if at == 0 { vec![] } else { vec![at - 1] }).collect();
        assert_eq!(layers(&chain)[49_999], 49_999);
        assert_eq!(reduced(&chain), chain);
    }
}
