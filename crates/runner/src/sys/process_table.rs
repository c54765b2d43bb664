//! The process table, as Linux shows it in `/proc`. On other systems everything here is empty.

use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// In clock ticks since boot; together with the pid it identifies a process uniquely.
    pub(crate) start: u64,
    /// It ended but was not reaped yet. A process whose main thread ended before the others is not dead.
    pub(crate) dead: bool,
}

/// The identity of a file, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Reads a file of `/proc`. Such a file reports the size 0, so that the standard library would read it in many small pieces.
pub(super) fn read(path: &str) -> Option<Vec<u8>> {
    let mut contents = Vec::with_capacity(4096);
    fs::File::open(path).ok()?.take(u64::MAX).read_to_end(&mut contents).ok()?;
    Some(contents)
}

pub(crate) fn entry(pid: u32) -> Option<Entry> {
    parse(pid, &read(&format!("/proc/{pid}/stat"))?)
}

pub(crate) fn all() -> BTreeMap<u32, Entry> {
    let Ok(names) = fs::read_dir("/proc") else { return BTreeMap::new() };
    names.flatten().filter_map(|name| entry(name.file_name().to_str()?.parse().ok()?)).map(|entry| (entry.pid, entry)).collect()
}

/// The children of this process's main thread, which include all adopted processes. `None` if the system does not report
/// them.
pub(crate) fn children_of_first_thread() -> Option<Vec<u32>> {
    let me = std::process::id();
    let list = read(&format!("/proc/{me}/task/{me}/children"))?;
    Some(String::from_utf8_lossy(&list).split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Whether a process has this file open through a descriptor that holds a lock on it. Merely reading the file does not count.
pub(crate) fn holds_lock(pid: u32, file: FileId) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        fs::metadata(descriptor.path()).is_ok_and(|metadata| FileId::of(&metadata) == file)
            && descriptor.file_name().to_str().is_some_and(|number| {
                fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).is_ok_and(|information| information.contains("FLOCK"))
            })
    })
}

/// A variable in the environment that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<Vec<u8>> {
    let environment = read(&format!("/proc/{pid}/environ"))?;
    environment
        .split(|byte| *byte == 0)
        .find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec))
}

pub(crate) fn has_variable(pid: u32, name: &str, value: &OsStr) -> bool {
    variable(pid, name).is_some_and(|found| found == value.as_bytes())
}

/// Sends a signal to a process that has to end. One that cannot be signalled stays in the table, and is reported with the
/// processes that could not be stopped.
pub(crate) fn try_signal(process: Entry, number: Signal) {
    match signal(process, number) {
        Ok(()) => tracing::trace!(pid = process.pid, signal = ?number, "signal sent"),
        Err(error) => tracing::debug!(pid = process.pid, signal = ?number, %error, "cannot send a signal"),
    }
}

/// Sends a signal to exactly this process, and not to a later one with the same pid.
#[cfg(target_os = "linux")]
fn signal(process: Entry, signal: Signal) -> io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = raw(process.pid) else { return Ok(()) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    // The handle refers to the current owner of the pid; its start time shows whether that is the intended process.
    if entry(process.pid).is_none_or(|now| now.start != process.start) {
        return Ok(());
    }
    match pidfd_send_signal(handle, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn signal(process: Entry, signal: Signal) -> io::Result<()> {
    let Some(pid) = raw(process.pid) else { return Ok(()) };
    Ok(rustix::process::kill_process(pid, signal)?)
}

/// A pid as system calls take it.
pub(crate) fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.try_into().ok()?)
}

fn parse(pid: u32, stat: &[u8]) -> Option<Entry> {
    // The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let small = |index: usize| u32::try_from(number(index)?).ok();
    Some(Entry {
        pid,
        parent: small(1)?,
        group: small(2)?,
        session: small(3)?,
        start: number(19)?,
        dead: matches!(*fields.first()?, "Z" | "X") && number(17)? <= 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_is_parsed() {
        let stat = b"42 (a) Z (b)) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9\n";
        let entry = parse(42, stat).unwrap();
        assert_eq!(entry, Entry { pid: 42, parent: 7, group: 8, session: 9, start: 777, dead: false });
    }

    #[test]
    fn a_parent_group_and_session_outside_the_container_read_as_zero() {
        let stat = b"42 (sh) S 0 0 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9\n";
        let entry = parse(42, stat).unwrap();
        assert_eq!((entry.parent, entry.group, entry.session), (0, 0, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_in_the_table() {
        let me = std::process::id();
        assert_eq!(all().get(&me).map(|entry| entry.start), entry(me).map(|entry| entry.start));
        assert!(entry(me).is_some_and(|entry| !entry.dead));
    }
}
