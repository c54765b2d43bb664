//! Exclusive use of a directory: a task whose work is committed works alone in it, so that only its own changes are
//! committed.

use super::command::{failure, start};
use super::{Shared, worktree};
use crate::commit::{dir_lock_file, open_dir_lock};
use crate::process::Stop;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::{Phase, Task, Work};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// How often to check whether another run has finished its commit.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A run and the name of its worktree; `None` for the root.
type Directory = (RunId, Option<String>);

#[derive(Default)]
pub(super) struct DirLocks {
    directories: Mutex<BTreeMap<Directory, Arc<RwLock<()>>>>,
}

/// A lock to be taken, captured when the effect starts.
pub(super) struct Wanted {
    address: String,
    run: RunId,
    /// The worktree; `None` for the root.
    tree: Option<String>,
    alone: bool,
}

/// Held until it is dropped.
pub(super) enum DirLock {
    WithOthers { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()>, _file: Option<File> },
}

impl Wanted {
    /// For a task; `None` if no task in its phase commits.
    pub(super) fn of_task(
        run: &Run,
        phase: &Phase,
        task: &Task,
        address: String,
        tree: Option<&worktree::Wanted>,
    ) -> Option<Self> {
        let alone = task.commit.is_some();
        let changes_files = alone || matches!(task.work, Work::Run(_) | Work::Agent(_));
        changes_files.then(|| Self::if_phase_commits(run, phase, address, tree, alone)).flatten()
    }

    pub(super) fn of_gate(run: &Run, phase: &Phase, address: String, tree: Option<&worktree::Wanted>) -> Option<Self> {
        Self::if_phase_commits(run, phase, address, tree, false)
    }

    fn if_phase_commits(run: &Run, phase: &Phase, address: String, tree: Option<&worktree::Wanted>, alone: bool) -> Option<Self> {
        let commits = alone || phase.commits();
        commits.then(|| Self { address, run: run.id.clone(), tree: tree.map(worktree::Wanted::name), alone })
    }

    /// Waits for the lock.
    pub(super) async fn take(self, shared: &Shared, stop: &Stop) -> Result<DirLock, Failure> {
        let in_root = self.tree.is_none();
        let directory = {
            let mut directories = shared.dir_locks.directories.lock().unwrap_or_else(PoisonError::into_inner);
            directories.entry((self.run.clone(), self.tree)).or_default().clone()
        };
        let stopped = || failure(FailureKind::Stopped, "it was stopped while it waited for its directory");
        if !self.alone {
            let guard = tokio::select! {
                guard = directory.read_owned() => guard,
                () = stop.stopped() => return Err(stopped()),
            };
            return Ok(DirLock::WithOthers { _guard: guard });
        }
        let guard = tokio::select! {
            guard = directory.write_owned() => guard,
            () = stop.stopped() => return Err(stopped()),
        };
        let file = match in_root {
            // Other runs have their own worktrees but share the root.
            true => Some(before_other_runs(shared, &self.run, &self.address, stop).await?.ok_or_else(stopped)?),
            false => None,
        };
        Ok(DirLock::Alone { _guard: guard, _file: file })
    }
}

/// Waits until no committing task of another run works in the root; `None` if stopped before.
async fn before_other_runs(shared: &Shared, run: &RunId, address: &str, stop: &Stop) -> Result<Option<File>, Failure> {
    let dir = shared.root.dir().to_owned();
    let found = tokio::task::spawn_blocking(move || dir_lock_file(&dir)).await;
    let path = found.map_err(|error| start(error.to_string()))?;
    let path = path.unwrap_or_else(|| shared.root.state_dir().join("commit.lock"));
    let file = open_dir_lock(&path).map_err(start)?;
    let mut reported = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(start(format!("{} cannot be locked: {error}", path.display()))),
            Err(TryLockError::WouldBlock) => {}
        }
        if !std::mem::replace(&mut reported, true) {
            (shared.on_line)(run, address, "waiting for a task of another run that commits in the same directory");
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = stop.stopped() => return Ok(None),
        }
    }
}
