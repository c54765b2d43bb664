//! Applying events to the state. Nothing is decided here: events are facts.

mod holds;
mod restore;
mod rewind;
mod rework;
mod tasks;
mod team;

pub(super) use holds::said;
pub(super) use rewind::rewound_reason;

use crate::digest::Digest;
use crate::hold::Answer;
use crate::id::{HoldId, PhaseId, TaskId, TaskKey};
use crate::run::agent::AgentReport;
use crate::run::command::Actor;
use crate::run::event::{AttemptReason, ConditionOutcome, Created, Entry, Event, FailureKind, Origin};
use crate::run::index::TimerKind;
use crate::run::phase::PhaseRun;
use crate::run::pipeline::{PipelineEvent, PipelineRun};
use crate::run::state::{
    AgentQuery, AwaitedBase, ConsecutiveAutomatic, DiffBases, End, EndedTask, GapRun, GapState, GateRun, GateState,
    GivenPresetAnswer, Listed, NewTimer, REFUSED_ATTEMPTS_KEPT, Run, Sessions, Status, TaskState, Touched,
};
use crate::spec::workflow::{GapAction, OnInterrupt, Workflow};
use crate::time::Timestamp;
use rework::Redo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An event that does not fit the state to which it is applied: Lockgate did not write this history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history does not fit together: {0}")]
pub struct ApplyError(pub String);

impl Run {
    /// The state after the first event of a run.
    pub fn start(created: &Created, workflow: Arc<Workflow>, at: Timestamp) -> Self {
        let mut run = Self {
            id: created.run.clone(),
            kind: created.kind,
            definition: created.definition,
            workflow,
            files: created.files.clone(),
            feature: created.feature.clone(),
            flags: created.flags.clone(),
            vars: created.vars.clone(),
            output_dir: created.output_dir.clone(),
            driver: created.driver.clone(),
            started_at: at,
            version: 0,
            next_seq: 1,
            head: Digest::ZERO,
            position: 0,
            current: None,
            completed: Vec::new(),
            iteration_counts: BTreeMap::new(),
            skip_list: Vec::new(),
            feedback: None,
            repeats_by_failure: 0,
            automatic_repeats: BTreeMap::new(),
            subagents_spawned: 0,
            outputs: BTreeMap::new(),
            deliverables: Vec::new(),
            holds: BTreeMap::new(),
            decisions: Vec::new(),
            presets: Vec::new(),
            warnings: Vec::new(),
            refused_attempts: 0,
            stopping: false,
            end: None,
            listed: Listed { status: Status::Running, phase: None, changed_at: at, wanted: false },
            detached: created.detached,
            agent: created.agent.clone(),
            gap_rounds: 0,
            gap_checks: Vec::new(),
            spent: Vec::new(),
            sessions: Sessions::default(),
            item_outputs: BTreeMap::new(),
            finalized: None,
            carry: Vec::new(),
            consecutive_automatic: ConsecutiveAutomatic::default(),
            pipeline: None,
            phase_issues: 0,
            parent: None,
            not_done: BTreeMap::new(),
            voided: Vec::new(),
            diff_bases: DiffBases::default(),
            issue: created.issue.clone(),
            unverified: false,
            recovered: None,
            team: None,
            resume_point: None,
            offered: None,
            offered_state: None,
            touched: Touched::default(),
        };
        let imported = match &created.origin {
            Origin::New | Origin::Forked(_) | Origin::Recovered(_) => None,
            Origin::Imported(imported) => Some(&**imported),
        };
        run.pipeline = run.workflow.pipeline.as_ref().map(|_| Box::new(PipelineRun::start(imported, at)));
        run.touched.referenced_values.extend(imported.map(|imported| imported.file.digest));
        run.touched.referenced_values.push(created.definition);
        run.touched.referenced_values.extend(created.issue.iter().filter_map(|issue| issue.body.stored()));
        run.touched.referenced_values.extend(created.files.iter().map(|file| file.digest));
        run.touched.referenced_values.extend(created.vars.values().filter_map(|stored_value| stored_value.stored()));
        run
    }

