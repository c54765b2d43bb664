//! Which children are ours: started by this process, which waits for them itself. All others were adopted.

use super::table::{self, FileId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A job under way.
#[derive(Debug)]
pub(super) struct Running {
    /// The pid of its first process, which is also its group and session.
    pub(super) leader: u32,
    /// When that one started.
    pub(super) start: u64,
    /// Its lock file.
    pub(super) lock: FileId,
    /// What its processes carry in their environment.
    pub(super) mark: OsString,
}

/// The children that this process started.
#[derive(Debug)]
pub(super) struct Children {
    /// Those that somebody waits for, with the job where they are the first process of one.
    pub(super) awaited: BTreeMap<u32, Option<Arc<Running>>>,
    /// Those that were killed because nobody waits for them any more.
    pub(super) abandoned: BTreeSet<u32>,
}

impl Children {
    /// Takes the pids that are ours out of a list.
    pub(super) fn remove_own_children(&self, pids: &mut Vec<u32>) {
        pids.retain(|pid| !self.awaited.contains_key(pid) && !self.abandoned.contains(pid));
    }

    /// The jobs under way, without one.
    pub(super) fn other_jobs(&self, leader: u32) -> Vec<Arc<Running>> {
        self.awaited.values().flatten().filter(|job| job.leader != leader).cloned().collect()
    }
}

static CHILDREN: Mutex<Children> = Mutex::new(Children { awaited: BTreeMap::new(), abandoned: BTreeSet::new() });

/// Holds still what is ours. While somebody holds this, no child of ours is started or forgotten.
pub(super) fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that a child is ours for as long as this lives.
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
    /// Leaves the child to [`super::reap_adopted`].
    pub(super) fn abandon(&self) {
        children().abandoned.insert(self.pid);
    }
}

/// Starts a child that leaves this session (`setsid`) and that the caller itself waits for: without this, [`super::reap_adopted`]
/// would take it for an adopted one. Children that stay in this session need it not.
pub fn spawn_own_child<C>(spawn: impl FnOnce() -> io::Result<C>, pid: impl FnOnce(&C) -> u32) -> io::Result<(C, OwnChild)> {
    let mut children = children();
    let child = spawn()?;
    let pid = pid(&child);
    children.awaited.insert(pid, None);
    Ok((child, OwnChild { pid }))
}

/// Starts the first process of a job; `spawn` takes the lock and lets go of it again. One at a time: a child that is forked while
/// the lock's descriptor is open here would hold a copy of it.
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
