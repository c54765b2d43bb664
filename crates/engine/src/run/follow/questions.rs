//! The questions that come up by themselves: what was cut off, what failed, what is missing, what has been used up.

use crate::hold::{Choice, HoldKind, Scope, budget_options, gap_options, task_options};
use crate::id::{HoldId, IdSource, PhaseId, TaskKey};
use crate::run::budget::BudgetScope;
use crate::run::event::{Event, Failure, HoldOpened};

/// So many tasks are named in a question about a budget.
const NAMED: usize = 8;

pub(in crate::run) fn ask_about_interrupted(keys: Vec<TaskKey>, ids: &mut IdSource) -> Event {
    let names: Vec<String> = keys.iter().map(TaskKey::address).collect();
    let prompt = match names.as_slice() {
        [name] => format!("{name} was cut off before it finished. What shall become of it?"),
        _ => format!("{} tasks were cut off before they finished: {}. What shall become of them?", names.len(), names.join(", ")),
    };
    question(HoldKind::Interrupted, Scope::Tasks(keys), prompt, Vec::new(), task_options(), ids)
}

pub(super) fn ask_about_failed(scope: Scope, what: &str, failure: &Failure, ids: &mut IdSource) -> Event {
    let mut notes = vec![failure.message.clone()];
    if !failure.tail.is_empty() {
        notes.push(failure.tail.clone());
    }
    question(HoldKind::Failed, scope, format!("{what} failed. What shall become of it?"), notes, task_options(), ids)
}

pub(super) fn ask_about_gaps(phase: &PhaseId, iteration: u32, told: &[String], ids: &mut IdSource) -> Event {
    let prompt = format!("The work of phase {phase} is not whole. What shall become of it?");
    let scope = Scope::Gaps { phase: phase.clone(), iteration };
    question(HoldKind::Gaps, scope, prompt, told.to_vec(), gap_options(phase), ids)
}

pub(super) fn ask_about_budget(keys: Vec<TaskKey>, scope: BudgetScope, why: String, ids: &mut IdSource) -> Event {
    let mut names: Vec<String> = keys.iter().take(NAMED).map(TaskKey::address).collect();
    if keys.len() > NAMED {
        names.push(format!("{} more", keys.len() - NAMED));
    }
    let names = names.join(", ");
    let prompt = format!("The budget of {} allows nothing more by itself. May {names} go on with as much again?", scope.title());
    let options = budget_options(&scope);
    question(HoldKind::Budget, Scope::Tasks(keys), prompt, vec![why], options, ids)
}

fn question(kind: HoldKind, scope: Scope, prompt: String, notes: Vec<String>, options: Vec<Choice>, ids: &mut IdSource) -> Event {
    Event::HoldOpened(Box::new(HoldOpened {
        hold: HoldId::new(ids.next_id()),
        kind,
        scope,
        prompt,
        files: Vec::new(),
        options,
        notes,
        blocking: true,
        quorum: 1,
    }))
}
