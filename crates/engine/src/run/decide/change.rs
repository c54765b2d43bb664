//! Changing an answer that no person gave: what depends on it is done again.

use super::void_others;
use crate::hold::{Action, Choice, Hold, Scope};
use crate::id::{HoldId, PhaseId, TaskId, TaskKey};
use crate::run::command::Command;
use crate::run::event::Event;
use crate::run::refusal::{Refusal, may_decide};
use crate::run::state::{Decision, End, Run};
use crate::spec::workflow::Phase;

/// What is done again when an answer is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The phase that the run goes back to; nothing is done again when absent.
    pub phase: Option<PhaseId>,
    /// Tasks of that phase that stay done.
    pub carried: Vec<TaskId>,
    /// The tasks of that phase that are done again.
    pub tasks: Vec<TaskId>,
    /// The phases after it that had begun.
    pub phases: Vec<PhaseId>,
    /// How many answers since then no longer count.
    pub answers: usize,
}

/// What would be done again if the answer to a hold became this option.
pub fn consequences(run: &Run, hold: &HoldId, option: &str) -> Result<Consequences, Refusal> {
    let (decision, question) = changeable(run, hold)?;
    let choice = chosen(question, option)?;
    Ok(consequences_of(run, decision, question, choice))
}

/// The same for a run that was forked so that it can be changed.
pub(in crate::run) fn change_in_fork(
    run: &Run,
    command: &Command,
    hold: &HoldId,
    option: &str,
    feedback: Option<String>,
) -> Result<Vec<Event>, Refusal> {
    may_decide(&command.actor, command.require_terminal, "change an answer")?;
    change(run, hold, option, feedback)
}

pub(super) fn change(run: &Run, hold: &HoldId, option: &str, feedback: Option<String>) -> Result<Vec<Event>, Refusal> {
    let (decision, question) = changeable(run, hold)?;
    if run.end == Some(End::Complete) {
        return Err(Refusal::ChangeNeedsFork);
    }
    let choice = chosen(question, option)?;
    if decision.option == choice.id && feedback.is_none() {
        return Err(Refusal::AlreadyAnswered { by: decision.actor.clone(), at: decision.at });
    }
    if choice.needs_words && feedback.as_deref().is_none_or(|words| words.trim().is_empty()) {
        return Err(Refusal::WordsNeeded { hold: hold.clone(), label: choice.label.clone() });
    }
    let mut events = vec![Event::AnswerChanged { hold: hold.clone(), option: choice.id.clone(), feedback: feedback.clone() }];
    let from = run.current.as_ref().map(|phase| phase.id.clone());
    match &choice.action {
        Action::Abort => {
            events.extend(void_others(run, None, "the run was aborted"));
            events.push(Event::Aborted { hold: hold.clone() });
            return Ok(events);
        }
        Action::SkipPhases(phases) => events.push(Event::PhasesSkipListed { phases: phases.clone() }),
        Action::Continue
        | Action::RepeatPhase(_)
        | Action::Rerun
        | Action::CountAsDone
        | Action::RaiseBudget(_)
        | Action::Redo(_)
        | Action::Fail => {}
    }
    let Consequences { phase, carried, .. } = consequences_of(run, decision, question, choice);
    if let Some(target) = phase {
        events.extend(void_others(run, None, "an answer before it was changed"));
        let from = from.unwrap_or_else(|| target.clone());
        events.push(Event::PhaseRepeated { from, target, feedback, by_itself: false, gaps: false, carry: carried });
    }
    Ok(events)
}

/// The answer to a hold, and the question, where a person may still change it.
fn changeable<'r>(run: &'r Run, hold: &HoldId) -> Result<(&'r Decision, &'r Hold), Refusal> {
    let decision = run.decisions.iter().rfind(|decision| decision.hold == *hold && !decision.void);
    let decision = decision.ok_or_else(|| Refusal::NoSuchHold { hold: hold.clone() })?;
    let question = decision.changeable.as_deref().ok_or_else(|| Refusal::AnswerStands { by: decision.actor.clone() })?;
    match &run.end {
        Some(end @ (End::Aborted | End::Cancelled)) => Err(Refusal::Ended { status: super::status_word(end) }),
        Some(End::Failed(_) | End::Complete) | None => Ok((decision, question)),
    }
}

