//! The text that a folder's digest is of: one line for each thing below it, sorted, with the digest of every file.
//!
//! ```text
//! lockgate listing 1
//! file 12 af13… src/main.rs
//! folder src
//! link ../LICENSE src/licence
//! ```
//!
//! The path stands last and runs to the end of the line; line breaks, control characters and backslashes in names are
//! escaped, so that no name can pass for another line.

use super::look::{open_file, read, reason, special};
use super::size::size_text;
use cap_std::fs::{Dir, FileType};
use lockgate_engine::digest::Digest;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const HEADER: &str = "lockgate listing 1";

/// Folders that change by being looked at or worked beside; they are named in a listing, and what is in them is not.
const LEFT_OUT: [&str; 2] = [".git", ".lockgate"];

/// Something below a folder.
pub(super) struct Below {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
}

/// Everything below a folder, sorted, following no links; or why that is too much.
pub(super) fn walk(base: &Dir, most: usize, enter: &dyn Fn(&Path) -> bool) -> Result<Vec<Below>, String> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let entries = if folder.as_os_str().is_empty() { base.entries() } else { base.read_dir(&folder) };
        let entries = match entries {
            Ok(entries) => entries,
            // It went away, or became something else, while we looked.
            Err(error) if gone(&error) => continue,
            Err(error) => return Err(format!("{} in it cannot be read: {}", named(&folder), reason(&error))),
        };
        for entry in entries {
            let entry = entry.map_err(|error| format!("{} in it cannot be read: {}", named(&folder), reason(&error)))?;
            let path = folder.join(entry.file_name());
            let kind = match entry.metadata() {
                Ok(metadata) => metadata.file_type(),
                Err(error) if gone(&error) => continue,
                Err(error) => return Err(format!("{} in it cannot be read: {}", named(&path), reason(&error))),
            };
            if found.len() >= most {
                return Err(format!("it is a folder with more than {most} things in it"));
            }
            if kind.is_dir() && enter(&path) {
                waiting.push(path.clone());
            }
            found.push(Below { path, kind });
        }
    }
    found.sort_by(|one, other| one.path.as_os_str().as_bytes().cmp(other.path.as_os_str().as_bytes()));
    Ok(found)
}

/// A folder's listing and how many files it names.
pub(super) struct Listing {
    pub(super) text: String,
    pub(super) files: u64,
}

/// Lists a folder; or says why it cannot be listed whole.
pub(super) fn list(base: &Dir, most_things: usize, most_bytes: u64) -> Result<Listing, String> {
    let entered = |path: &Path| path.file_name().is_none_or(|name| !LEFT_OUT.iter().any(|left_out| name == *left_out));
    let mut listing = Listing { text: format!("{HEADER}\n"), files: 0 };
    let mut left = most_bytes;
    for Below { path, kind } in walk(base, most_things, &entered)? {
        let what = if kind.is_dir() {
            if entered(&path) { "folder".to_owned() } else { "left-out".to_owned() }
        } else if kind.is_symlink() {
            match base.read_link_contents(&path) {
                Ok(target) => format!("link {}", escaped(&target).replace(' ', "\\x20")),
                Err(error) if gone(&error) => continue,
                Err(error) => return Err(format!("{} in it cannot be read: {}", named(&path), reason(&error))),
            }
        } else if kind.is_file() {
            match digest(base, &path, left) {
                Ok(Some((digest, bytes))) => {
                    left -= bytes;
                    listing.files += 1;
                    format!("file {bytes} {digest}")
                }
                Ok(None) => return Err(format!("it is a folder with more than {} in it", size_text(most_bytes))),
                Err(error) if gone(&error) => continue,
                Err(error) => return Err(format!("{} in it cannot be read: {}", named(&path), reason(&error))),
            }
        } else {
            special(kind).replace(' ', "-")
        };
        let _ = writeln!(listing.text, "{what} {}", escaped(&path));
    }
    Ok(listing)
}

fn digest(base: &Dir, path: &Path, most: u64) -> io::Result<Option<(Digest, u64)>> {
    match open_file(base, path, OFlags::NOFOLLOW)? {
        Ok(mut file) => Ok(read(&mut file, 0, most)?.map(|contents| (contents.digest, contents.bytes))),
        Err(_) => Err(io::Error::other("it changed while it was read")),
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn named(path: &Path) -> String {
    if path.as_os_str().is_empty() { "what is".to_owned() } else { format!("\"{}\"", escaped(path)) }
}

/// A path on one line, different for every different path.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                character if character.is_control() => {
                    let _ = write!(text, "\\u{{{:x}}}", u32::from(character));
                }
                character => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// One line of a listing: what is there, and for a file its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) what: &'a str,
    pub(super) bytes: Option<u64>,
}

impl Line<'_> {
    /// It in a few words.
    pub(super) fn words(&self) -> String {
        match (self.bytes, self.what.split(' ').collect::<Vec<_>>().as_slice()) {
            (Some(bytes), _) => size_text(bytes),
            (None, ["link", target]) => format!("a link to {}", target.replace("\\x20", " ")),
            (None, ["left-out"]) => "a folder that is left out".to_owned(),
            (None, ["folder"]) => "a folder".to_owned(),
            (None, _) => self.what.replace('-', " "),
        }
    }
}

/// Reads a listing back: what is under each path. Lines that cannot be read are left out.
pub(super) fn parse(text: &str) -> BTreeMap<&str, Line<'_>> {
    let lines = text.strip_prefix(HEADER).unwrap_or(text).lines();
    lines
        .filter_map(|line| {
            let words = match line.split(' ').next()? {
                "file" => 3,
                "link" => 2,
                _ => 1,
            };
            let (end, _) = line.match_indices(' ').nth(words - 1)?;
            let what = &line[..end];
            let bytes = what.strip_prefix("file ").and_then(|rest| rest.split(' ').next()).and_then(|size| size.parse().ok());
            Some((&line[end + 1..], Line { what, bytes }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn no_two_names_are_written_alike_and_none_breaks_the_line() {
        let names: [&[u8]; 6] = [b"a\nb", b"a\\nb", b"a\\u{a}b", b"\xffa", b"\\xffa", b"a b"];
        let written: std::collections::BTreeSet<String> =
            names.iter().map(|name| escaped(Path::new(OsStr::from_bytes(name)))).collect();
        assert_eq!(written.len(), names.len());
        assert!(written.iter().all(|name| name.lines().count() == 1), "{written:?}");
    }

    #[test]
    fn a_listing_is_read_back_with_spaces_in_its_paths() {
        let text = format!("{HEADER}\nfile 12 {} a b/c d\nfolder a b\nlink x\\x20y z z\na-named-pipe p q\n", Digest::of(b""));
        let lines = parse(&text);
        assert_eq!(lines.keys().copied().collect::<Vec<_>>(), ["a b", "a b/c d", "p q", "z z"]);
        assert_eq!(lines["a b/c d"].bytes, Some(12));
        assert_eq!(lines["z z"].words(), "a link to x y");
        assert_eq!(lines["p q"].words(), "a named pipe");
    }
}
