//! Why a path may not be used, or what is there cannot be.

use super::listing::named;
use super::size::format_size;
use std::io;
use std::path::PathBuf;

/// A path that may not be used, or cannot be, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?}: {reason}")]
pub struct Refused {
    /// The path as it was written.
    pub path: String,
    /// Why.
    pub reason: FileError,
}

impl Refused {
    pub(super) fn new(path: &str, reason: impl Into<FileError>) -> Self {
        Self { path: path.to_owned(), reason: reason.into() }
    }
}

/// Why a path names nothing that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is empty.
    #[error("the path is empty")]
    Empty,
    /// It holds a NUL.
    #[error("a path cannot hold a NUL character")]
    Nul,
    /// It is not text.
    #[error("the path is not valid UTF-8")]
    NotUtf8,
    /// It goes up.
    #[error("`..` is not allowed in it; name the file from the root or the output directory")]
    Parent,
    /// It is absolute where only relative paths are.
    #[error("an absolute path is not allowed here")]
    Absolute,
    /// It leads to a file that may not be shown.
    #[error("it lies outside the root and the output directory, and only files inside these can be shown")]
    OutsideRootAndOutput,
    /// It leads out of the output directory.
    #[error("it lies outside the output directory; name it relative to that")]
    OutsideOutput,
}

/// What the system says when it refuses a file, in words that stay the same from one attempt to the next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A link leads out of the directory that everything is opened in.
    #[error("a symbolic link leads out of its folder (one with an absolute target counts as such)")]
    LinkLeadsOut,
    /// Links lead to each other.
    #[error("symbolic links lead in a circle")]
    LinkLoop,
    /// This user may not.
    #[error("permission denied")]
    PermissionDenied,
    /// Something else.
    #[error("{message}")]
    Other {
        /// What kind of error it is.
        kind: io::ErrorKind,
        /// The system's own words.
        message: String,
    },
}

impl From<&io::Error> for Reason {
    fn from(error: &io::Error) -> Self {
        let number = error.raw_os_error();
        match error.kind() {
            // The resolution of the path refused it, hence there is no number of the operating system.
            io::ErrorKind::PermissionDenied if number.is_none() => Self::LinkLeadsOut,
            _ if number == Some(rustix::io::Errno::LOOP.raw_os_error()) => Self::LinkLoop,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            kind => Self::Other { kind, message: error.to_string() },
        }
    }
}

/// Why something that a path names cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The path itself.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The system refuses it.
    #[error(transparent)]
    Refused(#[from] Reason),
    /// The root.
    #[error("the root {} cannot be opened: {reason}", path.display())]
    RootNotOpened {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        reason: Reason,
    },
    /// The output directory is there and cannot be opened.
    #[error("the output directory cannot be opened: {0}")]
    OutputDirNotOpened(Reason),
    /// The output directory has a path that may not be used.
    #[error("the output directory cannot be used: {0}")]
    OutputDirUnusable(PathError),
    /// The output directory is missing, and cannot be created.
    #[error("the output directory {} cannot be made: {reason}", path.display())]
    OutputDirNotCreated {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        reason: Reason,
    },
    /// The directory of a file is missing, and cannot be created.
    #[error("its folder cannot be made: {0}")]
    DirectoryNotCreated(Reason),
    /// There is no such file.
    #[error("nothing is there")]
    Absent,
    /// There is no such file, and it was named as seen from the root.
    #[error("paths begin in the output directory: write {instead:?}")]
    NamedFromRoot {
        /// The path that was probably meant.
        instead: String,
    },
    /// It is something else than a file.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// It is the output directory.
    #[error("it is the output directory itself, not a file")]
    OutputDirItself,
    /// It has more bytes than may be read.
    #[error("it is larger than {}", format_size(*.most))]
    TooLarge {
        /// How many that are.
        most: u64,
    },
    /// It cannot be written.
    #[error("it cannot be written: {0}")]
    NotWritten(Reason),
    /// Something below a directory cannot be read.
    #[error("{} in it cannot be read: {reason}", named(.path))]
    UnreadableBelow {
        /// The path from that directory.
        path: PathBuf,
        /// Why.
        reason: Reason,
    },
    /// There is too much below a directory.
    #[error("it is a folder with more than {most} things in it")]
    TooManyEntries {
        /// How much may be there.
        most: usize,
    },
    /// The files below a directory are too large together.
    #[error("it is a folder with more than {} in it", format_size(*.most))]
    TooManyBytes {
        /// How large they may be.
        most: u64,
    },
    /// An output cannot be read.
    #[error("{} cannot be read: {reason}", path.display())]
    OutputUnreadable {
        /// The path in the output directory.
        path: PathBuf,
        /// Why.
        reason: Reason,
    },
    /// An output became something else meanwhile.
    #[error("{} changed while it was read", .0.display())]
    OutputChanged(PathBuf),
    /// The name of an output is not text.
    #[error("the name {} is not valid UTF-8", .0.display())]
    NameNotUtf8(PathBuf),
    /// An output that goes on for ever.
    #[error("{0} has no end")]
    Endless(String),
    /// An output may be lost when the machine stops.
    #[error("{name} could not be made durable: {reason}")]
    OutputNotDurable {
        /// The path in the output directory.
        name: String,
        /// Why.
        reason: Reason,
    },
    /// A directory may be lost when the machine stops.
    #[error("the folder {} could not be made durable: {reason}", path.display())]
    DirectoryNotDurable {
        /// The path in the output directory, or from the root.
        path: PathBuf,
        /// Why.
        reason: Reason,
    },
    /// A declared directory is empty.
    #[error("it is a folder with no file in it")]
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
