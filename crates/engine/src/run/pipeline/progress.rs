//! The progress of a pipeline, derived from its run so that its lists are always consistent.

use super::{Imported, Lifecycle, PipelineRun, bare_title};
use crate::id::TaskId;
use crate::run::event::Failure;
use crate::run::phase::PhaseRun;
use crate::run::state::{End, GateState, Run, TaskState};
use crate::spec::workflow::{Pipeline, PipelinePhase};

/// The progress of a pipeline. Every workstream is in exactly one of the three lists, and every gate in one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineProgress {
    /// The number of the current phase; 0 before the first.
    pub current_phase: u32,
    pub status: Lifecycle,
    pub completed: Vec<String>,
    pub in_progress: Vec<String>,
    /// Workstreams that have not started, or must run again.
    pub pending: Vec<String>,
    /// The files that completed workstreams produced.
    pub artifacts: Vec<(String, Vec<String>)>,
    pub gates_passed: Vec<String>,
    pub gates_pending: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineFailure<'r> {
    /// The workstream that failed. If a gate of the phase failed: all its workstreams, separated by commas.
    pub workstream: String,
    pub message: &'r str,
    /// The last output of the failed work. Empty if the run failed although no work did.
    pub output: &'r str,
}

impl PipelineProgress {
    /// The progress that an imported state file reports.
    pub fn of_imported(imported: &Imported) -> Self {
        let names = |list: &[TaskId]| list.iter().map(ToString::to_string).collect();
        Self {
            current_phase: imported.current_phase,
            status: imported.status,
            completed: names(&imported.completed),
            in_progress: names(&imported.in_progress),
            pending: names(&imported.pending),
            artifacts: imported.artifacts.iter().map(|(workstream, paths)| (workstream.to_string(), paths.clone())).collect(),
            gates_passed: imported.gates_passed.clone(),
            gates_pending: imported.gates_pending.clone(),
        }
    }
}

impl Run {
    /// The progress of the pipeline; `None` if the run is not a pipeline. An imported pipeline that has not moved since reports
    /// the progress in its file.
    pub fn pipeline_progress(&self) -> Option<PipelineProgress> {
        let (pipeline, known) = self.pipeline()?;
        if let Some(imported) = known.unmoved() {
            return Some(PipelineProgress::of_imported(imported));
        }
        let lists = Lists::of(self, pipeline, known);
        let (gates_passed, gates_pending) = gates(self, pipeline, known);
        let status = status(self, pipeline, &lists, &gates_pending);
        let artifacts = known.artifacts.iter().map(|(workstream, paths)| (workstream.to_string(), paths.clone()));
        let artifacts = artifacts.filter(|(workstream, _)| lists.completed.contains(workstream)).collect();
        Some(PipelineProgress {
            current_phase: current_phase(self, pipeline, status),
            status,
            completed: lists.completed,
            in_progress: lists.in_progress,
            pending: lists.pending,
            artifacts,
            gates_passed,
            gates_pending,
        })
    }

    /// Why the pipeline failed; `None` if the run is not a pipeline.
    pub fn pipeline_failure(&self) -> Option<PipelineFailure<'_>> {
        let (pipeline, _) = self.pipeline()?;
        let phase = self.current.as_ref();
        let all = |phase: &PhaseRun| pipeline.phases.get(phase.position).map(names).unwrap_or_default();
        if let Some((phase, (index, failure))) = phase.and_then(|phase| Some((phase, failed(phase)?))) {
            let workstream = index.map_or_else(|| all(phase), |index| phase.tasks[index].task.to_string());
            return Some(PipelineFailure { workstream, message: &failure.message, output: &failure.tail });
        }
        let message = match &self.end {
            Some(End::Failed(message)) => message.as_str(),
            Some(End::Complete | End::Aborted | End::Cancelled) | None => "",
        };
        let workstream = phase.map(all).filter(|names| !names.is_empty());
        let workstream = workstream.or_else(|| pipeline.phases.last().map(names)).unwrap_or_default();
        Some(PipelineFailure { workstream, message, output: "" })
    }
}

