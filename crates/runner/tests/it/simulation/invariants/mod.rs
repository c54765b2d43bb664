//! The invariants, and the observer that checks them while a plan is executed.

mod answers;
mod order;

pub(super) use order::Order;

use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{HoldId, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Entry, Event};
use lockgate_engine::spec::workflow::{Join, Phase, Workflow};
use lockgate_formats::state_file::check::check as check_file;
use lockgate_formats::state_file::document::{Document, document};
use lockgate_formats::state_file::render::render;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Observes work starting and ending, from outside the processes.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// By address: an earlier iteration of a task is the same task.
    under_way: BTreeSet<String>,
    started: Vec<(TaskKey, u32, u32)>,
    overlaps: Vec<TaskKey>,
    /// How many answers came after their deadline and were refused.
    pub(super) late: u32,
    /// Answers that were confirmed to the person who gave them.
    pub(super) confirmed: Vec<(HoldId, u32, String)>,
}

impl Watch {
    pub(super) fn started(&mut self, key: &TaskKey, attempt: u32, process: u32) {
        if !self.under_way.insert(key.address()) {
            self.overlaps.push(key.clone());
        }
        self.started.push((key.clone(), attempt, process));
    }

    pub(super) fn ended(&mut self, key: &TaskKey) {
        self.under_way.remove(&key.address());
    }
}

/// A commit, and the definition in effect before it.
pub(super) struct HistoryStep {
    pub(super) entries: Vec<Entry>,
    pub(super) workflow: Arc<Workflow>,
    /// Whether the run had failed before it.
    pub(super) had_failed: bool,
}

/// All invariants over the complete history of a run.
pub(super) fn check(watch: &Watch, history: &[HistoryStep]) -> Result<(), String> {
    let entries: Vec<Entry> = history.iter().flat_map(|moment| moment.entries.iter().cloned()).collect();
    no_task_runs_concurrently_with_itself(watch)?;
    nothing_starts_before_it_is_recorded(watch, &entries)?;
    finished_work_never_runs_again(&entries)?;
    every_answer_survives(watch, &entries)?;
    nothing_starts_before_the_gates_of_what_it_needs(history)?;
    no_phase_before_its_gate(history)?;
    answers::check(&entries)
}

fn no_task_runs_concurrently_with_itself(watch: &Watch) -> Result<(), String> {
    match watch.overlaps.first() {
        Some(key) => Err(format!("no_task_runs_concurrently_with_itself: {}", key.address())),
        None => Ok(()),
    }
}

/// Write, then act: each observed attempt is in the history, and each was started at most once.
fn nothing_starts_before_it_is_recorded(watch: &Watch, entries: &[Entry]) -> Result<(), String> {
    let recorded: BTreeSet<(TaskKey, u32)> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::TaskStarted { key, attempt, .. } => Some((key.clone(), *attempt)),
            _ => None,
        })
        .collect();
    let mut seen = BTreeSet::new();
    for (key, attempt, process) in &watch.started {
        if !recorded.contains(&(key.clone(), *attempt)) {
            return Err(format!("nothing_starts_before_it_is_recorded: {} attempt {attempt}", key.address()));
        }
        if !seen.insert((key.clone(), *attempt)) {
            return Err(format!("an attempt begins once: {} attempt {attempt} in process {process}", key.address()));
        }
    }
    Ok(())
}

