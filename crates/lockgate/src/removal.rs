//! Removing finished runs: their rows in the database, their directory, and what they left in git.
//!
//! A kill leaves nothing half removed. The directory is marked first, then the rows go in one transaction, then the directory goes. A directory that
//! is marked and whose run is no longer in the database is removed by the next garbage collection.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::code::Code;
use crate::error::Error;
use crate::gc::garbage;
use crate::project::Project;
use crate::select;
use crate::view::{RunStatus, WorktreeView};
use crate::worktrees::git_error;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::index::{OpenEnum, RunRow};
use lockgate_runner::commit::forget_runs;
use lockgate_runner::load::load;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::Runtime;
use lockgate_runner::snapshot::SnapshotDir;
use lockgate_runner::worktree::{ExistingWorktree, existing, remove_unused};
use lockgate_store::{ClaimError, DriverInfo, ListedRun, RemoveError, RemovedRows, RunRemoval, Store};
use serde::Serialize;
use std::io;
use std::sync::Arc;

/// The statuses of runs that have ended for good. A failed run can be resumed, so it is cancelled before it is removed.
pub const FINISHED: [Status; 3] = [Status::Complete, Status::Aborted, Status::Cancelled];

/// What a caller does who removes a run, as it completes "may not …".
pub const REMOVE_RUN: &str = "remove a run";

/// A run that was removed, or that would be.
#[derive(Clone, Debug, Serialize)]
pub struct RemovedRunView {
    pub run: RunId,
    pub workflow: String,
    pub feature: Option<String>,
    pub status: RunStatus,
    /// Rows in the database; unknown before they are removed.
    pub rows: Option<u64>,
    /// The size of its directory, with logs and outputs.
    pub file_bytes: u64,
    /// Worktrees that stay, because they contain work.
    pub kept_worktrees: Vec<WorktreeView>,
}

impl Project {
    /// Finds a finished run and what removing it would remove. Changes nothing.
    pub async fn plan_removal(&self, named: &str) -> Result<RemovedRunView, Error> {
        let ListedRun { row, .. } = select::finished_run(self.store(), named).await?;
        if let Some(driver) = self.store().driver_of(&row.run).await? {
            return Err(driven(&row.run, &driver));
        }
        let mut worktrees = existing(&self.root, Some(&row.run)).map_err(git_error)?;
        worktrees.retain(ExistingWorktree::has_work);
        Ok(view(&self.root, &row, None, &worktrees))
    }

    /// Removes a finished run with everything that belongs to it. Worktrees that contain work stay.
    pub async fn remove_run(&self, run: &RunId, caller: &Caller) -> Result<RemovedRunView, Error> {
        self.may_decide(caller, run, REMOVE_RUN).await?;
        self.remover().remove(run).await
    }

    pub(crate) fn remover(&self) -> Remover {
        Remover { root: self.root.clone(), runtime: self.runtime.clone() }
    }
}

/// Removes runs, without asking who wants it.
#[derive(Clone)]
pub(crate) struct Remover {
    pub(crate) root: Root,
    pub(crate) runtime: Runtime,
}

impl Remover {
    pub(crate) async fn remove(&self, run: &RunId) -> Result<RemovedRunView, Error> {
        let store = &self.runtime.store;
        // While this process has the claim, no other can drive the run.
        let claim = match store.claim(run).await {
            Ok(epoch) => Claim { store: store.clone(), run: run.clone(), epoch: Some(epoch) },
            Err(ClaimError::DrivenBy(driver)) => return Err(driven(run, &driver)),
            Err(ClaimError::Store(error)) => return Err(error.into()),
        };
        let stored = store.stored_run(run).await?.ok_or_else(|| lockgate_store::StoreError::NoRun(run.clone()))?;
        must_be_finished(run, &stored.row.status)?;
        let (root, id) = (self.root.clone(), run.clone());
        let prepared = tokio::task::spawn_blocking(move || prepare(&root, &id)).await;
        let (file_bytes, worktrees) = prepared.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))?;
        let snapshots = self.snapshots_elsewhere(run).await;
        let removed = claim.remove().await.map_err(|error| not_removed(run, error))?;
        if let Some(Err(error)) = snapshots.map(|dir| dir.remove_run(run)) {
            tracing::warn!(%run, %error, "the snapshots of a removed run stay behind");
        }
        let (root, id) = (self.root.clone(), run.clone());
        // It is marked, so a directory that stays is removed by the next garbage collection.
        let cleared = tokio::task::spawn_blocking(move || garbage::remove_marked(&root.run_dir(&id))).await;
        match cleared {
            Ok(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%run, %error, "the directory of a removed run stays behind");
            }
            Err(error) => tracing::warn!(%run, %error, "the directory of a removed run stays behind"),
            Ok(_) => {}
        }
        tracing::info!(%run, rows = removed.rows, values = removed.values.count, file_bytes, "removed a finished run");
        Ok(RemovedRunView { file_bytes, ..view(&self.root, &stored.row, Some(removed), &worktrees) })
    }
}

