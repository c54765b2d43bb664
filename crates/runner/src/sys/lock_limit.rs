//! The limit on the number of file locks. Linux passes it on to every descendant, but has not enforced it since 2.4.

use super::process_table;
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sets the limit of this process. Safe between fork and exec.
pub(crate) fn set(value: u64) {
    #[cfg(not(target_os = "linux"))]
    let _ = value;
    // Nothing may be logged between fork and exec.
    #[cfg(target_os = "linux")]
    let _ = setrlimit(Resource::Locks, Rlimit { current: Some(value), maximum: Some(value) });
}

/// The hard limit of this process.
pub(crate) fn own() -> Option<u64> {
    #[cfg(not(target_os = "linux"))]
    return None;
    #[cfg(target_os = "linux")]
    getrlimit(Resource::Locks).maximum
}

/// The hard limit of another process.
pub(crate) fn of(pid: u32) -> Option<u64> {
    hard_limit(&String::from_utf8_lossy(&process_table::read(&format!("/proc/{pid}/limits"))?))
}

fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_parsed_from_proc_limits() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max file locks            12                   34                   locks     \n";
        assert_eq!(hard_limit(table), Some(34));
        assert_eq!(hard_limit("Max file locks            unlimited            unlimited            locks\n"), None);
    }
}
