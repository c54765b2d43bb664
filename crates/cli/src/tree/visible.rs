//! Which steps of the phase under way are shown. However many items a list has, it is one row, which opens to those that deserve a look.

use super::{GapNode, StepNode, Tree};
use lockgate::graph::{Mark, tally};
use lockgate_engine::id::{StepKey, TaskId};
use std::collections::BTreeMap;

/// Of a phase with more steps than this, only those are shown that deserve a look; the others are counted.
pub(super) const ALL_SHOWN: usize = 12;

/// So many items of a list are shown one by one: of those that went wrong, and of those that run where there are no more.
const FEW: usize = 4;

/// Something that has a row.
pub(super) enum VisibleRow<'t> {
    /// A task or gate.
    Step(&'t StepNode),
    /// A task that became several, and how many of those stand where.
    FannedOut(&'t StepNode, Vec<String>),
    /// One of those.
    Item(&'t StepNode),
    /// The gap check.
    Gap(&'t GapNode),
}

impl VisibleRow<'_> {
    /// Where it stands.
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
    /// The steps that are shown: all of a few; of many, those that deserve a look, what went wrong first.
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
        let has_trouble = |step: &&&StepNode| is_wrong(step.mark) || of(step, &items).iter().any(|item| is_wrong(item.mark));
        let runs = |step: &&&StepNode| step.mark == Mark::Running && !has_trouble(step);
        whole.iter().filter(has_trouble).for_each(|step| open(step, &items, &mut shown));
        shown.extend(self.gap.as_ref().filter(|gap| gap.mark == Mark::Running || is_wrong(gap.mark)).map(VisibleRow::Gap));
        whole.iter().filter(runs).filter(|step| !is_gate(step)).for_each(|step| open(step, &items, &mut shown));
        shown.extend(whole.iter().filter(runs).filter(is_gate).map(|step| VisibleRow::Step(step)));
        shown
    }

    /// Tasks and gates without those that other tasks became.
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
