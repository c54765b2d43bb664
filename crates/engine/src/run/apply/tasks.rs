//! Applying the results of tasks, agents and gap checks.

use super::ApplyError;
use crate::digest::Digest;
use crate::id::{HoldId, TaskId, TaskKey};
use crate::run::agent::AgentReport;
use crate::run::event::{FrozenFile, GapsChecked, OutputFile, PlannedTask, Requester, SessionStart};
use crate::run::state::{Deliverable, GapRecord, GapRun, GapState, GateRun, KnownSession, Run, TaskState};
use crate::spec::workflow::{DEFAULT_AGENT, GapAction, MAIN_TASK, Workflow};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use std::sync::Arc;

impl Run {
    /// Provides a definition that the next event may refer to.
    pub fn offer(&mut self, definition: Digest, workflow: Arc<Workflow>) {
        self.offered = Some((definition, workflow));
    }

    pub(super) fn plan(&mut self, tasks: &[PlannedTask]) -> Result<(), ApplyError> {
        let values = tasks.iter().filter_map(|task| task.value.as_ref()?.stored());
        self.touched.referenced_values.extend(values);
        let workflow = self.workflow.clone();
        let carried = std::mem::take(&mut self.carry);
        let phase = self.current_phase_mut()?;
        let declared = workflow.phases.get(phase.position).ok_or_else(|| ApplyError("no such phase".into()))?;
        phase.plan(declared, tasks);
        phase.carry(&carried);
        Ok(())
    }

    pub(super) fn task_started(
        &mut self,
        key: &TaskKey,
        attempt: u32,
        session: Option<SessionStart>,
        at: Timestamp,
    ) -> Result<(), ApplyError> {
        self.clear_awaited(key)?;
        let fans_out = self.declared(key).is_some_and(|task| task.for_each.is_some()) && key.item.is_none();
        if attempt == 1 && key.task.as_str() != MAIN_TASK && !fans_out {
            self.subagents_spawned = self.subagents_spawned.saturating_add(1);
        }
        if let Some(session) = &session {
            // A session id that the program never reported is not confirmed by requesting it again.
            let known = KnownSession { id: session.id.clone(), dir: None, confirmed: false, usage: None };
            let before = self.session_known(&session.id).cloned();
            let known = before.filter(|_| session.resume).unwrap_or(known);
            self.sessions.by_task.insert(session_address(key), known);
        }
        let agent_queries = &mut self.current_phase_mut()?.agent_queries;
        // This attempt repeats the queries that were not answered.
        agent_queries.retain(|query| query.text.is_some() || !matches!(&query.requester, Requester::Task(asker) if asker == key));
        self.task(key, at, |task| {
            task.attempts = attempt;
            task.hold = None;
            task.session = session;
            TaskState::Running
        })
    }

    /// Records the return value and the files of a task.
    pub(super) fn record_result(&mut self, key: &TaskKey, result: Option<&StoredValue>, outputs: &[OutputFile], at: Timestamp) {
        self.touched.referenced_values.extend(result.and_then(|stored_value| stored_value.stored()));
        match (&key.item, result) {
            (Some(item), Some(stored_value)) => {
                let tasks = self.item_outputs.entry(key.phase.clone()).or_default();
                tasks.entry(key.task.clone()).or_default().insert(item.clone(), stored_value.clone());
            }
            (Some(_), None) => {}
            (None, Some(stored_value)) => {
                self.outputs.entry(key.phase.clone()).or_default().insert(key.task.clone(), stored_value.clone());
            }
            // The result of an earlier execution does not belong to this one.
            (None, None) => drop(self.outputs.get_mut(key.phase.as_str()).and_then(|tasks| tasks.remove(key.task.as_str()))),
        }
        for file in outputs {
            if file.stored {
                self.touched.referenced_values.push(file.digest);
            }
            self.deliverables.retain(|known| known.file.path != file.path || known.key.phase != key.phase);
            self.deliverables.push(Deliverable { key: key.clone(), file: file.clone(), at });
        }
    }

    /// Records the report of an agent whose attempt ended.
    pub(super) fn agent_reported(
        &mut self,
        key: &TaskKey,
        report: Option<&AgentReport>,
        at: Timestamp,
    ) -> Result<(), ApplyError> {
        let Some(report) = report else { return Ok(()) };
        let began = self.task_run(key).and_then(|task| task.since).unwrap_or(at);
        let worked = u64::try_from(at.since(began).as_millis()).unwrap_or(u64::MAX);
        self.spend(&key.phase, &key.task, report, worked);
        if !report.denied.is_empty() {
            self.warn(format!("the agent of {} was not permitted to use {}", key.address(), report.denied.join(", ")));
        }
        if let Some(id) = &report.session {
            let known = KnownSession { id: id.clone(), dir: report.dir.clone(), confirmed: true, usage: report.session_usage };
            // The total usage of a session is updated wherever the session is known; otherwise a later task would subtract too
            // little.
            let known_elsewhere = self.sessions.by_task.values_mut().chain(self.sessions.by_agent.values_mut());
            known_elsewhere.filter(|other| other.id == *id).for_each(|other| other.usage = report.session_usage);
            self.sessions.by_task.insert(session_address(key), known.clone());
            self.sessions.by_agent.insert(report.agent.clone(), known);
        }
        let phase = self.current_phase_mut()?;
        if let Some(index) = phase.find(key) {
            phase.tasks[index].agent = Some(Box::new(report.clone()));
        }
        Ok(())
    }

