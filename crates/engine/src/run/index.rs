//! Index rows: the data that lists and lookups need, derived from the history and stored next to it.

mod open_enum;

pub use open_enum::{NamedVariants, OpenEnum};

use crate::digest::Digest;
use crate::hold::{HoldKind, HoldState};
use crate::id::{HoldId, RunId, TimerId};
use crate::run::event::RunKind;
use crate::run::outbox::{NoticeChannel, NoticeId};
use crate::run::state::Status;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The index rows that a commit changes. The store writes them in the transaction of the commit, without interpreting them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexRows {
    /// The run's own row, if it changed.
    pub run: Option<RunRow>,
    /// New or changed holds.
    pub holds: Vec<HoldRow>,
    pub timers: Vec<TimerRow>,
    pub timers_removed: Vec<TimerId>,
    /// Stored values that the run newly refers to.
    pub referenced_values: Vec<Digest>,
    /// Notices that are to be delivered. Unlike the other rows they do not follow from the history alone, but also from the settings.
    pub outbox: Vec<OutboxRow>,
}

/// A run as listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub run: RunId,
    pub kind: OpenEnum<RunKind>,
    pub workflow: String,
    pub feature: Option<String>,
    /// The status according to the history.
    pub status: OpenEnum<Status>,
    pub phase: Option<String>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// The run from which this one was forked.
    pub parent: Option<RunId>,
}

/// A hold as listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldRow {
    pub hold: HoldId,
    pub run: RunId,
    pub kind: OpenEnum<HoldKind>,
    pub state: HoldState,
    pub revision: u32,
    /// When the hold was last opened.
    pub since: Timestamp,
    /// What a list shows of the hold, as JSON: `phase`, `tasks`, `prompt`, `notes`, `options`, `files`.
    pub shown: String,
}

/// A timer that a run waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    pub timer: TimerId,
    pub run: RunId,
    pub due: Timestamp,
    pub kind: OpenEnum<TimerKind>,
    /// What the timer wakes, as shown to people.
    pub target: String,
}

/// A notice that is to be delivered through a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    pub notice: NoticeId,
    pub channel: OpenEnum<NoticeChannel>,
    /// When its event happened.
    pub at: Timestamp,
    /// The [`Notice`](crate::run::outbox::Notice), as JSON text.
    pub payload: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// The next attempt of a task.
    Retry,
    Deadline,
    /// The next reminder of a hold.
    Remind,
    /// A detached run that could continue needs a driver.
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
