//! Chooses the visible steps of the current phase. A fanned-out task is one row, which expands to the items that need attention.

use super::{GapNode, StepNode, Tree};
use lockgate::graph::{Mark, tally};
use lockgate_engine::id::{StepKey, TaskId};
use std::collections::BTreeMap;

/// If a phase has more steps than this, only those that need attention are shown, and the others are counted.
pub(super) const ALL_SHOWN: usize = 12;

/// The maximum number of failed items shown individually. Running items are shown up to the same number.
const FEW: usize = 4;

pub(super) enum VisibleRow<'t> {
    Step(&'t StepNode),
    /// A task that fanned out, and the counts of its items.
    FannedOut(&'t StepNode, Vec<String>),
    /// An item of such a task.
    Item(&'t StepNode),
    Gap(&'t GapNode),
}

impl VisibleRow<'_> {
    pub(super) fn mark(&self) -> Mark {
        match self {
            Self::Step(step) | Self::FannedOut(step, _) | Self::Item(step) => step.mark,
            Self::Gap(gap) => gap.mark,
        }
    }
}

fn is_wrong(mark: Mark) -> bool {
    match mark {
        Mark::Failed | Mark::Interrupted | Mark::Ended | Mark::Asking => true,
        Mark::Done | Mark::Skipped | Mark::Pending | Mark::Running => false,
    }
}

impl Tree {
    /// The visible steps: all of them if they are few, otherwise those that need attention, failures first.
    pub(super) fn shown_steps(&self) -> Vec<VisibleRow<'_>> {
        let mut items: BTreeMap<&TaskId, Vec<&StepNode>> = BTreeMap::new();
        for step in &self.steps {
            if let Some(parent) = &step.parent {
                items.entry(parent).or_default().push(step);
            }
        }
        let whole: Vec<&StepNode> = self.whole_steps().collect();
        let (tasks, gates): (Vec<&StepNode>, Vec<&StepNode>) =
            whole.iter().partition(|step| matches!(step.key, StepKey::Task(_)));
        let is_gate = |step: &&&StepNode| matches!(step.key, StepKey::Gate { .. });
        let mut shown = Vec::new();
        if whole.len() <= ALL_SHOWN {
            tasks.iter().for_each(|step| open(step, &items, &mut shown));
            shown.extend(self.gap.as_ref().map(VisibleRow::Gap));
            shown.extend(gates.into_iter().map(VisibleRow::Step));
            return shown;
        }
        let has_problem = |step: &&&StepNode| is_wrong(step.mark) || of(step, &items).iter().any(|item| is_wrong(item.mark));
        let runs = |step: &&&StepNode| step.mark == Mark::Running && !has_problem(step);
        whole.iter().filter(has_problem).for_each(|step| open(step, &items, &mut shown));
        shown.extend(self.gap.as_ref().filter(|gap| gap.mark == Mark::Running || is_wrong(gap.mark)).map(VisibleRow::Gap));
        whole.iter().filter(runs).filter(|step| !is_gate(step)).for_each(|step| open(step, &items, &mut shown));
        shown.extend(whole.iter().filter(runs).filter(is_gate).map(|step| VisibleRow::Step(step)));
        shown
    }

    /// Tasks and gates without the items of fanned-out tasks.
    pub(super) fn whole_steps(&self) -> impl Iterator<Item = &StepNode> {
        self.steps.iter().filter(|step| step.parent.is_none())
    }
}

fn of<'m, 't>(step: &StepNode, items: &'m BTreeMap<&TaskId, Vec<&'t StepNode>>) -> &'m [&'t StepNode] {
    match &step.key {
        StepKey::Task(key) => items.get(&key.task).map(Vec::as_slice).unwrap_or_default(),
        StepKey::Gate { .. } => &[],
    }
}

fn open<'t>(step: &'t StepNode, items: &BTreeMap<&TaskId, Vec<&'t StepNode>>, shown: &mut Vec<VisibleRow<'t>>) {
    let items = of(step, items);
    if items.is_empty() {
        return shown.push(VisibleRow::Step(step));
    }
    shown.push(VisibleRow::FannedOut(step, tally(items.iter().map(|item| item.mark))));
    shown.extend(items.iter().copied().filter(|item| is_wrong(item.mark)).take(FEW).map(VisibleRow::Item));
    let running: Vec<&StepNode> = items.iter().copied().filter(|item| item.mark == Mark::Running).collect();
    if running.len() <= FEW {
        shown.extend(running.into_iter().map(VisibleRow::Item));
    }
}
