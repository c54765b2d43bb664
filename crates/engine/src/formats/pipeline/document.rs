//! What the state file of a pipeline says, from its run: a view, so that its lists agree by construction.

use super::by_hand::bare;
use super::lifecycle::Lifecycle;
use crate::formats::output_place::output_place;
use crate::id::TaskId;
use crate::run::event::Failure;
use crate::run::phase::PhaseRun;
use crate::run::pipeline::{FileError, Fix, Imported, Notes, PipelineRun, Review};
use crate::run::state::{End, GateState, Run, TaskState};
use crate::spec::workflow::{Pipeline, PipelinePhase};
use crate::time::Timestamp;
use serde_json::{Map, Value, json};

/// So much of a failure's message stands in the file.
const MESSAGE_CHARACTERS: usize = 500;

/// What the state file of a pipeline says.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What the pipeline is known by.
    pub prd: String,
    /// What people call it.
    pub title: String,
    /// The number of the phase that it is in; 0 before the first.
    pub current_phase: u32,
    /// Where it stands.
    pub status: Lifecycle,
    /// Workstreams that are done.
    pub completed: Vec<String>,
    /// Workstreams that are at work.
    pub in_progress: Vec<String>,
    /// Workstreams that have not begun, or must be done again.
    pub pending: Vec<String>,
    /// What workstreams that are done left behind.
    pub artifacts: Vec<(String, Vec<String>)>,
    /// Gates that have passed.
    pub gates_passed: Vec<String>,
    /// Gates that have not.
    pub gates_pending: Vec<String>,
    /// When anything last happened, in ISO 8601.
    pub timestamp: String,
    /// Why it failed.
    pub error: Option<FileError>,
    /// Its review.
    pub review: Option<Review>,
    /// What was noted.
    pub notes: Notes,
}

/// What the state file of a run says; nothing where it is no pipeline. `root` is the folder that the names of files begin from.
pub fn document(run: &Run, root: Option<&str>) -> Option<Document> {
    let (pipeline, known) = run.pipeline()?;
    if let Some(imported) = known.imported.as_deref().filter(|_| !known.moved) {
        let (review, notes) = (known.review.clone(), known.notes.clone());
        return Some(Document { review, notes, ..Document::of_imported(pipeline, imported, known.changed_at) });
    }
    let lists = Lists::of(run, pipeline, known);
    let (gates_passed, gates_pending) = gates(run, pipeline, known);
    let status = status(run, pipeline, &lists, &gates_pending);
    let artifacts = known.artifacts.iter().map(|(workstream, paths)| (workstream.to_string(), paths.clone()));
    let artifacts = artifacts.filter(|(workstream, _)| lists.completed.contains(workstream)).collect();
    Some(Document {
        prd: pipeline.prd.clone(),
        title: pipeline.title.clone(),
        current_phase: current_phase(run, pipeline, status),
        status,
        completed: lists.completed,
        in_progress: lists.in_progress,
        pending: lists.pending,
        artifacts,
        gates_passed,
        gates_pending,
        timestamp: known.changed_at.to_string(),
        error: if status == Lifecycle::Failed { Some(error(run, pipeline, root)) } else { None },
        review: known.review.clone(),
        notes: known.notes.clone(),
    })
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
        // What only the imported file knows stays where it said.
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
        TaskState::Running | TaskState::Backoff { .. } | TaskState::Spread => true,
        TaskState::Waiting
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::Done
        | TaskState::Skipped
        | TaskState::Held
        | TaskState::LeftOut { .. }
        | TaskState::Tolerated(_) => own.iter().any(|gate| **gate == GateState::Running),
    };
    let done =
        matches!(phase.tasks[index].state, TaskState::Done | TaskState::Skipped) && own.iter().all(|gate| gate.is_settled());
    match (done, live) {
        (false, true) if at_work => Place::InProgress,
        (false, _) => Place::Pending,
        // What the file once reported as completed is not taken back when the phase continues.
        (true, _) if known.reported.contains(workstream) => Place::Completed,
        // It leaves the list when the gates of its phase have ended too.
        (true, true) if phase.next_gate().is_some() && is_at_work(phase) => Place::InProgress,
        // Nothing but gates is left to do: these workstreams are in progress again while the gates run, so they are not completed yet.
        (true, _) if phase.next_gate().is_some() && phase.tasks_done() => Place::Pending,
        (true, _) => Place::Completed,
    }
}

