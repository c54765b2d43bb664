//! Tracks the children that this process started and waits for. All other children were adopted.

use super::table::{self, FileId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A running job.
#[derive(Debug)]
pub(super) struct Running {
    /// The pid of its first process, which is also its group and session id.
    pub(super) leader: u32,
    /// When that process started.
    pub(super) start: u64,
    /// Its lock file.
    pub(super) lock: FileId,
    /// The mark that its processes carry in their environment.
    pub(super) mark: OsString,
}

#[derive(Debug)]
pub(super) struct Children {
    /// Children that the caller waits for, with the job if they are its first process.
    pub(super) awaited: BTreeMap<u32, Option<Arc<Running>>>,
    /// Children that were killed and that no caller waits for any more.
    pub(super) abandoned: BTreeSet<u32>,
}

impl Children {
    /// Removes own children from a list of pids.
    pub(super) fn remove_own_children(&self, pids: &mut Vec<u32>) {
        pids.retain(|pid| !self.awaited.contains_key(pid) && !self.abandoned.contains(pid));
    }

    /// All running jobs except one.
    pub(super) fn other_jobs(&self, leader: u32) -> Vec<Arc<Running>> {
        self.awaited.values().flatten().filter(|job| job.leader != leader).cloned().collect()
    }
}

static CHILDREN: Mutex<Children> = Mutex::new(Children { awaited: BTreeMap::new(), abandoned: BTreeSet::new() });

/// Locks the registry. While it is held, no child is started or forgotten.
pub(super) fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks a child as our own for as long as it lives.
#[derive(Debug)]
pub struct OwnChild {
    pid: u32,
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        children().awaited.remove(&self.pid);
    }
}

impl OwnChild {
    /// Leaves reaping the child to [`super::reap_adopted`].
    pub(super) fn abandon(&self) {
        children().abandoned.insert(self.pid);
    }
}

/// Starts a child that leaves this session (`setsid`) and that the caller waits for: without this, [`super::reap_adopted`]
/// would treat it as adopted. Children that stay in this session do not need it.
pub fn spawn_own_child<C>(spawn: impl FnOnce() -> io::Result<C>, pid: impl FnOnce(&C) -> u32) -> io::Result<(C, OwnChild)> {
    let mut children = children();
    let child = spawn()?;
    let pid = pid(&child);
    children.awaited.insert(pid, None);
    Ok((child, OwnChild { pid }))
}

/// Starts the first process of a job; `spawn` takes the lock and closes its descriptor again. Only one at a time: a child
/// forked while the lock's descriptor is open here would inherit a copy of it.
pub(super) fn spawn_job<E>(
    spawn: impl FnOnce() -> Result<(std::process::Child, FileId), E>,
    mark: OsString,
) -> Result<(std::process::Child, OwnChild, Arc<Running>), E> {
    let mut children = children();
    let (child, lock) = spawn()?;
    let leader = child.id();
    let start = table::entry(leader).map_or(0, |entry| entry.start);
    let running = Arc::new(Running { leader, start, lock, mark });
    children.awaited.insert(leader, Some(running.clone()));
    Ok((child, OwnChild { pid: leader }, running))
}
