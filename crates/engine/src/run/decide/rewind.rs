//! Going back to a snapshot: whether that is possible, and what it would undo.

use super::answer::reopened;
use crate::hold::{Hold, HoldKind, HoldState};
use crate::id::{HoldId, IdSource, PhaseId, TaskKey};
use crate::run::apply::rewound_reason;
use crate::run::command::{Actor, Envelope, Rewind};
use crate::run::event::{Event, Rewound};
use crate::run::refusal::Refusal;
use crate::run::state::{Run, TaskState};
use crate::time::Timestamp;
use std::collections::BTreeSet;

/// The events of a rewind. Holds that the earlier state does not know are voided, and those that were open in it are asked again.
pub(super) fn rewind(run: &Run, rewind: &Rewind, envelope: &Envelope) -> Result<Vec<Event>, Refusal> {
    let base = &*rewind.base;
    belongs(run, rewind)?;
    let reason = rewound_reason(&rewind.snapshot);
    let gone = voided_holds(run, base).map(|hold| Event::HoldVoided { hold: hold.id.clone(), reason: reason.clone() });
    let mut events: Vec<Event> = gone.collect();
    events.push(Event::Rewound(Box::new(Rewound {
        snapshot: rewind.snapshot.clone(),
        to_seq: rewind.seq,
        state: rewind.state,
        definition: (base.definition != run.definition).then_some(base.definition),
    })));
    let mut ids = IdSource::new(envelope.seed);
    let open = base.holds.values().filter(|hold| hold.state == HoldState::Open);
    events.extend(open.map(|hold| {
        let revision = hold.revision.max(run.highest_revision(&hold.id));
        restored(base, &Hold { revision, ..hold.clone() }, &reason, envelope.at, &mut ids)
    }));
    Ok(events)
}

/// A hold is asked again because the run continues from a snapshot. Its content is that of the snapshot.
pub(in crate::run) fn restored(base: &Run, hold: &Hold, reason: &str, at: Timestamp, ids: &mut IdSource) -> Event {
    let condition = base.current.as_ref().and_then(|phase| phase.checkpoint.condition_note());
    let mut notes: Vec<String> = hold.notes.iter().filter(|note| Some(*note) != condition.as_ref()).cloned().collect();
    // The notes about a failure become the feedback for the rework, which must not contain this.
    if hold.kind != HoldKind::Failed {
        notes.push(reason.to_owned());
    }
    let mut event = reopened(hold, (&hold.files, hold.diff.as_deref()), notes, false, at, ids);
    if let Event::HoldReopened { restored, .. } = &mut event {
        *restored = true;
    }
    event
}

/// Refuses a state that this run never had, as far as the states can tell. Whether the commits up to the snapshot are the same is
/// for the caller to check, who can read them.
fn belongs(run: &Run, rewind: &Rewind) -> Result<(), Refusal> {
    let (base, snapshot) = (&*rewind.base, rewind.snapshot.clone());
    if base.id != run.id {
        return Err(Refusal::SnapshotOfOtherRun { snapshot, run: base.id.clone() });
    }
    let same_history = base.recovered == run.recovered;
    let known = match &run.recovered {
        // The snapshot is older than the recovery, so it comes from the history that was lost.
        Some(recovered) if !same_history => rewind.seq <= recovered.seq,
        _ => same_history && base.version <= run.version && (base.version < run.version || base.head == run.head),
    };
    let fits = base.kind == run.kind && base.started_at == run.started_at && rewind.seq < run.next_seq;
    match known && fits && base.next_seq <= rewind.seq.saturating_add(1) {
        true => Ok(()),
        false => Err(Refusal::SnapshotOfOtherHistory { snapshot }),
    }
}

/// What a rewind would undo. People confirm it before it happens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewindConsequences {
    /// The addresses of tasks that ran since the snapshot and would run again.
    pub runs_again: Vec<String>,
    /// Phases that started or ended since the snapshot, in the order of the definition.
    pub phases: Vec<PhaseId>,
    /// Answers since the snapshot, which would no longer count.
    pub voided_answers: Vec<VoidedAnswer>,
    /// Open holds that would be closed.
    pub voided_holds: Vec<HoldId>,
    /// Holds that were open in the snapshot and would be asked again.
    pub asked_again: Vec<HoldId>,
}

/// An answer that would no longer count.
#[derive(Clone, Debug, PartialEq)]
pub struct VoidedAnswer {
    pub hold: HoldId,
    /// The label of the chosen option.
    pub label: String,
    /// Who answered.
    pub actor: Actor,
    pub at: Timestamp,
}

