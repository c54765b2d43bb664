//! Writes the snapshots of a run while it is driven.
//!
//! The driver only says how far the history goes. A separate job reads the commits, follows them with its own copy of the state,
//! and writes a file at each point at which a snapshot is due and would be kept. The index records how far it has looked.

use super::dir::{Batch, SnapshotDir};
use super::follow::{Follower, Point};
use super::prune;
use super::{GitState, SnapshotError};
use crate::knowledge::KnowledgeDir;
use crate::load::LoadError;
use crate::secret::Masks;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::run::Run;
use lockgate_engine::snapshot::document::{self, IndexEntry, SavedState, Surroundings};
use lockgate_engine::snapshot::retention::{RemovalReason, RetentionPolicy};
use lockgate_engine::snapshot::{Due, Trigger};
use lockgate_store::{Store, StoreError};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tracing::{Instrument as _, debug, warn};

/// How long commits are collected before they are looked at, so that a busy run is not slowed down.
const INTERVAL: Duration = Duration::from_millis(250);

/// At most this fraction of the time is spent on snapshots of a busy run.
const SHARE: u32 = 8;

/// States up to this size are part of the snapshot; larger ones are files of their own.
const INLINE_STATE: usize = 64 * 1024;

/// Where and which snapshots of a run are written.
#[derive(Clone)]
pub struct SnapshotOptions {
    pub dir: SnapshotDir,
    /// The project directory, whose git state snapshots record.
    pub project: PathBuf,
    /// The triggers that cause a snapshot.
    pub triggers: Vec<Trigger>,
    pub policy: RetentionPolicy,
    pub max_bytes: Option<u64>,
    pub compress: bool,
    /// The programs of the agents that the run needs.
    pub agents: Vec<String>,
    /// The environment variables that the run needs.
    pub environment: Vec<String>,
    pub masks: Arc<Masks>,
    pub knowledge: KnowledgeDir,
}

/// Why snapshots could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("{}: {source}", dir.display())]
    Io { dir: PathBuf, source: io::Error },
    #[error("the stored value {0} is missing")]
    ValueMissing(Digest),
}

/// A job that writes the snapshots of one run.
pub(crate) struct Writer {
    wanted: watch::Sender<Wanted>,
    done: watch::Receiver<Done>,
}

/// How far the history goes, and whether someone waits for its snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    version: u64,
    now: bool,
}

#[derive(Clone, Debug, Default)]
struct Done {
    version: u64,
    failure: Option<String>,
    /// How many snapshots were removed because the directory was too large.
    removed: usize,
}

/// What there is to say about the snapshots of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled {
    /// Why snapshots could not be written.
    pub(crate) failure: Option<String>,
    /// How many were removed because the directory was too large.
    pub(crate) removed: usize,
}

impl Writer {
    pub(crate) fn start(store: Arc<dyn Store>, run: RunId, options: SnapshotOptions) -> Self {
        let (wanted, mut next) = watch::channel(Wanted::default());
        let (tell, done) = watch::channel(Done::default());
        let writing = async move {
            let mut job = Job { store, run, options, follower: None };
            let mut pause = INTERVAL;
            while next.changed().await.is_ok() {
                let mut dropped = next.clone();
                if !next.borrow_and_update().now {
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        waited = next.wait_for(|wanted| wanted.now) => if waited.is_err() { return },
                    }
                }
                let version = next.borrow_and_update().version;
                let started = Instant::now();
                let handle = tokio::runtime::Handle::current();
                // Following and writing would hold up the driver, which may have only this thread.
                let written = tokio::task::spawn_blocking(move || {
                    let written = handle.block_on(async {
                        // A database that cannot be reached must not keep the process from ending.
                        tokio::select! {
                            written = job.catch_up() => Some(written),
                            () = async { while dropped.changed().await.is_ok() {} } => None,
                        }
                    });
                    (job, written)
                });
                let written = match written.await {
                    Ok((returned, Some(written))) => {
                        job = returned;
                        written
                    }
                    // The driver is gone. The next one writes what is missing.
                    Ok((_, None)) => return,
                    Err(error) => {
                        warn!(%error, "the job that writes snapshots failed");
                        return;
                    }
                };
                pause = INTERVAL.max(started.elapsed() * SHARE);
                let (removed, failure) = match written {
                    Ok(removed) => (removed, None),
                    Err(error) => (0, Some(error.to_string())),
                };
                if let Some(error) = &failure {
                    warn!(%error, "snapshots not written");
                    // The copy of the state may be in the middle of a commit.
                    job.follower = None;
                }
                tell.send_modify(|done| *done = Done { version, failure, removed: done.removed + removed });
            }
        };
        tokio::spawn(writing.in_current_span());
        Self { wanted, done }
    }

    /// Says how far the history goes, without waiting.
    pub(crate) fn offer(&self, version: u64) {
        self.wanted.send_modify(|wanted| *wanted = Wanted { version, now: false });
    }

    /// Waits until all snapshots that are due are written.
    pub(crate) async fn settled(&mut self) -> Settled {
        let version = self.wanted.borrow().version;
        if self.done.borrow().version < version {
            self.wanted.send_modify(|wanted| wanted.now = true);
        }
        match self.done.wait_for(|done| done.version >= version).await {
            Ok(done) => Settled { failure: done.failure.clone(), removed: done.removed },
            Err(_) => Settled { failure: Some("the job that writes snapshots has ended".to_owned()), removed: 0 },
        }
    }
}

