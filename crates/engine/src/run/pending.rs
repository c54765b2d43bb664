//! The effects that should be running, derived from the state. After a crash, the same function says what remains.

use crate::hold::HoldState;
use crate::run::advance;
use crate::run::effect::Effect;
use crate::run::event::Requester;
use crate::run::phase::PhaseRun;
use crate::run::state::{GapState, Run, Status, TaskState};

/// How many `when` conditions are evaluated concurrently.
const MAX_CONCURRENT_CONDITIONS: usize = 64;

impl Run {
    /// The effects that should be running now. A running effect that is not in this list must be stopped.
    pub fn pending(&self) -> Vec<Effect> {
        if self.end.is_some() || self.stopping {
            return Vec::new();
        }
        let mut effects: Vec<Effect> = self.recheck_effects().chain(self.artifact_effects()).collect();
        effects.extend(self.timer_effects());
        let Some(phase) = &self.current else {
            effects.extend(self.finalize_effect());
            return effects;
        };
        if self.diff_bases.awaited.is_some() {
            effects.push(Effect::DiffBase { phase: phase.id.clone(), iteration: phase.iteration });
            return effects;
        }
        effects.extend(phase.undecided().take(MAX_CONCURRENT_CONDITIONS).map(|index| Effect::When { key: phase.key(index) }));
        for index in phase.running() {
            let task = &phase.tasks[index];
            match &task.state {
                TaskState::Running => effects.push(task_effect(phase, index)),
                TaskState::Backoff { timer, due } => {
                    let longest = task.since.map(|since| due.since(since));
                    effects.push(Effect::Wake { timer: timer.clone(), due: *due, longest });
                }
                TaskState::Waiting
                | TaskState::Interrupted
                | TaskState::Failed(_)
                | TaskState::Done
                | TaskState::Skipped
                | TaskState::FannedOut
                | TaskState::Blocked
                | TaskState::Omitted { .. }
                | TaskState::Tolerated(_) => {}
            }
        }
        for gate in phase.running_gates().map(|index| &phase.gates[index]) {
            effects.push(Effect::Gate {
                phase: phase.id.clone(),
                iteration: phase.iteration,
                gate: gate.gate.clone(),
                attempt: gate.attempts,
            });
        }
        effects.extend(self.gap_effect());
        effects.extend(self.checkpoint_effect());
        effects
    }

    /// The effect of the current phase's gap check, once its tasks are done.
    fn gap_effect(&self) -> Option<Effect> {
        let phase = self.current.as_ref().filter(|phase| phase.tasks_done() && phase.gap.state == GapState::Waiting)?;
        if self.team_is_unsettled() {
            return None;
        }
        self.workflow.phases[phase.position].gap_check.as_ref()?;
        let requester = Requester::Gaps { phase: phase.id.clone(), iteration: phase.iteration };
        if let Some((number, _)) = phase.open_query(&requester) {
            return Some(Effect::QueryAgent { requester, number });
        }
        Some(Effect::Gaps { phase: phase.id.clone(), iteration: phase.iteration, round: self.gap_rounds + 1 })
    }

    fn finalize_effect(&self) -> Option<Effect> {
        let over = self.position >= self.workflow.phases.len() && self.finalized.is_none();
        (over && self.workflow.finalization.is_some()).then_some(Effect::Finalize)
    }

    /// The next pending effect that only reads, so that it may start before the events that call for it are durable.
    pub fn pending_read(&self) -> Option<Effect> {
        if self.end.is_some() || self.stopping {
            return None;
        }
        let artifacts = || self.artifact_effects().next();
        let looks = self.recheck_effects().find(|effect| effect.only_reads() && !self.calls_git(effect));
        let shows = || self.checkpoint_effect().filter(|effect| effect.only_reads() && !self.calls_git(effect));
        looks.or_else(artifacts).or_else(shows)
    }

    /// Whether an effect looks at a git change. To do so git may run filters of the user, so it does not only read.
    fn calls_git(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Show { phase, .. } => {
                let declared = self.workflow.phase(phase.as_str()).and_then(|phase| phase.checkpoint.as_ref());
                declared.is_some_and(|checkpoint| checkpoint.show_diff.is_some())
            }
            Effect::Recheck { hold, .. } => self.holds.get(hold).is_some_and(|hold| hold.diff.is_some()),
            Effect::Task { .. }
            | Effect::Gate { .. }
            | Effect::Evaluate { .. }
            | Effect::DiffBase { .. }
            | Effect::Check { .. }
            | Effect::When { .. }
            | Effect::Gaps { .. }
            | Effect::QueryAgent { .. }
            | Effect::Finalize
            | Effect::Artifacts { .. }
            | Effect::Wake { .. } => false,
        }
    }

    /// The timers of open holds. If only an answer could move the run, no driver waits for them; they are found in the timer
    /// index instead.
    fn timer_effects(&self) -> impl Iterator<Item = Effect> + '_ {
        let stays = self.holds.values().any(|hold| hold.terms.deadline.is_some() || hold.terms.remind.is_some())
            && self.status() == Status::Running;
        let open = self.holds.values().filter(move |hold| stays && hold.state == HoldState::Open);
        open.flat_map(|hold| {
            let deadline = hold.terms.deadline.as_ref().filter(|due| !due.over).map(|due| (&due.timer, due.at));
            let remind = hold.terms.remind.as_ref().map(|remind| (&remind.timer, remind.at));
            deadline.into_iter().chain(remind).map(|(timer, due)| Effect::Wake { timer: timer.clone(), due, longest: None })
        })
    }

    fn artifact_effects(&self) -> impl Iterator<Item = Effect> + '_ {
        let artifacts_unchecked = self.pipeline.iter().flat_map(|known| &known.artifacts_unchecked);
        artifacts_unchecked.map(|key| Effect::Artifacts { key: key.clone() })
    }

    fn recheck_effects(&self) -> impl Iterator<Item = Effect> + '_ {
        let checking = self.holds.values().filter(|hold| hold.state == HoldState::Checking);
        checking.filter_map(|hold| {
            let (id, revision) = (hold.id.clone(), hold.revision);
            if hold.needs_check() {
                return Some(Effect::Check { hold: id, revision });
            }
            advance::needs_recheck(hold).then_some(Effect::Recheck { hold: id, revision })
        })
    }

    /// The effect of the current phase's checkpoint, once tasks and gates are done.
    fn checkpoint_effect(&self) -> Option<Effect> {
        let phase = self.current.as_ref().filter(|phase| phase.tasks_done())?;
        if phase.next_gate().is_some() || self.team_is_unsettled() {
            return None;
        }
        let declared = &self.workflow.phases[phase.position];
        if !phase.gaps_closed(declared) {
            return None;
        }
        let (id, iteration) = (phase.id.clone(), phase.iteration);
        let conditional = declared.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.condition.is_some());
        if conditional && phase.checkpoint.condition.is_none() {
            return Some(Effect::Evaluate { phase: id, iteration });
        }
        advance::must_show(phase, declared).then_some(Effect::Show { phase: id, iteration })
    }
}

/// The effect of a running task: the task's own work, or its script's query to an agent.
fn task_effect(phase: &PhaseRun, index: usize) -> Effect {
    let key = phase.key(index);
    let attempt = phase.tasks[index].attempts;
    if phase.agent_queries.is_empty() {
        return Effect::Task { key, attempt };
    }
    let requester = Requester::Task(key.clone());
    match phase.open_query(&requester) {
        Some((number, _)) => Effect::QueryAgent { requester, number },
        None => Effect::Task { key, attempt },
    }
}
