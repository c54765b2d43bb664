//! Collects events into the summary of a run.

use super::clock::Clock;
use super::{
    AttemptSummary, GapCheckSummary, HoldOutcome, HoldSummary, Omission, OutputSummary, PhaseOutcome, PhaseSummary, StepSummary,
    Summary, WrittenFile,
};
use crate::view::{AgentView, ApprovedDiffView, CancelledView, RunStatus, UsageView, WhoView};
use lockgate_engine::hold::Topic;
use lockgate_engine::id::{GateId, HoldId, PhaseId, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{GapsChecked, HoldOpened, OutputFile, PlannedTask, Requester};
use lockgate_engine::run::state::{End, StepStatus, TaskState};
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::{
    AgentQuery, Answer, GapCheck, Kind, Note, Notification, PhaseEnd, Retry, RunEnd, Skip, StepOutcome,
};
use lockgate_runner::root::Step;
use std::collections::BTreeMap;
use std::time::Duration;

/// Processes events in order, and returns the summary at the end.
#[derive(Debug, Default)]
pub(super) struct Collector {
    phases: Vec<PhaseSummary>,
    tasks: BTreeMap<TaskKey, (usize, usize)>,
    gates: BTreeMap<(PhaseId, u32, GateId), (usize, usize)>,
    decisions: Vec<HoldSummary>,
    /// The index of each hold's decision, and since when it has been open.
    asked: BTreeMap<HoldId, (usize, Timestamp)>,
    /// By path, because a file that is written again counts once.
    deliverables: BTreeMap<String, OutputSummary>,
    finalization: Option<WrittenFile>,
    gap_checks: Vec<GapCheckSummary>,
    usage: UsageView,
    clock: Clock,
    ended: Option<Timestamp>,
    cancelled: Option<CancelledView>,
    /// Tasks that keep their outcome when the next phase is planned.
    carry: Vec<TaskId>,
    /// Such tasks that ended in the parent of a fork.
    from_parent: Vec<TaskKey>,
    /// Holds of the parent whose answer was changed in this run.
    inherited: Vec<HoldId>,
}

impl Collector {
    /// Processes the next event.
    pub(super) fn take(&mut self, notification: &Notification<'_>) {
        let (at, actor) = (notification.at, notification.actor);
        self.clock.take(&notification.kind, at);
        match &notification.kind {
            Kind::PhaseStarted { phase, iteration, feedback } => {
                self.begin(phase, *iteration, PhaseOutcome::InProgress, *feedback, at)
            }
            Kind::PhaseEnded { phase, end } => self.phase_ended(phase, *end, at),
            Kind::TasksPlanned { phase, iteration, tasks } => {
                self.plan(phase, *iteration, tasks);
                self.carried(phase, *iteration);
            }
            Kind::StepStarted { step, attempt, .. } => self.step(*step, |step| start(step, *attempt, at)),
            Kind::StepEnded { step, outcome, agent, .. } => self.step_ended(*step, *outcome, *agent, at),
            Kind::StepSkipped { step, skip } => self.step(*step, |step| counts_as(step, *skip)),
            Kind::StepRetry { retry, .. } => match retry {
                Retry::Scheduled { .. } => {}
                Retry::Requested => self.ended = None,
            },
            Kind::ReworkRequested { tasks, stale, question, .. } => {
                let again = tasks.iter().chain(*stale).chain([*question]);
                again.for_each(|key| self.task(key, |task| task.status = StepStatus::Waiting));
            }
            Kind::AgentQuery { by, query } => self.query(by, *query),
            Kind::GapCheck(GapCheck::Ended(checked)) => self.gaps(checked),
            Kind::GapCheck(GapCheck::Waived { .. }) => {
                self.gap_checks.last_mut().into_iter().for_each(|check| check.waived = true);
            }
            Kind::HoldOpened(opened) => self.ask(opened, at),
            Kind::HoldAnswered { answer, revision } => self.answer(answer, *revision, actor, at),
            Kind::AnswerChanged(answer) => match self.asked.get(answer.hold) {
                Some((index, _)) => self.answer(answer, self.decisions[*index].revision, actor, at),
                None => self.inherited.push(answer.hold.clone()),
            },
            Kind::HoldReopened { hold, revision, .. } => self.reopen(hold, *revision, at),
            Kind::HoldVoided { hold, .. } => self.close(hold, HoldOutcome::Void, at),
            Kind::Note(note) => {
                if let Note::Finalized { file } = note {
                    self.finalization = Some(WrittenFile { path: file.path.clone(), size_bytes: file.bytes });
                }
            }
            Kind::RunResumed => self.ended = None,
            Kind::RunEnded(end) => {
                self.ended = Some(at);
                if let RunEnd::Cancelled { reason } = end {
                    self.cancelled = Some(CancelledView::new(at, actor, *reason));
                }
            }
            Kind::RunStarted { .. } | Kind::RunInterrupted | Kind::Warning(_) | Kind::Recorded { .. } => {}
        }
    }

    fn phase_ended(&mut self, phase: &PhaseId, end: PhaseEnd<'_>, at: Timestamp) {
        match end {
            PhaseEnd::Completed { iteration } => self.leave(phase, Some(iteration), PhaseOutcome::Complete, at),
            PhaseEnd::Repeated { carry, .. } => {
                self.leave(phase, None, PhaseOutcome::Repeated, at);
                self.carry = carry.to_vec();
            }
            PhaseEnd::Skipped => self.begin(phase, 0, PhaseOutcome::Skipped, None, at),
        }
    }

    fn step_ended(&mut self, step: Step<'_>, outcome: StepOutcome<'_>, agent: Option<&AgentReport>, at: Timestamp) {
        if let Some(report) = agent {
            self.usage.add(report.usage);
        }
        if let Some(key) = step.task() {
            for file in outcome.outputs() {
                self.deliverables.insert(file.path.clone(), produced(key, file));
            }
        }
        self.step(step, |task| end(task, outcome, agent, at));
        if let (StepOutcome::FannedOut { tasks }, Some(key)) = (outcome, step.task()) {
            self.plan(&key.phase, key.iteration, tasks);
        }
    }

    fn query(&mut self, by: &Requester, query: AgentQuery<'_>) {
        let AgentQuery::Answered { agent: Some(report) } = query else { return };
        self.usage.add(report.usage);
        match by {
            Requester::Task(key) => self.task(key, |task| task.usage.add(report.usage)),
            Requester::Gaps { .. } => {}
        }
    }

    fn begin(&mut self, phase: &PhaseId, iteration: u32, status: PhaseOutcome, feedback: Option<&str>, at: Timestamp) {
        let feedback = feedback.filter(|feedback| !feedback.is_empty()).map(str::to_owned);
        let (id, tasks, gates) = (phase.to_string(), Vec::new(), Vec::new());
        self.phases.push(PhaseSummary { id, iteration, status, feedback, started_at: at, duration_ms: 0, tasks, gates });
    }

    fn plan(&mut self, phase: &PhaseId, iteration: u32, planned: &[PlannedTask]) {
        for planned in planned {
            let (task, item) = (planned.task.clone(), planned.item.clone());
            let key = TaskKey { phase: phase.clone(), iteration, task, item };
            let parent = planned.parent.as_ref().map(ToString::to_string);
            self.task(&key, |task| task.parent = parent);
        }
    }

    /// Records tasks that keep their outcome when their phase runs again.
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

    /// Adds information that only the parent of a fork has: the outcomes of carried tasks, and its holds.
    fn inherit(&mut self, run: &Run) {
        for key in std::mem::take(&mut self.from_parent) {
            let now = run.task_run(&key).map(|task| &task.state);
            let ended = run.not_done.get(&key.phase).and_then(|known| known.iter().find(|known| known.task == key.task));
            if let Some(state) = now.or(ended.map(|known| &known.state)) {
                self.task(&key, |task| (task.status, task.reason) = (state.status(), why(state)));
            }
        }
        // They were opened before the first event of this history.
        let inherited = std::mem::take(&mut self.inherited);
        let put: Vec<HoldSummary> = inherited.iter().filter_map(|hold| changed_answer(run, hold)).collect();
        self.decisions.splice(0..0, put);
    }

    fn step(&mut self, step: Step<'_>, change: impl FnOnce(&mut StepSummary)) {
        match step {
            Step::Task(key) => self.task(key, change),
            Step::Gate { phase, iteration, gate } => self.gate(phase, iteration, gate, change),
        }
    }

    /// Updates a task in the latest execution of its phase.
    fn task(&mut self, key: &TaskKey, change: impl FnOnce(&mut StepSummary)) {
        let Some(at) = self.phases.iter().rposition(|phase| phase.id == key.phase.as_str()) else { return };
        let (phase, task) = *self.tasks.entry(key.clone()).or_insert_with(|| {
            let id = key.item.as_ref().map_or_else(|| key.task.to_string(), |item| format!("{}[{item}]", key.task));
            self.phases[at].tasks.push(StepSummary::new(id));
            (at, self.phases[at].tasks.len() - 1)
        });
        change(&mut self.phases[phase].tasks[task]);
    }

    fn gate(&mut self, phase: &PhaseId, iteration: u32, gate: &GateId, change: impl FnOnce(&mut StepSummary)) {
        let Some(at) = self.phases.iter().rposition(|known| known.id == phase.as_str()) else { return };
        let (phase, gate) = *self.gates.entry((phase.clone(), iteration, gate.clone())).or_insert_with(|| {
            self.phases[at].gates.push(StepSummary::new(gate.to_string()));
            (at, self.phases[at].gates.len() - 1)
        });
        change(&mut self.phases[phase].gates[gate]);
    }

    fn ask(&mut self, opened: &HoldOpened, at: Timestamp) {
        self.asked.insert(opened.hold.clone(), (self.decisions.len(), at));
        self.decisions.push(HoldSummary {
            hold: opened.hold.to_string(),
            kind: opened.kind,
            phase: opened.scope.phase().map(ToString::to_string),
            tasks: opened.scope.addresses(),
            title: opened.question.as_ref().map(|asked| asked.task.clone()),
            agent: asking_agent(opened),
            login: login(opened),
            question: opened.prompt.clone(),
            state: HoldOutcome::Open,
            answer: None,
            feedback: None,
            by: None,
            opened_at: at,
            answered_at: None,
            waited_ms: 0,
            revision: 1,
            diff: None,
        });
    }

    fn answer(&mut self, answer: &Answer<'_>, revision: u32, actor: Option<&Actor>, at: Timestamp) {
        self.close(answer.hold, HoldOutcome::Answered, at);
        let Some((index, _)) = self.asked.get(answer.hold) else { return };
        let asked = &mut self.decisions[*index];
        asked.answer = Some(answer.label.clone());
        asked.feedback = answer.feedback.filter(|feedback| !feedback.is_empty()).map(str::to_owned);
        asked.by = Some(WhoView::of(&actor.cloned().unwrap_or_else(Actor::driver)));
        asked.answered_at = Some(at);
        asked.revision = revision;
    }

    /// Marks a decision as open again, because the shown content has changed.
    fn reopen(&mut self, hold: &HoldId, revision: u32, at: Timestamp) {
        let Some((index, since)) = self.asked.get_mut(hold) else { return };
        *since = at;
        let asked = &mut self.decisions[*index];
        (asked.state, asked.revision) = (HoldOutcome::Open, revision);
        (asked.answer, asked.feedback, asked.by, asked.answered_at) = (None, None, None, None);
    }

    fn close(&mut self, hold: &HoldId, state: HoldOutcome, at: Timestamp) {
        let Some((index, since)) = self.asked.get(hold) else { return };
        let asked = &mut self.decisions[*index];
        // A hold that was voided after its answer waited only until the answer.
        if asked.state == HoldOutcome::Open {
            asked.waited_ms += millis(at.since(*since));
        }
        asked.state = state;
    }

    fn leave(&mut self, phase: &PhaseId, iteration: Option<u32>, status: PhaseOutcome, at: Timestamp) {
        let known = |known: &&mut PhaseSummary| known.id == phase.as_str() && iteration.is_none_or(|it| it == known.iteration);
        if let Some(left) = self.phases.iter_mut().rev().find(known) {
            left.status = status;
            left.duration_ms = millis(at.since(left.started_at));
        }
    }

    fn gaps(&mut self, checked: &GapsChecked) {
        self.gap_checks.push(GapCheckSummary {
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

    /// Returns the summary as of now.
    pub(super) fn summary(mut self, run: &Run, status: RunStatus, now: Timestamp) -> Summary {
        let until = self.ended.unwrap_or(now);
        self.clock.until(until);
        for phase in self.phases.iter_mut().filter(|phase| phase.status == PhaseOutcome::InProgress) {
            phase.status = PhaseOutcome::Current(status);
            if status == RunStatus::Interrupted || self.ended.is_some() {
                phase.tasks.iter_mut().chain(&mut phase.gates).for_each(cut_off);
            }
            phase.duration_ms = millis(until.since(phase.started_at));
        }
        for (index, since) in self.asked.values() {
            let asked = &mut self.decisions[*index];
            if asked.state == HoldOutcome::Open {
                asked.waited_ms += millis(until.since(*since));
            }
        }
        self.inherit(run);
        for asked in &mut self.decisions {
            let settled = run.decisions.iter().rfind(|decision| decision.hold.as_str() == asked.hold && !decision.void);
            asked.diff = settled.and_then(|decision| decision.diff.as_deref()).map(ApprovedDiffView::of);
        }
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
            duration_ms: millis(until.since(run.started_at)),
            waited_ms: millis(self.clock.waited),
            idle_ms: millis(self.clock.idle),
            omitted: without(&self.phases, &[StepStatus::Omitted, StepStatus::Skipped, StepStatus::Waived], true),
            tolerated: without(&self.phases, &[StepStatus::Tolerated], false),
            phases: self.phases,
            decisions: self.decisions,
            deliverables: self.deliverables.into_values().collect(),
            finalization: self.finalization,
            gap_checks: self.gap_checks,
            usage: self.usage,
            worktrees: Vec::new(),
            warnings: run.warnings.clone(),
        }
    }
}

impl StepSummary {
    fn new(id: String) -> Self {
        let (attempts, usage) = (Vec::new(), UsageView::default());
        Self {
            id,
            parent: None,
            status: StepStatus::Waiting,
            reason: None,
            duration_ms: 0,
            attempts,
            usage,
            commit: None,
            commits: Vec::new(),
        }
    }
}

/// Why a task that ended in the parent is not done.
fn why(state: &TaskState) -> Option<String> {
    match state {
        TaskState::Omitted { reason, .. } => Some(reason.clone()),
        TaskState::Tolerated(failure) => Some(failure.message.clone()),
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Backoff { .. }
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::Done
        | TaskState::Skipped
        | TaskState::FannedOut
        | TaskState::Blocked => None,
    }
}

/// The changed answer to a hold of the parent.
fn changed_answer(run: &Run, hold: &HoldId) -> Option<HoldSummary> {
    let decision = run.decisions.iter().rfind(|decision| decision.hold == *hold && decision.superseded.is_none())?;
    let put = run.decisions.iter().rev().filter(|known| known.hold == *hold).find_map(|known| known.changeable.as_deref())?;
    Some(HoldSummary {
        hold: hold.to_string(),
        kind: put.kind,
        phase: put.scope.phase().map(ToString::to_string),
        tasks: put.scope.addresses(),
        title: put.question.as_ref().map(|asked| asked.task.clone()),
        agent: None,
        login: None,
        question: put.prompt.clone(),
        state: HoldOutcome::Answered,
        answer: Some(decision.label.clone()),
        feedback: decision.feedback.clone().filter(|feedback| !feedback.is_empty()),
        by: Some(WhoView::of(&decision.actor)),
        opened_at: put.opened_at,
        answered_at: Some(decision.at),
        waited_ms: 0,
        revision: decision.revision,
        diff: decision.diff.as_deref().map(ApprovedDiffView::of),
    })
}

/// Marks a running task as interrupted. The history has no event for this if the driver died or the run was cancelled.
fn cut_off(task: &mut StepSummary) {
    if task.status == StepStatus::Running {
        task.status = StepStatus::Interrupted;
    }
    task.attempts
        .iter_mut()
        .filter(|attempt| attempt.status == StepStatus::Running)
        .for_each(|attempt| attempt.status = StepStatus::Interrupted);
}

fn start(task: &mut StepSummary, attempt: u32, at: Timestamp) {
    task.status = StepStatus::Running;
    task.attempts.push(AttemptSummary {
        attempt,
        status: StepStatus::Running,
        started_at: at,
        duration_ms: None,
        error: None,
        agent: None,
    });
}

fn end(task: &mut StepSummary, outcome: StepOutcome<'_>, agent: Option<&AgentReport>, at: Timestamp) {
    let (status, error) = (outcome.status(), outcome.error());
    if let Some(report) = agent {
        task.usage.add(report.usage);
    }
    if let StepOutcome::Done { commit: Some(commit), .. } = outcome {
        task.commits.push(commit.to_owned());
        task.commit = Some(commit.to_owned());
    }
    task.status = status;
    task.reason = error.map(str::to_owned);
    // A fanned-out task ends again together with its items, after its own attempt has ended.
    if let Some(last) = task.attempts.last_mut().filter(|last| last.duration_ms.is_none()) {
        let took = millis(at.since(last.started_at));
        task.duration_ms += took;
        last.duration_ms = Some(took);
        last.status = status;
        last.error = error.map(str::to_owned);
        last.agent = agent.map(AgentView::of);
    }
}

/// The task whose agent asked, if the question is the agent's own.
fn asking_agent(opened: &HoldOpened) -> Option<String> {
    let asked = opened.question.as_ref()?;
    match &asked.topic {
        Topic::Handover(_) => {
            let address = opened.scope.addresses().into_iter().next()?;
            let id = address.rsplit('/').next().unwrap_or_default();
            Some(format!("{id} ({})", asked.task))
        }
        Topic::Question(_) | Topic::Authentication(_) => None,
    }
}

/// The step that resolves a missing login, as a command if it is one.
fn login(opened: &HoldOpened) -> Option<String> {
    match &opened.question.as_ref()?.topic {
        Topic::Authentication(missing) => {
            let step = missing.steps.first()?;
            Some(step.strip_prefix("Run: ").map_or_else(|| step.clone(), |command| format!("`{command}`")))
        }
        Topic::Question(_) | Topic::Handover(_) => None,
    }
}

fn counts_as(task: &mut StepSummary, skip: Skip<'_>) {
    let (status, reason) = match skip {
        Skip::CountsAsDone { reason } => (StepStatus::Skipped, Some(reason.to_owned())),
        Skip::Omitted { reason } => (StepStatus::Omitted, Some(reason.to_owned())),
        // The reason is that of the failure.
        Skip::Tolerated => (StepStatus::Tolerated, task.reason.take()),
        Skip::Waived { reason, .. } => (StepStatus::Waived, reason.map(str::to_owned)),
    };
    (task.status, task.reason) = (status, reason);
}

fn without(phases: &[PhaseSummary], statuses: &[StepStatus], and_phases: bool) -> Vec<Omission> {
    let mut without = Vec::new();
    for phase in phases {
        if and_phases && phase.status == PhaseOutcome::Skipped {
            let reason = "it was on the list of phases to skip".to_owned();
            without.push(Omission { what: phase.id.clone(), iteration: phase.iteration, reason });
        }
        for task in phase.tasks.iter().chain(&phase.gates).filter(|task| statuses.contains(&task.status)) {
            let reason = task.reason.clone().unwrap_or_else(|| "a person said so".to_owned());
            without.push(Omission { what: format!("{}/{}", phase.id, task.id), iteration: phase.iteration, reason });
        }
    }
    without
}

fn produced(key: &TaskKey, file: &OutputFile) -> OutputSummary {
    OutputSummary { path: file.path.clone(), size_bytes: file.bytes, task: key.address(), iteration: key.iteration }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
