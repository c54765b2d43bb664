//! Survivors of a job: processes that are still alive although its first one has ended.

use super::lock;
use super::own_children::{self, Running};
use super::reaper;
use super::table::{self, Entry};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The environment variable that marks the processes of a job: the path of its lock file. It identifies processes that closed
/// the lock's descriptor, as many launchers do with descriptors they do not know.
pub(crate) const MARK: &str = "LOCKGATE_JOB";

/// How often to scan again while processes end during the scan.
const LOOKS: u32 = 1000;

/// The live processes of a job whose first process has ended but was not reaped yet, so that its pid cannot name another
/// session.
pub(super) fn of(job: &Running, lock_path: &Path) -> Vec<Entry> {
    for _ in 0..LOOKS {
        let (living, found) = look(job, lock_path);
        // A process that ended during the scan has left its children to us, perhaps after they were scanned: scan again.
        if !living.is_empty() || !found {
            return living;
        }
    }
    Vec::new()
}

/// The live processes of a job, and whether any was found, alive or just ended.
fn look(job: &Running, lock_path: &Path) -> (Vec<Entry>, bool) {
    let adopted = reaper::living();
    // The usual case, which needs no scan of the table: every survivor has lost its parent, so it or one of its ancestors was
    // adopted by us.
    if adopted.is_empty() && reaper::is_subreaper() && lock::is_free(lock_path).unwrap_or(false) {
        return (Vec::new(), false);
    }
    let table = table::all();
    let others = own_children::children().other_jobs(job.leader);
    let session = reaper::own_session();
    let may_be = |entry: &Entry| entry.start >= job.start && entry.session != session && entry.pid != job.leader;
    let is_known = |entry: &Entry| may_be(entry) && !entry.dead && belongs(entry, job);
    let mut members: BTreeSet<u32> = table.values().filter(|entry| is_known(entry)).map(|entry| entry.pid).collect();
    for entry in adopted.iter().filter(|entry| may_be(entry)) {
        // A process without any sign of its origin belongs to the last job that can have started it.
        if others.iter().all(|other| entry.start < other.start) && !others.iter().any(|other| belongs(entry, other)) {
            members.insert(entry.pid);
        }
    }
    let found = !members.is_empty();
    (with_descendants(&table, members), found)
}

fn belongs(entry: &Entry, job: &Running) -> bool {
    entry.session == job.leader || table::has_variable(entry.pid, MARK, &job.mark) || table::holds_lock(entry.pid, job.lock)
}

/// The live processes among these and their descendants, except this process and its ancestors.
pub(super) fn with_descendants(table: &BTreeMap<u32, Entry>, mut members: BTreeSet<u32>) -> Vec<Entry> {
    let spared = own_ancestry(table);
    members.retain(|pid| !spared.contains(pid));
    loop {
        let more: Vec<u32> = table
            .values()
            .filter(|entry| members.contains(&entry.parent) && !members.contains(&entry.pid) && !spared.contains(&entry.pid))
            .map(|entry| entry.pid)
            .collect();
        if more.is_empty() {
            break;
        }
        members.extend(more);
    }
    members.iter().filter_map(|pid| table.get(pid)).filter(|entry| !entry.dead).copied().collect()
}

fn own_ancestry(table: &BTreeMap<u32, Entry>) -> BTreeSet<u32> {
    let mut spared = BTreeSet::from([0, 1]);
    let mut pid = std::process::id();
    while spared.insert(pid) {
        pid = table.get(&pid).map_or(0, |entry| entry.parent);
    }
    spared
}
