//! Removes the snapshots that retention does not keep.

use super::dir::{DirLock, Listing};
use super::writer::{SnapshotOptions, WriteError};
use lockgate_engine::id::PhaseId;
use lockgate_engine::run::Run;
use lockgate_engine::snapshot::document::IndexEntry;
use lockgate_engine::snapshot::retention::{Protection, RetentionPlan, RetentionPolicy, SnapshotInfo, plan};
use std::io;

/// Plans which snapshots of a run are removed.
pub fn retention_plan(run: &Run, listing: &Listing, policy: &RetentionPolicy, max_bytes: Option<u64>) -> RetentionPlan {
    // Stored values occupy space too, but removing a snapshot does not free it, so they are not counted.
    plan(&infos(run, listing), policy, max_bytes)
}

fn infos(run: &Run, listing: &Listing) -> Vec<SnapshotInfo> {
    let of_run = listing.of_run(&run.id);
    let latest = of_run.iter().max_by_key(|known| known.seq).map(|known| &known.checkpoint_id);
    let before_holds: Vec<_> = run
        .open_holds()
        .into_iter()
        .filter_map(|hold| {
            let before = of_run.iter().filter(|known| known.created_at <= hold.opened_at);
            Some((&before.max_by_key(|known| known.seq)?.checkpoint_id, &hold.id))
        })
        .collect();
    let protection = |entry: &IndexEntry| {
        if Some(&entry.checkpoint_id) == latest {
            return Some(Protection::Latest);
        }
        if run.resume_point.as_ref() == Some(&entry.checkpoint_id) {
            return Some(Protection::ResumePoint);
        }
        if listing.pinned.contains(&entry.checkpoint_id) {
            return Some(Protection::Pinned);
        }
        let hold = before_holds.iter().find(|(id, _)| *id == &entry.checkpoint_id);
        hold.map(|(_, hold)| Protection::OpenHold((*hold).clone()))
    };
    let info = |entry: &&IndexEntry| SnapshotInfo {
        id: entry.checkpoint_id.clone(),
        trigger: entry.trigger,
        phase: entry.phase.as_deref().map(PhaseId::from),
        seq: entry.seq,
        at: entry.created_at,
        bytes: entry.bytes,
        protected: protection(entry),
    };
    of_run.iter().map(info).collect()
}

/// Removes the snapshots of a run that retention does not keep.
pub fn prune(run: &Run, options: &SnapshotOptions) -> Result<RetentionPlan, WriteError> {
    let failed = |source: io::Error| WriteError::Io { dir: options.dir.path().to_path_buf(), source };
    let lock = options.dir.lock().map_err(failed)?;
    let mut listing = options.dir.list()?;
    let plan = apply(options, run, &mut listing, &lock).map_err(failed)?;
    options.dir.write_index(&listing.snapshots, listing.through, listing.issue_number).map_err(failed)?;
    Ok(plan)
}

/// Removes what retention does not keep, from the directory and the list. The index must be written afterwards.
pub(super) fn apply(options: &SnapshotOptions, run: &Run, listing: &mut Listing, _locked: &DirLock) -> io::Result<RetentionPlan> {
    let plan = retention_plan(run, listing, &options.policy, options.max_bytes);
    if let Some(over) = plan.over_by {
        tracing::warn!(over, "the snapshots of run {} are larger than `checkpoint.storage.max_size_mb`", run.id);
    }
    for removal in &plan.remove {
        options.dir.remove(&removal.id)?;
    }
    listing.snapshots.retain(|known| !plan.remove.iter().any(|removal| removal.id == known.checkpoint_id));
    Ok(plan)
}
