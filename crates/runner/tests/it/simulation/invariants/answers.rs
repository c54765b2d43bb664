//! Invariants about answers: which ones count, and what happens to skipped phases.

use lockgate_engine::hold::Action;
use lockgate_engine::id::{HoldId, PhaseId};
use lockgate_engine::run::event::{Entry, Event, HoldOpened};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(entries: &[Entry]) -> Result<(), String> {
    a_voided_hold_is_never_settled(entries)?;
    a_late_answer_loses(entries)?;
    a_skipped_phase_does_not_run(entries)
}

fn a_voided_hold_is_never_settled(entries: &[Entry]) -> Result<(), String> {
    let mut voided = BTreeSet::new();
    for entry in entries {
        match &entry.event {
            Event::HoldVoided { hold, .. } => drop(voided.insert(hold.clone())),
            Event::HoldSettled { hold } | Event::Answered { hold, .. } if voided.contains(hold) => {
                return Err(format!("a_voided_hold_is_never_settled: {hold}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Once its deadline has passed, a person can answer a hold only after the deadline's action.
fn a_late_answer_loses(entries: &[Entry]) -> Result<(), String> {
    let mut due = BTreeMap::new();
    for entry in entries {
        match &entry.event {
            Event::HoldOpened(opened) => {
                due.extend(opened.terms.deadline.as_ref().map(|deadline| (opened.hold.clone(), deadline.at)));
            }
            Event::HoldReopened { hold, deadline, .. } => {
                due.extend(deadline.as_ref().map(|deadline| (hold.clone(), deadline.at)));
            }
            Event::DeadlinePassed { hold, .. } => drop(due.remove(hold)),
            Event::Answered { hold, .. } => {
                let automatic = entry.actor.as_ref().is_some_and(|actor| actor.channel.is_automatic());
                if !automatic && due.get(hold).is_some_and(|due| *due <= entry.at) {
                    return Err(format!("a_late_answer_loses: {hold} was answered at {}", entry.at));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A phase skipped by an answer runs only if it is requested again, or if that answer or an earlier one is changed.
fn a_skipped_phase_does_not_run(entries: &[Entry]) -> Result<(), String> {
    let mut opened: BTreeMap<HoldId, &HoldOpened> = BTreeMap::new();
    let mut answered: BTreeMap<HoldId, String> = BTreeMap::new();
    let mut skipped: BTreeMap<PhaseId, HoldId> = BTreeMap::new();
    let mut settled: Vec<HoldId> = Vec::new();
    let skips = |opened: &HoldOpened, option: &str| -> Vec<PhaseId> {
        let chosen = opened.options.iter().find(|choice| choice.id.as_str() == option);
        match chosen.map(|choice| &choice.action) {
            Some(Action::SkipPhases(phases)) => phases.clone(),
            _ => Vec::new(),
        }
    };
    for entry in entries {
        match &entry.event {
            Event::HoldOpened(hold) => drop(opened.insert(hold.hold.clone(), hold)),
            Event::Answered { hold, option, .. } => drop(answered.insert(hold.clone(), option.to_string())),
            Event::HoldSettled { hold } => {
                settled.push(hold.clone());
                skipped.extend(skips(opened[hold], &answered[hold]).into_iter().map(|phase| (phase, hold.clone())));
            }
            Event::AnswerChanged { hold, option, .. } => {
                // Answers given since then no longer count.
                let later = settled.iter().position(|known| known == hold).map_or(&settled[..], |at| &settled[at..]);
                skipped.retain(|_, by| !later.contains(by));
                skipped.extend(skips(opened[hold], option.as_str()).into_iter().map(|phase| (phase, hold.clone())));
            }
            Event::PhaseRepeated { target, .. } => drop(skipped.remove(target)),
            Event::PhaseStarted { phase, .. } => {
                if let Some(hold) = skipped.get(phase) {
                    return Err(format!("a_skipped_phase_does_not_run: {phase} runs although {hold} skips it"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