/// What would be voided and run again if the run went back to this state.
pub fn rewind_consequences(now: &Run, base: &Run) -> RewindConsequences {
    let answers = now.decisions.get(base.decisions.len()..).unwrap_or_default();
    let settled = answers.iter().filter(|decision| !decision.void).map(|decision| VoidedAnswer {
        hold: decision.hold.clone(),
        label: decision.label.clone(),
        actor: decision.actor.clone(),
        at: decision.at,
    });
    let unsettled = now.holds.values().filter(|hold| hold.state == HoldState::Checking).filter(|hold| {
        base.holds.get(&hold.id).is_none_or(|known| known.state != HoldState::Checking || known.answers != hold.answers)
    });
    let unsettled = unsettled.filter_map(|hold| {
        let (answer, label) = (hold.answers.last()?, hold.chosen()?.label.clone());
        Some(VoidedAnswer { hold: hold.id.clone(), label, actor: answer.actor.clone(), at: answer.at })
    });
    let open = base.holds.values().filter(|hold| hold.state == HoldState::Open);
    RewindConsequences {
        runs_again: runs_again(now, base),
        phases: phases_since(now, base),
        voided_answers: settled.chain(unsettled).collect(),
        voided_holds: voided_holds(now, base).map(|hold| hold.id.clone()).collect(),
        asked_again: open.map(|hold| hold.id.clone()).collect(),
    }
}

fn voided_holds<'r>(now: &'r Run, base: &'r Run) -> impl Iterator<Item = &'r Hold> {
    now.holds.values().filter(|hold| !base.holds.contains_key(&hold.id))
}

fn executions(run: &Run, phase: &PhaseId) -> u32 {
    run.iteration_counts.get(phase.as_str()).copied().unwrap_or(0)
}

/// Phases that started since the snapshot, or were in progress in it and are not any more.
fn phases_since(now: &Run, base: &Run) -> Vec<PhaseId> {
    let was_left = |phase: &PhaseId| {
        let here = |run: &Run| run.current.as_ref().is_some_and(|current| current.id == *phase);
        here(base) && !here(now)
    };
    let since = |phase: &PhaseId| executions(now, phase) > executions(base, phase) || was_left(phase);
    now.workflow.phases.iter().map(|phase| phase.id.clone()).filter(since).collect()
}

/// The tasks that ran since the snapshot and that the earlier state does not know as ended.
fn runs_again(now: &Run, base: &Run) -> Vec<String> {
    let mut again = BTreeSet::new();
    for phase in phases_since(now, base) {
        let Some(declared) = now.workflow.phase(phase.as_str()) else { continue };
        let left = now.current.as_ref().is_none_or(|current| current.id != phase);
        let omitted = |task: &crate::id::TaskId| {
            let known = now.not_done.get(phase.as_str()).and_then(|tasks| tasks.iter().find(|known| known.task == *task));
            known.is_some_and(|known| matches!(known.state, TaskState::Omitted { .. }))
        };
        // A phase that the run has left has run all its tasks, whether or not one left a result.
        let tasks = declared.tasks.iter().map(|task| &task.id).filter(|task| left && !omitted(task));
        again.extend(tasks.map(|task| format!("{phase}/{task}")));
        let items = now.item_outputs.get(phase.as_str()).into_iter().flatten().filter(|_| left);
        again.extend(items.flat_map(|(task, items)| items.keys().map(move |item| (task, item))).map(|(task, item)| {
            TaskKey { phase: phase.clone(), iteration: 0, task: task.clone(), item: Some(item.clone()) }.address()
        }));
    }
    if let Some(phase) = &now.current {
        let ran = phase.tasks.iter().enumerate().filter(|(_, task)| task.attempts > 0 || ended(&task.state));
        again.extend(ran.map(|(index, _)| phase.key(index).address()));
    }
    let kept = base.current.iter().flat_map(|phase| {
        let ended = phase.tasks.iter().enumerate().filter(|(_, task)| ended(&task.state));
        ended.map(|(index, _)| phase.key(index).address())
    });
    let kept: BTreeSet<String> = kept.collect();
    again.retain(|address| !kept.contains(address));
    // A task whose attempt had started before the snapshot and has not ended since has done nothing that could be repeated.
    if let (Some(phase), Some(then)) = (&now.current, &base.current)
        && (&phase.id, phase.iteration) == (&then.id, then.iteration)
    {
        for (index, task) in then.tasks.iter().enumerate() {
            let same = phase.find(&then.key(index)).map(|now| &phase.tasks[now]);
            if same.is_some_and(|now| now.attempts == task.attempts && !ended(&now.state)) {
                again.remove(&then.key(index).address());
            }
        }
    }
    again.into_iter().collect()
}

fn ended(state: &TaskState) -> bool {
    match state {
        TaskState::Done | TaskState::Skipped | TaskState::Tolerated(_) => true,
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Backoff { .. }
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::FannedOut
        | TaskState::Blocked
        | TaskState::Omitted { .. } => false,
    }
}
