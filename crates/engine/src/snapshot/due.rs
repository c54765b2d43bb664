//! Finds the points of a history at which a snapshot is due. It only follows events, so every process finds the same ones.

use super::Trigger;
use crate::id::{PhaseId, TaskKey};
use crate::run::Run;
use crate::run::event::{Entry, Event};
use crate::run::phase::Batches;
use crate::run::team::TeamEvent;
use crate::time::Timestamp;

/// The signal in the history when a person pressed Ctrl+C.
const CTRL_C: &str = "SIGINT";

/// A point of a history at which a snapshot is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub trigger: Trigger,
    /// The number of the last event that the snapshot includes.
    pub seq: u64,
    /// When that event happened.
    pub at: Timestamp,
    /// The phase that the snapshot belongs to.
    pub phase: Option<PhaseId>,
}

impl Due {
    /// A snapshot of a state as it is now.
    pub fn now(run: &Run, trigger: Trigger, at: Timestamp) -> Self {
        Self { trigger, seq: run.next_seq.saturating_sub(1), at, phase: phase_of(run) }
    }
}

/// Follows a history and reports the points at which a snapshot is due. Where several triggers meet, the strongest one counts:
/// the state is the same for all of them.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    batches: Option<PhaseBatches>,
    /// Found since the last point.
    found: Vec<Trigger>,
    /// What the event that is being applied may change.
    applying: Option<Effect>,
    at: Option<Timestamp>,
    started: bool,
}

/// The batches of an execution of a phase.
#[derive(Clone, Debug)]
struct PhaseBatches {
    phase: PhaseId,
    iteration: u32,
    batches: Batches,
    completed: u32,
}

/// What an event may change.
#[derive(Clone, Debug)]
enum Effect {
    /// The state of one task.
    Task(TaskKey),
    /// The state of any task.
    Tasks,
    Nothing,
}

impl Detector {
    /// Follows a history from a state that its snapshots already cover.
    pub fn from(run: &Run) -> Self {
        let mut detector = Self { started: true, ..Self::default() };
        detector.rebuild(run);
        detector
    }

    /// Follows the history of a run from its first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says when the first event happened, which is not observed.
    pub fn starts_at(&mut self, at: Timestamp) {
        self.at = Some(at);
    }

    /// Called for each state within a commit, as an [`Observe`](crate::run::history::Observe) is. Returns the point if a snapshot
    /// is due at this state and `wants` one of its triggers.
    pub fn observe(&mut self, run: &Run, next: Option<&Entry>, seq: u64, wants: &dyn Fn(Trigger) -> bool) -> Option<Due> {
        if let Some(applied) = self.applying.take() {
            self.applied(run, applied);
        }
        let starts = !std::mem::replace(&mut self.started, true);
        if starts {
            self.found.push(Trigger::PhaseTransition);
        }
        let leaves = next.is_some_and(|next| leaves_phase(&next.event));
        if let Some(next) = next
            && let Event::PhaseCompleted { .. } = next.event
        {
            self.found.push(Trigger::PhaseTransition);
        }
        let at = self.at.unwrap_or(run.started_at);
        let is_point = starts || leaves || next.is_none();
        let due = if is_point { std::mem::take(&mut self.found) } else { Vec::new() };
        if let Some(next) = next {
            self.at = Some(next.at);
            self.found.extend(trigger_of(run, &next.event));
            self.applying = Some(effect_of(&next.event));
        }
        let strongest = due.into_iter().filter(|trigger| wants(*trigger)).min_by_key(|trigger| weakness(*trigger));
        strongest.map(|trigger| Due { trigger, seq, at, phase: phase_of(run) })
    }

    fn applied(&mut self, run: &Run, applied: Effect) {
        match applied {
            Effect::Nothing => {}
            Effect::Tasks => self.compare(run),
            Effect::Task(key) => {
                let followed = self.batches.as_mut().zip(run.current.as_ref()).and_then(|(known, phase)| {
                    let same = known.phase == phase.id && known.iteration == phase.iteration;
                    phase.find(&key).filter(|index| same && known.batches.update(phase, *index))
                });
                match followed {
                    Some(_) => self.count(),
                    None => self.compare(run),
                }
            }
        }
    }

