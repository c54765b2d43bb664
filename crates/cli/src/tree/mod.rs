//! The live tree: phases, and the tasks and gates of the current one, as a model that is independent of the terminal.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | the contents of the tree, updated with the run |
//! | `rows` | the tree as rows that fit a window |
//! | `visible` | which steps have a row |

mod rows;
#[cfg(test)]
mod tests;
mod visible;

pub(crate) use rows::Size;

use lockgate::graph::{Mark, gap_mark};
use lockgate::phrases::first_line;
use lockgate::pipeline::{gate_title, task_title};
use lockgate::sanitize;
use lockgate::view::{AgentView, Deadline, PhaseStatus, RunStatus};
use lockgate_engine::id::{GateId, HoldId, PhaseId, RunId, StepKey, TaskId};
use lockgate_engine::run::Run;
use lockgate_engine::run::phase::{PhaseRun, TaskRun};
use lockgate_engine::run::state::{GapState, GateRun, GateState, TaskState};
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::{Kind, Notification, PhaseEnd};
use lockgate_runner::root::Step;
use std::collections::BTreeMap;
use std::time::Duration;

/// The contents of the tree. All texts are sanitized.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    run: String,
    title: String,
    status: RunStatus,
    started_at: Timestamp,
    /// When the run ended; its elapsed time stops there.
    ended_at: Option<Timestamp>,
    driven: bool,
    /// Whether running tasks are being stopped, because this process was asked to stop.
    ending: bool,
    version: u64,
    phases: Vec<PhaseNode>,
    steps: Vec<StepNode>,
    gap: Option<GapNode>,
    questions: Vec<QuestionNode>,
    /// When the gates of the current phase started, which the state of the run does not contain.
    gates_began: BTreeMap<GateId, Timestamp>,
}

#[derive(Clone, Debug)]
struct PhaseNode {
    id: String,
    mark: Mark,
    iteration: u32,
    current: bool,
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
}

/// A task or gate of the current phase.
#[derive(Clone, Debug)]
struct StepNode {
    key: StepKey,
    attempt: u32,
    label: String,
    mark: Mark,
    /// When its last attempt started.
    began: Option<Timestamp>,
    took: Option<Duration>,
    /// When it is retried.
    due: Option<Timestamp>,
    /// Why it failed or was left out.
    error: Option<String>,
    /// The task that fanned out into this one.
    parent: Option<TaskId>,
    /// The agent and its usage.
    agent: Option<String>,
}

/// An open hold.
#[derive(Clone, Debug, PartialEq)]
struct QuestionNode {
    hold: HoldId,
    text: String,
    deadline: Option<Deadline>,
}

/// The gap check of the current phase.
#[derive(Clone, Debug)]
struct GapNode {
    mark: Mark,
    /// The gaps and the resulting action.
    text: String,
}

impl Tree {
    pub(crate) fn is_of(&self, run: &RunId) -> bool {
        self.run == run.as_str()
    }

    pub(crate) fn of(run: &Run, driven: bool) -> Self {
        let about = run.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
        let mut tree = Self {
            run: run.id.to_string(),
            title: sanitize::line(&format!("{}{about}", run.workflow.name)).into_owned(),
            status: RunStatus::Running,
            started_at: run.started_at,
            ended_at: None,
            driven,
            ending: false,
            version: run.version,
            phases: Vec::new(),
            steps: Vec::new(),
            gap: None,
            questions: Vec::new(),
            gates_began: BTreeMap::new(),
        };
        tree.refresh(run);
        tree
    }

