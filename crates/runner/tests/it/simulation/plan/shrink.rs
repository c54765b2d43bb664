//! Shrinks a plan.

use super::Plan;

impl Plan {
    /// Plans that lack one thing of this one.
    pub(in crate::simulation) fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut plan = self.clone();
            change(&mut plan);
            if plan != *self {
                plans.push(plan);
            }
        };
        for index in 0..self.lives.len() {
            with(&|plan| {
                plan.lives.remove(index);
            });
        }
        for number in self.faults.keys() {
            with(&|plan| {
                plan.faults.remove(number);
            });
        }
        for number in self.jumps.keys() {
            with(&|plan| {
                plan.jumps.remove(number);
            });
        }
        with(&|plan| plan.changes.clear());
        with(&|plan| plan.policy = None);
        with(&|plan| plan.max_parallel = None);
        for index in (0..self.phases.len()).rev() {
            // Phases are referred to by number, so only the last one can be removed.
            if self.phases.len() > 1 && index + 1 == self.phases.len() {
                with(&|plan| drop(plan.phases.pop()));
            }
            with(&|plan| {
                if plan.phases[index].tasks.len() > 1 {
                    plan.phases[index].tasks.pop();
                }
            });
            with(&|plan| plan.phases[index].gates = 0);
            with(&|plan| plan.phases[index].gaps = 0);
            with(&|plan| plan.phases[index].fail_fast = false);
            with(&|plan| plan.phases[index].checkpoint = None);
            with(&|plan| {
                if let Some(asked) = &mut plan.phases[index].checkpoint {
                    asked.simplify();
                }
            });
            for task in 0..self.phases[index].tasks.len() {
                for change in super::task::SMALLER {
                    with(&|plan| change(&mut plan.phases[index].tasks[task]));
                }
            }
        }
        plans
    }
}
