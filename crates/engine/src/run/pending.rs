//! What should be under way in the outside world, derived from the state: after a crash, the same function says what remains.

use crate::hold::HoldState;
use crate::run::effect::Effect;
use crate::run::follow;
use crate::run::state::{GateState, Run, TaskState};

impl Run {
    /// The effects that should be under way now. What is under way and not in this list must be ended.
    pub fn pending(&self) -> Vec<Effect> {
        if self.end.is_some() || self.stopping {
            return Vec::new();
        }
        let mut effects: Vec<Effect> = self.second_looks().collect();
        let Some(phase) = &self.current else { return effects };
        for index in phase.running() {
            let task = &phase.tasks[index];
            match &task.state {
                TaskState::Running => effects.push(Effect::Task { key: phase.key(index), attempt: task.attempts }),
                TaskState::Backoff { timer, due } => effects.push(Effect::Wake { timer: timer.clone(), due: *due }),
                TaskState::Waiting | TaskState::Interrupted | TaskState::Failed(_) | TaskState::Done | TaskState::Skipped => {}
            }
        }
        for gate in phase.gates.iter().filter(|gate| gate.state == GateState::Running) {
            effects.push(Effect::Gate {
                phase: phase.id.clone(),
                iteration: phase.iteration,
                gate: gate.gate.clone(),
                attempt: gate.attempts,
            });
        }
        effects.extend(self.checkpoint_effect());
        effects
    }

    /// The next pending effect that only reads, so that it may be performed before the events that call for it are durable.
    pub fn pending_read(&self) -> Option<Effect> {
        if self.end.is_some() || self.stopping {
            return None;
        }
        self.second_looks().next().or_else(|| self.checkpoint_effect().filter(Effect::only_reads))
    }

    fn second_looks(&self) -> impl Iterator<Item = Effect> + '_ {
        let checking = self.holds.values().filter(|hold| hold.state == HoldState::Checking && follow::needs_second_look(hold));
        checking.map(|hold| Effect::Recheck { hold: hold.id.clone(), revision: hold.revision })
    }

    /// What the checkpoint of the phase under way calls for, once tasks and gates are done.
    fn checkpoint_effect(&self) -> Option<Effect> {
        let phase = self.current.as_ref().filter(|phase| phase.tasks_done())?;
        if phase.gates.iter().any(|gate| !matches!(gate.state, GateState::Passed | GateState::Waived)) {
            return None;
        }
        let declared = &self.workflow.phases[phase.position];
        let (id, iteration) = (phase.id.clone(), phase.iteration);
        let conditional = declared.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.condition.is_some());
        if conditional && phase.checkpoint.condition.is_none() {
            return Some(Effect::Evaluate { phase: id, iteration });
        }
        follow::must_show(phase, declared).then_some(Effect::Show { phase: id, iteration })
    }
}