    /// Applies events to the tree; `run` is the state after them.
    pub(crate) fn heard(&mut self, run: &Run, notifications: &[Notification<'_>]) {
        let followed = run.version == self.version + 1;
        self.version = run.version;
        let mut all = !followed;
        for notification in notifications {
            match self.noted(run, notification) {
                Some(index) if !all => self.refresh_step(run, index),
                Some(_) => {}
                None => all = true,
            }
        }
        if all {
            self.refresh(run);
        }
    }

    /// Replays earlier events for the times that the state of the run does not contain.
    pub(crate) fn recall(&mut self, run: &Run, notifications: &[Notification<'_>]) {
        for notification in notifications {
            self.noted(run, notification);
        }
        self.refresh(run);
    }

    /// Sets whether a process drives the run.
    pub(crate) fn set_driven(&mut self, run: &Run, driven: bool) {
        if self.driven != driven {
            self.driven = driven;
            self.refresh(run);
        }
    }

    /// Shows that running tasks are being stopped.
    pub(crate) fn set_ending(&mut self) {
        self.ending = true;
    }

    /// The running steps and their attempts.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&StepKey, u32)> {
        self.steps.iter().filter(|step| step.mark == Mark::Running).map(|step| (&step.key, step.attempt))
    }

    /// Stores the times that the state of the run does not contain. Returns the step that changed if nothing else did.
    fn noted(&mut self, run: &Run, notification: &Notification<'_>) -> Option<usize> {
        let at = notification.at;
        match &notification.kind {
            Kind::StepStarted { step: Step::Gate { gate, .. }, .. } => {
                self.gates_began.insert((*gate).clone(), at);
            }
            Kind::PhaseStarted { phase, .. } => {
                self.gates_began.clear();
                if let Some(node) = self.phase_mut(phase) {
                    (node.began, node.ended) = (Some(at), None);
                }
            }
            Kind::PhaseEnded { phase, end: PhaseEnd::Completed { .. } } => {
                if let Some(node) = self.phase_mut(phase) {
                    node.ended = Some(at);
                }
            }
            Kind::RunEnded(_) => self.ended_at = Some(at),
            Kind::StepStarted { step: Step::Task(_), .. }
            | Kind::StepEnded { .. }
            | Kind::StepSkipped { .. }
            | Kind::StepRetry { .. }
            | Kind::Recorded { .. }
            | Kind::RunStarted { .. }
            | Kind::RunResumed
            | Kind::RunInterrupted
            | Kind::PhaseEnded { end: PhaseEnd::Repeated { .. } | PhaseEnd::Skipped, .. }
            | Kind::TasksPlanned { .. }
            | Kind::ReworkRequested { .. }
            | Kind::AgentQuery { .. }
            | Kind::GapCheck(_)
            | Kind::HoldOpened(_)
            | Kind::HoldAnswered { .. }
            | Kind::AnswerChanged(_)
            | Kind::HoldReopened { .. }
            | Kind::HoldVoided { .. }
            | Kind::Note(_)
            | Kind::Warning(_) => {}
        }
        let task = notification.only_task()?;
        run.current.as_ref()?.find(task).filter(|index| *index < self.steps.len())
    }

    fn phase_mut(&mut self, phase: &PhaseId) -> Option<&mut PhaseNode> {
        self.phases.iter_mut().find(|node| node.id == sanitize::line(phase.as_str()))
    }

    /// Rebuilds the tree from the state of the run, and keeps the times that only events contain.
    fn refresh(&mut self, run: &Run) {
        self.status = RunStatus::of(run.status(), self.driven);
        self.ended_at = run.end.as_ref().map(|_| self.ended_at.unwrap_or(run.listed.changed_at));
        let known = std::mem::take(&mut self.phases);
        let phases = run.workflow.phases.iter().enumerate();
        self.phases = phases
            .map(|(at, phase)| {
                let current = run.current.as_ref().filter(|current| current.id == phase.id);
                let known = known.get(at);
                PhaseNode {
                    id: sanitize::line(phase.id.as_str()).into_owned(),
                    mark: Mark::of_phase(PhaseStatus::of(run, at, &phase.id, self.status)),
                    iteration: run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0),
                    current: current.is_some(),
                    began: current.map(|current| current.started_at).or(known.and_then(|known| known.began)),
                    ended: known.and_then(|known| known.ended),
                }
            })
            .collect();
        let known = std::mem::take(&mut self.steps);
        if let Some(phase) = &run.current {
            let tasks = (0..phase.tasks.len()).map(|index| self.task(run, phase, index, known.get(index)));
            let mut steps: Vec<StepNode> = tasks.collect();
            steps.extend(phase.gates.iter().enumerate().map(|(at, gate)| {
                let known = known.get(phase.tasks.len() + at);
                self.gate(run, phase, gate, known)
            }));
            self.steps = steps;
        }
        self.gap = run.current.as_ref().and_then(|phase| self.gap_check(run, phase));
        let asked = |hold: &&lockgate_engine::hold::Hold| QuestionNode {
            hold: hold.id.clone(),
            text: format!("{}@{}: {}", hold.id, hold.revision, first_line(&hold.prompt)),
            deadline: Deadline::of(hold),
        };
        self.questions = run.open_holds().iter().map(asked).collect();
    }