    /// Applies one event to the state. The first event of a run is not applied; it starts the run with [`Run::start`].
    pub fn apply(&mut self, entry: &Entry) -> Result<(), ApplyError> {
        let at = entry.at;
        if let Some(known) = &mut self.pipeline {
            known.happened(&entry.event, at, self.workflow.pipeline.as_deref());
        }
        if let Some(team) = &mut self.team {
            team.happened(&entry.event);
        }
        match &entry.event {
            Event::Created(_) => return Err(ApplyError("a run is created twice".into())),
            Event::AnswersPreset { presets } => {
                let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
                let given = presets.iter().cloned();
                self.presets.extend(given.map(|preset| GivenPresetAnswer { preset, actor: actor.clone() }));
            }
            Event::Resumed { driver, detached } => {
                self.detached = *detached;
                self.resumed(driver.clone());
            }
            Event::Interrupted { .. } => self.stopping = true,
            Event::PhaseSkipped { .. } => self.position = self.position.saturating_add(1),
            Event::PhaseStarted { phase, iteration, feedback } => self.phase_started(phase, *iteration, feedback.clone(), at)?,
            Event::TasksPlanned { tasks, .. } => self.plan(tasks)?,
            Event::TaskStarted { key, attempt, session, .. } => self.task_started(key, *attempt, session.clone(), at)?,
            Event::TaskFinished { key, result, outputs, agent, .. } => {
                self.agent_reported(key, agent.as_deref(), at)?;
                self.task(key, at, |_| TaskState::Done)?;
                self.record_result(key, result.as_ref(), outputs, at);
            }
            Event::TaskRepeated { key, result, outputs, agent, why, .. } => {
                self.agent_reported(key, agent.as_deref(), at)?;
                self.record_result(key, result.as_ref(), outputs, at);
                self.task(key, at, |task| {
                    task.rounds = task.rounds.saturating_add(1);
                    task.previous = result.clone();
                    task.next_reason = AttemptReason::Until;
                    task.found_by_check(why);
                    TaskState::Waiting
                })?;
            }
            Event::TaskFannedOut { key, tasks, .. } => self.fan_out(key, tasks, at)?,
            Event::TaskAdmitted { key } => self.task(key, at, |task| {
                task.admitted = true;
                TaskState::Waiting
            })?,
            Event::TaskOmitted { key, reason, failed } => {
                let state = TaskState::Omitted { reason: reason.clone(), failed: *failed };
                self.task(key, at, |_| state)?;
            }
            Event::FailureTolerated { key } => self.task(key, at, |task| match task.state.clone() {
                TaskState::Failed(failure) => TaskState::Tolerated(failure),
                other => other,
            })?,
            Event::AgentQueryStarted { requester, prompt } => {
                self.touched.referenced_values.extend(prompt.stored());
                let query = AgentQuery { requester: requester.clone(), prompt: prompt.clone(), text: None };
                self.current_phase_mut()?.agent_queries.push(query);
            }
            Event::AgentQueryAnswered { requester, text, agent } => {
                self.touched.referenced_values.extend(text.stored());
                let agent_queries = &mut self.current_phase_mut()?.agent_queries;
                let asked = agent_queries.iter_mut().rfind(|query| query.requester == *requester && query.text.is_none());
                asked.ok_or_else(|| ApplyError("no script made this query".into()))?.text = Some(text.clone());
                if let Some(report) = agent {
                    self.record_query_usage(requester, report);
                }
            }
            Event::GapsChecked(checked) => self.gaps_checked(checked, at)?,
            Event::GapsWaived { .. } => {
                self.clear_failure();
                let gap = &mut self.current_phase_mut()?.gap;
                *gap = GapRun { state: GapState::Waived, hold: None };
            }
            Event::BudgetRaised { scope } => self.spent_mut(scope).raise(),
            Event::TasksBlocked { keys, hold } => self.held(keys, hold, at)?,
            Event::Finalized { file } => {
                if file.stored {
                    self.touched.referenced_values.push(file.digest);
                }
                self.finalized = Some(file.clone());
            }
            Event::DefinitionAccepted { definition, files } => self.definition_accepted(*definition, files)?,
            Event::AgentChanged { agent } => {
                self.agent = Some(agent.clone());
                // A session belongs to the program that reported it.
                self.sessions = Sessions::default();
            }
            Event::TaskFailed { key, failure, agent, .. } => {
                self.agent_reported(key, agent.as_deref(), at)?;
                self.task(key, at, |task| {
                    task.failures = task.failures.saturating_add(1);
                    // A new attempt starts with all its rounds.
                    if failure.kind == FailureKind::Until {
                        task.rounds = 0;
                    }
                    TaskState::Failed(failure.clone())
                })?;
            }
            Event::RetryScheduled { key, timer, due } => {
                let (timer_id, target) = (timer.clone(), key.address());
                self.touched.timers.push(NewTimer { timer: timer_id, due: *due, kind: TimerKind::Retry, target });
                self.task(key, at, |task| {
                    task.next_reason = AttemptReason::Retry;
                    TaskState::Backoff { timer: timer.clone(), due: *due }
                })?;
            }
            Event::RetryDue { key } => self.task(key, at, |_| TaskState::Waiting)?,
            Event::SessionNamed { key, session, dir, .. } => self.session_named(key, session, dir.clone()),
            Event::TaskInterrupted { key, .. } => self.task_interrupted(key, at)?,
            Event::TaskSkipped { key, .. } => {
                self.clear_failure();
                self.clear_awaited(key)?;
                self.task(key, at, |task| {
                    task.hold = None;
                    TaskState::Skipped
                })?;
            }
            Event::GateStarted { gate, attempt, .. } => {
                self.gate(gate.as_str(), |gate| {
                    gate.attempts = *attempt;
                    gate.hold = None;
                    GateState::Running
                })?;
            }
            Event::GatePassed { gate, .. } => self.gate(gate.as_str(), |_| GateState::Passed)?,
            Event::GateFailed { gate, failure, .. } => self.gate(gate.as_str(), |_| GateState::Failed(failure.clone()))?,
            Event::GateWaived { gate, .. } => {
                self.clear_failure();
                self.gate(gate.as_str(), |gate| {
                    gate.hold = None;
                    GateState::Waived
                })?;
            }
            Event::ConditionEvaluated { phase, outcome, .. } => {
                self.current_phase_mut()?.checkpoint.condition = Some(outcome.clone());
                if let ConditionOutcome::Error(error) = outcome {
                    self.warn(format!("the condition of the checkpoint of phase \"{phase}\" failed: {error}"));
                }
            }
            Event::HoldOpened(opened) => self.hold_opened(opened, at)?,
            Event::Answered { hold, option, feedback, .. } => {
                let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
                self.answered(hold, Answer { option: option.clone(), feedback: feedback.clone(), actor, at })?;
            }
            Event::HoldReopened { hold, revision, files, differences, deadline, remind, diff, .. } => {
                let renewed = (deadline.as_deref(), remind.as_deref());
                self.hold_reopened((hold, *revision), (files, diff.as_deref()), differences, renewed, at)?;
            }
            Event::DiffBaseRecorded { base, starts_run, .. } => {
                self.diff_bases.awaited = None;
                if *starts_run {
                    self.diff_bases.run = Some(base.clone());
                }
                self.diff_bases.phase = Some(base.clone());
            }
            Event::HoldSettled { hold } => self.hold_settled(hold, at)?,
            Event::HoldVoided { hold, reason } => self.voided(hold, reason, at)?,
            Event::CheckPassed { hold } => self.hold(hold)?.terms.checked = true,
            Event::ReworkRequested { keys, by, issues, stale, after } => {
                self.rework_requested(&Redo { keys, by, issues, stale, after }, at)?;
            }
            Event::HandedOver { key, handover, agent, .. } => {
                self.agent_reported(key, agent.as_deref(), at)?;
                self.handed_over(key, handover, at)?;
            }
            Event::DeadlinePassed { hold, .. } => self.deadline_passed(hold)?,
            Event::Reminded { hold, number, timer, next } => self.reminded(hold, *number, timer, *next)?,
            Event::AnswerChanged { hold, option, feedback } => {
                let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
                self.answer_changed(hold, Answer { option: option.clone(), feedback: feedback.clone(), actor, at })?;
            }
            Event::AttemptRefused(refused) => {
                self.refused_attempts = refused.number.max(self.refused_attempts.saturating_add(1));
                let who = entry.actor.as_deref().and_then(|actor| actor.inside_task.clone());
                let who = who.map_or_else(|| "someone".to_owned(), |task| format!("task {task}"));
                self.warn(format!("{who} tried to {} and was refused: {}", refused.what, refused.reason));
                if refused.number > REFUSED_ATTEMPTS_KEPT {
                    self.warn(format!("at least {} attempts to make a decision about this run were refused", refused.number));
                }
            }
            Event::PhaseCompleted { phase, .. } => {
                let left = self.current_phase_mut()?;
                let (position, not_done) = (left.position + 1, left.not_done());
                self.position = position;
                self.current = None;
                self.not_done.insert(phase.clone(), not_done);
                self.not_done.retain(|_, tasks| !tasks.is_empty());
                self.repeats_by_failure = 0;
                self.automatic_repeats.remove(phase);
                self.gap_rounds = 0;
                self.phase_issues = 0;
                self.diff_bases.phase = None;
                self.completed.push(phase.clone());
            }
            Event::PhaseRepeated { from, target, feedback, by_failure, gaps, carry, restores } => {
                self.clear_failure();
                // A phase that is repeated until it is approved is shown with all that it has changed.
                if from != target {
                    self.diff_bases.phase = None;
                }
                self.skip_list.retain(|skipped| !restores.contains(skipped));
                self.carry = carry.iter().map(|task| self.as_it_ended(target, task)).collect();
                self.phase_repeated(target, feedback.clone(), *by_failure, *gaps)?;
            }
            Event::PhasesSkipListed { phases } => {
                for phase in phases {
                    if !self.skip_list.contains(phase) {
                        self.skip_list.push(phase.clone());
                    }
                }
            }
            Event::Failed { message } => self.end = Some(End::Failed(message.clone())),
            Event::Aborted { .. } => {
                self.timers_removed();
                self.interrupt_running();
                self.end = Some(End::Aborted);
            }
            Event::Cancelled { .. } => {
                self.timers_removed();
                self.interrupt_running();
                self.end = Some(End::Cancelled);
            }
            Event::Completed => self.end = Some(End::Complete),
            Event::TaskStopped { key, agent, by_budget, .. } => {
                self.agent_reported(key, agent.as_deref(), at)?;
                self.task(key, at, |task| {
                    task.next_reason = if *by_budget { AttemptReason::Budget } else { AttemptReason::Retry };
                    TaskState::Waiting
                })?;
            }
            Event::RetryRequested { key } => {
                self.clear_failure();
                self.clear_awaited(key)?;
                let confirms = self.unverified;
                self.task(key, at, |task| {
                    task.failures = 0;
                    task.hold = None;
                    task.confirmed |= confirms;
                    task.found_anew();
                    task.next_reason = match task.state {
                        TaskState::Failed(_) | TaskState::Tolerated(_) => AttemptReason::Retry,
                        TaskState::Waiting
                        | TaskState::Running
                        | TaskState::Backoff { .. }
                        | TaskState::Interrupted
                        | TaskState::Done
                        | TaskState::Skipped
                        | TaskState::FannedOut
                        | TaskState::Blocked
                        | TaskState::Omitted { .. } => task.next_reason,
                    };
                    TaskState::Waiting
                })?;
            }
            Event::Pipeline(pipeline_event) => {
                if let PipelineEvent::Reviewed(_) = &**pipeline_event {
                    self.clear_failure();
                }
                let known = self.pipeline.as_mut().ok_or_else(|| ApplyError("the run is not a pipeline".into()))?;
                known.apply(pipeline_event);
                if let PipelineEvent::ArtifactsFound { key, missing, .. } = &**pipeline_event
                    && !missing.is_empty()
                {
                    self.warn(format!("{} did not produce the required artifacts: {}", key.task, missing.join(", ")));
                }
            }
            Event::Team(team_event) => self.team_event(team_event, at)?,
            Event::GateRetryRequested { gate, .. } => {
                self.clear_failure();
                self.reset_gate(gate.as_str())?;
            }
            Event::Rewound(rewound) => self.rewound(rewound, at)?,
        }
        if self.pipeline.is_some() {
            self.note_reported();
        }
        Ok(())
    }

