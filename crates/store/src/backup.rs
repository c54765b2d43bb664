//! Copies of a store in a file: writing them atomically, and copying the runs of any store into a new SQLite database.

use crate::cleanup;
use crate::error::{AppendError, StoreError};
use crate::sqlite::SqliteStore;
use crate::store::{Append, Future, Store, StoredRun};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::IndexRows;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Page sizes for reading runs and commits.
const RUN_PAGE: usize = 100;
const COMMIT_PAGE: usize = 1000;

/// A consistent snapshot of a store, unaffected by later commits.
pub(crate) trait ReadSnapshot: Send + Sync {
    /// Runs with everything stored for them except their commits, after `after`, in order.
    fn scan_runs(&self, after: Option<i64>, limit: usize) -> Future<'_, Result<Vec<StoredRun>, StoreError>>;
    /// The commits of a run after version `after`, in order, at most `limit`.
    fn commits<'a>(&'a self, run: &'a RunId, after: u64, limit: usize) -> Future<'a, Result<Vec<SealedCommit>, StoreError>>;
    /// Stored values by their digests; `None` for unknown ones.
    fn values<'a>(&'a self, digests: &'a [Digest]) -> Future<'a, Result<Vec<Option<Vec<u8>>>, StoreError>>;
}

/// Copies the runs of a store into a new database file, with everything except their claims. For stores without a native
/// backup.
pub(crate) async fn copy_runs(store: &dyn ReadSnapshot, file: &Path) -> Result<(), StoreError> {
    require_dir(file)?;
    let folder = temporary_name(file);
    let copied = copy_into(store, &folder).await;
    let placed = copied.and_then(|()| put_in_place(&folder.join("lockgate.db"), file));
    cleanup::remove_dir(&folder);
    placed
}

async fn copy_into(store: &dyn ReadSnapshot, folder: &Path) -> Result<(), StoreError> {
    let copy = SqliteStore::open(folder)?;
    let mut after = None;
    loop {
        let runs = store.scan_runs(after, RUN_PAGE).await?;
        let Some(last) = runs.last() else { return Ok(()) };
        after = Some(last.place);
        // Copy them concurrently, so that the appends of many runs share a transaction.
        futures::future::try_join_all(runs.iter().map(|run| copy_run(store, run, &copy))).await?;
    }
}

async fn copy_run(store: &dyn ReadSnapshot, stored: &StoredRun, copy: &SqliteStore) -> Result<(), StoreError> {
    let run = &stored.row.run;
    let found = store.values(&stored.referenced_values).await?;
    let mut values: Vec<_> =
        stored.referenced_values.iter().copied().zip(found).filter_map(|(digest, bytes)| Some((digest, bytes?))).collect();
    let mut index = Some(IndexRows {
        run: Some(stored.row.clone()),
        holds: stored.holds.clone(),
        timers: stored.timers.clone(),
        timers_removed: Vec::new(),
        referenced_values: stored.referenced_values.clone(),
        // Restoring a copy must not notify people of past events.
        outbox: Vec::new(),
    });
    let mut after = 0;
    loop {
        let commits = store.commits(run, after, COMMIT_PAGE).await?;
        let Some(last) = commits.last() else { return Ok(()) };
        after = last.version;
        for commit in commits {
            let append = Append {
                run: run.clone(),
                expected: commit.version.saturating_sub(1),
                epoch: None,
                claim: None,
                materialized: stored
                    .materialized
                    .as_ref()
                    .filter(|materialized| materialized.version == commit.version)
                    .map(|materialized| materialized.state.clone()),
                commit,
                values: std::mem::take(&mut values),
                index: index.take().unwrap_or_default(),
            };
            copy.append(append).await.map_err(|error| broken(run, error))?;
        }
    }
}

fn broken(run: &RunId, error: AppendError) -> StoreError {
    match error {
        AppendError::Store(error) => error,
        AppendError::Conflict | AppendError::Fenced | AppendError::DrivenBy(_) => {
            StoreError::Corrupt(format!("the history of run {run} has a gap or a duplicate"))
        }
    }
}

/// Fails if the directory of a new file does not exist.
pub(crate) fn require_dir(file: &Path) -> Result<(), StoreError> {
    match file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => Err(StoreError::Io(format!("there is no directory {}; create it, or choose another", folder.display()))),
        None => Ok(()),
    }
}

/// A temporary name next to a file that is not complete yet.
pub(crate) fn temporary_name(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{:016x}", rand::random::<u64>()));
    file.with_file_name(name)
}

/// Makes a file durable and renames it to `file`, unless that exists.
pub fn put_in_place(fresh: &Path, file: &Path) -> Result<(), StoreError> {
    let failed = |error: &io::Error| StoreError::Io(format!("{} cannot be written: {error}", file.display()));
    let taken = || StoreError::Io(format!("{} already exists and is not overwritten; choose another name", file.display()));
    File::open(fresh).and_then(|opened| opened.sync_all()).map_err(|error| failed(&error))?;
    match fs::hard_link(fresh, file) {
        Ok(()) => fs::remove_file(fresh).map_err(|error| failed(&error))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken()),
        // The file system has no hard links. Another process that creates the name at the same time goes unnoticed here.
        Err(_) if file.symlink_metadata().is_ok() => return Err(taken()),
        Err(_) => fs::rename(fresh, file).map_err(|error| failed(&error))?,
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(&error))
}