/// The workstreams, each in one list.
#[derive(Default)]
struct Lists {
    completed: Vec<String>,
    in_progress: Vec<String>,
    pending: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Completed,
    InProgress,
    Pending,
}

impl Lists {
    fn of(run: &Run, pipeline: &Pipeline, known: &PipelineRun) -> Self {
        let mut lists = Self::default();
        for (position, phase) in pipeline.phases.iter().enumerate() {
            for workstream in &phase.workstreams {
                let list = match place(run, known, position, workstream) {
                    Place::Completed => &mut lists.completed,
                    Place::InProgress => &mut lists.in_progress,
                    Place::Pending => &mut lists.pending,
                };
                list.push(workstream.to_string());
            }
        }
        // Workstreams that only the imported file knows keep their list.
        let elsewhere = |workstream: &&TaskId| pipeline.phase_of(workstream.as_str()).is_none();
        if let Some(imported) = &known.imported {
            lists.completed.extend(imported.completed.iter().filter(elsewhere).map(ToString::to_string));
            let left = imported.in_progress.iter().chain(&imported.pending);
            let left = left.filter(elsewhere).filter(|workstream| !pipeline.deferred.contains(workstream));
            lists.pending.extend(left.map(ToString::to_string));
        }
        lists
    }
}

fn place(run: &Run, known: &PipelineRun, position: usize, workstream: &TaskId) -> Place {
    let Some(phase) = run.current.as_ref().filter(|phase| phase.position == position) else {
        let is_done = run.workflow.phases.get(position).is_some_and(|phase| run.completed.contains(&phase.id));
        let was_done = known.was_done(workstream) && run.position <= position;
        return if is_done || was_done { Place::Completed } else { Place::Pending };
    };
    let Some(index) = phase.tasks.iter().position(|task| task.task == *workstream && task.item.is_none()) else {
        return Place::Pending;
    };
    let live = run.end.is_none() && !run.stopping;
    let own: Vec<&GateState> = (0..phase.gates.len())
        .filter(|gate| phase.gated_task(*gate) == Some(index))
        .map(|gate| &phase.gates[gate].state)
        .collect();
    let at_work = match &phase.tasks[index].state {
        TaskState::Running | TaskState::Backoff { .. } | TaskState::FannedOut => true,
        TaskState::Waiting
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::Done
        | TaskState::Skipped
        | TaskState::Blocked
        | TaskState::Omitted { .. }
        | TaskState::Tolerated(_) => own.iter().any(|gate| **gate == GateState::Running),
    };
    let done =
        matches!(phase.tasks[index].state, TaskState::Done | TaskState::Skipped) && own.iter().all(|gate| gate.is_settled());
    match (done, live) {
        (false, true) if at_work => Place::InProgress,
        (false, _) => Place::Pending,
        // Workstreams that the file once reported as completed stay completed when the phase continues.
        (true, _) if known.reported.contains(workstream) => Place::Completed,
        // It leaves the list when the gates of its phase have ended too.
        (true, true) if phase.next_gate().is_some() && is_at_work(phase) => Place::InProgress,
        // Only gates are left. These workstreams are in progress again while the gates run, so they are not completed yet.
        (true, _) if phase.next_gate().is_some() && phase.tasks_done() => Place::Pending,
        (true, _) => Place::Completed,
    }
}

/// The workstreams of the current phase that are reported as completed while nothing in it is running.
pub(super) fn completed_at_rest(run: &Run) -> Vec<TaskId> {
    let (Some((pipeline, known)), Some(phase)) = (run.pipeline(), &run.current) else { return Vec::new() };
    let rests = run.end.is_some() || run.stopping || !is_at_work(phase);
    let Some(said) = pipeline.phases.get(phase.position).filter(|_| rests && phase.next_gate().is_some()) else {
        return Vec::new();
    };
    let is_new = |id: &&TaskId| !known.reported.contains(*id) && place(run, known, phase.position, id) == Place::Completed;
    said.workstreams.iter().filter(is_new).cloned().collect()
}

/// Whether anything in a phase is running.
fn is_at_work(phase: &PhaseRun) -> bool {
    phase.running().next().is_some() || phase.running_gates().next().is_some()
}

