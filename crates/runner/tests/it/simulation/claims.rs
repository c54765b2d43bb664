//! The claims, and who watches over them while a plan is played.

use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{HoldId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::commit::Sealed;
use lockgate_engine::run::event::{Entry, Event};
use lockgate_engine::spec::workflow::Workflow;
use std::collections::{BTreeMap, BTreeSet};

/// Sees work begin and end, from outside the processes.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// By address: an earlier execution of a task is the same task.
    under_way: BTreeSet<String>,
    began: Vec<(TaskKey, u32, u32)>,
    overlaps: Vec<TaskKey>,
    /// Answers that were confirmed to whoever gave them.
    pub(super) confirmed: Vec<(HoldId, u32, String)>,
}

impl Watch {
    pub(super) fn began(&mut self, key: &TaskKey, attempt: u32, process: u32) {
        if !self.under_way.insert(key.address()) {
            self.overlaps.push(key.clone());
        }
        self.began.push((key.clone(), attempt, process));
    }

    pub(super) fn ended(&mut self, key: &TaskKey) {
        self.under_way.remove(&key.address());
    }
}

/// All claims over the whole history of a run.
pub(super) fn check(watch: &Watch, commits: &[Sealed], workflow: &Workflow) -> Result<(), String> {
    let entries: Vec<Entry> = commits.iter().flat_map(|commit| commit.open().expect("it was written").entries).collect();
    no_task_runs_beside_itself(watch)?;
    nothing_begins_before_it_is_recorded(watch, &entries)?;
    finished_work_never_runs_again(&entries)?;
    every_answer_survives(watch, &entries)?;
    no_phase_before_its_gate(&entries, workflow)
}

fn no_task_runs_beside_itself(watch: &Watch) -> Result<(), String> {
    match watch.overlaps.first() {
        Some(key) => Err(format!("no_task_runs_beside_itself: {}", key.address())),
        None => Ok(()),
    }
}

/// Write, then act: each attempt that anybody saw begin is in the history, and each was begun at most once.
fn nothing_begins_before_it_is_recorded(watch: &Watch, entries: &[Entry]) -> Result<(), String> {
    let recorded: BTreeSet<(TaskKey, u32)> = entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::TaskStarted { key, attempt, .. } => Some((key.clone(), *attempt)),
            _ => None,
        })
        .collect();
    let mut seen = BTreeSet::new();
    for (key, attempt, process) in &watch.began {
        if !recorded.contains(&(key.clone(), *attempt)) {
            return Err(format!("nothing_begins_before_it_is_recorded: {} attempt {attempt}", key.address()));
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

/// A phase is completed only after its gates have passed and its checkpoint, if it has one, was settled.
fn no_phase_before_its_gate(entries: &[Entry], workflow: &Workflow) -> Result<(), String> {
    let mut passed = BTreeSet::new();
    let mut settled = BTreeSet::new();
    let mut opened = BTreeMap::new();
    for entry in entries {
        match &entry.event {
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
                let missing = declared.gates.iter().find(|gate| !passed.contains(&(phase.clone(), *iteration, gate.id.clone())));
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

/// A run that is replayed from its history is the run that was driven.
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
