//! Orphans: processes of a job that outlived the Lockgate that started it.

use super::job_mark;
use super::lock;
use super::reaper;
use super::survivors::{MARK, with_descendants};
use super::table::{self, Entry, FileId};
use rustix::process::{Signal, test_kill_process_group};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait for the lock to become free.
const LIMIT: Duration = Duration::from_secs(10);
/// The minimum number of kill attempts before giving up: on a heavily loaded machine, time alone says little.
const KILLS: u32 = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// The pids of the processes that were stopped.
    pub ended: Vec<u32>,
}

/// Stops the remaining processes of a job whose Lockgate is gone, and returns once its lock is free. Blocks for about ten seconds at
/// most.
///
/// A pid in a lock file proves nothing, because it may have been reused long ago. Only processes that hold the lock or carry
/// a mark of the job are stopped, with their sessions and descendants; never this process or one of its ancestors.
pub fn end_orphans(lock: &Path) -> io::Result<Orphans> {
    end(lock, false)
}

/// Like [`end_orphans`], for a job whose end was not observed. It also stops processes that left its group and closed its
/// lock, which requires a scan of the whole process table.
pub fn end_all_orphans(lock: &Path) -> io::Result<Orphans> {
    end(lock, true)
}

fn end(lock: &Path, all: bool) -> io::Result<Orphans> {
    let path = std::path::absolute(lock)?;
    let Some((leader, file)) = lock::read(&path)? else { return Ok(Orphans::default()) };
    let started = Instant::now();
    let mut asked: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut pause = Duration::from_millis(1);
    let mut kills = 0;
    loop {
        let free = lock::is_free(&path)?;
        // The lock is free and the group is empty: the usual case, which needs no scan of the table.
        let group_is_empty = leader.and_then(table::raw).is_none_or(|leader| test_kill_process_group(leader).is_err());
        let living = if free && group_is_empty && !all { Vec::new() } else { find(leader, file, &path) };
        if free && living.is_empty() {
            reaper::reap_adopted();
            let ended: Vec<u32> = asked.into_iter().map(|(pid, _)| pid).collect();
            if !ended.is_empty() {
                tracing::info!(lock = %path.display(), pids = ?ended, "stopped orphaned processes");
            }
            return Ok(Orphans { ended });
        }
        let kill = started.elapsed() > GRACE;
        if started.elapsed() > LIMIT && kills >= KILLS {
            return Err(still_held(&path, &living));
        }
        kills += u32::from(kill);
        for process in living {
            let first = asked.insert((process.pid, process.start));
            // A process that cannot be signalled shows up until the limit, and is then reported.
            if kill {
                table::try_signal(process, Signal::KILL);
            } else if first {
                table::try_signal(process, Signal::TERM);
                table::try_signal(process, Signal::CONT);
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
        reaper::reap_adopted();
    }
}

fn find(leader: Option<u32>, lock: FileId, path: &Path) -> Vec<Entry> {
    let (mark, limit) = (path.as_os_str(), job_mark::of_job(path));
    let table = table::all();
    let session = reaper::own_session();
    // A process in our own session can only be one that is just being started and still holds a copy of the descriptor.
    let is_marked = |entry: &&Entry| {
        let is_of_job = || job_mark::has(entry.pid, limit) || table::has_variable(entry.pid, MARK, mark);
        entry.session != session && (table::holds_lock(entry.pid, lock) || is_of_job())
    };
    let mut members: BTreeSet<u32> = table.values().filter(is_marked).map(|entry| entry.pid).collect();
    let in_session = |entry: &&Entry| leader.is_some_and(|leader| entry.session == leader || entry.group == leader);
    if table.values().filter(in_session).any(|entry| members.contains(&entry.pid)) {
        members.extend(table.values().filter(in_session).map(|entry| entry.pid));
    }
    with_descendants(&table, members)
}

fn still_held(lock: &Path, living: &[Entry]) -> io::Error {
    let pids: Vec<String> = living.iter().map(|process| process.pid.to_string()).collect();
    let who = if pids.is_empty() {
        "no process that can be stopped from here holds it: was this started inside the task itself?".to_owned()
    } else {
        format!("these processes could not be stopped: {}; stop them manually", pids.join(", "))
    };
    io::Error::other(format!("the lock {} is still held after {} seconds; {who}", lock.display(), LIMIT.as_secs()))
}
