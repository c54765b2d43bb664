//! Rework: a person found issues, so work is redone, together with everything that depends on it.

use super::answers::takes_effect_at_once;
use crate::hold::{Hold, HoldState, Scope};
use crate::id::{PhaseId, TaskId, TaskKey};
use crate::plural::counted;
use crate::run::event::{Event, Failure, FailureKind};
use crate::run::phase::PhaseRun;
use crate::run::state::{Run, TaskState};
use crate::spec::workflow::question::DEFAULT_ROUNDS;
use crate::spec::workflow::{Checkpoint, Phase, Question};
use std::collections::BTreeSet;

/// A person found issues at the end of a phase: some of its tasks are redone with their dependents, and then the question is
/// asked again.
pub(super) fn some_again(run: &Run, phase: &PhaseId, tasks: &[TaskId], feedback: Option<String>) -> Event {
    let carry = run.workflow.phase(phase.as_str()).map(|declared| untouched(declared, tasks)).unwrap_or_default();
    let (from, target, restores) = (phase.clone(), phase.clone(), Vec::new());
    Event::PhaseRepeated { from, target, feedback, by_failure: false, gaps: false, carry, restores }
}

/// The tasks of a phase that are neither among these nor depend on one of them.
fn untouched(phase: &Phase, again: &[TaskId]) -> Vec<TaskId> {
    let stale = phase.with_dependents(again.to_vec());
    phase.tasks.iter().map(|task| task.id.clone()).filter(|task| !stale.contains(task)).collect()
}

/// How many times work may be redone because of a person's findings.
pub(super) fn rounds(checkpoint: Option<&Checkpoint>) -> u32 {
    match checkpoint.and_then(|checkpoint| checkpoint.question.as_ref()) {
        Some(Question::Verify(verify)) => verify.rounds,
        Some(Question::Decision(_) | Question::Action(_)) | None => DEFAULT_ROUNDS,
    }
}

pub(super) fn too_often(rounds: u32, issues: &str) -> String {
    format!("a person found issues after the work was redone {}: {issues}", counted(rounds, "time"))
}

/// A person found issues: redo the work, unless it was already redone as often as allowed.
pub(super) fn redo(run: &Run, hold: &Hold, tasks: &[TaskId], issues: String) -> Vec<Event> {
    let Scope::Tasks(keys) = &hold.scope else { return Vec::new() };
    let (Some(by), Some(phase)) = (keys.first(), &run.current) else { return Vec::new() };
    let (Some(task), Some(own)) = (run.task_run(by), phase.find(by)) else { return Vec::new() };
    let rounds = task.exchange.as_ref().map_or(0, |exchange| exchange.rounds);
    if rounds >= self::rounds(run.declared(by).and_then(|task| task.checkpoint())) {
        let message = too_often(rounds, &issues);
        let failure = Failure { kind: FailureKind::Issues, message, tail: String::new() };
        return vec![Event::TaskFailed { key: by.clone(), attempt: task.attempts, failure, agent: None }];
    }
    let rework = Rework::of(phase, tasks, own);
    let mut events: Vec<Event> = rework.lost_questions(run, phase).collect();
    let keys = |places: &BTreeSet<usize>| places.iter().map(|index| phase.key(*index)).collect();
    events.push(Event::ReworkRequested {
        keys: keys(&rework.named),
        by: by.clone(),
        issues,
        stale: keys(&rework.stale),
        after: rework.awaited(run, phase, own),
    });
    events
}

/// The tasks to redo, by index in the phase.
struct Rework {
    /// The tasks that the question names.
    named: BTreeSet<usize>,
    /// Their dependents, including answered questions about them.
    stale: BTreeSet<usize>,
}

impl Rework {
    fn of(phase: &PhaseRun, tasks: &[TaskId], own: usize) -> Self {
        let is_named = |index: &usize| phase.is_whole(*index) && tasks.contains(&phase.tasks[*index].task);
        let named: BTreeSet<usize> = (0..phase.tasks.len()).filter(is_named).collect();
        let dependents = phase.dependents(&named.iter().copied().collect::<Vec<_>>());
        let is_stale =
            |index: &usize| *index != own && phase.is_whole(*index) && !named.contains(index) && has_moved(phase, *index);
        let stale = dependents.into_iter().filter(is_stale).collect();
        Self { named, stale }
    }

    /// Voids the open questions about work that is redone, because their answers would be about outdated work. Issues reported at
    /// another question are not lost: they take effect next.
    fn lost_questions(&self, run: &Run, phase: &PhaseRun) -> impl Iterator<Item = Event> {
        let again = |index: usize| {
            let root = phase.parent(index).unwrap_or(index);
            [index, root].iter().any(|index| self.named.contains(index) || self.stale.contains(index))
        };
        let is_lost = |hold: &&Hold| {
            let open = matches!(hold.state, HoldState::Open | HoldState::Checking) && !takes_effect_at_once(hold);
            open && match &hold.scope {
                Scope::Tasks(keys) => {
                    let waiting = phase.asked_about(&hold.id);
                    keys.iter().cloned().chain(waiting).any(|key| phase.find(&key).is_some_and(again))
                }
                Scope::Gate { gate, .. } => phase.task_gated_by(gate).is_some_and(again),
                Scope::Run | Scope::Phase { .. } | Scope::Gaps { .. } => false,
            }
        };
        let reason = "the work that it is about is redone";
        let lost: Vec<Event> = run
            .holds
            .values()
            .filter(is_lost)
            .map(|hold| Event::HoldVoided { hold: hold.id.clone(), reason: reason.to_owned() })
            .collect();
        lost.into_iter()
    }

    /// The tasks that must end before the question is asked again: all of the rework, except tasks after the question itself, and
    /// tasks that wait for people at questions that this one does not need.
    fn awaited(&self, run: &Run, phase: &PhaseRun, own: usize) -> Vec<TaskId> {
        let root = phase.parent(own).unwrap_or(own);
        let declared = &run.workflow.phases[phase.position];
        let asks = |index: &usize| phase.declared(declared, *index).is_some_and(|task| task.checkpoint().is_some());
        let is_needed = |index: &usize| phase.dependents(&[*index]).contains(&root);
        let aside: Vec<usize> = self.stale.iter().copied().filter(|index| asks(index) && !is_needed(index)).collect();
        // The question must not wait for tasks that wait for it.
        let mut omitted = phase.blocked_by(&[root]);
        omitted.insert(root);
        omitted.extend(phase.dependents(&aside));
        omitted.extend(aside);
        let awaited = self.named.union(&self.stale).filter(|index| !omitted.contains(index));
        awaited.map(|index| phase.tasks[*index].task.clone()).collect()
    }
}

/// Whether a task has any result or decision that must be undone when its dependencies are redone.
fn has_moved(phase: &PhaseRun, index: usize) -> bool {
    let task = &phase.tasks[index];
    task.attempts > 0 || task.admitted || task.state != TaskState::Waiting
}

/// Whether a person has answered this question of a task before.
pub(super) fn person_answered(run: &Run, key: &TaskKey) -> bool {
    let of_key =
        run.decisions.iter().filter(|decision| decision.task.as_ref().is_some_and(|task| task.address() == key.address()));
    of_key.into_iter().any(|decision| decision.checkpoint && !decision.actor.channel.is_automatic())
}
