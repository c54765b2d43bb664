//! Folds the events of a history into the summary of its run.

use super::clock::Clock;
use super::{Asked, AttemptDone, FileMade, GapCheck, PhaseDone, Produced, Summary, TaskDone, Without};
use super::{AskedState, PhaseOutcome};
use crate::view::RunStatus;
use crate::view::{AgentView, CancelledView, UsedView, WhoView};
use lockgate_engine::hold::{Choice, Topic};
use lockgate_engine::id::{GateId, HoldId, PhaseId, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{Entry, Event, GapsChecked, HoldOpened, OutputFile, PlannedTask};
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::run::state::{End, TaskState};
use lockgate_engine::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Takes in a history, event by event, and gives the summary at the end.
#[derive(Debug, Default)]
pub(super) struct Collector {
    phases: Vec<PhaseDone>,
    tasks: BTreeMap<TaskKey, (usize, usize)>,
    gates: BTreeMap<(PhaseId, u32, GateId), (usize, usize)>,
    decisions: Vec<Asked>,
    options: BTreeMap<HoldId, (usize, Vec<Choice>, Timestamp)>,
    /// By their paths: the same file again, by a later attempt or execution, is one file.
    deliverables: BTreeMap<String, Produced>,
    finalization: Option<FileMade>,
    gap_checks: Vec<GapCheck>,
    used: UsedView,
    clock: Clock,
    ended: Option<Timestamp>,
    cancelled: Option<CancelledView>,
    /// Tasks that stay as they ended when the next phase is planned.
    carry: Vec<TaskId>,
    /// Such tasks that ended before this history began.
    from_parent: Vec<TaskKey>,
    /// Questions that were put before this history began, and whose answer was changed in it.
    inherited: Vec<HoldId>,
}

impl Collector {
    /// Takes in the next event.
    pub(super) fn take(&mut self, entry: &Entry) {
        let at = entry.at;
        self.clock.take(&entry.event, at);
        match &entry.event {
            Event::PhaseSkipped { phase } => self.begin(phase, 0, PhaseOutcome::Skipped, None, at),
            Event::PhaseStarted { phase, iteration, feedback } => {
                self.begin(phase, *iteration, PhaseOutcome::UnderWay, feedback.clone(), at)
            }
            Event::TasksPlanned { phase, iteration, tasks } => {
                self.plan(phase, *iteration, tasks);
                self.carried(phase, *iteration);
            }
            Event::TaskStarted { key, attempt, .. } => self.task(key, |task| start(task, *attempt, at)),
            Event::TaskFinished { key, outputs, agent, commit, .. } => {
                self.left(key, outputs);
                self.task(key, |task| {
                    task.commits.extend(commit.clone());
                    task.commit = commit.clone().or(task.commit.take());
                });
                self.end(key, StepStatus::Done, None, agent.as_deref(), at);
            }
            Event::TaskRepeated { key, outputs, agent, .. } => {
                self.left(key, outputs);
                self.end(key, StepStatus::Repeated, None, agent.as_deref(), at);
            }
            Event::TaskFailed { key, failure, agent, .. } => {
                self.end(key, StepStatus::Failed, Some(&failure.message), agent.as_deref(), at)
            }
            Event::TaskInterrupted { key, .. } => self.end(key, StepStatus::Interrupted, None, None, at),
            Event::TaskStopped { key, reason, agent, .. } => {
                self.end(key, StepStatus::Stopped, Some(reason), agent.as_deref(), at)
            }
            Event::TaskSpread { key, tasks, .. } => {
                self.end(key, StepStatus::Spread, None, None, at);
                self.plan(&key.phase, key.iteration, tasks);
            }
            Event::TaskSkipped { key, reason } => {
                self.task(key, |task| counts_as(task, StepStatus::Skipped, Some(reason.clone())))
            }
            Event::TaskLeftOut { key, reason, .. } => {
                self.task(key, |task| counts_as(task, StepStatus::LeftOut, Some(reason.clone())))
            }
            Event::FailureTolerated { key } => self.task(key, |task| {
                let reason = task.reason.take();
                counts_as(task, StepStatus::Tolerated, reason);
            }),
            Event::GateStarted { phase, iteration, gate, attempt } => {
                self.gate(phase, *iteration, gate, |gate| start(gate, *attempt, at))
            }
            Event::GatePassed { phase, iteration, gate, .. } => {
                self.gate(phase, *iteration, gate, |gate| end(gate, StepStatus::Passed, None, None, at))
            }
            Event::GateFailed { phase, iteration, gate, failure, .. } => {
                self.gate(phase, *iteration, gate, |gate| end(gate, StepStatus::Failed, Some(&failure.message), None, at))
            }
            Event::GateWaived { phase, iteration, gate, reason } => {
                self.gate(phase, *iteration, gate, |gate| counts_as(gate, StepStatus::Waived, reason.clone()))
            }
            Event::HoldOpened(opened) => self.ask(opened, at),
            Event::Answered { hold, option, feedback, revision } => {
                let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
                self.answer(hold, option.as_str(), feedback.as_deref(), *revision, actor, at);
            }
            Event::HoldReopened { hold, revision, .. } => self.reopen(hold, *revision, at),
            Event::HoldVoided { hold, .. } => self.close(hold, AskedState::Void, at),
            Event::PhaseCompleted { phase, iteration } => self.leave(phase, Some(*iteration), PhaseOutcome::Complete, at),
            Event::PhaseRepeated { from, carry, .. } => {
                self.leave(from, None, PhaseOutcome::Repeated, at);
                self.carry.clone_from(carry);
            }
            Event::Thought { agent, thinker, .. } => {
                if let Some(report) = agent.as_deref() {
                    self.used.add(report.usage);
                    if let lockgate_engine::run::event::Thinker::Task(key) = thinker {
                        self.task(key, |task| task.used.add(report.usage));
                    }
                }
            }
            Event::GapsChecked(checked) => self.gaps(checked),
            Event::GapsWaived { .. } => self.gap_checks.last_mut().into_iter().for_each(|check| check.waived = true),
            Event::Finalized { file } => {
                self.finalization = Some(FileMade { path: file.path.clone(), size_bytes: file.bytes });
            }
            Event::Failed { .. } | Event::Aborted { .. } | Event::Completed => self.ended = Some(at),
            Event::Cancelled { .. } => {
                self.ended = Some(at);
                self.cancelled = CancelledView::of_entry(entry);
            }
            Event::Resumed { .. } | Event::RetryAsked { .. } | Event::GateRetryAsked { .. } => self.ended = None,
            Event::Created(_)
            | Event::PresetsGiven { .. }
            | Event::Interrupted { .. }
            | Event::RetryScheduled { .. }
            | Event::RetryDue { .. }
            | Event::SessionNamed { .. }
            | Event::ConditionEvaluated { .. }
            | Event::HoldSettled { .. }
            | Event::AttemptRefused(_)
            | Event::PhasesSkipListed { .. }
            | Event::TaskAdmitted { .. }
            | Event::ThinkingBegan { .. }
            | Event::BudgetRaised { .. }
            | Event::TasksHeld { .. }
            | Event::CheckPassed { .. }
            | Event::DeadlinePassed { .. }
            | Event::Reminded { .. }
            | Event::Pipeline(_)
            | Event::DefinitionAccepted { .. }
            | Event::AgentChanged { .. } => {}
            Event::HandedOver { key, agent, .. } => self.end(key, StepStatus::HandedOver, None, agent.as_deref(), at),
            Event::RedoAsked { keys, by, stale, .. } => {
                keys.iter().chain(stale).chain([by]).for_each(|key| self.task(key, |task| task.status = StepStatus::Waiting));
            }
            Event::AnswerChanged { hold, option, feedback } => {
                let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
                match self.options.get(hold).map(|(index, _, _)| self.decisions[*index].revision) {
                    Some(revision) => self.answer(hold, option.as_str(), feedback.as_deref(), revision, actor, at),
                    None => self.inherited.push(hold.clone()),
                }
            }
        }
    }

    fn begin(&mut self, phase: &PhaseId, iteration: u32, status: PhaseOutcome, feedback: Option<String>, at: Timestamp) {
        let feedback = feedback.filter(|feedback| !feedback.is_empty());
        let (id, tasks, gates) = (phase.to_string(), Vec::new(), Vec::new());
        self.phases.push(PhaseDone { id, iteration, status, feedback, started_at: at, took_ms: 0, tasks, gates });
    }

    fn plan(&mut self, phase: &PhaseId, iteration: u32, planned: &[PlannedTask]) {
        for planned in planned {
            let (task, item) = (planned.task.clone(), planned.item.clone());
            let key = TaskKey { phase: phase.clone(), iteration, task, item };
            let parent = planned.parent.as_ref().map(ToString::to_string);
            self.task(&key, |task| task.parent = parent);
        }
    }

    /// Tasks that stay as they ended when their phase runs again: nothing more happens to them.
    fn carried(&mut self, phase: &PhaseId, iteration: u32) {
        for task in std::mem::take(&mut self.carry) {
            let before = self.phases.iter().rev().filter(|known| known.id == phase.as_str() && known.iteration != iteration);
            let known = before.flat_map(|known| &known.tasks).find(|known| known.id == task.as_str());
            let known = known.map(|known| (known.status, known.reason.clone()));
            let key = TaskKey { phase: phase.clone(), iteration, task, item: None };
            if known.is_none() {
                self.from_parent.push(key.clone());
            }
            self.task(&key, |task| (task.status, task.reason) = known.unwrap_or((StepStatus::Done, None)));
        }
    }

    /// What only the run that this one was forked from has seen: how carried tasks ended, and which questions were put.
    fn inherit(&mut self, run: &Run) {
        for key in std::mem::take(&mut self.from_parent) {
            let now = run.task_run(&key).map(|task| &task.state);
            let ended = run.not_done.get(&key.phase).and_then(|known| known.iter().find(|known| known.task == key.task));
            if let Some(state) = now.or(ended.map(|known| &known.state)) {
                self.task(&key, |task| (task.status, task.reason) = (state.status(), why(state)));
            }
        }
        // They were put before anything that this history tells.
        let inherited = std::mem::take(&mut self.inherited);
        let put: Vec<Asked> = inherited.iter().filter_map(|hold| changed_answer(run, hold)).collect();
        self.decisions.splice(0..0, put);
    }

    /// Changes a task, which is one of the last execution of its phase.
    fn task(&mut self, key: &TaskKey, change: impl FnOnce(&mut TaskDone)) {
        let Some(at) = self.phases.iter().rposition(|phase| phase.id == key.phase.as_str()) else { return };
        let (phase, task) = *self.tasks.entry(key.clone()).or_insert_with(|| {
            let id = key.item.as_ref().map_or_else(|| key.task.to_string(), |item| format!("{}[{item}]", key.task));
            self.phases[at].tasks.push(TaskDone::new(id));
            (at, self.phases[at].tasks.len() - 1)
        });
        change(&mut self.phases[phase].tasks[task]);
    }

    fn gate(&mut self, phase: &PhaseId, iteration: u32, gate: &GateId, change: impl FnOnce(&mut TaskDone)) {
        let Some(at) = self.phases.iter().rposition(|known| known.id == phase.as_str()) else { return };
        let (phase, gate) = *self.gates.entry((phase.clone(), iteration, gate.clone())).or_insert_with(|| {
            self.phases[at].gates.push(TaskDone::new(gate.to_string()));
            (at, self.phases[at].gates.len() - 1)
        });
        change(&mut self.phases[phase].gates[gate]);
    }

    fn end(&mut self, key: &TaskKey, status: StepStatus, error: Option<&str>, agent: Option<&AgentReport>, at: Timestamp) {
        if let Some(report) = agent {
            self.used.add(report.usage);
        }
        self.task(key, |task| end(task, status, error, agent, at));
    }

    fn left(&mut self, key: &TaskKey, outputs: &[OutputFile]) {
        for output in outputs {
            self.deliverables.insert(output.path.clone(), produced(key, output));
        }
    }

    fn ask(&mut self, opened: &HoldOpened, at: Timestamp) {
        self.options.insert(opened.hold.clone(), (self.decisions.len(), opened.options.clone(), at));
        self.decisions.push(Asked {
            hold: opened.hold.to_string(),
            kind: opened.kind,
            phase: opened.scope.phase().map(ToString::to_string),
            tasks: opened.scope.addresses(),
            title: opened.asked.as_ref().map(|asked| asked.task.clone()),
            agent: asking_agent(opened),
            login: login(opened),
            question: opened.prompt.clone(),
            state: AskedState::Open,
            answer: None,
            feedback: None,
            by: None,
            opened_at: at,
            answered_at: None,
            waited_ms: 0,
            revision: 1,
        });
    }

    fn answer(&mut self, hold: &HoldId, option: &str, feedback: Option<&str>, revision: u32, actor: Actor, at: Timestamp) {
        self.close(hold, AskedState::Answered, at);
        let Some((index, options, _)) = self.options.get(hold) else { return };
        let label = options.iter().find(|choice| choice.id.as_str() == option).map(|choice| choice.label.clone());
        let asked = &mut self.decisions[*index];
        asked.answer = Some(label.unwrap_or_else(|| option.to_owned()));
        asked.feedback = feedback.filter(|feedback| !feedback.is_empty()).map(str::to_owned);
        asked.by = Some(WhoView::of(&actor));
        asked.answered_at = Some(at);
        asked.revision = revision;
    }

    /// What was shown had changed: the answer is void, and it waits again.
    fn reopen(&mut self, hold: &HoldId, revision: u32, at: Timestamp) {
        let Some((index, _, since)) = self.options.get_mut(hold) else { return };
        *since = at;
        let asked = &mut self.decisions[*index];
        (asked.state, asked.revision) = (AskedState::Open, revision);
        (asked.answer, asked.feedback, asked.by, asked.answered_at) = (None, None, None, None);
    }

    fn close(&mut self, hold: &HoldId, state: AskedState, at: Timestamp) {
        let Some((index, _, since)) = self.options.get(hold) else { return };
        let asked = &mut self.decisions[*index];
        // A question that was answered and no longer matters afterwards has waited until its answer.
        if asked.state == AskedState::Open {
            asked.waited_ms += millis(at.since(*since));
        }
        asked.state = state;
    }

    fn leave(&mut self, phase: &PhaseId, iteration: Option<u32>, status: PhaseOutcome, at: Timestamp) {
        let known = |known: &&mut PhaseDone| known.id == phase.as_str() && iteration.is_none_or(|it| it == known.iteration);
        if let Some(left) = self.phases.iter_mut().rev().find(known) {
            left.status = status;
            left.took_ms = millis(at.since(left.started_at));
        }
    }

    fn gaps(&mut self, checked: &GapsChecked) {
        self.gap_checks.push(GapCheck {
            phase: checked.phase.to_string(),
            iteration: checked.iteration,
            round: checked.round,
            status: checked.status.clone(),
            gaps: checked.gaps.clone(),
            action: checked.action,
            message: checked.message.clone(),
            agents: checked.agents.iter().map(|task| task.task.to_string()).collect(),
            waived: false,
        });
        self.plan(&checked.phase, checked.iteration, &checked.agents);
    }

    /// The summary of all that was taken in, as it is now.
    pub(super) fn summary(mut self, run: &Run, status: RunStatus, now: Timestamp) -> Summary {
        let until = self.ended.unwrap_or(now);
        self.clock.until(until);
        for phase in self.phases.iter_mut().filter(|phase| phase.status == PhaseOutcome::UnderWay) {
            phase.status = PhaseOutcome::Standing(status);
            if status == RunStatus::Interrupted || self.ended.is_some() {
                phase.tasks.iter_mut().chain(&mut phase.gates).for_each(cut_off);
            }
            phase.took_ms = millis(until.since(phase.started_at));
        }
        for (index, _, since) in self.options.values() {
            let asked = &mut self.decisions[*index];
            if asked.state == AskedState::Open {
                asked.waited_ms += millis(until.since(*since));
            }
        }
        self.inherit(run);
        Summary {
            run: run.id.to_string(),
            workflow: run.workflow.name.clone(),
            feature: run.feature.clone(),
            status,
            error: match &run.end {
                Some(End::Failed(message)) => Some(message.clone()),
                Some(End::Complete | End::Aborted | End::Cancelled) | None => None,
            },
            cancelled: self.cancelled,
            started_at: run.started_at,
            ended_at: self.ended,
            took_ms: millis(until.since(run.started_at)),
            waited_ms: millis(self.clock.waited),
            stopped_ms: millis(self.clock.lay_still),
            left_out: without(&self.phases, &[StepStatus::LeftOut, StepStatus::Skipped, StepStatus::Waived], true),
            tolerated: without(&self.phases, &[StepStatus::Tolerated], false),
            phases: self.phases,
            decisions: self.decisions,
            deliverables: self.deliverables.into_values().collect(),
            finalization: self.finalization,
            gap_checks: self.gap_checks,
            used: self.used,
            worktrees: Vec::new(),
            warnings: run.warnings.clone(),
        }
    }
}

impl TaskDone {
    fn new(id: String) -> Self {
        let (attempts, used) = (Vec::new(), UsedView::default());
        Self {
            id,
            parent: None,
            status: StepStatus::Waiting,
            reason: None,
            took_ms: 0,
            attempts,
            used,
            commit: None,
            commits: Vec::new(),
        }
    }
}

/// Why a task that ended before this history began is not done.
fn why(state: &TaskState) -> Option<String> {
    match state {
        TaskState::LeftOut { reason, .. } => Some(reason.clone()),
        TaskState::Tolerated(failure) => Some(failure.message.clone()),
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Backoff { .. }
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::Done
        | TaskState::Skipped
        | TaskState::Spread
        | TaskState::Held => None,
    }
}

/// The answer that was changed to a question which another run had put.
fn changed_answer(run: &Run, hold: &HoldId) -> Option<Asked> {
    let decision = run.decisions.iter().rfind(|decision| decision.hold == *hold && decision.superseded.is_none())?;
    let put = run.decisions.iter().rev().filter(|known| known.hold == *hold).find_map(|known| known.changeable.as_deref())?;
    Some(Asked {
        hold: hold.to_string(),
        kind: put.kind,
        phase: put.scope.phase().map(ToString::to_string),
        tasks: put.scope.addresses(),
        title: put.asked.as_ref().map(|asked| asked.task.clone()),
        agent: None,
        login: None,
        question: put.prompt.clone(),
        state: AskedState::Answered,
        answer: Some(decision.label.clone()),
        feedback: decision.feedback.clone().filter(|feedback| !feedback.is_empty()),
        by: Some(WhoView::of(&decision.actor)),
        opened_at: put.opened_at,
        answered_at: Some(decision.at),
        waited_ms: 0,
        revision: decision.revision,
    })
}

/// What was under way when its driver died, or when the run was cancelled, was cut off, although that is not recorded of it.
fn cut_off(task: &mut TaskDone) {
    if task.status == StepStatus::Running {
        task.status = StepStatus::Interrupted;
    }
    task.attempts
        .iter_mut()
        .filter(|attempt| attempt.status == StepStatus::Running)
        .for_each(|attempt| attempt.status = StepStatus::Interrupted);
}

fn start(task: &mut TaskDone, attempt: u32, at: Timestamp) {
    task.status = StepStatus::Running;
    task.attempts.push(AttemptDone {
        attempt,
        status: StepStatus::Running,
        started_at: at,
        took_ms: None,
        error: None,
        agent: None,
    });
}

fn end(task: &mut TaskDone, status: StepStatus, error: Option<&str>, agent: Option<&AgentReport>, at: Timestamp) {
    if let Some(report) = agent {
        task.used.add(report.usage);
    }
    task.status = status;
    task.reason = error.map(str::to_owned);
    // A task that became several ends once more when they have; its own attempt ended before.
    if let Some(last) = task.attempts.last_mut().filter(|last| last.took_ms.is_none()) {
        let took = millis(at.since(last.started_at));
        task.took_ms += took;
        last.took_ms = Some(took);
        last.status = status;
        last.error = error.map(str::to_owned);
        last.agent = agent.map(AgentView::of);
    }
}

/// The task whose agent asks, where the question is its own.
fn asking_agent(opened: &HoldOpened) -> Option<String> {
    let asked = opened.asked.as_ref()?;
    match &asked.topic {
        Topic::Handover(_) => {
            let address = opened.scope.addresses().into_iter().next()?;
            let id = address.rsplit('/').next().unwrap_or_default();
            Some(format!("{id} ({})", asked.task))
        }
        Topic::Question(_) | Topic::Authentication(_) => None,
    }
}

/// What mends a missing login: the command, where it is one.
fn login(opened: &HoldOpened) -> Option<String> {
    match &opened.asked.as_ref()?.topic {
        Topic::Authentication(missing) => {
            let step = missing.steps.first()?;
            Some(step.strip_prefix("Run: ").map_or_else(|| step.clone(), |command| format!("`{command}`")))
        }
        Topic::Question(_) | Topic::Handover(_) => None,
    }
}

fn counts_as(task: &mut TaskDone, status: StepStatus, reason: Option<String>) {
    task.status = status;
    task.reason = reason;
}

fn without(phases: &[PhaseDone], statuses: &[StepStatus], and_phases: bool) -> Vec<Without> {
    let mut without = Vec::new();
    for phase in phases {
        if and_phases && phase.status == PhaseOutcome::Skipped {
            let reason = "it was on the list of phases to be passed over".to_owned();
            without.push(Without { what: phase.id.clone(), iteration: phase.iteration, reason });
        }
        for task in phase.tasks.iter().chain(&phase.gates).filter(|task| statuses.contains(&task.status)) {
            let reason = task.reason.clone().unwrap_or_else(|| "a person said so".to_owned());
            without.push(Without { what: format!("{}/{}", phase.id, task.id), iteration: phase.iteration, reason });
        }
    }
    without
}

fn produced(key: &TaskKey, file: &OutputFile) -> Produced {
    Produced { path: file.path.clone(), size_bytes: file.bytes, task: key.address(), iteration: key.iteration }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