    /// A failure no longer ends the run once someone has handled it.
    fn clear_failure(&mut self) {
        if matches!(self.end, Some(End::Failed(_))) {
            self.end = None;
        }
    }

    /// Marks attempts as interrupted that were stopped when the run ended for good.
    fn interrupt_running(&mut self) {
        let Some(phase) = &mut self.current else { return };
        let running: Vec<usize> = phase.running().collect();
        running.into_iter().for_each(|index| phase.set(index, TaskState::Interrupted));
    }

    /// Reopens the questions that were open when the run ended, because the answer that ended it no longer counts.
    fn reopen_questions(&mut self) {
        let Some(phase) = &mut self.current else { return };
        let is_open = |hold: &HoldId| self.holds.contains_key(hold);
        for index in 0..phase.tasks.len() {
            let task = &mut phase.tasks[index];
            task.hold = task.hold.take().filter(is_open);
            if task.hold.is_none() && task.state == TaskState::Blocked {
                phase.set(index, TaskState::Waiting);
            }
        }
        for gate in &mut phase.gates {
            gate.hold = gate.hold.take().filter(is_open);
        }
        phase.gap.hold = phase.gap.hold.take().filter(is_open);
    }

    fn resumed(&mut self, driver: crate::id::DriverId) {
        self.driver = driver;
        self.stopping = false;
        let had_failed = matches!(self.end, Some(End::Failed(_)));
        let had_ended = matches!(self.end, Some(End::Aborted | End::Cancelled));
        self.clear_failure();
        if had_ended {
            self.end = None;
            self.reopen_questions();
        }
        if had_failed {
            self.phase_issues = 0;
        }
        let Some(phase) = &mut self.current else { return };
        // A question is asked again if the run failed because of its answer.
        if phase.checkpoint.hold.as_ref().is_some_and(|hold| !self.holds.contains_key(hold)) {
            phase.checkpoint.hold = None;
        }
        let failed: Vec<usize> = phase.failed_or_interrupted().collect();
        for index in failed {
            let task = &mut phase.tasks[index];
            // An interrupted attempt that counts as a failure has not been handled yet, unless the run failed because of it.
            let dealt_with = task.state.failure().is_some_and(|failure| had_failed || failure.kind != FailureKind::Interrupted);
            if dealt_with && task.hold.is_none() {
                task.failures = 0;
                task.found_anew();
                task.next_reason = AttemptReason::Retry;
                phase.set(index, TaskState::Waiting);
            }
        }
        if had_failed && matches!(phase.gap.state, GapState::Open { action: GapAction::Abort, .. }) {
            phase.gap = GapRun::default();
        }
        for index in 0..phase.gates.len() {
            let gate = &phase.gates[index];
            if matches!(gate.state, GateState::Running | GateState::Failed(_)) && gate.hold.is_none() {
                phase.set_gate(index, GateState::Waiting);
            }
        }
    }

