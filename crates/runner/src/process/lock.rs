//! The lock file of a job: locked for exactly as long as any process of the job is alive, and containing the pid of its first
//! process.
//!
//! The lock is a `flock`, which belongs to the open file description. Lockgate opens and locks the file, the job's first
//! process inherits that description and passes it on to all its children, and Lockgate closes its own copy once the job has
//! started. From then on only processes of the job hold the lock, whether or not Lockgate is still alive.

use super::job_mark;
use super::table::FileId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where the inherited descriptor goes: shells and scripts use the low numbers for themselves.
const INHERITED: RawFd = 197;

/// Opens and locks a lock file, creating it and its directory if missing; `None` if another process holds the lock.
pub(super) fn take(path: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    Ok(if try_lock(&file)? { Some(file) } else { None })
}

/// Whether the lock is currently free.
pub(super) fn is_free(path: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let free = try_lock(&file)?;
    if free {
        // A process that another thread is starting right now may briefly hold a copy of this descriptor, in which case
        // closing ours would not release the lock.
        flock(&file, FlockOperation::Unlock)?;
    }
    Ok(free)
}

fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The pid in a lock file, if any, and the file's identity; `None` if there is no such file.
pub(super) fn read(path: &Path) -> io::Result<Option<(Option<u32>, FileId)>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    // A pid has at most ten digits, whatever else the file contains.
    let pid = file.by_ref().take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    Ok(Some((pid, FileId::of(&file.metadata()?))))
}

/// Empties a lock file, so that it does not contain the pid of an earlier job.
pub(super) fn clear(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()
}

/// Makes the process that is about to become a job the leader of its own session, lets it keep the lock, and records its pid.
/// This runs between fork and exec, so it makes plain system calls and allocates nothing.
pub(super) fn enter_session(lock: RawFd, limit: u64) -> io::Result<()> {
    job_mark::mark(limit);
    let session = rustix::process::setsid()?;
    // SAFETY: the parent keeps the file open until the child has started, and the child has its own copy of the descriptor.
    let lock = unsafe { BorrowedFd::borrow_raw(lock) };
    let inherited = fcntl_dupfd_cloexec(lock, INHERITED).or_else(|_| fcntl_dupfd_cloexec(lock, 10))?;
    fcntl_setfd(&inherited, FdFlags::empty())?;
    // Keep it open for as long as this process and its children are alive.
    std::mem::forget(inherited);

    let mut digits = [0_u8; 16];
    let mut start = digits.len() - 1;
    digits[start] = b'\n';
    let mut rest = session.as_raw_nonzero().get().unsigned_abs();
    while rest > 0 {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    rustix::io::pwrite(lock, &digits[start..], 0)?;
    Ok(())
}
