//! The state of a pipeline beyond phases and tasks: its review, its notes, the artifacts of its workstreams, and the state file
//! from which it was imported.

mod lifecycle;
mod progress;

use crate::id::{GateId, TaskId, TaskKey};
use crate::run::event::{Event, FrozenFile};
use crate::run::state::Run;
use crate::spec::workflow::{Gate, Phase, Pipeline};
use crate::time::Timestamp;
pub use lifecycle::Lifecycle;
pub use progress::{PipelineFailure, PipelineProgress};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many reviews may be filed. After that only a person can move the run forward.
pub const MAX_REVIEWS: u32 = 2;

/// The state of a pipeline beyond phases and tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipelineRun {
    /// The state file from which the run was imported.
    pub imported: Option<Box<Imported>>,
    /// The latest review.
    pub review: Option<Review>,
    /// Notes by people and agents.
    pub notes: Notes,
    /// The files that workstreams produced.
    pub artifacts: BTreeMap<TaskId, Vec<String>>,
    /// Completed workstreams whose artifacts have not been looked for yet.
    pub artifacts_unchecked: BTreeSet<TaskKey>,
    /// Whether anything happened since the import.
    pub moved: bool,
    /// Whether the run was imported and has not been resumed yet.
    #[serde(default)]
    pub resting: bool,
    /// Workstreams of the current phase that the state file reported as completed. They stay completed while the phase continues.
    #[serde(default)]
    pub reported: BTreeSet<TaskId>,
    pub changed_at: Timestamp,
    /// The last attempt of each workstream.
    pub worked: BTreeMap<TaskId, LastAttempt>,
    /// The last run of each gate, by gate address.
    pub checked: BTreeMap<String, LastAttempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAttempt {
    pub began: Timestamp,
    /// Absent while it is running.
    pub ended: Option<Timestamp>,
    /// Counted from 1.
    pub iteration: u32,
    /// Counted from 1.
    pub attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PipelineEvent {
    Reviewed(Review),
    Noted(Notes),
    /// The artifacts of a workstream were looked for.
    ArtifactsFound {
        key: TaskKey,
        /// Relative to the root.
        paths: Vec<String>,
        /// Artifacts that the specification requires and that do not exist.
        missing: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum PipelineCommand {
    /// Files a review. The attempt is counted here.
    Review(Review),
    Note(Notes),
    /// The artifacts of a workstream were looked for.
    ArtifactsFound {
        key: TaskKey,
        /// Relative to the root.
        paths: Vec<String>,
        /// Artifacts that the specification requires and that do not exist.
        missing: Vec<String>,
    },
    /// Runs the current phase again from its start.
    Restart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The pipeline may start.
    Ship,
    /// The pipeline may start, and additional gates must pass at the end.
    ShipWithGates,
    /// The pipeline may not start.
    DoNotShip,
    /// A person overrode the review, so the pipeline may start.
    Overridden,
}

impl Verdict {
    /// All verdicts, as named in state files.
    pub const ALL: [(&'static str, Self); 4] = [
        ("ship", Self::Ship),
        ("ship_with_gates", Self::ShipWithGates),
        ("do_not_ship", Self::DoNotShip),
        ("overridden", Self::Overridden),
    ];

    /// The name in a state file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ship => "ship",
            Self::ShipWithGates => "ship_with_gates",
            Self::DoNotShip => "do_not_ship",
            Self::Overridden => "overridden",
        }
    }

    pub fn allows_start(self) -> bool {
        match self {
            Self::Ship | Self::ShipWithGates | Self::Overridden => true,
            Self::DoNotShip => false,
        }
    }
}

/// A review of a pipeline before it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub verdict: Verdict,
    /// Findings that must be fixed first.
    pub p0: u32,
    /// Other findings that must be fixed.
    pub p1: u32,
    /// Counted from 1.
    pub attempt: u32,
    /// The file with the findings.
    pub findings: Option<String>,
    /// Why a person overrode the review.
    pub override_reason: Option<String>,
    /// Gates that must pass at the end, in addition to the pipeline's own.
    pub gates: Vec<Gate>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// Changes requested by a linter.
    pub eslint_fixes: Vec<Fix>,
    pub cleanup_done: Vec<String>,
    /// Other important changes.
    pub key_fixes: Vec<Fix>,
}

impl Notes {
    pub fn is_empty(&self) -> bool {
        self.eslint_fixes.is_empty() && self.cleanup_done.is_empty() && self.key_fixes.is_empty()
    }

    fn add(&mut self, more: &Self) {
        self.eslint_fixes.extend(more.eslint_fixes.iter().cloned());
        self.cleanup_done.extend(more.cleanup_done.iter().cloned());
        self.key_fixes.extend(more.key_fixes.iter().cloned());
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub file: String,
    pub change: String,
}

/// The content of another tool's state file when a run was imported from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The file. Its text is a stored value.
    pub file: FrozenFile,
    pub status: Lifecycle,
    /// The number of the current phase; 0 before the first.
    pub current_phase: u32,
    pub completed: Vec<TaskId>,
    pub in_progress: Vec<TaskId>,
    pub pending: Vec<TaskId>,
    pub artifacts: BTreeMap<TaskId, Vec<String>>,
    pub gates_passed: Vec<String>,
    pub gates_pending: Vec<String>,
    /// The file's own timestamp.
    pub timestamp: Option<String>,
    pub error: Option<FileError>,
    #[serde(default)]
    pub review: Option<Review>,
}

/// The error that a state file reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileError {
    /// The failed workstream, or all workstreams of the phase if a gate failed.
    pub workstream: String,
    pub message: String,
    pub file: Option<String>,
    pub line: Option<u64>,
}

