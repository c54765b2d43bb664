//! Follows the history of a run with a copy of its state, to find the points at which snapshots are due.

use crate::load::{self, LoadError};
use lockgate_engine::id::{PhaseId, RunId};
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::history::created;
use lockgate_engine::snapshot::retention::{RetentionPolicy, is_removed_immediately};
use lockgate_engine::snapshot::{Detector, Due, Trigger};
use lockgate_store::{Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// A copy of a run's state at the end of some commit.
#[derive(Clone)]
pub(super) struct Follower {
    id: RunId,
    /// `None` before the first commit.
    run: Option<Run>,
    detector: Detector,
    /// Points up to this event have their snapshots.
    covered: u64,
}

impl Follower {
    /// Starts where snapshots of the events up to `covered` are written.
    pub(super) async fn start(store: &dyn Store, id: &RunId, covered: u64) -> Result<Self, LoadError> {
        let at_start = Self { id: id.clone(), run: None, detector: Detector::new(), covered };
        if covered == 0 {
            return Ok(at_start);
        }
        let loaded = store.load(id).await?.ok_or_else(|| StoreError::NoRun(id.clone()))?;
        let Some(state) = loaded.materialized.and_then(|known| Run::from_bytes(&known.state).ok()) else { return Ok(at_start) };
        if state.next_seq > covered + 1 {
            // The stored state is newer than the last snapshot, so the history is followed from its beginning.
            return Ok(at_start);
        }
        let mut run = state;
        let workflow = load::definition(store, id, run.definition).await?;
        run.attach(workflow).map_err(|error| LoadError::History { run: id.clone(), error })?;
        Ok(Self { detector: Detector::from(&run), run: Some(run), ..at_start })
    }

    pub(super) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The number of the last event that was followed.
    pub(super) fn through(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.next_seq - 1)
    }

    /// The commits after this state.
    pub(super) async fn unread(&self, store: &dyn Store) -> Result<Vec<SealedCommit>, StoreError> {
        store.commits(&self.id, self.run.as_ref().map_or(0, |run| run.version), usize::MAX).await
    }

    /// Follows commits, and reports each point at which a snapshot is due and not written yet, with the state there.
    pub(super) async fn follow(
        &mut self,
        store: &dyn Store,
        commits: &[SealedCommit],
        wants: &(dyn Fn(Trigger) -> bool + Sync),
        report: &mut (dyn FnMut(&Run, &Due) + Send),
    ) -> Result<(), LoadError> {
        let covered = self.covered;
        for commit in commits {
            let detector = &mut self.detector;
            if self.run.is_none()
                && let Ok((_, at)) = created(commit)
            {
                detector.starts_at(at);
            }
            let mut observe = |run: &Run, next: Option<&Entry>, seq: u64| {
                if let Some(due) = detector.observe(run, next, seq, wants)
                    && due.seq > covered
                {
                    report(run, &due);
                }
            };
            match &mut self.run {
                Some(run) => drop(load::apply_observed(store, run, commit, &mut observe).await?),
                None => self.run = Some(load::first_observed(store, &self.id, commit, &mut observe).await?),
            }
        }
        self.covered = self.covered.max(self.through());
        Ok(())
    }
}

/// A point at which a snapshot is due, without its state.
pub(super) struct Point {
    seq: u64,
    trigger: Trigger,
    phase: Option<PhaseId>,
}

impl Point {
    pub(super) fn of(due: &Due) -> Self {
        Self { seq: due.seq, trigger: due.trigger, phase: due.phase.clone() }
    }

    /// The numbers of the points whose snapshots are not removed as soon as they are written.
    pub(super) fn kept(points: &[Self], policy: &RetentionPolicy) -> BTreeSet<u64> {
        let mut later: BTreeMap<(Trigger, Option<&PhaseId>), usize> = BTreeMap::new();
        let mut kept = BTreeSet::new();
        for point in points.iter().rev() {
            let phase = point.phase.as_ref().filter(|_| point.trigger.is_kept_per_phase());
            let later = later.entry((point.trigger, phase)).or_default();
            // The newest of all is never removed.
            if kept.is_empty() || !is_removed_immediately(point.trigger, *later, policy) {
                kept.insert(point.seq);
            }
            *later += 1;
        }
        kept
    }
}

/// The state of a run right after the event with this number, according to its history; `None` if the history has no such event.
pub async fn state_at(store: &dyn Store, id: &RunId, seq: u64) -> Result<Option<Run>, LoadError> {
    let mut found = None;
    let mut run: Option<Run> = None;
    for commit in &store.commits(id, 0, usize::MAX).await? {
        let mut observe = |run: &Run, _: Option<&Entry>, at: u64| {
            if at == seq && found.is_none() {
                found = Some(run.clone());
            }
        };
        match &mut run {
            Some(run) => drop(load::apply_observed(store, run, commit, &mut observe).await?),
            None => run = Some(load::first_observed(store, id, commit, &mut observe).await?),
        }
    }
    Ok(found)
}
