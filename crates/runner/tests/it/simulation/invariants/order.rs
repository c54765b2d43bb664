//! Invariants about what may run, and how much in parallel.

use lockgate_engine::hold::{HoldState, Scope};
use lockgate_engine::run::Run;
use lockgate_engine::run::phase::PhaseRun;
use lockgate_engine::run::state::TaskState;
use lockgate_engine::spec::workflow::{Join, Phase};
use std::collections::BTreeMap;

/// Checks the states of a run, one after another.
#[derive(Default)]
pub(in crate::simulation) struct Order {
    running: Running,
}

impl Order {
    /// The invariants of the next state.
    pub(in crate::simulation) fn check(&mut self, run: &Run) -> Result<(), String> {
        let running = running(run);
        limits_are_kept(run, &running, &self.running)?;
        nothing_runs_while_what_it_needs_is_redone(run)?;
        nothing_is_asked_about_unfinished_work(run)?;
        self.running = running;
        Ok(())
    }
}

/// How many tasks run, in total and per list.
type Running = BTreeMap<Option<String>, usize>;

fn running(run: &Run) -> Running {
    let mut running = BTreeMap::new();
    let tasks = run.current.iter().flat_map(|phase| &phase.tasks).filter(|task| task.state == TaskState::Running);
    for task in tasks {
        *running.entry(None).or_default() += 1;
        if task.item.is_some() {
            *running.entry(Some(task.task.to_string())).or_default() += 1;
        }
    }
    running
}

/// The number of running tasks stays within the limits; a definition with a lower limit does not stop any.
fn limits_are_kept(run: &Run, running: &Running, were: &Running) -> Result<(), String> {
    let declared = run.current.as_ref().and_then(|phase| run.workflow.phases.get(phase.position));
    for (list, count) in running {
        let limit = match list {
            None => run.workflow.max_parallel,
            Some(task) => declared.and_then(|phase| phase.task(task)?.for_each.as_ref()?.max_parallel),
        };
        if limit.is_some_and(|limit| *count > limit as usize) && *count > were.get(list).copied().unwrap_or(0) {
            return Err(format!("limits_are_kept: {count} tasks run of {list:?}, and {limit:?} may"));
        }
    }
    Ok(())
}

/// A task runs or asks only while its dependencies are complete: neither before they are done nor while they are redone.
fn nothing_runs_while_what_it_needs_is_redone(run: &Run) -> Result<(), String> {
    let Some(phase) = run.current.as_ref().filter(|_| run.end.is_none()) else { return Ok(()) };
    let declared = &run.workflow.phases[phase.position];
    for index in 0..phase.tasks.len() {
        let asks = phase.tasks[index].hold.as_ref().and_then(|hold| run.holds.get(hold)).is_some_and(|hold| {
            hold.state == HoldState::Open && hold.kind.is_declared() && phase.tasks[index].state == TaskState::Blocked
        });
        if (asks || phase.tasks[index].state == TaskState::Running) && !may_run(phase, declared, index) {
            return Err(format!("nothing_runs_while_what_it_needs_is_redone: {}", phase.key(index).address()));
        }
    }
    Ok(())
}

fn may_run(phase: &PhaseRun, declared: &Phase, index: usize) -> bool {
    let Some(task) = phase.declared(declared, index) else { return true };
    let needed = task.needs.iter().filter_map(|need| phase.tasks.iter().find(|task| task.task == *need && task.item.is_none()));
    let states: Vec<&TaskState> = needed.map(|task| &task.state).collect();
    match task.join {
        Join::All | Join::Done => states.iter().all(|state| has_ended(state)),
        Join::Any => states.is_empty() || states.iter().any(|state| matches!(state, TaskState::Done | TaskState::Skipped)),
    }
}

fn has_ended(state: &TaskState) -> bool {
    match state {
        TaskState::Done | TaskState::Skipped | TaskState::Omitted { .. } | TaskState::Tolerated(_) => true,
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Backoff { .. }
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::FannedOut
        | TaskState::Blocked => false,
    }
}

/// The checkpoint of a phase is open only while all of its tasks have ended.
fn nothing_is_asked_about_unfinished_work(run: &Run) -> Result<(), String> {
    let Some(phase) = run.current.as_ref().filter(|_| run.end.is_none()) else { return Ok(()) };
    let open = run.holds.values().any(|hold| hold.state == HoldState::Open && matches!(hold.scope, Scope::Phase { .. }));
    match phase.tasks.iter().find(|task| open && !has_ended(&task.state)) {
        Some(task) => Err(format!("nothing_is_asked_about_unfinished_work: {} is not finished", task.task)),
        None => Ok(()),
    }
}
