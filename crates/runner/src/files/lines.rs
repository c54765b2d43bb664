//! The lines of a file, as list items.

use super::error::FileError;
use super::lookup::{Lookup, lookup, read};
use super::run_dirs::{RunDirs, Side};

const MAX_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    #[error("it does not exist")]
    Absent,
    #[error(transparent)]
    Unreadable(#[from] FileError),
    #[error("it is larger than 16 MB")]
    TooLarge,
    #[error("it is not UTF-8 text")]
    NotText,
}

/// The non-empty lines of a file in the output directory or, if it is not there, under the root.
pub fn read_lines(run_dirs: &RunDirs, path: &str) -> Result<Vec<String>, LinesError> {
    let opened = run_dirs.open();
    let mut meant = opened.shown(path).map_err(FileError::from)?;
    meant.sort_by_key(|(side, _)| *side == Side::Root);
    for (side, parts) in meant {
        match lookup(opened.dir(side), &parts) {
            Lookup::Absent => {}
            Lookup::Unreadable(why) => return Err(why.into()),
            Lookup::Directory(_, _) => return Err(FileError::NotAFile("a directory").into()),
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
