//! Everything that only Linux has: the table of processes under `/proc`, handles of processes, adoption of orphans, files in memory.
//! Elsewhere each function does the next best thing, or nothing. A test of xtask checks that no other module of this crate does such things.
//!
//! | module | contents |
//! | --- | --- |
//! | [`process_table`] | the processes of the system, and signals that cannot reach the wrong one |
//! | [`lock_limit`] | the inherited limit that marks the processes of a job |
//! | `exit` | the end of a process |

mod exit;
pub(crate) mod lock_limit;
pub(crate) mod process_table;

pub(crate) use exit::Exit;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Whether other processes can be seen.
pub(crate) const HAS_PROCESS_TABLE: bool = cfg!(target_os = "linux");

/// Makes this process the parent of all descendants that lose theirs.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Whether this process adopts its orphaned descendants.
pub(crate) fn adopts_orphans() -> bool {
    #[cfg(target_os = "linux")]
    let adopts = rustix::process::child_subreaper().is_ok_and(|setting| setting.is_some());
    #[cfg(not(target_os = "linux"))]
    let adopts = false;
    adopts
}

/// The program that a process runs.
pub(crate) fn program_of(pid: u32) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe"))
}

/// Sets how much a pipe holds before the writer has to wait.
pub(crate) fn set_pipe_size(pipe: impl AsFd, bytes: usize) {
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, bytes);
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::pipe::fcntl_setpipe_size(pipe, bytes) {
        // A smaller pipe works as well.
        tracing::trace!(%error, "the pipe keeps its size");
    }
}

/// An empty file without a name.
#[cfg(target_os = "linux")]
pub(crate) fn nameless_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// An empty file without a name.
#[cfg(not(target_os = "linux"))]
pub(crate) fn nameless_file() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = std::env::temp_dir().join(format!("lockgate-stdin-{}-{:016x}", std::process::id(), rand::random::<u64>()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}
