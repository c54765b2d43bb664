//! Changing an automatic answer: everything that depends on it is redone.

use super::void_others;
use crate::hold::{Action, Choice, Hold, Scope};
use crate::id::{HoldId, PhaseId, TaskId, TaskKey};
use crate::run::command::{AnswerChange, Envelope};
use crate::run::event::Event;
use crate::run::refusal::{Refusal, gone};
use crate::run::state::{Decision, End, Run, skip_list_of};
use crate::spec::workflow::Phase;

/// The work to redo when an answer is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The first phase that runs again. Absent if nothing is redone.
    pub phase: Option<PhaseId>,
    /// Tasks of that phase that keep their result.
    pub carried: Vec<TaskId>,
    /// The tasks of that phase that are redone.
    pub tasks: Vec<TaskId>,
    /// Later phases that had started.
    pub phases: Vec<PhaseId>,
    /// Phases that are now skipped and were not before.
    pub skipped: Vec<PhaseId>,
    /// How many later answers no longer count.
    pub answers: usize,
    /// Whether the new answer aborts the run, so that nothing is redone.
    pub aborts: bool,
    /// The index of the phase to which the run goes back. Phases that are skipped there are skipped again.
    target: Option<usize>,
}

/// What would be redone if the answer to a hold were changed to this option.
pub fn consequences(run: &Run, hold: &HoldId, option: &str) -> Result<Consequences, Refusal> {
    let (decision, question) = changeable(run, hold)?;
    let choice = chosen(question, option)?;
    Ok(consequences_of(run, decision, question, choice))
}

/// The events that change an answer, in the run itself or in a fork.
pub(in crate::run) fn change_answer(run: &Run, envelope: &Envelope, change: &AnswerChange) -> Result<Vec<Event>, Refusal> {
    envelope.caller.may_decide("change an answer")?;
    let AnswerChange { hold, option, feedback } = change;
    let (decision, question) = changeable(run, hold)?;
    if run.end == Some(End::Complete) {
        return Err(Refusal::ChangeNeedsFork);
    }
    let choice = chosen(question, option)?;
    if decision.option == choice.id && feedback.is_none() {
        return Err(Refusal::AlreadyAnswered { by: decision.actor.clone(), at: decision.at });
    }
    if choice.requires_feedback && feedback.as_deref().is_none_or(|words| words.trim().is_empty()) {
        return Err(Refusal::FeedbackRequired { hold: hold.clone(), label: choice.label.clone() });
    }
    let mut events = vec![Event::AnswerChanged { hold: hold.clone(), option: choice.id.clone(), feedback: feedback.clone() }];
    let from = run.current.as_ref().map(|phase| phase.id.clone());
    match &choice.action {
        Action::Abort => {
            events.extend(void_others(run, None, "the run was aborted"));
            events.push(Event::Aborted { hold: hold.clone() });
            return Ok(events);
        }
        Action::Continue
        | Action::SkipPhases(_)
        | Action::RepeatPhase(_)
        | Action::Rerun
        | Action::CountAsDone
        | Action::RaiseBudget(_)
        | Action::Redo(_)
        | Action::Fail
        | Action::RerunRest
        | Action::Reply => {}
    }
    let Consequences { target, carried, .. } = consequences_of(run, decision, question, choice);
    if let Some(target) = target.map(|target| run.workflow.phases[target].id.clone()) {
        events.extend(void_others(run, None, "an earlier answer was changed"));
        let from = from.unwrap_or_else(|| target.clone());
        let (by_failure, gaps, carry, restores) = (false, false, carried, choice.restores.clone());
        events.push(Event::PhaseRepeated { from, target, feedback: feedback.clone(), by_failure, gaps, carry, restores });
    }
    // Going back takes the target off the skip list, so the phases skipped by the remaining answers are listed after that.
    let phases = skip_list(run, decision, choice);
    if !phases.is_empty() {
        events.push(Event::PhasesSkipListed { phases });
    }
    Ok(events)
}

/// The skip list after an answer is changed: from the answers before it, and from the new one.
fn skip_list(run: &Run, decision: &Decision, choice: &Choice) -> Vec<PhaseId> {
    let mut listed = skip_list_of(&run.decisions[..place(run, decision)]);
    match &choice.action {
        Action::SkipPhases(phases) => {
            listed.extend(phases.iter().filter(|phase| !listed.contains(phase)).cloned().collect::<Vec<_>>())
        }
        Action::RepeatPhase(target) => listed.retain(|phase| phase != target && !choice.restores.contains(phase)),
        Action::Continue
        | Action::Abort
        | Action::Rerun
        | Action::CountAsDone
        | Action::RaiseBudget(_)
        | Action::Redo(_)
        | Action::Fail
        | Action::RerunRest
        | Action::Reply => {}
    }
    listed
}

/// The index of a decision.
fn place(run: &Run, decision: &Decision) -> usize {
    run.decisions.iter().position(|known| std::ptr::eq(known, decision)).unwrap_or(run.decisions.len())
}