    /// Adds a warning, unless it is already there.
    pub(super) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn phase_started(
        &mut self,
        phase: &PhaseId,
        iteration: u32,
        feedback: Option<String>,
        at: Timestamp,
    ) -> Result<(), ApplyError> {
        let workflow = self.workflow.clone();
        let position = workflow.position(phase.as_str()).ok_or_else(|| ApplyError(format!("unknown phase {phase}")))?;
        self.position = position;
        self.feedback = None;
        let is_first = self.iteration_counts.is_empty();
        self.iteration_counts.insert(phase.clone(), iteration);
        self.diff_bases.awaited = match is_first && workflow.shows_run_diff() {
            true => Some(AwaitedBase::RunAndPhase),
            false => {
                (self.diff_bases.phase.is_none() && workflow.phases[position].shows_own_diff()).then_some(AwaitedBase::Phase)
            }
        };
        let mut started = PhaseRun::start(&workflow.phases[position], position, iteration, feedback, at);
        started.gates.extend(self.added_gates(&workflow.phases[position]).iter().map(|gate| GateRun::waiting(&gate.id)));
        self.current = Some(started);
        Ok(())
    }

    fn phase_repeated(
        &mut self,
        target: &PhaseId,
        feedback: Option<String>,
        by_failure: bool,
        gaps: bool,
    ) -> Result<(), ApplyError> {
        let workflow = self.workflow.clone();
        let position = workflow.position(target.as_str()).ok_or_else(|| ApplyError(format!("unknown phase {target}")))?;
        if !gaps {
            self.gap_rounds = 0;
            self.repeats_by_failure = if by_failure { self.repeats_by_failure.saturating_add(1) } else { 0 };
        }
        self.timers_removed();
        self.position = position;
        self.current = None;
        self.feedback = feedback;
        self.skip_list.retain(|skipped| skipped != target);
        self.completed.retain(|done| workflow.position(done.as_str()).is_some_and(|at| at < position));
        Ok(())
    }