fn chosen<'h>(question: &'h Hold, option: &str) -> Result<&'h Choice, Refusal> {
    question.option(option).ok_or_else(|| Refusal::NoSuchOption {
        hold: question.id.clone(),
        revision: None,
        given: option.to_owned(),
        options: question.options.clone(),
    })
}

fn consequences_of(run: &Run, decision: &Decision, question: &Hold, choice: &Choice) -> Consequences {
    let at = run.decisions.iter().position(|known| std::ptr::eq(known, decision)).unwrap_or(run.decisions.len());
    let answers = run.decisions.iter().skip(at + 1).filter(|later| !later.void).count();
    let begun = |phase: &Phase| run.iteration_counts.contains_key(phase.id.as_str());
    let phases = &run.workflow.phases;
    let here = question.scope.phase().and_then(|phase| run.workflow.position(phase.as_str()));
    let mut found = Consequences { phase: None, carried: Vec::new(), tasks: Vec::new(), phases: Vec::new(), answers };
    let target = match (&choice.action, &question.scope, here) {
        (Action::RepeatPhase(target), _, _) => run.workflow.position(target.as_str()),
        (action, Scope::Tasks(keys), Some(here)) => {
            let again = reached(&phases[here], keys, action);
            if again.is_empty() {
                Some(here + 1).filter(|next| phases.get(*next).is_some_and(begun))
            } else {
                let all = phases[here].tasks.iter().map(|task| task.id.clone());
                // What has not ended yet is done in the new execution, as it would have been in this one.
                (found.tasks, found.carried) = all.partition(|task| again.contains(task) || !has_ended(run, here, task));
                Some(here)
            }
        }
        (Action::Redo(again), Scope::Phase { .. }, Some(here)) => {
            let all = phases[here].tasks.iter().map(|task| task.id.clone());
            (found.tasks, found.carried) = all.partition(|task| again.contains(task));
            Some(here)
        }
        (_, _, Some(here)) => Some(here + 1).filter(|next| phases.get(*next).is_some_and(begun)),
        (_, _, None) => None,
    };
    if let Some(target) = target {
        found.phase = Some(phases[target].id.clone());
        if found.tasks.is_empty() {
            found.tasks = phases[target].tasks.iter().map(|task| task.id.clone()).collect();
        }
        found.phases = phases[target + 1..].iter().filter(|phase| begun(phase)).map(|phase| phase.id.clone()).collect();
    }
    found
}

/// Whether a task has ended; all of a phase that the run has left have.
fn has_ended(run: &Run, here: usize, task: &TaskId) -> bool {
    match &run.current {
        Some(phase) if phase.position == here => phase.has_ended(task),
        Some(_) | None => true,
    }
}

/// The tasks of a phase that depend on a question, by their needs; with issues, also what is done again because of them.
fn reached(phase: &Phase, asked: &[TaskKey], action: &Action) -> Vec<TaskId> {
    let mut again: Vec<TaskId> = match action {
        Action::Redo(tasks) => tasks.iter().cloned().chain(asked.iter().map(|key| key.task.clone())).collect(),
        Action::Continue
        | Action::RepeatPhase(_)
        | Action::SkipPhases(_)
        | Action::Abort
        | Action::Rerun
        | Action::CountAsDone
        | Action::RaiseBudget(_)
        | Action::Fail => Vec::new(),
    };
    let mut from: Vec<TaskId> = asked.iter().map(|key| key.task.clone()).chain(again.iter().cloned()).collect();
    while let Some(task) = from.pop() {
        let dependents = phase.tasks.iter().filter(|candidate| candidate.needs.contains(&task));
        for dependent in dependents {
            if !again.contains(&dependent.id) {
                again.push(dependent.id.clone());
                from.push(dependent.id.clone());
            }
        }
    }
    again
}
