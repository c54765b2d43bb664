//! Going back to a snapshot of the same run.

use crate::digest::Digest;
use crate::id::SnapshotId;
use serde::{Deserialize, Serialize};

/// The run continues from an earlier state of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    pub snapshot: SnapshotId,
    /// The number of the last event that still counts.
    pub to_seq: u64,
    /// The state in the snapshot, which is a stored value.
    pub state: Digest,
    /// The definition with which the run continues, if it is not the current one.
    pub definition: Option<Digest>,
}
