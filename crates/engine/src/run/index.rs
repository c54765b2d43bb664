//! Index rows: what lists and look-ups need of a run, kept beside its history and derived from it.

use crate::digest::Digest;
use crate::hold::HoldState;
use crate::id::{HoldId, RunId, TimerId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The rows of a run that a commit changes. The store keeps them in the commit's own transaction and knows nothing of their meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexRows {
    /// The run's own row, when it changed.
    pub run: Option<RunRow>,
    /// Holds that are new or changed.
    pub holds: Vec<HoldRow>,
    /// Timers that are new.
    pub timers: Vec<TimerRow>,
    /// Timers that are gone.
    pub timers_gone: Vec<TimerId>,
    /// Stored values that the run refers to from now on.
    pub refers_to: Vec<Digest>,
}

/// A run in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    pub run: RunId,
    /// `workflow` or `plan`.
    pub kind: String,
    /// The workflow's name.
    pub workflow: String,
    /// What it is about.
    pub feature: Option<String>,
    /// `running`, `waiting`, `failed`, `aborted`, `cancelled` or `complete`.
    pub status: String,
    /// The phase it is in.
    pub phase: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When this row last changed.
    pub changed_at: Timestamp,
    /// The run that it was forked from.
    pub parent: Option<RunId>,
}

/// A hold in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldRow {
    /// Its id.
    pub hold: HoldId,
    /// Its run.
    pub run: RunId,
    /// What kind of question it is.
    pub kind: String,
    /// Where it stands.
    pub state: HoldState,
    /// Its revision.
    pub revision: u32,
    /// When it was opened last.
    pub since: Timestamp,
    /// All that a list shows of it, as JSON text: `phase`, `tasks`, `prompt`, `notes`, `options`, `files`.
    pub shown: String,
}

/// A moment that a run waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Its id.
    pub timer: TimerId,
    /// Its run.
    pub run: RunId,
    /// When it is due.
    pub due: Timestamp,
    /// What for: `retry`, `deadline`, `remind`, or `drive` for a detached run that could go on.
    pub kind: String,
    /// What it wakes, for people.
    pub target: String,
}