fn status(run: &Run, pipeline: &Pipeline, lists: &Lists, gates_pending: &[String]) -> Lifecycle {
    let has_begun = |known: &PipelineRun| known.imported.is_some() || !(known.worked.is_empty() && known.checked.is_empty());
    let begun = run.pipeline.as_deref().is_some_and(has_begun);
    let resting = if begun { Lifecycle::Paused } else { Lifecycle::Initialized };
    // Phases after the pipeline's own are not part of it.
    let over = run.position >= pipeline.phases.len();
    let whole = lists.pending.is_empty() && lists.in_progress.is_empty() && gates_pending.is_empty();
    match &run.end {
        _ if over && whole => Lifecycle::Complete,
        Some(End::Complete) if whole => Lifecycle::Complete,
        // Workstreams that only the imported file knows are still to be done outside this run.
        Some(End::Complete) => Lifecycle::Paused,
        Some(End::Failed(_)) if run.waits_for_review() => resting,
        Some(End::Failed(_)) => Lifecycle::Failed,
        Some(End::Aborted | End::Cancelled) => resting,
        None if lists.in_progress.is_empty() => resting,
        None => Lifecycle::InProgress,
    }
}

fn current_phase(run: &Run, pipeline: &Pipeline, status: Lifecycle) -> u32 {
    let number = match &run.current {
        Some(phase) => phase.position + 1,
        None => run.position,
    };
    let number = if status == Lifecycle::Initialized { 0 } else { number.min(pipeline.phases.len()) };
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The gates: passed ones, then pending ones. Waived gates count as passed, and so do those that passed before an import.
fn gates(run: &Run, pipeline: &Pipeline, known: &PipelineRun) -> (Vec<String>, Vec<String>) {
    let (mut passed, mut pending) = (Vec::new(), Vec::new());
    for (position, said) in pipeline.phases.iter().enumerate() {
        let Some(phase) = run.workflow.phases.get(position) else { continue };
        let complete = run.completed.contains(&phase.id);
        let current = run.current.as_ref().filter(|current| current.position == position);
        let gate_run = |id: &str| current.and_then(|current| current.gates.iter().find(|gate| gate.gate.as_str() == id));
        let added = run.added_gates(phase).iter().map(|gate| gate.id.as_str());
        for id in said.gates.iter().map(|gate| gate.as_str()).chain(added) {
            let gate = run.gate_of(phase, id);
            let title = gate.map_or(id, |gate| gate.title());
            let of = gate.and_then(|gate| gate.task.as_ref());
            let before = known.had_passed(title, of, &said.workstreams) && run.position <= position;
            let holds = complete || gate_run(id).map_or(before, |gate| gate.state.is_settled());
            if holds { &mut passed } else { &mut pending }.push(title.to_owned());
        }
        for gate in pipeline.manual_gates.iter().filter(|gate| gate.phase == phase.id) {
            let holds = complete || known.had_passed(&gate.title, None, &said.workstreams);
            if holds { &mut passed } else { &mut pending }.push(gate.title.clone());
        }
    }
    if let Some(imported) = &known.imported {
        let known_here: Vec<String> = passed.iter().chain(&pending).cloned().collect();
        let elsewhere = |gate: &&String| !known_here.iter().any(|known| known == *gate || bare_title(known) == bare_title(gate));
        passed.extend(imported.gates_passed.iter().filter(elsewhere).cloned());
        pending.extend(imported.gates_pending.iter().filter(elsewhere).cloned());
    }
    (passed, pending)
}

/// The failure, and the workstream to which it belongs; none for a gate of the phase.
fn failed(phase: &PhaseRun) -> Option<(Option<usize>, &Failure)> {
    let tasks = phase.failed_or_interrupted().filter_map(|index| Some((Some(index), phase.tasks[index].state.failure()?)));
    let gates = phase.gates.iter().enumerate();
    let gates = gates.filter_map(|(index, gate)| Some((phase.gated_task(index), gate.state.failure()?)));
    tasks.chain(gates).next()
}

fn names(phase: &PipelinePhase) -> String {
    phase.workstreams.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}
