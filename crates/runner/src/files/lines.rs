//! The lines of a file, as items of a list.

use super::look::{Look, look, read, reason};
use super::places::{Places, Side};

/// Larger files are no lists that somebody works through.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Why there are no lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinesError {
    /// There is no such file.
    Absent,
    /// It cannot be read, and why.
    Unreadable(String),
}

/// The lines of a file in the output directory, else under the root; empty ones are left out.
pub fn look_at_lines(places: &Places, path: &str) -> Result<Vec<String>, LinesError> {
    let opened = places.open();
    let mut meant = opened.shown(path).map_err(LinesError::Unreadable)?;
    meant.sort_by_key(|(side, _)| *side == Side::Root);
    for (side, parts) in meant {
        match look(opened.folder(side), &parts) {
            Look::Absent => {}
            Look::Unreadable(why) => return Err(LinesError::Unreadable(why)),
            Look::Directory(_, _) => return Err(LinesError::Unreadable("it is a folder, not a file".to_owned())),
            Look::File(mut file, _) => {
                let contents = read(&mut file, MOST_BYTES, MOST_BYTES).map_err(|error| LinesError::Unreadable(reason(&error)))?;
                let bytes = contents.and_then(|contents| contents.kept);
                let bytes = bytes.ok_or_else(|| LinesError::Unreadable("it is larger than 16 MB".to_owned()))?;
                let text = String::from_utf8(bytes).map_err(|_| LinesError::Unreadable("it is not UTF-8 text".to_owned()))?;
                return Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect());
            }
        }
    }
    Err(LinesError::Absent)
}
