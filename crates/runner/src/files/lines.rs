//! The lines of a file, as items of a list.

use super::error::FileError;
use super::lookup::{Lookup, lookup, read};
use super::run_dirs::{RunDirs, Side};

/// Larger files are no lists that somebody works through.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Why there are no lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    /// There is no such file.
    #[error("nothing is there")]
    Absent,
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// It is too large to be a list.
    #[error("it is larger than 16 MB")]
    TooLarge,
    /// It is not text.
    #[error("it is not UTF-8 text")]
    NotText,
}

/// The lines of a file in the output directory, else under the root; empty ones are left out.
pub fn read_lines(run_dirs: &RunDirs, path: &str) -> Result<Vec<String>, LinesError> {
    let opened = run_dirs.open();
    let mut meant = opened.shown(path).map_err(FileError::from)?;
    meant.sort_by_key(|(side, _)| *side == Side::Root);
    for (side, parts) in meant {
        match lookup(opened.folder(side), &parts) {
            Lookup::Absent => {}
            Lookup::Unreadable(why) => return Err(why.into()),
            Lookup::Directory(_, _) => return Err(FileError::NotAFile("a folder").into()),
            Lookup::File(mut file, _) => {
                let contents = read(&mut file, MAX_BYTES, MAX_BYTES).map_err(|error| FileError::from(&error))?;
                let bytes = contents.and_then(|contents| contents.kept);
                let bytes = bytes.ok_or(LinesError::TooLarge)?;
                let text = String::from_utf8(bytes).map_err(|_| LinesError::NotText)?;
                return Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect());
            }
        }
    }
    Err(LinesError::Absent)
}