/// The answer to a hold, and the question, if a person may still change it.
fn changeable<'r>(run: &'r Run, hold: &HoldId) -> Result<(&'r Decision, &'r Hold), Refusal> {
    let decision = run.decisions.iter().rfind(|decision| decision.hold == *hold && !decision.void);
    let decision = decision.ok_or_else(|| gone(run, hold))?;
    let question = decision.changeable.as_deref().ok_or_else(|| Refusal::AnsweredByPerson { by: decision.actor.clone() })?;
    match &run.end {
        Some(end @ (End::Aborted | End::Cancelled)) => Err(Refusal::Ended { status: end.status() }),
        Some(End::Failed(_) | End::Complete) | None => Ok((decision, question)),
    }
}

fn chosen<'h>(question: &'h Hold, option: &str) -> Result<&'h Choice, Refusal> {
    question.option(option).ok_or_else(|| Refusal::OptionNotFound {
        hold: question.id.clone(),
        revision: None,
        given: option.to_owned(),
        options: question.options.clone(),
    })
}

fn consequences_of(run: &Run, decision: &Decision, question: &Hold, choice: &Choice) -> Consequences {
    let answers = run.decisions.iter().skip(place(run, decision) + 1).filter(|later| !later.void).count();
    let begun = |phase: &&Phase| run.iteration_counts.contains_key(phase.id.as_str());
    let phases = &run.workflow.phases;
    let here = question.scope.phase().and_then(|phase| run.workflow.position(phase.as_str()));
    let (target, carried) = match (&choice.action, &question.scope, here) {
        (Action::Abort, _, _) => (None, Vec::new()),
        (Action::RepeatPhase(target), _, _) => (run.workflow.position(target.as_str()), Vec::new()),
        (action, Scope::Tasks(keys), Some(here)) => match reached(&phases[here], keys, action) {
            again if again.is_empty() => (next_after(run, here), Vec::new()),
            again => (Some(here), untouched(run, here, &again)),
        },
        (Action::Redo(again), Scope::Phase { .. }, Some(here)) => {
            (Some(here), untouched(run, here, &phases[here].with_dependents(again.clone())))
        }
        (_, _, Some(here)) => (next_after(run, here), Vec::new()),
        (_, _, None) => (None, Vec::new()),
    };
    let listed = skip_list(run, decision, choice);
    let is_skipped = |phase: &&Phase| listed.contains(&phase.id);
    let from_there = || phases[target.unwrap_or(phases.len())..].iter();
    let mut again = from_there().filter(|phase| !is_skipped(phase));
    let first = again.next();
    let tasks = first.into_iter().flat_map(|phase| &phase.tasks).map(|task| task.id.clone());
    let ids = |found: &mut dyn Iterator<Item = &Phase>| found.map(|phase| phase.id.clone()).collect();
    Consequences {
        phase: first.map(|phase| phase.id.clone()),
        tasks: tasks.filter(|task| !carried.contains(task)).collect(),
        carried,
        phases: ids(&mut again.filter(begun)),
        skipped: ids(&mut from_there().filter(|phase| is_skipped(phase) && !run.skip_list.contains(&phase.id))),
        answers,
        aborts: choice.action == Action::Abort,
        target,
    }
}

/// The phase after one that the run has left, or the one that comes next.
fn next_after(run: &Run, here: usize) -> Option<usize> {
    let moved_on = run.position > here + 1 || run.current.as_ref().is_some_and(|phase| phase.position > here);
    moved_on.then_some(here + 1)
}

/// The tasks of a phase that keep their result. Tasks that have not ended run in the new execution, as they would have in this
/// one.
fn untouched(run: &Run, here: usize, again: &[TaskId]) -> Vec<TaskId> {
    let all = run.workflow.phases[here].tasks.iter().map(|task| task.id.clone());
    all.filter(|task| !again.contains(task) && has_ended(run, here, task)).collect()
}

/// Whether a task has ended. In a phase that the run has left, all have.
fn has_ended(run: &Run, here: usize, task: &TaskId) -> bool {
    match &run.current {
        Some(phase) if phase.position == here => phase.has_ended(task),
        Some(_) | None => true,
    }
}

/// The tasks of a phase that depend on a question; with issues, also the tasks that are redone because of them.
fn reached(phase: &Phase, asked: &[TaskKey], action: &Action) -> Vec<TaskId> {
    let asked: Vec<TaskId> = asked.iter().map(|key| key.task.clone()).collect();
    match action {
        Action::Redo(tasks) => phase.with_dependents(tasks.iter().chain(&asked).cloned().collect()),
        Action::Continue
        | Action::RepeatPhase(_)
        | Action::SkipPhases(_)
        | Action::Abort
        | Action::Rerun
        | Action::CountAsDone
        | Action::RaiseBudget(_)
        | Action::Fail
        | Action::RerunRest
        | Action::Reply => {
            let mut again = phase.with_dependents(asked.clone());
            again.retain(|task| !asked.contains(task));
            again
        }
    }
}