impl PipelineRun {
    /// A pipeline that starts, or continues from an imported file.
    pub(super) fn start(imported: Option<&Imported>, at: Timestamp) -> Self {
        Self {
            imported: imported.cloned().map(Box::new),
            review: imported.and_then(|imported| imported.review.clone()),
            notes: Notes::default(),
            artifacts: imported.map(|imported| imported.artifacts.clone()).unwrap_or_default(),
            artifacts_unchecked: BTreeSet::new(),
            moved: false,
            resting: imported.is_some(),
            reported: BTreeSet::new(),
            changed_at: at,
            worked: BTreeMap::new(),
            checked: BTreeMap::new(),
        }
    }

    /// The same in a run that continues from another one.
    pub(super) fn continued(self, at: Timestamp) -> Self {
        Self { artifacts_unchecked: BTreeSet::new(), moved: true, resting: false, changed_at: at, ..self }
    }

    /// Records an event. Once work happens, the imported file no longer describes the pipeline.
    pub(super) fn happened(&mut self, event: &Event, at: Timestamp, pipeline: Option<&Pipeline>) {
        self.changed_at = at;
        if let Event::TaskFinished { key, .. } | Event::TaskSkipped { key, .. } = event {
            let workstream = pipeline.and_then(|pipeline| pipeline.workstream(key.task.as_str()));
            if workstream.is_some_and(|workstream| !workstream.outputs.is_empty()) && !self.was_done(&key.task) {
                self.artifacts_unchecked.insert(key.clone());
            }
        }
        self.clock(event, at);
        if let Event::PhaseRepeated { .. } = event {
            self.artifacts_unchecked.clear();
        }
        if let Event::PhaseRepeated { .. } | Event::PhaseStarted { .. } = event {
            self.reported.clear();
        }
        if let Event::TaskStarted { key, .. } = event {
            self.reported.remove(&key.task);
        }
        if let Event::Resumed { .. } | Event::PhaseStarted { .. } = event {
            self.resting = false;
        }
        self.moved =
            self.moved || matches!(event, Event::PhaseStarted { .. } | Event::PhaseSkipped { .. } | Event::Cancelled { .. });
    }

    fn clock(&mut self, event: &Event, at: Timestamp) {
        let started = |iteration: u32, attempt: u32| LastAttempt { began: at, ended: None, iteration, attempt };
        if let Event::TaskStarted { key, attempt, .. } = event {
            self.worked.insert(key.task.clone(), started(key.iteration, *attempt));
        }
        if let Event::TaskFinished { key, .. }
        | Event::TaskFailed { key, .. }
        | Event::TaskStopped { key, .. }
        | Event::TaskInterrupted { key, .. } = event
        {
            self.worked.entry(key.task.clone()).and_modify(|worked| worked.ended = Some(at));
        }
        if let Event::GateStarted { phase, iteration, gate, attempt } = event {
            self.checked.insert(format!("{phase}/{gate}"), started(*iteration, *attempt));
        }
        if let Event::GatePassed { phase, gate, .. } | Event::GateFailed { phase, gate, .. } = event {
            self.checked.entry(format!("{phase}/{gate}")).and_modify(|checked| checked.ended = Some(at));
        }
    }