/// The workstreams of the current phase that are reported as completed while nothing of it is at work.
pub(crate) fn completed_at_rest(run: &Run) -> Vec<TaskId> {
    let (Some((pipeline, known)), Some(phase)) = (run.pipeline(), &run.current) else { return Vec::new() };
    let rests = run.end.is_some() || run.stopping || !is_at_work(phase);
    let Some(said) = pipeline.phases.get(phase.position).filter(|_| rests && phase.next_gate().is_some()) else {
        return Vec::new();
    };
    let is_new = |id: &&TaskId| !known.reported.contains(*id) && place(run, known, phase.position, id) == Place::Completed;
    said.workstreams.iter().filter(is_new).cloned().collect()
}

/// Whether anything of a phase is under way.
fn is_at_work(phase: &PhaseRun) -> bool {
    phase.running().next().is_some() || phase.running_gates().next().is_some()
}

fn status(run: &Run, pipeline: &Pipeline, lists: &Lists, gates_pending: &[String]) -> Lifecycle {
    let has_begun = |known: &PipelineRun| known.imported.is_some() || !(known.worked.is_empty() && known.checked.is_empty());
    let begun = run.pipeline.as_deref().is_some_and(has_begun);
    let resting = if begun { Lifecycle::Paused } else { Lifecycle::Initialized };
    // What comes after the phases is no part of the pipeline.
    let over = run.position >= pipeline.phases.len();
    let whole = lists.pending.is_empty() && lists.in_progress.is_empty() && gates_pending.is_empty();
    match &run.end {
        _ if over && whole => Lifecycle::Complete,
        Some(End::Complete) if whole => Lifecycle::Complete,
        // What only the file knows that it was imported from is still to be done, by somebody else.
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

/// The gates, those that have passed first. What a person let pass has passed, and so has what had before an import.
fn gates(run: &Run, pipeline: &Pipeline, known: &PipelineRun) -> (Vec<String>, Vec<String>) {
    let (mut passed, mut pending) = (Vec::new(), Vec::new());
    for (position, said) in pipeline.phases.iter().enumerate() {
        let Some(phase) = run.workflow.phases.get(position) else { continue };
        let complete = run.completed.contains(&phase.id);
        let current = run.current.as_ref().filter(|current| current.position == position);
        let standing = |id: &str| current.and_then(|current| current.gates.iter().find(|gate| gate.gate.as_str() == id));
        let added = run.added_gates(phase).iter().map(|gate| gate.id.as_str());
        for id in said.gates.iter().map(|gate| gate.as_str()).chain(added) {
            let gate = run.gate_of(phase, id);
            let title = gate.map_or(id, |gate| gate.title());
            let of = gate.and_then(|gate| gate.task.as_ref());
            let before = known.had_passed(title, of, &said.workstreams) && run.position <= position;
            let holds = complete || standing(id).map_or(before, |gate| gate.state.is_settled());
            if holds { &mut passed } else { &mut pending }.push(title.to_owned());
        }
        for gate in pipeline.by_hand.iter().filter(|gate| gate.phase == phase.id) {
            let holds = complete || known.had_passed(&gate.title, None, &said.workstreams);
            if holds { &mut passed } else { &mut pending }.push(gate.title.clone());
        }
    }
    if let Some(imported) = &known.imported {
        let known_here: Vec<String> = passed.iter().chain(&pending).cloned().collect();
        let elsewhere = |gate: &&String| !known_here.iter().any(|known| known == *gate || bare(known) == bare(gate));
        passed.extend(imported.gates_passed.iter().filter(elsewhere).cloned());
        pending.extend(imported.gates_pending.iter().filter(elsewhere).cloned());
    }
    (passed, pending)
}

/// Why the run failed, with the place that the output of its work shows.
fn error(run: &Run, pipeline: &Pipeline, root: Option<&str>) -> FileError {
    let said = match &run.end {
        Some(End::Failed(message)) => message.clone(),
        Some(End::Complete | End::Aborted | End::Cancelled) | None => String::new(),
    };
    let phase = run.current.as_ref();
    let all = |phase: &PhaseRun| pipeline.phases.get(phase.position).map(names).unwrap_or_default();
    let Some((workstream, failure)) = phase.and_then(|phase| {
        let (index, failure) = failed(phase)?;
        Some((index.map_or_else(|| all(phase), |index| phase.tasks[index].task.to_string()), failure))
    }) else {
        let workstream = phase.map(all).filter(|names| !names.is_empty());
        let workstream = workstream.or_else(|| pipeline.phases.last().map(names)).unwrap_or_default();
        return FileError { workstream, message: cut(&said), file: None, line: None };
    };
    match output_place(&failure.tail) {
        None => FileError { workstream, message: cut(&failure.message), file: None, line: None },
        Some(place) => {
            let inside = root.and_then(|root| place.file.strip_prefix(root)).map(|inside| inside.trim_start_matches('/'));
            let file = Some(inside.unwrap_or(&place.file).to_owned());
            FileError { workstream, message: cut(&place.message), file, line: place.line }
        }
    }
}

/// What failed, and the workstream that it belongs to; none for a gate of the phase.
fn failed(phase: &PhaseRun) -> Option<(Option<usize>, &Failure)> {
    let tasks = phase.troubled().filter_map(|index| Some((Some(index), phase.tasks[index].state.failure()?)));
    let gates = phase.gates.iter().enumerate();
    let gates = gates.filter_map(|(index, gate)| Some((phase.gated_task(index), gate.state.failure()?)));
    tasks.chain(gates).next()
}

fn names(phase: &PipelinePhase) -> String {
    phase.workstreams.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARACTERS).collect()
}

impl Document {
    /// A pipeline of which nothing happened since it was imported stands as its file said.
    pub fn of_imported(pipeline: &Pipeline, imported: &Imported, at: Timestamp) -> Self {
        let names = |list: &[TaskId]| list.iter().map(ToString::to_string).collect();
        Self {
            prd: pipeline.prd.clone(),
            title: pipeline.title.clone(),
            current_phase: imported.current_phase,
            status: imported.status,
            completed: names(&imported.completed),
            in_progress: names(&imported.in_progress),
            pending: names(&imported.pending),
            artifacts: imported.artifacts.iter().map(|(workstream, paths)| (workstream.to_string(), paths.clone())).collect(),
            gates_passed: imported.gates_passed.clone(),
            gates_pending: imported.gates_pending.clone(),
            timestamp: imported.timestamp.clone().unwrap_or_else(|| at.to_string()),
            error: imported.error.clone(),
            review: imported.review.clone(),
            notes: Notes::default(),
        }
    }

    /// The document in the source's order of keys.
    pub fn to_json(&self) -> Map<String, Value> {
        let artifacts: Map<String, Value> = self.artifacts.iter().map(|(name, paths)| (name.clone(), json!(paths))).collect();
        let mut keys = Map::new();
        let mut put = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
        put("prd", json!(self.prd));
        put("prd_title", json!(self.title));
        put("current_phase", json!(self.current_phase));
        put("status", json!(self.status.word()));
        put("completed_workstreams", json!(self.completed));
        put("in_progress_workstreams", json!(self.in_progress));
        put("pending_workstreams", json!(self.pending));
        put("artifacts", Value::Object(artifacts));
        put("gates_passed", json!(self.gates_passed));
        put("gates_pending", json!(self.gates_pending));
        put("timestamp", json!(self.timestamp));
        if let Some(error) = &self.error {
            put("error", error_json(error));
        }
        if let Some(review) = &self.review {
            put("adversarial_review", review_json(review));
        }
        let fixes = |fixes: &[Fix]| json!(fixes);
        let notes = [
            ("eslint_fixes", fixes(&self.notes.eslint_fixes)),
            ("cleanup_done", json!(self.notes.cleanup_done)),
            ("key_fixes", fixes(&self.notes.key_fixes)),
        ];
        for (key, value) in notes {
            if value.as_array().is_some_and(|list| !list.is_empty()) {
                put(key, value);
            }
        }
        keys
    }
}

fn error_json(error: &FileError) -> Value {
    let mut keys = Map::new();
    keys.insert("workstream".into(), json!(error.workstream));
    keys.insert("message".into(), json!(error.message));
    keys.extend(error.file.as_ref().map(|file| ("file".to_owned(), json!(file))));
    keys.extend(error.line.map(|line| ("line".to_owned(), json!(line))));
    Value::Object(keys)
}

fn review_json(review: &Review) -> Value {
    let mut keys = Map::new();
    keys.insert("verdict".into(), json!(review.verdict.word()));
    keys.insert("p0_count".into(), json!(review.p0));
    keys.insert("p1_count".into(), json!(review.p1));
    keys.insert("attempt".into(), json!(review.attempt));
    keys.extend(review.findings.as_ref().map(|path| ("findings_path".to_owned(), json!(path))));
    keys.extend(review.override_reason.as_ref().map(|reason| ("override_reason".to_owned(), json!(reason))));
    Value::Object(keys)
}