/// Writes a snapshot of a state now, such as one that a person requests.
pub async fn take_now(store: &dyn Store, run: &Run, due: Due, options: &SnapshotOptions) -> Result<IndexEntry, WriteError> {
    let prepared = prepare(run, &due, &surroundings(options), &options.knowledge);
    let written = write(store, options, run, vec![prepared], None).await?;
    written.entries.into_iter().next().ok_or_else(|| WriteError::Io {
        dir: options.dir.path().to_path_buf(),
        source: io::Error::other("the snapshot was not written"),
    })
}

struct Job {
    store: Arc<dyn Store>,
    run: RunId,
    options: SnapshotOptions,
    /// The copy of the state; `None` until it is needed.
    follower: Option<Follower>,
}

impl Job {
    /// Writes all snapshots that are due and not written yet.
    async fn catch_up(&mut self) -> Result<usize, WriteError> {
        let follower = match self.follower.take() {
            Some(follower) => follower,
            None => {
                let covered = self.covered()?;
                Follower::start(&*self.store, &self.run, covered).await?
            }
        };
        let commits = follower.unread(&*self.store).await?;
        if commits.is_empty() {
            self.follower = Some(follower);
            return Ok(0);
        }
        let wants = |trigger: Trigger| self.options.triggers.contains(&trigger);
        let mut scout = follower.clone();
        let mut points = Vec::new();
        scout.follow(&*self.store, &commits, &wants, &mut |_, due| points.push(Point::of(due))).await?;
        let kept = Point::kept(&points, &self.options.policy);
        let mut prepared = Vec::new();
        if !kept.is_empty() {
            let around = surroundings(&self.options);
            let mut again = follower;
            again
                .follow(&*self.store, &commits, &wants, &mut |run, due| {
                    if kept.contains(&due.seq) {
                        prepared.push(prepare(run, due, &around, &self.options.knowledge));
                    }
                })
                .await?;
        }
        let mut removed = 0;
        if let Some(run) = scout.run() {
            removed = write(&*self.store, &self.options, run, prepared, Some(scout.through())).await?.removed;
        }
        self.follower = Some(scout);
        Ok(removed)
    }

    /// The number of the last event that was examined for snapshots. Without an index, that of the newest file.
    fn covered(&self) -> Result<u64, WriteError> {
        if let Some(through) = self.options.dir.index().through.get(&self.run) {
            return Ok(*through);
        }
        let listing = self.options.dir.list()?;
        Ok(listing.of_run(&self.run).last().map_or(0, |newest| newest.seq))
    }
}

/// Writes the snapshots that are due and that no driver has written, such as that of a run that is cancelled while no process
/// drives it.
pub async fn write_due(store: &Arc<dyn Store>, run: &RunId, options: SnapshotOptions) -> Result<(), WriteError> {
    Job { store: store.clone(), run: run.clone(), options, follower: None }.catch_up().await.map(drop)
}

/// A snapshot that is ready to be written.
struct Prepared {
    id: SnapshotId,
    content: Map<String, Value>,
    /// The state, if it is a file of its own.
    state: Option<Vec<u8>>,
    values: Vec<Digest>,
    entry: IndexEntry,
}

fn surroundings(options: &SnapshotOptions) -> Surroundings {
    let mut around =
        Surroundings { agents: options.agents.clone(), environment: options.environment.clone(), ..Surroundings::default() };
    match GitState::read(&options.project) {
        Ok(None) => {}
        Ok(Some(git)) => {
            (around.branch, around.commit, around.files) = (git.branch, git.commit, git.files);
            if git.more > 0 {
                around.warnings.push(format!("{} more changed files are not listed", git.more));
            }
        }
        Err(error) => around.warnings.push(format!("the git state is unknown: {error}")),
    }
    let mask = |text: &mut String| *text = options.masks.mask_text(text).into_owned();
    around.branch.iter_mut().for_each(mask);
    around.files.iter_mut().for_each(|file| mask(&mut file.path));
    around.warnings.iter_mut().for_each(mask);
    around
}