    pub(super) fn apply(&mut self, pipeline_event: &PipelineEvent) {
        match pipeline_event {
            PipelineEvent::Reviewed(review) => self.review = Some(review.clone()),
            PipelineEvent::Noted(notes) => self.notes.add(notes),
            PipelineEvent::ArtifactsFound { key, paths, .. } => {
                self.artifacts_unchecked.remove(key);
                if paths.is_empty() {
                    self.artifacts.remove(&key.task);
                } else {
                    self.artifacts.insert(key.task.clone(), paths.clone());
                }
            }
        }
    }

    /// Whether a gate had passed before the run was imported. Several gates may share a name, so the file counts only if the work
    /// that the gate checks is done: its workstream, or all workstreams of its phase.
    pub fn had_passed(&self, title: &str, of: Option<&TaskId>, workstreams: &[TaskId]) -> bool {
        let Some(imported) = &self.imported else { return false };
        let named = || workstreams.iter().find(|id| title.ends_with(&format!(" ({id})")));
        let done = match of.or_else(named) {
            Some(workstream) => self.was_done(workstream),
            None if workstreams.is_empty() => imported.in_progress.is_empty() && imported.pending.is_empty(),
            None => workstreams.iter().all(|workstream| self.was_done(workstream)),
        };
        let bare = bare_title(title);
        let says = |list: &[String], name: &str| list.iter().any(|known| known == name);
        // If the file lists the gate of a workstream as both passed and pending, it is treated as pending. A bare name may refer
        // to several gates.
        let pending = title != bare && says(&imported.gates_pending, title);
        done && !pending && (says(&imported.gates_passed, title) || says(&imported.gates_passed, bare))
    }

    /// The imported file, as long as nothing has happened since.
    pub fn unmoved(&self) -> Option<&Imported> {
        self.imported.as_deref().filter(|_| !self.moved)
    }

    /// Whether a workstream was done before the run was imported.
    pub fn was_done(&self, workstream: &TaskId) -> bool {
        self.imported.as_ref().is_some_and(|imported| imported.completed.contains(workstream))
    }
}

/// The title of a gate without its workstream: `lint` of `lint (WS3)`.
pub fn bare_title(title: &str) -> &str {
    title.split(" (").next().unwrap_or(title)
}

impl Run {
    /// The definition and the state of the pipeline, if the run is one.
    pub fn pipeline(&self) -> Option<(&Pipeline, &PipelineRun)> {
        self.workflow.pipeline.as_deref().zip(self.pipeline.as_deref())
    }

    /// Whether the run was imported, has not ended, and waits for a person to resume it.
    pub fn waits_for_resume(&self) -> bool {
        self.end.is_none() && self.pipeline.as_ref().is_some_and(|known| known.resting)
    }

    /// Remembers which workstreams the state file reports as completed while nothing is running, so that they stay completed when
    /// the phase continues.
    pub(super) fn note_reported(&mut self) {
        let reported = progress::completed_at_rest(self);
        if let (Some(known), false) = (&mut self.pipeline, reported.is_empty()) {
            known.reported.extend(reported);
        }
    }

    /// Whether the pipeline may not start, because its review is missing or negative.
    pub fn waits_for_review(&self) -> bool {
        let Some((pipeline, known)) = self.pipeline() else { return false };
        let started = self.current.is_some() || self.position > 0;
        match &known.review {
            _ if started => false,
            None => pipeline.review,
            Some(review) => !review.verdict.allows_start(),
        }
    }

    /// A gate of a phase by id, including those that a review added.
    pub fn gate_of<'a>(&'a self, phase: &'a Phase, gate: &str) -> Option<&'a Gate> {
        phase.gate(gate).or_else(|| self.added_gates(phase).iter().find(|added| added.id.as_str() == gate))
    }

    /// The gates that the review added to a phase. They run last.
    pub fn added_gates(&self, phase: &Phase) -> &[Gate] {
        let Some((pipeline, known)) = self.pipeline() else { return &[] };
        let last = pipeline.phases.len().checked_sub(1).and_then(|last| self.workflow.phases.get(last));
        let Some(review) = known.review.as_ref().filter(|_| last.is_some_and(|last| last.id == phase.id)) else { return &[] };
        &review.gates
    }

    /// Whether there is already a gate with this id, this title, or a manual gate with this name.
    pub(super) fn has_gate(&self, gate: &GateId) -> bool {
        let called = |title: &str| bare_title(title) == gate.as_str();
        let mut own = self.workflow.phases.iter().flat_map(|phase| &phase.gates);
        let manual_gates = self.workflow.pipeline.iter().flat_map(|pipeline| &pipeline.manual_gates);
        own.any(|known| known.id == *gate || called(known.title())) || manual_gates.into_iter().any(|known| called(&known.title))
    }
}
