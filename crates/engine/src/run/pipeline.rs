//! What a run of a pipeline knows beyond phases and tasks: its review, its notes, what its workstreams left behind, and what it was
//! imported from.

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

/// So many times a review may be filed; after that only a person moves the run.
pub const MAX_REVIEWS: u32 = 2;

/// What a run of a pipeline knows beyond phases and tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipelineRun {
    /// The state file that it was made from.
    pub imported: Option<Box<Imported>>,
    /// The review that counts.
    pub review: Option<Review>,
    /// What people and agents noted.
    pub notes: Notes,
    /// The files that workstreams left behind.
    pub artifacts: BTreeMap<TaskId, Vec<String>>,
    /// Workstreams that are done and whose files nobody has looked for yet.
    pub artifacts_unchecked: BTreeSet<TaskKey>,
    /// Whether anything happened since it was imported.
    pub moved: bool,
    /// Whether it was imported and nobody has resumed it yet.
    #[serde(default)]
    pub resting: bool,
    /// Workstreams of the current phase that the state file reported as completed. They stay so while the phase continues.
    #[serde(default)]
    pub reported: BTreeSet<TaskId>,
    /// When anything last happened.
    pub changed_at: Timestamp,
    /// When workstreams worked last.
    pub worked: BTreeMap<TaskId, LastAttempt>,
    /// When gates ran last, by their addresses.
    pub checked: BTreeMap<String, LastAttempt>,
}

/// When something was at work last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAttempt {
    pub began: Timestamp,
    /// When it ended; not yet when absent.
    pub ended: Option<Timestamp>,
    /// The phase's execution, counted from 1.
    pub iteration: u32,
    /// Which attempt it was, counted from 1.
    pub attempt: u32,
}

/// A fact about a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PipelineEvent {
    /// A review was filed.
    Reviewed(Review),
    /// Something was noted.
    Noted(Notes),
    /// It was looked for what a workstream left behind.
    ArtifactsFound {
        key: TaskKey,
        /// The files, relative to the root.
        paths: Vec<String>,
        /// What the file asks for that is not there.
        missing: Vec<String>,
    },
}

/// What is asked of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum PipelineCommand {
    /// File a review; its attempt is counted here.
    Review(Review),
    /// Note something.
    Note(Notes),
    /// It was looked for what a workstream left behind.
    ArtifactsFound {
        key: TaskKey,
        /// The files, relative to the root.
        paths: Vec<String>,
        /// What the file asks for that is not there.
        missing: Vec<String>,
    },
    /// Run the phase under way again, from its beginning.
    Restart,
}

/// What a review came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The pipeline may begin.
    Ship,
    /// It may begin, and more must hold in the end.
    ShipWithGates,
    /// It may not begin.
    DoNotShip,
    /// A person lets it begin all the same.
    Overridden,
}

impl Verdict {
    /// All of them, as state files name them.
    pub const ALL: [(&'static str, Self); 4] = [
        ("ship", Self::Ship),
        ("ship_with_gates", Self::ShipWithGates),
        ("do_not_ship", Self::DoNotShip),
        ("overridden", Self::Overridden),
    ];

    /// The word for it in a state file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ship => "ship",
            Self::ShipWithGates => "ship_with_gates",
            Self::DoNotShip => "do_not_ship",
            Self::Overridden => "overridden",
        }
    }

    /// Whether the pipeline may begin.
    pub fn allows_start(self) -> bool {
        match self {
            Self::Ship | Self::ShipWithGates | Self::Overridden => true,
            Self::DoNotShip => false,
        }
    }
}

/// A review of a pipeline before it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub verdict: Verdict,
    /// How many findings must be mended before anything else.
    pub p0: u32,
    /// How many findings must be mended besides.
    pub p1: u32,
    /// Which attempt it is, counted from 1.
    pub attempt: u32,
    /// Where the findings are.
    pub findings: Option<String>,
    /// Why a person overrode it.
    pub override_reason: Option<String>,
    /// What must hold in the end besides what the pipeline says.
    pub gates: Vec<Gate>,
}

/// What was noted about the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// Changes that a linter asked for.
    pub eslint_fixes: Vec<Fix>,
    /// What was cleaned up.
    pub cleanup_done: Vec<String>,
    /// Changes that mattered.
    pub key_fixes: Vec<Fix>,
}

impl Notes {
    /// Whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        self.eslint_fixes.is_empty() && self.cleanup_done.is_empty() && self.key_fixes.is_empty()
    }

    fn add(&mut self, more: &Self) {
        self.eslint_fixes.extend(more.eslint_fixes.iter().cloned());
        self.cleanup_done.extend(more.cleanup_done.iter().cloned());
        self.key_fixes.extend(more.key_fixes.iter().cloned());
    }
}

/// A change in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub file: String,
    pub change: String,
}

