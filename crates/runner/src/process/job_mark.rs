//! A mark that everything started by a job inherits: a limit on the number of file locks, which Linux has not enforced since
//! 2.4.
//!
//! A process inherits its limits whatever happens to its environment, descriptors, session and parents, and without
//! privileges it can lower but never raise them. A daemon therefore stays recognizable as started by a task, whatever it
//! closed or cleared. Each job has its own value, in a range that no other software is likely to use.

use crate::sys::lock_limit;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

/// The upper bits of all values.
const OURS: u64 = 0x4C47 << 48;

/// The bits that identify a job.
const OF_JOB: u64 = (1 << 48) - 1;

pub(super) fn of_job(lock_path: &Path) -> u64 {
    let digest = blake3::hash(lock_path.as_os_str().as_encoded_bytes());
    let bytes = digest.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
    OURS | (u64::from_le_bytes(bytes) & OF_JOB)
}

/// Marks this process and everything it will start. Safe between fork and exec. If the limit cannot be set, because the
/// system has none or a lower one is already set, the job is recognized only by its other marks.
pub(super) fn mark(value: u64) {
    lock_limit::set(value);
}

/// Starts a program, and everything that it starts, without a terminal and with a mark: programs of the user that it runs cannot decide
/// as a person.
pub(crate) fn in_marked_session(command: &mut std::process::Command) {
    let value = of_job(Path::new("a program that Lockgate started"));
    // SAFETY: both are plain system calls, which are safe after a fork and allocate nothing.
    unsafe {
        command.pre_exec(move || {
            mark(value);
            rustix::process::setsid().map(drop).map_err(Into::into)
        });
    }
}

/// Whether this process was started by a job, directly or indirectly.
pub fn is_inside_job() -> bool {
    lock_limit::own().is_some_and(is_ours)
}

/// Whether this process was started by the job with this lock.
pub fn is_inside(lock_path: &Path) -> bool {
    std::path::absolute(lock_path).is_ok_and(|path| has(std::process::id(), of_job(&path)))
}

/// Whether another process carries the mark of a job.
pub(super) fn has(pid: u32, value: u64) -> bool {
    lock_limit::of(pid).is_some_and(|limit| limit == value)
}

fn is_ours(value: u64) -> bool {
    value & !OF_JOB == OURS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_markers_are_recognizable_and_unique() {
        let [one, other] = ["/a/lock", "/b/lock"].map(|path| of_job(Path::new(path)));
        assert!(is_ours(one) && is_ours(other) && one != other);
        assert!([0, 1024, u64::MAX].into_iter().all(|value| !is_ours(value)));
    }
}