    fn refresh_step(&mut self, run: &Run, index: usize) {
        let Some(phase) = &run.current else { return };
        let node = self.task(run, phase, index, self.steps.get(index));
        self.steps[index] = node;
        self.gap = self.gap_check(run, phase);
    }

    fn task(&self, run: &Run, phase: &PhaseRun, index: usize, known: Option<&StepNode>) -> StepNode {
        let task: &TaskRun = &phase.tasks[index];
        let key = StepKey::Task(phase.key(index));
        let known = known.filter(|known| known.key == key && known.attempt == task.attempts);
        let (due, error) = match &task.state {
            TaskState::Backoff { due, .. } => (Some(*due), None),
            TaskState::Failed(failure) | TaskState::Tolerated(failure) => (None, Some(first_line(&failure.message))),
            TaskState::Omitted { reason, .. } => (None, Some(first_line(reason))),
            TaskState::Waiting
            | TaskState::Running
            | TaskState::Interrupted
            | TaskState::Done
            | TaskState::Skipped
            | TaskState::FannedOut
            | TaskState::Blocked => (None, None),
        };
        let runs = task.state == TaskState::Running;
        let began = if runs { task.since } else { known.and_then(|known| known.began) };
        let took = known.and_then(|known| known.took).or_else(|| Some(task.since?.since(began?)));
        let item = task.item.as_ref().map(|item| format!("[{item}]")).unwrap_or_default();
        StepNode {
            key,
            attempt: task.attempts,
            label: sanitize::line(&format!("{}{item}", task_title(&run.workflow, task.task.as_str()))).into_owned(),
            mark: self.as_driven(Mark::of_task(&task.state)),
            began,
            took: if runs { None } else { took },
            due,
            error,
            parent: task.parent.clone(),
            agent: AgentView::of_task(run, phase, index).map(|agent| agent.line()),
        }
    }

    fn gap_check(&self, run: &Run, phase: &PhaseRun) -> Option<GapNode> {
        run.workflow.phases.get(phase.position)?.gap_check.as_ref()?;
        let text = match &phase.gap.state {
            GapState::Waiting if run.gap_rounds > 0 => format!("check {}", run.gap_rounds + 1),
            GapState::Waiting | GapState::Closed => String::new(),
            GapState::Waived => "waived by a person".to_owned(),
            GapState::Open { action, notes } => {
                let notes: Vec<String> = notes.iter().map(|note| first_line(note)).collect();
                format!("{}: {}", action.as_str().replace('_', " "), notes.join("; "))
            }
        };
        Some(GapNode { mark: self.as_driven(gap_mark(&phase.gap.state, phase.tasks_done())), text })
    }

    fn gate(&self, run: &Run, phase: &PhaseRun, gate: &GateRun, known: Option<&StepNode>) -> StepNode {
        let declared = run.workflow.phases.get(phase.position).and_then(|declared| run.gate_of(declared, gate.gate.as_str()));
        let title = declared.map_or_else(|| gate.gate.to_string(), |gate| gate_title(&run.workflow, gate));
        let key = StepKey::Gate { phase: phase.id.clone(), iteration: phase.iteration, gate: gate.gate.clone() };
        let known = known.filter(|known| known.key == key && known.attempt == gate.attempts);
        StepNode {
            label: format!("gate {}", sanitize::line(&title)),
            key,
            attempt: gate.attempts,
            mark: self.as_driven(Mark::of_gate(&gate.state)),
            began: (gate.state == GateState::Running).then(|| self.gates_began.get(&gate.gate).copied()).flatten(),
            took: known.and_then(|known| known.took),
            due: None,
            error: match &gate.state {
                GateState::Failed(failure) => Some(first_line(&failure.message)),
                GateState::Waiting | GateState::Running | GateState::Passed | GateState::Waived => None,
            },
            parent: None,
            agent: None,
        }
    }

    /// Without a driver, a running step counts as interrupted.
    fn as_driven(&self, mark: Mark) -> Mark {
        mark.if_driven(self.driven)
    }
}
