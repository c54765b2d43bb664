//! Index rows: what lists and look-ups need of a run, kept beside its history and derived from it.

mod open_enum;

pub use open_enum::{NamedVariants, OpenEnum};

use crate::digest::Digest;
use crate::hold::{HoldKind, HoldState};
use crate::id::{HoldId, RunId, TimerId};
use crate::run::event::RunKind;
use crate::run::state::Status;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The rows of a run that a commit changes. The store keeps them in the commit's own transaction and knows nothing of their meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexRows {
    /// The run's own row, when it changed.
    pub run: Option<RunRow>,
    /// Holds that are new or changed.
    pub holds: Vec<HoldRow>,
    pub timers: Vec<TimerRow>,
    pub timers_removed: Vec<TimerId>,
    /// Stored values that the run refers to from now on.
    pub refers_to: Vec<Digest>,
}

/// A run in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub run: RunId,
    /// What kind of run it is.
    pub kind: OpenEnum<RunKind>,
    pub workflow: String,
    pub feature: Option<String>,
    /// Its status, as the history has it.
    pub status: OpenEnum<Status>,
    pub phase: Option<String>,
    pub created_at: Timestamp,
    /// When this row last changed.
    pub changed_at: Timestamp,
    /// The run that it was forked from.
    pub parent: Option<RunId>,
}

/// A hold in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldRow {
    pub hold: HoldId,
    pub run: RunId,
    pub kind: OpenEnum<HoldKind>,
    pub state: HoldState,
    pub revision: u32,
    /// When it was opened last.
    pub since: Timestamp,
    /// All that a list shows of it, as JSON text: `phase`, `tasks`, `prompt`, `notes`, `options`, `files`.
    pub shown: String,
}

/// A moment that a run waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    pub timer: TimerId,
    pub run: RunId,
    pub due: Timestamp,
    /// What for.
    pub kind: OpenEnum<TimerKind>,
    /// What it wakes, for people.
    pub target: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// The next attempt of a task.
    Retry,
    Deadline,
    /// The next reminder of a hold.
    Remind,
    /// A detached run that could continue and wants a driver.
    Drive,
}

impl NamedVariants for TimerKind {
    const ALL: &'static [Self] = &[Self::Retry, Self::Deadline, Self::Remind, Self::Drive];

    fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Deadline => "deadline",
            Self::Remind => "remind",
            Self::Drive => "drive",
        }
    }
}
