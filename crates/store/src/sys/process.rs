//! Processes, as the table under `/proc` shows them.

use std::fs;
use std::path::Path;

/// Whether the table shows the processes that signals reach. In a container it may show others.
pub(crate) fn shows_this_process(pid: i32) -> bool {
    fs::read_link("/proc/self").is_ok_and(|shown| shown == Path::new(&pid.to_string()))
}

/// The 22nd field of `/proc/self/stat`; the second is a name in brackets that may hold anything. Absent where there is no such file.
pub(crate) fn start_ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Which machine since when, and which of its processes are seen.
pub(crate) fn host_identity() -> Option<String> {
    let began = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let seen = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", began.trim(), seen.display()))
}

/// What the table of processes says of one.
pub(crate) struct ProcessStat {
    /// When it began, in ticks since the machine did.
    pub(crate) began: String,
    /// Only its parent has not taken note of its end yet.
    pub(crate) ended: bool,
}

impl ProcessStat {
    pub(crate) fn at(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is a name in brackets that may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let threads: u64 = fields.get(17)?.parse().ok()?;
        // The first thread may have ended while others go on.
        let ended = matches!(*fields.first()?, "Z" | "X" | "x") && threads <= 1;
        Some(Self { began: (*fields.get(19)?).to_owned(), ended })
    }
}
