//! Everything that only Linux has: the table of processes under `/proc`, the types of file systems.
//! A test of xtask checks that no other module of this crate does such things.

use rustix::process::Pid;
use std::io;
use std::path::Path;
use tokio::signal::unix::SignalKind;

/// Whether other processes can be seen.
pub(crate) const HAS_PROCESS_TABLE: bool = cfg!(target_os = "linux");

/// Reads this process's entry in the table.
pub(crate) fn read_process_table() -> io::Result<()> {
    std::fs::read(format!("/proc/{}/stat", std::process::id())).map(drop)
}

/// Whether this process was started with a signal ignored, as `nohup` does. False if the system does not show it.
pub(crate) fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::try_from(kind.as_raw_value() - 1).unwrap_or(u32::MAX);
    1_u64.checked_shl(bit).is_some_and(|bit| ignored & bit != 0)
}

/// The children of this process.
pub(crate) fn children() -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<i32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    pids.into_iter().filter_map(Pid::from_raw).collect()
}

/// The parent, process group and session of a process.
pub(crate) struct Place {
    pub(crate) parent: String,
    pub(crate) group: String,
    pub(crate) session: String,
}

impl Place {
    pub(crate) fn of(process: &str) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::to_owned);
        Some(Self { parent: fields.next()?, group: fields.next()?, session: fields.next()? })
    }
}

/// Whether a directory is on a network file system.
#[cfg(target_os = "linux")]
pub(crate) fn is_on_network(folder: &Path) -> bool {
    // NFS, SMB, CIFS, SMB2, AFS, Coda, Ceph, as `statfs` calls them.
    const NETWORK: [u32; 7] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x7375_7245, 0x00c3_6400];
    // The type has another width on every machine; all of these fit into 32 bits.
    rustix::fs::statfs(folder).is_ok_and(|file_system| NETWORK.contains(&(file_system.f_type as u32)))
}

/// Whether a directory is on a network file system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_on_network(_: &Path) -> bool {
    false
}
