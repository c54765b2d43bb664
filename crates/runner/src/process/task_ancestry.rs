//! The ancestors of this process, used to detect that a command was started inside a task.

use super::table;

/// An ancestor of this process. A pid alone may be reused; together with the start time it is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ancestor {
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// The ancestors of this process, starting with the parent, up to the first process of the machine or container. Empty if the
/// system does not report them.
pub fn ancestors() -> Vec<Ancestor> {
    let mut above: Vec<Ancestor> = Vec::new();
    let mut next = table::entry(std::process::id()).map(|entry| entry.parent);
    while let Some(pid) = next.filter(|pid| *pid != 0) {
        // If a parent ended meanwhile, its reused pid could lead in a circle.
        let Some(entry) = table::entry(pid).filter(|_| above.iter().all(|known| known.pid != pid)) else { break };
        above.push(Ancestor { pid, start_ticks: entry.start });
        next = Some(entry.parent);
    }
    above
}

/// When a process started, in clock ticks since boot; `None` if it is gone or the system does not report it.
pub fn start_ticks(pid: u32) -> Option<u64> {
    table::entry(pid).map(|entry| entry.start)
}

/// Whether this process has a controlling terminal, which no task has.
pub fn has_terminal() -> bool {
    use rustix::fs::{Mode, OFlags, open};
    open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).is_ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_first_ancestor_is_the_parent_and_has_a_start_time() {
        let above = ancestors();
        assert_eq!(above.first().map(|parent| parent.pid), Some(std::os::unix::process::parent_id()));
        assert_eq!(start_ticks(above[0].pid), Some(above[0].start_ticks));
        assert!(above.iter().all(|ancestor| ancestor.pid != std::process::id()));
    }

    #[test]
    fn a_missing_process_has_no_start_time() {
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