    /// How a task of a phase ended, so that it keeps that result when the phase is repeated.
    fn as_it_ended(&self, phase: &PhaseId, task: &TaskId) -> EndedTask {
        let now = self.current.as_ref().filter(|current| current.id == *phase).and_then(|current| current.whole(task));
        let before = self.not_done.get(phase.as_str()).and_then(|known| known.iter().find(|known| known.task == *task));
        let state = now.map(|task| &task.state).or(before.map(|known| &known.state));
        EndedTask { task: task.clone(), state: state.cloned().unwrap_or(TaskState::Done) }
    }

    fn task_interrupted(&mut self, key: &TaskKey, at: Timestamp) -> Result<(), ApplyError> {
        let workflow = self.workflow.clone();
        let phase = self.current_phase_mut()?;
        let index = phase.find(key).ok_or_else(|| ApplyError(format!("unknown task {}", key.address())))?;
        let declared = phase.declared(&workflow.phases[phase.position], index);
        let was_running = phase.tasks[index].state == TaskState::Running;
        // A person decides about a task of a recovered run that may have run before its history was lost.
        let on_interrupt = match was_running {
            true => declared.map_or(OnInterrupt::Ask, |task| task.on_interrupt),
            false => OnInterrupt::Ask,
        };
        if was_running && declared.and_then(|task| task.agent()).is_some() {
            // The usage of the interrupted attempt is unknown, which is not zero.
            let unsaid = AgentReport::default();
            let worked =
                phase.tasks[index].since.map_or(0, |since| u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX));
            self.spend(&key.phase, &key.task, &unsaid, worked);
        }
        self.task(key, at, |task| {
            task.next_reason = AttemptReason::Interrupted;
            match on_interrupt {
                OnInterrupt::Rerun => TaskState::Waiting,
                OnInterrupt::Ask | OnInterrupt::Fail => TaskState::Interrupted,
            }
        })
    }

    /// Removes the timers of all backoffs, because the phase is left or the run ends.
    fn timers_removed(&mut self) {
        let Some(phase) = &self.current else { return };
        let timers = phase.running().filter_map(|index| phase.tasks[index].state.next_try()).map(|(timer, _)| timer.clone());
        self.touched.timers_removed.extend(timers);
    }

    fn current_phase_mut(&mut self) -> Result<&mut PhaseRun, ApplyError> {
        self.current.as_mut().ok_or_else(|| ApplyError("no phase is running".into()))
    }

    fn gate(&mut self, gate: &str, change: impl FnOnce(&mut GateRun) -> GateState) -> Result<(), ApplyError> {
        let phase = self.current_phase_mut()?;
        let index = phase.gates.iter().position(|candidate| candidate.gate.as_str() == gate);
        let index = index.ok_or_else(|| ApplyError(format!("unknown gate {gate}")))?;
        let state = change(&mut phase.gates[index]);
        phase.set_gate(index, state);
        Ok(())
    }

    fn reset_gate(&mut self, gate: &str) -> Result<(), ApplyError> {
        self.gate(gate, |gate| {
            gate.hold = None;
            GateState::Waiting
        })
    }

    fn task(
        &mut self,
        key: &TaskKey,
        at: Timestamp,
        change: impl FnOnce(&mut crate::run::phase::TaskRun) -> TaskState,
    ) -> Result<(), ApplyError> {
        let phase = self.current_phase_mut()?;
        let index = phase.find(key).ok_or_else(|| ApplyError(format!("unknown task {}", key.address())))?;
        phase.tasks[index].since = Some(at);
        let timer = phase.tasks[index].state.next_try().map(|(timer, _)| timer.clone());
        let state = change(&mut phase.tasks[index]);
        // The timer of a backoff is removed however the task leaves that state.
        let timer = timer.filter(|timer| state.next_try().is_none_or(|(next, _)| next != timer));
        phase.set(index, state);
        self.touched.timers_removed.extend(timer);
        Ok(())
    }
}