/// What a state file of another tool said when a run was made from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The file; its text is a stored value.
    pub file: FrozenFile,
    /// Where the pipeline stood.
    pub status: Lifecycle,
    /// The number of the phase that it was in; 0 before the first.
    pub current_phase: u32,
    /// Workstreams that were done.
    pub completed: Vec<TaskId>,
    /// Workstreams that were under way.
    pub in_progress: Vec<TaskId>,
    /// Workstreams that had not begun.
    pub pending: Vec<TaskId>,
    /// What workstreams had left behind.
    pub artifacts: BTreeMap<TaskId, Vec<String>>,
    pub gates_passed: Vec<String>,
    pub gates_pending: Vec<String>,
    /// When it was written, as it says so.
    pub timestamp: Option<String>,
    /// Why it had failed.
    pub error: Option<FileError>,
    /// What its review had come to.
    #[serde(default)]
    pub review: Option<Review>,
}

/// Why a pipeline failed, as its state file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileError {
    /// The workstream, or those of the phase whose gate failed.
    pub workstream: String,
    pub message: String,
    /// The file in which it did.
    pub file: Option<String>,
    pub line: Option<u64>,
}

impl PipelineRun {
    /// A pipeline that begins, or goes on from what a file says.
    pub(super) fn begin(imported: Option<&Imported>, at: Timestamp) -> Self {
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

    /// The same in a run that goes on from another one.
    pub(super) fn continued(self, at: Timestamp) -> Self {
        Self { artifacts_unchecked: BTreeSet::new(), moved: true, resting: false, changed_at: at, ..self }
    }

    /// Something happened, and if it was work the pipeline no longer stands as its file said.
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
        let begun = |iteration: u32, attempt: u32| LastAttempt { began: at, ended: None, iteration, attempt };
        if let Event::TaskStarted { key, attempt, .. } = event {
            self.worked.insert(key.task.clone(), begun(key.iteration, *attempt));
        }
        if let Event::TaskFinished { key, .. }
        | Event::TaskFailed { key, .. }
        | Event::TaskStopped { key, .. }
        | Event::TaskInterrupted { key, .. } = event
        {
            self.worked.entry(key.task.clone()).and_modify(|worked| worked.ended = Some(at));
        }
        if let Event::GateStarted { phase, iteration, gate, attempt } = event {
            self.checked.insert(format!("{phase}/{gate}"), begun(*iteration, *attempt));
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

    /// Whether a gate had passed before the run was imported. Gates of one name may stand at several places, so what a file says
    /// counts only where the work is done that the gate looks at: that of its workstream, or of all of its phase.
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
        // The gate of one workstream that the file has as passed and as pending is not believed to have passed. A bare name may stand for several.
        let pending = title != bare && says(&imported.gates_pending, title);
        done && !pending && (says(&imported.gates_passed, title) || says(&imported.gates_passed, bare))
    }

    /// What the run was imported from, as long as nothing has happened since.
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
    /// What the definition says beyond phases and tasks, with what the run knows beyond them.
    pub fn pipeline(&self) -> Option<(&Pipeline, &PipelineRun)> {
        self.workflow.pipeline.as_deref().zip(self.pipeline.as_deref())
    }

    /// Whether the run was made from a state file, has not ended, and waits for a person who resumes it.
    pub fn waits_for_resume(&self) -> bool {
        self.end.is_none() && self.pipeline.as_ref().is_some_and(|known| known.resting)
    }

    /// Remembers which workstreams the state file reports as completed while nothing is at work, so that none of them is taken back
    /// when the phase continues.
    pub(super) fn note_reported(&mut self) {
        let reported = progress::completed_at_rest(self);
        if let (Some(known), false) = (&mut self.pipeline, reported.is_empty()) {
            known.reported.extend(reported);
        }
    }

    /// Whether the pipeline may not begin, because its review is missing or says so.
    pub fn waits_for_review(&self) -> bool {
        let Some((pipeline, known)) = self.pipeline() else { return false };
        let begun = self.current.is_some() || self.position > 0;
        match &known.review {
            _ if begun => false,
            None => pipeline.review,
            Some(review) => !review.verdict.allows_start(),
        }
    }

    /// What a gate of a phase is, those that a review asked for included.
    pub fn gate_of<'a>(&'a self, phase: &'a Phase, gate: &str) -> Option<&'a Gate> {
        phase.gate(gate).or_else(|| self.added_gates(phase).iter().find(|added| added.id.as_str() == gate))
    }

    /// The gates of a phase that its review asked for: they come in the end.
    pub fn added_gates(&self, phase: &Phase) -> &[Gate] {
        let Some((pipeline, known)) = self.pipeline() else { return &[] };
        let last = pipeline.phases.len().checked_sub(1).and_then(|last| self.workflow.phases.get(last));
        let Some(review) = known.review.as_ref().filter(|_| last.is_some_and(|last| last.id == phase.id)) else { return &[] };
        &review.gates
    }

    /// Whether a gate of this name is there already: by its id, by what people call it, or as one that a person decides.
    pub(super) fn has_gate(&self, gate: &GateId) -> bool {
        let called = |title: &str| bare_title(title) == gate.as_str();
        let mut own = self.workflow.phases.iter().flat_map(|phase| &phase.gates);
        let manual_gates = self.workflow.pipeline.iter().flat_map(|pipeline| &pipeline.manual_gates);
        own.any(|known| known.id == *gate || called(known.title())) || manual_gates.into_iter().any(|known| called(&known.title))
    }
}