fn finished_work_never_runs_again(entries: &[Entry]) -> Result<(), String> {
    let mut finished = BTreeSet::new();
    for entry in entries {
        match &entry.event {
            Event::TaskFinished { key, .. } if !finished.insert(key.clone()) => {
                return Err(format!("finished_work_never_runs_again: {} finished twice", key.address()));
            }
            Event::ReworkRequested { keys, by, stale, .. } => {
                let again: Vec<&TaskKey> = keys.iter().chain(stale).chain([by]).collect();
                let redone = |known: &TaskKey| again.iter().any(|key| key.task == known.task && key.iteration == known.iteration);
                finished.retain(|known| !redone(known));
            }
            Event::TaskStarted { key, .. } if finished.contains(key) => {
                return Err(format!("finished_work_never_runs_again: {} started after it had finished", key.address()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn every_answer_survives(watch: &Watch, entries: &[Entry]) -> Result<(), String> {
    let mut answered: BTreeMap<(HoldId, u32), String> = BTreeMap::new();
    for entry in entries {
        if let Event::Answered { hold, option, revision, .. } = &entry.event {
            let again = answered.insert((hold.clone(), *revision), option.to_string());
            if again.is_some() {
                return Err(format!("one answer wins: hold {hold}@{revision} has two"));
            }
        }
    }
    for (hold, revision, option) in &watch.confirmed {
        if answered.get(&(hold.clone(), *revision)) != Some(option) {
            return Err(format!("every_answer_survives: {option} to {hold}@{revision} is gone"));
        }
    }
    Ok(())
}

/// A task that needs another one starts only after that task's gates have passed.
fn nothing_starts_before_the_gates_of_what_it_needs(history: &[HistoryStep]) -> Result<(), String> {
    let mut passed = BTreeSet::new();
    let mut well = BTreeSet::new();
    for (entry, workflow) in with_workflow(history) {
        match &entry.event {
            Event::GatePassed { phase, iteration, gate, .. } | Event::GateWaived { phase, iteration, gate, .. } => {
                passed.insert((phase.clone(), *iteration, gate.clone()));
            }
            Event::TaskFinished { key, .. } | Event::TaskSkipped { key, .. } if key.item.is_none() => {
                well.insert((key.phase.clone(), key.iteration, key.task.clone()));
            }
            Event::TaskStarted { key, .. } => {
                let declared = workflow.phase(key.phase.as_str()).expect("the phase is declared");
                let Some(task) = declared.task(key.task.as_str()).filter(|task| task.join == Join::All) else { continue };
                let needed = |task: &TaskId| task_needs(declared, key.task.as_str(), task);
                let of_needed = declared.gates.iter().filter(|gate| gate.task.as_ref().is_some_and(needed));
                let mut open = of_needed.filter(|gate| !passed.contains(&(key.phase.clone(), key.iteration, gate.id.clone())));
                if let Some(gate) = open.find(|gate| {
                    let of = gate.task.clone().expect("it belongs to a task");
                    well.contains(&(key.phase.clone(), key.iteration, of))
                }) {
                    return Err(format!("nothing_starts_before_the_gates_of_what_it_needs: {} before {}", task.id, gate.id));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// All events, each with the definition in effect when it was decided.
fn with_workflow(history: &[HistoryStep]) -> impl Iterator<Item = (&Entry, &Workflow)> {
    history.iter().flat_map(|moment| moment.entries.iter().map(|entry| (entry, &*moment.workflow)))
}

fn task_needs(phase: &Phase, task: &str, needed: &TaskId) -> bool {
    phase.task(task).is_some_and(|task| task.needs.contains(needed))
}

/// A phase is completed only after its gates have passed and its checkpoint, if any, was settled.
fn no_phase_before_its_gate(history: &[HistoryStep]) -> Result<(), String> {
    let mut passed = BTreeSet::new();
    let mut settled = BTreeSet::new();
    let mut opened = BTreeMap::new();
    let mut omitted = BTreeSet::new();
    let mut carried: Vec<TaskId> = Vec::new();
    for (entry, workflow) in with_workflow(history) {
        match &entry.event {
            Event::TaskOmitted { key, .. } | Event::FailureTolerated { key } => {
                omitted.insert((key.phase.clone(), key.task.clone()));
            }
            Event::PhaseRepeated { carry, .. } => carried.clone_from(carry),
            Event::PhaseStarted { phase, .. } => {
                // Tasks that are carried into the next iteration keep their outcome.
                omitted.retain(|(of, task)| of != phase || carried.contains(task));
                carried.clear();
            }
            Event::GatePassed { phase, iteration, gate, .. } | Event::GateWaived { phase, iteration, gate, .. } => {
                passed.insert((phase.clone(), *iteration, gate.clone()));
            }
            Event::HoldOpened(hold) => {
                opened.insert(hold.hold.clone(), hold.scope.clone());
            }
            Event::HoldSettled { hold } => {
                settled.insert(format!("{:?}", opened.get(hold)));
            }
            Event::PhaseCompleted { phase, iteration } => {
                let declared = workflow.phase(phase.as_str()).expect("the phase is declared");
                let mut asked = declared.gates.iter().filter(|gate| match &gate.task {
                    Some(task) => !omitted.contains(&(phase.clone(), task.clone())),
                    None => true,
                });
                let missing = asked.find(|gate| !passed.contains(&(phase.clone(), *iteration, gate.id.clone())));
                if let Some(gate) = missing {
                    return Err(format!("no_phase_before_its_gate: {phase} without {}", gate.id));
                }
                let scope = lockgate_engine::hold::Scope::Phase { phase: phase.clone(), iteration: *iteration };
                if declared.checkpoint.is_some() && !settled.contains(&format!("{:?}", Some(&scope))) {
                    return Err(format!("no_phase_before_its_gate: {phase} without its answer"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The state file of a pipeline always follows the rules of its format and is a valid successor of the previous one. Returns
/// its content.
pub(super) fn state_file_is_right(run: &Run, before: Option<Document>) -> Result<Option<Document>, String> {
    let Some(now) = document(run, None) else { return Ok(None) };
    let text = render(None, &now).map_err(|error| error.to_string())?;
    let findings = check_file(&text, Some("PRD-001"), Some(&run.workflow)).map_err(|error| error.message)?;
    if !findings.is_empty() {
        return Err(format!("state_file_is_right: {findings:?}: {text}"));
    }
    match before.filter(|before| !before.status.leads_to(now.status)) {
        Some(before) => Err(format!("state_file_is_right: {:?} does not follow {:?}: {text}", now.status, before.status)),
        None => Ok(Some(now)),
    }
}

/// Replaying the history gives the same run that was driven.
pub(super) fn same_run(driven: &Run, replayed: &Run) -> Result<(), String> {
    let settled = driven.holds.values().all(|hold| hold.state != HoldState::Settled);
    if driven != replayed || !settled {
        return Err(format!("a replayed run is the run that was driven:\n{driven:?}\n{replayed:?}"));
    }
    Ok(())
}

/// A history in which finished work runs again; checking it must fail.
pub(super) fn self_test() -> Result<(), String> {
    let key = TaskKey { phase: "p0".into(), iteration: 1, task: "t0".into(), item: None };
    let entry = |event| Entry { at: lockgate_engine::time::Timestamp::from_millis(0), actor: None, cause: None, event };
    let finished =
        || Event::TaskFinished { key: key.clone(), attempt: 1, result: None, outputs: Vec::new(), agent: None, commit: None };
    finished_work_never_runs_again(&[entry(finished()), entry(finished())])
}