    pub(super) fn record_query_usage(&mut self, requester: &Requester, report: &AgentReport) {
        let (phase, task) = match requester {
            Requester::Task(key) => (key.phase.clone(), key.task.clone()),
            Requester::Gaps { phase, .. } => (phase.clone(), TaskId::from(crate::hold::GAP_CHECK)),
        };
        self.spend(&phase, &task, report, 0);
    }

    pub(super) fn gaps_checked(&mut self, checked: &GapsChecked, at: Timestamp) -> Result<(), ApplyError> {
        self.gap_rounds = if checked.action.is_none() { 0 } else { self.gap_rounds.saturating_add(1) };
        self.gap_checks.push(GapRecord {
            phase: checked.phase.clone(),
            round: checked.round,
            status: checked.status.clone(),
            gaps: checked.gaps.clone(),
            action: checked.action,
            agents: checked.agents.iter().filter_map(|task| task.spec.as_ref()?.agent()?.agent.clone()).collect(),
            at,
        });
        let notes = checked.message.iter().chain(&checked.gaps).cloned().collect();
        let state = match checked.action {
            None => GapState::Closed,
            // After the additional agents are done, the check runs again.
            Some(GapAction::SpawnAdditional) => GapState::Waiting,
            Some(action @ (GapAction::Retry | GapAction::Escalate | GapAction::Abort)) => GapState::Open { action, notes },
        };
        self.current_phase_mut()?.gap = GapRun { state, hold: None };
        self.plan(&checked.agents)
    }

    pub(super) fn held(&mut self, keys: &[TaskKey], hold: &HoldId, at: Timestamp) -> Result<(), ApplyError> {
        keys.iter().try_for_each(|key| {
            self.task(key, at, |task| {
                task.hold = Some(hold.clone());
                TaskState::Blocked
            })
        })
    }

    /// Makes the tasks ready that waited for an answer about a budget.
    pub(super) fn release_tasks(&mut self, hold: &HoldId, at: Timestamp) -> Result<(), ApplyError> {
        let keys: Vec<TaskKey> = self.current_phase_mut()?.asked_about(hold).collect();
        keys.iter().try_for_each(|key| {
            self.task(key, at, |task| {
                task.hold = None;
                TaskState::Waiting
            })
        })
    }

    pub(super) fn definition_accepted(&mut self, definition: Digest, files: &[FrozenFile]) -> Result<(), ApplyError> {
        let offered = self.offered.take().filter(|(offered, _)| *offered == definition);
        let (_, workflow) =
            offered.ok_or_else(|| ApplyError(format!("the accepted definition {definition} was not provided")))?;
        self.touched.referenced_values.push(definition);
        self.touched.referenced_values.extend(files.iter().map(|file| file.digest));
        let next = match &self.current {
            Some(phase) => workflow.position(phase.id.as_str()),
            None => self.completed.last().map_or(Some(0), |last| Some(workflow.position(last.as_str())? + 1)),
        };
        let before = self.position;
        self.position =
            next.ok_or_else(|| ApplyError("the accepted definition lacks a phase that the run has reached".into()))?;
        self.skip_list.retain(|phase| workflow.phase(phase.as_str()).is_some());
        if let Some(phase) = &self.current {
            let lost = phase.running().filter(|index| phase.is_lost(*index, &workflow.phases[self.position]));
            let timers = lost.filter_map(|index| phase.tasks[index].state.next_try()).map(|(timer, _)| timer.clone());
            self.touched.timers_removed.extend(timers);
        }
        if let Some(phase) = &mut self.current {
            phase.position = self.position;
            let added = phase.gates.iter().filter(|gate| self.workflow.phases[before].gate(gate.gate.as_str()).is_none());
            let added: Vec<GateRun> = added.cloned().collect();
            phase.replan(&workflow.phases[self.position], added);
        }
        (self.definition, self.files, self.workflow) = (definition, files.to_vec(), workflow);
        Ok(())
    }

    /// An agent reported its session. Other tasks resume it only once this attempt has ended.
    pub(super) fn session_named(&mut self, key: &TaskKey, session: &str, dir: Option<String>) {
        let usage = self.session_known(session).and_then(|known| known.usage);
        let known = KnownSession { id: session.to_owned(), dir, confirmed: true, usage };
        self.sessions.by_task.insert(session_address(key), known);
    }

    pub fn session_known(&self, id: &str) -> Option<&KnownSession> {
        self.sessions.by_task.values().chain(self.sessions.by_agent.values()).find(|known| known.id == id && known.confirmed)
    }

    /// The session that an attempt of an agent task resumes, if any.
    pub(in crate::run) fn session_to_resume(&self, key: &TaskKey, agent: Option<&str>, same: bool) -> Option<&KnownSession> {
        if same {
            // An agent that overrides every other setting is known by its command.
            self.sessions.by_agent.get(self.agent.as_deref().or(agent).unwrap_or(DEFAULT_AGENT))
        } else {
            self.sessions.by_task.get(&session_address(key))
        }
    }
}

/// Sessions are recorded per task, across executions of its phase, so that a repeated task can resume its own.
fn session_address(key: &TaskKey) -> String {
    key.address()
}