    /// Looks at all tasks, and notices batches that are complete now.
    fn compare(&mut self, run: &Run) {
        let before = self.batches.take();
        self.rebuild(run);
        if let (Some(before), Some(now)) = (before, &mut self.batches)
            && before.phase == now.phase
            && before.iteration == now.iteration
        {
            now.completed = before.completed.min(now.completed);
        }
        self.count();
    }

    fn count(&mut self) {
        if let Some(known) = &mut self.batches {
            let completed = known.batches.completed();
            if completed > known.completed {
                self.found.push(Trigger::BatchComplete);
            }
            known.completed = completed;
        }
    }

    fn rebuild(&mut self, run: &Run) {
        self.batches = run.current.as_ref().map(|phase| {
            let batches = phase.batches();
            let completed = batches.completed();
            PhaseBatches { phase: phase.id.clone(), iteration: phase.iteration, batches, completed }
        });
    }
}

/// The phase that a state belongs to: the current one, or the one that is next.
fn phase_of(run: &Run) -> Option<PhaseId> {
    let current = run.current.as_ref().map(|phase| phase.id.clone());
    current.or_else(|| run.workflow.phases.get(run.position).or(run.workflow.phases.last()).map(|phase| phase.id.clone()))
}

/// Whether an event takes the current phase away.
fn leaves_phase(event: &Event) -> bool {
    matches!(event, Event::PhaseCompleted { .. } | Event::PhaseRepeated { .. } | Event::AnswerChanged { .. } | Event::Rewound(_))
}

/// Of several triggers at one point, the one with the lowest number counts.
fn weakness(trigger: Trigger) -> u8 {
    match trigger {
        Trigger::Manual => 0,
        Trigger::ConflictStart | Trigger::ConflictResolved => 1,
        Trigger::PhaseTransition => 2,
        Trigger::UserInterrupt => 3,
        Trigger::SessionEnd => 4,
        Trigger::BatchComplete => 5,
        Trigger::AgentComplete => 6,
    }
}

fn trigger_of(run: &Run, event: &Event) -> Option<Trigger> {
    match event {
        Event::Interrupted { signal } if signal == CTRL_C => Some(Trigger::UserInterrupt),
        Event::Interrupted { .. } | Event::Completed | Event::Failed { .. } | Event::Aborted { .. } | Event::Cancelled { .. } => {
            Some(Trigger::SessionEnd)
        }
        Event::Team(event) => match &**event {
            TeamEvent::ConflictOpened(_) => Some(Trigger::ConflictStart),
            TeamEvent::ConflictResolved { .. } => Some(Trigger::ConflictResolved),
            TeamEvent::MessageSent(_)
            | TeamEvent::MessagesDelivered { .. }
            | TeamEvent::MessageAcknowledged { .. }
            | TeamEvent::HandedOff { .. }
            | TeamEvent::Voted { .. }
            | TeamEvent::RoundStarted { .. }
            | TeamEvent::ConflictEscalated { .. }
            | TeamEvent::KnowledgeCaptured(_)
            | TeamEvent::KnowledgeInjected { .. } => None,
        },
        Event::TaskFinished { key, .. } => run.declared(key)?.agent().map(|_| Trigger::AgentComplete),
        _ => None,
    }
}

/// What an event may change. Events that are not listed change no task.
fn effect_of(event: &Event) -> Effect {
    match event {
        Event::TaskFinished { key, .. }
        | Event::TaskSkipped { key, .. }
        | Event::TaskOmitted { key, .. }
        | Event::FailureTolerated { key }
        | Event::RetryRequested { key } => Effect::Task(key.clone()),
        Event::GatePassed { .. }
        | Event::GateWaived { .. }
        | Event::GateRetryRequested { .. }
        | Event::TasksPlanned { .. }
        | Event::TaskFannedOut { .. }
        | Event::DefinitionAccepted { .. }
        | Event::ReworkRequested { .. }
        | Event::HoldSettled { .. }
        | Event::AnswerChanged { .. }
        | Event::PhaseRepeated { .. }
        | Event::Rewound(_)
        | Event::PhaseStarted { .. }
        | Event::PhaseCompleted { .. } => Effect::Tasks,
        _ => Effect::Nothing,
    }
}
