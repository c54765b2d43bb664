//! Which snapshots of a run are kept, and which are removed.
//!
//! Per trigger, the newest snapshots are kept, up to a count; `batch_complete` and `agent_complete` count per phase, the others
//! over the whole run. A protected snapshot is never removed. It occupies a place like any other: among the newest it counts, and
//! an old one that is protected stays without taking the place of a newer one. If the rest is still larger than the size limit,
//! the oldest unprotected snapshots are removed, whatever their trigger.

#[cfg(test)]
mod tests;

use super::Trigger;
use crate::id::{HoldId, PhaseId, RunId, SnapshotId};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// A stored snapshot, as far as retention is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    pub id: SnapshotId,
    pub trigger: Trigger,
    /// The phase that the run was in.
    pub phase: Option<PhaseId>,
    /// Its position in the history of the run. The newest snapshot has the highest.
    pub seq: u64,
    pub at: Timestamp,
    /// Its size in storage.
    pub bytes: u64,
    /// Why it must not be removed.
    pub protected: Option<Protection>,
}

/// Why a snapshot must not be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It is the latest snapshot of its run.
    Latest,
    /// The run was resumed from it, and there is no later snapshot of what happened since.
    ResumePoint,
    /// A person pinned it.
    Pinned,
    /// This open hold depends on it.
    OpenHold(HoldId),
    /// This fork started from it.
    Fork(RunId),
}

/// How many snapshots of a trigger are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    All,
    /// The newest ones, this many. `Last(0)` keeps only protected ones.
    Last(u32),
}

impl Keep {
    /// From the number in the settings: -1 keeps all.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            -1 => Some(Self::All),
            count => u32::try_from(count).ok().map(Self::Last),
        }
    }

    /// The number in the settings.
    pub fn number(self) -> i64 {
        match self {
            Self::All => -1,
            Self::Last(count) => i64::from(count),
        }
    }
}

/// How many snapshots are kept, per trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub phase_transition: Keep,
    /// Per phase.
    pub batch_complete: Keep,
    /// Per phase.
    pub agent_complete: Keep,
    pub conflict_start: Keep,
    pub conflict_resolved: Keep,
    pub user_interrupt: Keep,
    pub session_end: Keep,
    pub manual: Keep,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            phase_transition: Keep::All,
            batch_complete: Keep::Last(3),
            agent_complete: Keep::Last(1),
            conflict_start: Keep::All,
            conflict_resolved: Keep::All,
            user_interrupt: Keep::Last(1),
            session_end: Keep::Last(1),
            manual: Keep::All,
        }
    }
}

impl RetentionPolicy {
    pub fn keep(&self, trigger: Trigger) -> Keep {
        match trigger {
            Trigger::PhaseTransition => self.phase_transition,
            Trigger::BatchComplete => self.batch_complete,
            Trigger::AgentComplete => self.agent_complete,
            Trigger::ConflictStart => self.conflict_start,
            Trigger::ConflictResolved => self.conflict_resolved,
            Trigger::UserInterrupt => self.user_interrupt,
            Trigger::SessionEnd => self.session_end,
            Trigger::Manual => self.manual,
        }
    }

    pub fn set(&mut self, trigger: Trigger, keep: Keep) {
        let kept = match trigger {
            Trigger::PhaseTransition => &mut self.phase_transition,
            Trigger::BatchComplete => &mut self.batch_complete,
            Trigger::AgentComplete => &mut self.agent_complete,
            Trigger::ConflictStart => &mut self.conflict_start,
            Trigger::ConflictResolved => &mut self.conflict_resolved,
            Trigger::UserInterrupt => &mut self.user_interrupt,
            Trigger::SessionEnd => &mut self.session_end,
            Trigger::Manual => &mut self.manual,
        };
        *kept = keep;
    }
}

/// What to remove from the snapshots of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionPlan {
    /// First those that newer ones supersede, then those that exceed the size limit; each from the oldest to the newest.
    pub remove: Vec<Removal>,
    /// The size of what stays.
    pub kept_bytes: u64,
    /// By how much that exceeds the size limit, although only protected snapshots are left.
    pub over_by: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub id: SnapshotId,
    pub reason: RemovalReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// This many newer ones of its trigger are kept.
    Superseded { kept: u32 },
    /// All snapshots together exceed the size limit, and this is the oldest that is not protected.
    Size,
}

/// Plans what to remove from the snapshots of one run. `max_bytes` limits what they occupy together.
pub fn plan(snapshots: &[SnapshotInfo], policy: &RetentionPolicy, max_bytes: Option<u64>) -> RetentionPlan {
    let mut newest_first: Vec<&SnapshotInfo> = snapshots.iter().collect();
    newest_first.sort_by(|one, other| (other.seq, other.at, &other.id).cmp(&(one.seq, one.at, &one.id)));
    let (mut left, mut remove) = superseded(newest_first, policy);
    remove.reverse();
    let mut kept_bytes = left.iter().fold(0, |sum: u64, snapshot| sum.saturating_add(snapshot.bytes));
    let limit = max_bytes.unwrap_or(u64::MAX);
    while kept_bytes > limit {
        let Some(oldest) = left.iter().rposition(|snapshot| snapshot.protected.is_none()) else { break };
        let removed = left.remove(oldest);
        kept_bytes = kept_bytes.saturating_sub(removed.bytes);
        remove.push(Removal { id: removed.id.clone(), reason: RemovalReason::Size });
    }
    RetentionPlan { remove, kept_bytes, over_by: kept_bytes.checked_sub(limit).filter(|over| *over > 0) }
}

/// Separates those that stay from those that newer ones supersede, both in the given order.
fn superseded<'s>(newest_first: Vec<&'s SnapshotInfo>, policy: &RetentionPolicy) -> (Vec<&'s SnapshotInfo>, Vec<Removal>) {
    let mut newer: BTreeMap<(Trigger, Option<&PhaseId>), u32> = BTreeMap::new();
    let (mut left, mut remove) = (Vec::new(), Vec::new());
    for snapshot in newest_first {
        let phase = snapshot.phase.as_ref().filter(|_| snapshot.trigger.is_kept_per_phase());
        let newer = newer.entry((snapshot.trigger, phase)).or_default();
        match policy.keep(snapshot.trigger) {
            Keep::Last(kept) if *newer >= kept && snapshot.protected.is_none() => {
                remove.push(Removal { id: snapshot.id.clone(), reason: RemovalReason::Superseded { kept } });
            }
            Keep::Last(_) | Keep::All => left.push(snapshot),
        }
        *newer = newer.saturating_add(1);
    }
    (left, remove)
}

/// Whether a snapshot that waits to be written would be removed as soon as it is, because of the later ones of its trigger (and
/// phase, where they count per phase). Milestones are always written: phase transitions, conflicts and requested snapshots. So is
/// one without a later one, because it may be the latest of all, which is protected.
pub fn is_removed_immediately(trigger: Trigger, later_of_same_kind: usize, policy: &RetentionPolicy) -> bool {
    match trigger {
        Trigger::PhaseTransition | Trigger::ConflictStart | Trigger::ConflictResolved | Trigger::Manual => false,
        Trigger::BatchComplete | Trigger::AgentComplete | Trigger::UserInterrupt | Trigger::SessionEnd => {
            match policy.keep(trigger) {
                Keep::All => false,
                Keep::Last(kept) => later_of_same_kind >= usize::try_from(kept.max(1)).unwrap_or(usize::MAX),
            }
        }
    }
}