impl Remover {
    /// The snapshots of a run, if they are not in its own directory.
    async fn snapshots_elsewhere(&self, run: &RunId) -> Option<SnapshotDir> {
        // A run that cannot be read can be removed all the same.
        let state = load(&*self.runtime.store, run).await.ok()?;
        let dir = self.runtime.perform.snapshots(&state).ok()??.dir;
        (!dir.path().starts_with(self.root.run_dir(run))).then_some(dir)
    }
}

/// A claim that is released unless the run is removed.
struct Claim {
    store: Arc<dyn Store>,
    run: RunId,
    epoch: Option<u64>,
}

impl Claim {
    async fn remove(mut self) -> Result<RemovedRows, RemoveError> {
        let epoch = self.epoch.unwrap_or_default();
        let removed = self.store.remove_run(RunRemoval { run: self.run.clone(), epoch, statuses: FINISHED.to_vec() }).await?;
        self.epoch = None;
        Ok(removed)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(epoch) = self.epoch {
            self.store.abandon(&self.run, epoch);
        }
    }
}

/// Removes what no finished run needs and marks the directory. Returns its size, and the worktrees that stay.
fn prepare(root: &Root, run: &RunId) -> Result<(u64, Vec<ExistingWorktree>), Error> {
    if let Some((path, pid)) = garbage::held_locks(root, run).into_iter().next() {
        let message = format!("process {pid} of run {run} is still running, so the run is not removed");
        return Err(
            Error::new(Code::OrphansRunning, message).help(format!("end it, then try again; it locks {}", path.display()))
        );
    }
    let stays = remove_unused(root, run).map_err(git_error)?;
    if let Err(error) = forget_runs(root.dir(), |over| over == run, false) {
        // Outside a git repository there are no snapshots.
        tracing::debug!(%run, %error, "snapshots of tasks are not removed");
    }
    let folder = root.run_dir(run);
    let bytes = garbage::size_of(&folder);
    garbage::mark_removed(&folder).map_err(|error: io::Error| {
        Error::new(Code::Unwritable, format!("{} cannot be written: {error}", folder.display()))
            .help("make it writable for your user, then try again")
    })?;
    Ok((bytes, stays))
}

fn view(root: &Root, row: &RunRow, removed: Option<RemovedRows>, worktrees: &[ExistingWorktree]) -> RemovedRunView {
    RemovedRunView {
        run: row.run.clone(),
        workflow: row.workflow.clone(),
        feature: row.feature.clone(),
        status: RunStatus::of_row(&row.status, false),
        rows: removed.map(|removed| removed.rows + removed.values.count),
        file_bytes: garbage::size_of(&root.run_dir(&row.run)),
        kept_worktrees: worktrees.iter().map(|existing| WorktreeView::of(existing, root, None)).collect(),
    }
}

/// Refuses a run that may still continue.
pub(crate) fn must_be_finished(run: &RunId, status: &OpenEnum<Status>) -> Result<(), Error> {
    if FINISHED.iter().any(|finished| status.is(*finished)) {
        return Ok(());
    }
    Err(Error::new(Code::RunNotEnded, format!("run {run} is {status}, so it is not removed"))
        .help(format!("cancel it first with `lockgate cancel {run}`")))
}

fn driven(run: &RunId, driver: &DriverInfo) -> Error {
    Error::new(Code::DrivenElsewhere, format!("run {run} is driven by {driver}, so it is not removed"))
        .help("wait until that process has ended, then try again")
}

fn not_removed(run: &RunId, error: RemoveError) -> Error {
    match error {
        RemoveError::Fenced => {
            Error::new(Code::TakenOver, format!("another process has taken run {run} over, so it is not removed"))
                .help(format!("see what it does with `lockgate status {run}`"))
        }
        RemoveError::Status(status) => match must_be_finished(run, &status) {
            Err(error) => error,
            Ok(()) => Error::new(Code::InternalError, format!("run {run} is {status}, and was not removed")),
        },
        RemoveError::Store(error) => error.into(),
    }
}
