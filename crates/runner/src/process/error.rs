//! Errors when starting a job.

use std::io;
use std::path::PathBuf;

/// Why the command line for a command could not be built.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShellError {
    #[error("`shell` names no program")]
    NoProgram,
    #[error("`bash` is not found; install it, or set `shell: sh`")]
    NoBash,
    #[error("the script file {} cannot be written: {error}", path.display())]
    Script { path: PathBuf, error: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("the path of the lock {} cannot be resolved: {error}", path.display())]
    LockPath { path: PathBuf, error: io::Error },
    #[error("the lock {} cannot be used: {error}", path.display())]
    Lock { path: PathBuf, error: io::Error },
    #[error(
        "an earlier attempt is still running{}: {} is locked; stop it first",
        pid.map_or(String::new(), |pid| format!(" (its first process was {pid})")),
        path.display()
    )]
    Locked {
        path: PathBuf,
        /// The first process of that attempt, if the lock file names it.
        pid: Option<u32>,
    },
    #[error("cannot create a pipe for the output: {0}")]
    Pipe(io::Error),
    #[error("the output cannot be read: {0}")]
    Output(io::Error),
    #[error("input and output could not be prepared: {0}")]
    Streams(io::Error),
    #[error("cannot watch for the end of a process: {0}")]
    Watch(io::Error),
    #[error(transparent)]
    Shell(#[from] ShellError),
    #[error("the directory {} does not exist", .0.display())]
    NoDirectory(PathBuf),
    #[error("the command and its environment are too long for the system; put large values in files")]
    TooLong,
    #[error("the shell `{shell}` could not be started: {error}")]
    Spawn { shell: String, error: io::Error },
}
