//! Why a path or the file at it cannot be used.

use super::listing::named;
use super::size::format_size;
use std::io;
use std::path::PathBuf;

/// A path that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?}: {reason}")]
pub struct Refused {
    pub path: String,
    pub reason: FileError,
}

impl Refused {
    pub(super) fn new(path: &str, reason: impl Into<FileError>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("a path cannot contain a NUL character")]
    Nul,
    #[error("the path is not valid UTF-8")]
    NotUtf8,
    #[error("`..` is not allowed; use a path relative to the root or the output directory")]
    Parent,
    #[error("an absolute path is not allowed here")]
    Absolute,
    #[error("it is outside the root and the output directory, and only files inside these can be shown")]
    OutsideRootAndOutput,
    #[error("it is outside the output directory; use a path relative to it")]
    OutsideOutput,
}

/// Why the system refused a file, in words that do not change from one attempt to the next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("a symbolic link leads out of its directory (one with an absolute target counts as such)")]
    LinkLeadsOut,
    #[error("symbolic links form a cycle")]
    LinkLoop,
    #[error("permission denied")]
    PermissionDenied,
    #[error("{message}")]
    Other { kind: io::ErrorKind, message: String },
}

impl From<&io::Error> for Reason {
    fn from(error: &io::Error) -> Self {
        let number = error.raw_os_error();
        match error.kind() {
            // The path resolution itself refused it, so there is no error number from the operating system.
            io::ErrorKind::PermissionDenied if number.is_none() => Self::LinkLeadsOut,
            _ if number == Some(rustix::io::Errno::LOOP.raw_os_error()) => Self::LinkLoop,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            kind => Self::Other { kind, message: error.to_string() },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Refused(#[from] Reason),
    #[error("the root {} cannot be opened: {reason}", path.display())]
    RootNotOpened { path: PathBuf, reason: Reason },
    #[error("the output directory cannot be opened: {0}")]
    OutputDirNotOpened(Reason),
    #[error("the output directory cannot be used: {0}")]
    OutputDirUnusable(PathError),
    #[error("the output directory {} cannot be created: {reason}", path.display())]
    OutputDirNotCreated { path: PathBuf, reason: Reason },
    #[error("its directory cannot be created: {0}")]
    DirectoryNotCreated(Reason),
    #[error("it does not exist")]
    Absent,
    /// It does not exist, and the path was given relative to the root.
    #[error("paths are relative to the output directory: write {instead:?}")]
    NamedFromRoot { instead: String },
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    #[error("it is the output directory itself, not a file")]
    OutputDirItself,
    #[error("it is larger than {}", format_size(*.most))]
    TooLarge { most: u64 },
    #[error("it cannot be written: {0}")]
    NotWritten(Reason),
    #[error("{} in it cannot be read: {reason}", named(.path))]
    UnreadableBelow { path: PathBuf, reason: Reason },
    #[error("it is a directory with more than {most} entries")]
    TooManyEntries { most: usize },
    #[error("it is a directory with more than {}", format_size(*.most))]
    TooManyBytes { most: u64 },
    #[error("{} cannot be read: {reason}", path.display())]
    OutputUnreadable {
        /// The path in the output directory.
        path: PathBuf,
        reason: Reason,
    },
    #[error("{} changed while it was read", .0.display())]
    OutputChanged(PathBuf),
    #[error("the name {} is not valid UTF-8", .0.display())]
    NameNotUtf8(PathBuf),
    #[error("{0} is endless")]
    Endless(String),
    /// The output may be lost in a crash.
    #[error("{name} could not be made durable: {reason}")]
    OutputNotDurable {
        /// The path in the output directory.
        name: String,
        reason: Reason,
    },
    /// The directory may be lost in a crash.
    #[error("the directory {} could not be made durable: {reason}", path.display())]
    DirectoryNotDurable {
        /// The path in the output directory, or from the root.
        path: PathBuf,
        reason: Reason,
    },
    #[error("it is a directory without files")]
    NoFileBelow,
}

impl From<&io::Error> for FileError {
    fn from(error: &io::Error) -> Self {
        Self::Refused(Reason::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_classified() {
        let of = |number: rustix::io::Errno| Reason::from(&io::Error::from(number));
        assert_eq!(of(rustix::io::Errno::ACCESS), Reason::PermissionDenied);
        assert_eq!(of(rustix::io::Errno::LOOP), Reason::LinkLoop);
        assert_eq!(Reason::from(&io::Error::from(io::ErrorKind::PermissionDenied)), Reason::LinkLeadsOut);
        assert!(matches!(of(rustix::io::Errno::NOSPC), Reason::Other { kind: io::ErrorKind::StorageFull, .. }));
    }
}
