//! Why a job could not be started.

use std::io;
use std::path::PathBuf;

/// Why there is no command line for a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShellError {
    /// `shell` is empty.
    #[error("`shell` names no program")]
    NoProgram,
    /// bash is asked for and is not installed.
    #[error("`bash` is not found; install it, or set `shell: sh`")]
    NoBash,
    /// The file that the shell reads cannot be written.
    #[error("the script file {} cannot be written: {error}", path.display())]
    Script {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Why a job could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// The path of the lock cannot be made absolute.
    #[error("the lock {} has no place: {error}", path.display())]
    LockPath {
        /// As it was given.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The lock cannot be opened or taken.
    #[error("the lock {} cannot be used: {error}", path.display())]
    Lock {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Processes of an earlier attempt hold the lock.
    #[error(
        "an earlier attempt is still running{}: {} is locked; end it first",
        pid.map_or(String::new(), |pid| format!(" (its first process was {pid})")),
        path.display()
    )]
    Locked {
        /// The lock.
        path: PathBuf,
        /// The first process of that attempt, where the lock says so.
        pid: Option<u32>,
    },
    /// There is no pipe.
    #[error("no pipe for the output could be made: {0}")]
    Pipe(io::Error),
    /// The pipe cannot be read.
    #[error("the output cannot be read: {0}")]
    Output(io::Error),
    /// The standard streams cannot be made.
    #[error("input and output could not be prepared: {0}")]
    Streams(io::Error),
    /// The end of the process would not be noticed.
    #[error("the end of a process cannot be watched here: {0}")]
    Watch(io::Error),
    /// There is no command line.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// The directory that it should work in is missing.
    #[error("the folder {} is not there", .0.display())]
    NoDirectory(PathBuf),
    /// The system does not take so many bytes.
    #[error("the command and its environment are too long for the system; put large values in files")]
    TooLong,
    /// The system does not start the shell.
    #[error("the shell `{shell}` could not be started: {error}")]
    Spawn {
        /// The shell and its options.
        shell: String,
        /// Why.
        error: io::Error,
    },
}