fn prepare(run: &Run, due: &Due, around: &Surroundings, knowledge: &KnowledgeDir) -> Prepared {
    let pending = run.pending_captures(|id| knowledge.contains(id));
    let pending_captures = pending.iter().map(|entry| entry.id.to_string()).collect();
    let around = &Surroundings { pending_captures, ..around.clone() };
    let bytes = serde_json::to_vec(run).expect("a state always serializes to JSON");
    let mut values = run.referenced_values();
    values.sort_unstable();
    values.dedup();
    let (saved, state) = if bytes.len() > INLINE_STATE {
        (SavedState::Stored(Digest::of(&bytes)), Some(bytes))
    } else {
        (SavedState::Inline(serde_json::from_slice(&bytes).expect("JSON that was just written can be read")), None)
    };
    let mut content = document::content(run, due, around, saved, &values);
    let id = document::id(&content, due);
    content.shift_insert(0, "checkpoint_id".to_owned(), Value::String(id.to_string()));
    let can_resume = content["recovery_info"]["can_resume"] == true;
    let entry = IndexEntry {
        checkpoint_id: id.clone(),
        created_at: due.at,
        trigger: due.trigger,
        phase: due.phase.as_ref().map(ToString::to_string),
        can_resume,
        seq: due.seq,
        bytes: 0,
        run: Some(run.id.clone()),
    };
    Prepared { id, content, state, values, entry }
}

/// Writes snapshots with everything that they need, then the index, and removes those that are no longer kept. `through` is the
/// number of the last event that was examined.
async fn write(
    store: &dyn Store,
    options: &SnapshotOptions,
    run: &Run,
    prepared: Vec<Prepared>,
    through: Option<u64>,
) -> Result<Written, WriteError> {
    let dir = &options.dir;
    let failed = |source: io::Error| WriteError::Io { dir: dir.path().to_path_buf(), source };
    let lock = dir.lock().map_err(failed)?;
    let mut batch = dir.batch(&lock).map_err(failed)?;
    let mut written: Vec<IndexEntry> = Vec::new();
    add_values(store, options, &prepared, &mut batch).await?;
    for Prepared { id, content, state, mut entry, .. } in prepared {
        if let Some(state) = state {
            batch.add_state(&id, &state).map_err(failed)?;
            entry.bytes += state.len() as u64;
        }
        entry.bytes += batch.add(&id, &content, options.compress).map_err(failed)?;
        debug!(snapshot = %id, trigger = %entry.trigger, seq = entry.seq, "snapshot written");
        written.push(entry);
    }
    let mut listing = dir.list()?;
    batch.finish().map_err(failed)?;
    listing.add(&written);
    if let Some(through) = through {
        listing.through.insert(run.id.clone(), through);
    }
    let plan = prune::apply(options, run, &mut listing, &lock).map_err(failed)?;
    plan.remove.iter().for_each(|removal| debug!(snapshot = %removal.id, reason = ?removal.reason, "snapshot removed"));
    let issue = run.issue.as_ref().and_then(|issue| issue.number).or(listing.issue_number);
    dir.write_index(&listing.snapshots, listing.through, issue).map_err(failed)?;
    let removed = plan.remove.iter().filter(|removal| removal.reason == RemovalReason::Size).count();
    Ok(Written { entries: written, removed })
}

struct Written {
    entries: Vec<IndexEntry>,
    /// How many snapshots were removed because the directory was too large.
    removed: usize,
}

/// Adds the stored values that the directory does not have yet.
async fn add_values(
    store: &dyn Store,
    options: &SnapshotOptions,
    prepared: &[Prepared],
    batch: &mut Batch,
) -> Result<(), WriteError> {
    let wanted: BTreeSet<Digest> = prepared.iter().flat_map(|prepared| prepared.values.iter().copied()).collect();
    let missing: Vec<Digest> = wanted.into_iter().filter(|digest| !options.dir.has_value(*digest)).collect();
    for digest in missing {
        let value = store.values(&[digest]).await?.pop().flatten().ok_or(WriteError::ValueMissing(digest))?;
        let added = batch.add_value(digest, &value);
        added.map_err(|source| WriteError::Io { dir: options.dir.path().to_path_buf(), source })?;
    }
    Ok(())
}
