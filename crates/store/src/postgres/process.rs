//! Identifies a driver's process, so that another process on the same machine can tell that it has ended.
//!
//! The identity consists of the boot id, the pid namespace, the pid and the start time, and is never reused. Only a process
//! in the same pid namespace can check it; when in doubt, the process counts as alive.

use crate::sys::process::{ProcessStat, host_identity, shows_this_process};
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

/// The identity of this process; `None` on systems without this information.
pub(super) fn own() -> Option<String> {
    // In a container, `/proc` may show a different pid namespace than the one that signals reach.
    let pid = getpid().as_raw_nonzero().get();
    if !shows_this_process(pid) {
        return None;
    }
    Some(format!("{} {pid} {}", host_identity()?, ProcessStat::at(pid)?.began))
}

/// Whether the process with this identity has certainly ended.
pub(super) fn has_ended(name: &str) -> bool {
    let Some(own) = own() else { return false };
    let parts = |name: &str| {
        let (rest, began) = name.rsplit_once(' ')?;
        let (host_identity, pid) = rest.rsplit_once(' ')?;
        Some((host_identity.to_owned(), pid.parse::<i32>().ok()?, began.to_owned()))
    };
    let (Some((host_identity, pid, began)), Some((here, ..))) = (parts(name), parts(&own)) else { return false };
    if host_identity != here {
        return false;
    }
    let Some(process) = Pid::from_raw(pid) else { return false };
    match test_kill_process(process) {
        Err(Errno::SRCH) => true,
        // The pid may have been reused; a process that cannot be inspected counts as the same one.
        Ok(()) | Err(_) => ProcessStat::at(pid).is_some_and(|look| look.began != began || look.ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap()
    }

    fn name_of(child: &Child) -> String {
        let pid = i32::try_from(child.id()).unwrap();
        format!("{} {pid} {}", host_identity().unwrap(), ProcessStat::at(pid).unwrap().began)
    }

    #[test]
    fn a_killed_process_counts_as_ended_even_before_it_is_reaped() {
        let mut child = sleeper();
        let name = name_of(&child);
        assert!(!has_ended(&name) && !has_ended(&own().unwrap()));
        child.kill().unwrap();
        while !has_ended(&name) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(&name));
    }

    #[test]
    fn a_reused_pid_is_not_the_same_process() {
        let mut child = sleeper();
        let name = name_of(&child);
        let (rest, _) = name.rsplit_once(' ').unwrap();
        assert!(has_ended(&format!("{rest} 1")));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn processes_on_other_hosts_are_unknown() {
        let own = own().unwrap();
        let (boot, rest) = own.split_once(' ').unwrap();
        assert!(!has_ended(&format!("{boot} pid:[1] 999999999 1")), "another container");
        assert!(!has_ended(&format!("another-boot {rest}")), "another machine");
        assert!(!has_ended("") && !has_ended("nonsense"));
    }
}
